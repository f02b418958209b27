//! Declared migrations against a real Postgres.

mod bank;
mod certificate;
mod outcomes;
mod plan;
