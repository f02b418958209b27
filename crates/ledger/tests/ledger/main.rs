//! Declared migrations against a real Postgres.

mod bank;
mod outcomes;
mod plan;
