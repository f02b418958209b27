//! The sources against the simulators of their vendors, over TCP.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod bitly;
mod bitly_answers;
mod canned;
mod imported;
