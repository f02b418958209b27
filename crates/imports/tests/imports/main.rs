//! The contract of an import, on both databases: a runner at work, a vendor of the tests' own, and nothing of it mocked
//! below that.

#![allow(clippy::unwrap_used)]

mod books;
mod conflicts;
mod duplicates;
mod identity;
mod log;
mod pooled;
mod records;
mod routing;
mod steering;
mod verify;
mod world;
