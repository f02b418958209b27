//! The server over real sockets.
#![allow(clippy::unwrap_used)] // A panic is how a test says what went wrong.

mod admin;
mod clicks;
mod client;
mod imports_api;
mod jobs;
mod limits;
mod links_api;
mod pages;
mod redirects;
mod server;
mod vendor;
mod visibility;
