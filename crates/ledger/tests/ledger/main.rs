//! Declared migrations against a real Postgres.

#![allow(clippy::unwrap_used)]

mod bank;
mod certificate;
mod export;
mod outcomes;
mod plan;
mod pooled;
