//! The statements for SQLite.

pub(super) mod chunks;
pub(super) mod corrections;
pub(super) mod history;
pub(super) mod jobs;
pub(super) mod pages;
pub(super) mod partitions;
