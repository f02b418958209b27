//! Crossdock over HTTP: redirects, the REST API, and the plain pages that show an import.
//!
//! A [`Redirects`] answers link domains from memory and is told of every change made in this process; [`serve`]
//! accepts connections and lets the host of each request decide: a link domain redirects and does nothing else, the
//! other hosts have the API.
//!
//! This crate refuses to know how links are stored, how imports run, or what a vendor is: handlers extract, call one
//! operation of another room, and answer. Which status belongs to which error is known in one file, `problem.rs`.
//!
//! ```no_run
//! # async fn example(database: db::Database, imports: imports::Imports, key: [u8; 32]) -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use crossdock_http::{Metrics, PageKey, Parts, Redirects, ServerOptions, SystemClock, serve};
//!
//! let mut registry = prometheus_client::registry::Registry::default();
//! let metrics = Metrics::register(&mut registry);
//! let clock = Arc::new(SystemClock);
//! let redirects = Redirects::new(database.clone(), crossdock_http::CACHE_BYTES, clock.clone(), metrics.clone());
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! let options = ServerOptions::new("http://127.0.0.1:8080".parse()?, PageKey::new(key));
//! let parts = Parts { database, redirects, imports, registry: Arc::new(registry), metrics, clock, other_jobs: Vec::new() };
//! serve(listener, options, parts, async { let _ = tokio::signal::ctrl_c().await; }).await?;
//! # Ok(()) }
//! ```

mod clicks;
mod gate;
mod redirect;
mod server;
mod visitor;

mod api;
mod jobs;
mod pages;
mod problem;
mod request_id;

mod client_address;
mod clock;
mod connection;
mod metrics;
mod options;

pub use clicks::BLOCKS_WAITING;
pub use client_address::{ClientAddress, TrustedProxies};
pub use clock::{Clock, SystemClock};
pub use jobs::OtherJobs;
pub use metrics::Metrics;
pub use options::{Parts, ServerOptions};
pub use pages::PageKey;
pub use redirect::{CACHE_BYTES, Redirects};
pub use server::{ServeError, serve};
