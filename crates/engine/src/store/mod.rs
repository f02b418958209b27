//! The engine's tables and the transactions over them.
//!
//! Each subject has a facade here and twin files below `sqlite` and `postgres` with the same functions in the same
//! order. What the store promises to the loops above:
//!
//! - [`pages::commit`] makes records, fingerprints, cursor and counters durable together, and only for the holder
//!   of the partition's current epoch at the position it began from;
//! - [`chunks::settle`] changes only a chunk that is still ready, inside the sink's transaction;
//! - counters are sums over chunks and partitions; nothing is counted twice because nothing is counted elsewhere.
//!
//! A function takes a [`db::Conn`]; the caller owns the transaction. Only [`Store`] opens transactions itself, for
//! what is one step.

pub mod chunks;
pub mod corrections;
pub mod history;
pub mod jobs;
pub mod pages;
pub mod partitions;
mod postgres;
mod sqlite;

use db::{Database, Migration, Room};

/// The engine's migrations. On Postgres its tables live in the schema `crossdock`.
pub const ROOM: Room = db::room!(
    "engine",
    schema "crossdock",
    &[
        Migration {
            version: 1,
            name: "jobs, checkpoints, staging, history",
            sqlite: include_str!("../../migrations/0001_engine.sqlite.sql"),
            postgres: include_str!("../../migrations/0001_engine.postgres.sql"),
        },
        Migration {
            version: 2,
            name: "since when a job rests",
            sqlite: include_str!("../../migrations/0002_rests.sqlite.sql"),
            postgres: include_str!("../../migrations/0002_rests.postgres.sql"),
        },
        Migration {
            version: 3,
            name: "partitions that look once more at the end",
            sqlite: include_str!("../../migrations/0003_closing.sqlite.sql"),
            postgres: include_str!("../../migrations/0003_closing.postgres.sql"),
        },
    ]
);

/// The engine's tables in an open database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Over a database whose engine tables are migrated.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// The database itself.
    pub fn database(&self) -> &Database {
        &self.database
    }
}

/// An integer of a row that the schema keeps within 32 bits, as an ordinal or a count.
pub(crate) fn small(number: usize) -> i32 {
    i32::try_from(number).expect("segments and chunks are bounded far below two thousand million records")
}
