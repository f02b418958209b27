//! What the room promises, on both databases.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod batch;
mod changes;
mod clicks;
mod domains;
mod links;
mod listing;
mod schema;
mod tokens;
mod world;
