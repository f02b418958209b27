//! The vendors' APIs in a box, for tests, demos and benchmarks.
//!
//! A simulator serves an account that exists only as a seed: the same seed gives the same links, the same
//! cursors and the same bytes, on every machine and in every run. It misbehaves on request, by name and at a
//! chosen request, in the ways real APIs do ([`bitly::FaultPlan`], [`wallet_logs::FaultPlan`]). [`bitly`] is a vendor of
//! short links, [`wallet_logs`] the export of a bank's movements.
//!
//! This crate knows nothing of the importers, and nothing here may be used by them: what both sides share they
//! cannot check. It knows no database, no job and no slug rule of the product. What an account contains is
//! told twice, once by the API and once by the account itself ([`bitly::Account::truth`]), so that a verifier
//! can ask every slug over HTTP without trusting whoever read the API.
//!
//! ```
//! use crossdock_simulators::bitly::{Account, FaultPlan, Options, Server};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let account = Account::generate(1_000, 7);
//! let faults: FaultPlan = "429@3,cut@5".parse()?;
//! let running = Server::start("127.0.0.1:0".parse()?, account, faults, Options::default()).await?;
//! println!("{}", serde_json::to_string(&running.ready())?);
//! running.shutdown().await;
//! # Ok(())
//! # }
//! ```

pub mod bitly;
mod chance;
mod date;
mod encoding;
mod listen;
mod payload;
mod plan;
mod reply;
pub mod wallet_logs;
