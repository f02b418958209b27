//! What the engine promises, on both databases, with a scripted source and a sink that can be told to fail.

// Helpers outside test functions are tests too.
#![allow(clippy::unwrap_used)]

// The crate is imported by this name everywhere else too.
extern crate crossdock_engine as engine;

mod support;

mod back_pressure;
mod closing;
mod corrections;
mod conservation;
mod counts;
mod cursors;
mod lanes;
mod modes;
mod network;
mod pages;
mod pgbouncer;
mod plans;
mod poison;
mod processes;
mod resume;
mod rules;
mod runs;
mod states;
