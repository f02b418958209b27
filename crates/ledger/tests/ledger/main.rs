//! Declared migrations against a real Postgres.

#![allow(clippy::unwrap_used)]

mod bank;
mod cases;
mod cases_source;
mod certificate;
mod export;
mod guarantees;
mod mutations;
mod outcomes;
mod plan;
mod pooled;
mod quarantine;
mod rollback;
mod run;
mod sweep;
mod zones;
