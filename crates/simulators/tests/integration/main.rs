//! The simulators as their clients meet them: over TCP.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod bitly_api;
mod bitly_faults;
mod bitly_simulator;
mod client;
mod export;
mod wallet_logs_api;
mod wallet_logs_faults;
mod wallet_logs_oddities;
mod wallet_logs_truth;
