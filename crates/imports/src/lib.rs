//! Bringing links over: what an incoming link is, the link sink and its conflict rules, dry run, verify, undo, report.
//!
//! This room joins the engine (which moves records and knows no link) with the link domain (which keeps links and
//! knows no source). It refuses to know any vendor: a [`Vendor`] gives it a source and a [`Mapper`].
//!
//! The walk of a record: [`Mapper::map`] reads it, [`routes`] says which domain each of its addresses goes to,
//! [`decide`] chooses slugs by the job's [`Conflict`] rule, [`sink`] writes the chunk set-wise in the engine's
//! transaction. [`Imports`] is what the command line and the API call.
//!
//! Progress is told with each commit, of a page or of a chunk, and never in between by a number of records: what is not
//! committed may still come to nothing.

mod checker;
pub mod decide;
mod error;
mod forecast;
mod hosts;
mod incoming;
mod kind;
mod parameters;
mod prepare;
mod rekeys;
mod report;
pub mod routes;
mod service;
pub mod sink;
mod store;
mod token;
mod undo;
mod vendor;
mod verify;

use db::{Migration, Room};

pub use error::{Error, Result};
pub use forecast::{Allowance, Certainty, Forecast, ForecastPart};
pub use hosts::{HOSTS_MAX, HostMet, HostsMet};
pub use incoming::{Incoming, IncomingAddress, IncomingLink, Mapper, Unreadable};
pub use kind::{AfterCommit, ImportKind, KIND};
pub use parameters::{Conflict, Filter, Parameters};
pub use report::{ImportReport, LogEntry};
pub use service::{Imports, NewImport};
pub use token::{Token, Vault};
pub use undo::UndoReport;
pub use vendor::Vendor;
pub use verify::{Finding, Verdict, Verification};

/// Links fetched in one run at most; the next run begins at the checkpoint by itself.
pub const MAX_LINKS_PER_RUN: i64 = 50_000;
/// Fetching time of one run at most.
pub const RUN_BUDGET: std::time::Duration = std::time::Duration::from_secs(30 * 60);
/// Entries an import's error log keeps; the counters go on.
pub const ERROR_LOG_CAP: i64 = 1_000;
/// The last number tried by the rule `suffix`: `mylink-2` … `mylink-50`.
pub const MAX_SUFFIX: u32 = 50;

/// The room's migrations; they follow those of the engine and of the link domain.
pub const ROOM: Room = db::room!(
    "imports",
    &[
        Migration {
            version: 1,
            name: "import parameters and the view of import jobs",
            sqlite: include_str!("../migrations/0001_imports.sqlite.sql"),
            postgres: include_str!("../migrations/0001_imports.postgres.sql"),
        },
        Migration {
            version: 2,
            name: "totals of import jobs over all parts or none",
            sqlite: include_str!("../migrations/0002_totals.sqlite.sql"),
            postgres: include_str!("../migrations/0002_totals.postgres.sql"),
        },
        Migration {
            version: 3,
            name: "hosts that a check met at the source",
            sqlite: include_str!("../migrations/0003_hosts.sqlite.sql"),
            postgres: include_str!("../migrations/0003_hosts.postgres.sql"),
        },
        Migration {
            version: 4,
            name: "forecasts of imports",
            sqlite: include_str!("../migrations/0004_forecast.sqlite.sql"),
            postgres: include_str!("../migrations/0004_forecast.postgres.sql"),
        },
        Migration {
            version: 5,
            name: "possible re-keys of imports",
            sqlite: include_str!("../migrations/0005_rekeys.sqlite.sql"),
            postgres: include_str!("../migrations/0005_rekeys.postgres.sql"),
        },
    ]
);
