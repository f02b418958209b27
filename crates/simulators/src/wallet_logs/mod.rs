//! An export API of wallet logs, as a `core-service` of a bank has one.
//!
//! `GET /wallet-logs` with a bearer token gives `{"data":[…],"meta":{"next_cursor","has_more","limit","total"}}`:
//!
//! - ordered by `created_at` and, among the records of one instant, by `id`; the ids are in no other order;
//! - `limit` is 1 to 1,000, by default 100; `cursor` takes what the API gave, `after_id` the id of any record, `offset`
//!   how many records come before (which loses some when others go), and none of them is the beginning;
//! - `shard=k` (from 0) leaves one of as many equal parts as the simulator has partitions, or as `shards` says;
//!   `from` and `to` (RFC 3339, the second excluded) leave a stretch of `created_at`. Whoever pages by cursor sends
//!   the same ones with every request;
//! - errors are `{"error":{"field","code"}}`; a forged cursor is `INVALID_PAGE_TOKEN`.
//!
//! A record is `{"id","seq","wallet_id","customer_id","type","amount","currency","balance_before","balance_after",
//! "reference","status","narration","metadata","created_at"}` with amounts as text of four places. Each wallet begins
//! with nothing, and each of its movements begins where the one before ended.
//!
//! Beside the API, without a token: `GET /truth`, what is true of the export in numbers and what was asked so far,
//! and `GET /truth/rows`, a line of JSON for every record. `POST /token` with the first token as bearer token makes a
//! new one valid and gives it.
//!
//! ```
//! use crossdock_simulators::wallet_logs::{FaultPlan, Logs, Options, Server, Verdict};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let faults: FaultPlan = "429@3,cut@5,missing-id@17".parse()?;
//! let running = Server::start("127.0.0.1:0".parse()?, Logs::generate(1_000, 7), faults, Options::default()).await?;
//! println!("{}", serde_json::to_string(&running.ready())?);
//! let landing = running.logs().truth().filter(|row| row.verdict == Verdict::Lands);
//! assert_eq!(landing.count(), 999);
//! running.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod accounts;
mod amount;
mod cursor;
mod fault_names;
mod faults;
mod id;
mod list;
mod listing;
mod log;
mod logs;
mod oddity;
mod rough;
mod routes;
mod server;
mod stats;
mod truth;
mod wire;

pub use amount::Amount;
pub use faults::FaultPlan;
pub use id::{Reference, Uuid};
pub use log::{Kind, Log};
pub use logs::Logs;
pub use oddity::Verdict;
pub use server::{Options, Ready, Running, Server, StartError};
pub use stats::{PageCalls, Stats, Struck};
pub use truth::{BadIds, CurrencySum, FlaggedIds, Row, Summary};

pub use crate::plan::{PlanError, RetryAfter};
