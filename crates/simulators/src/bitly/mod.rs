//! Bitly, API v4.
//!
//! What it does and how it names things follows the vendor's public API description and pages (dev.bitly.com,
//! "API Reference" and "Rate Limits", read 2026-08) and what clients of others report of real answers:
//!
//! - the list is paged by `search_after`, which only takes what the API gave, and ends with both `search_after`
//!   and `next` empty; `size` is 50 by default and 100 at most; newest first.
//!   Parameters beyond `size`, `search_after`, `archived`, `created_before`, `created_after` and `tags` are ignored;
//! - archived links are left out unless `archived=on` or `both` is sent;
//! - dates carry `+0000`, without a colon; `custom_bitlinks` holds up to three back-halves, newest first;
//! - limits carry no `Retry-After`, are 429 today and were 403 once, and one kind of them lasts to the month's end;
//! - at most five connections at once; a sixth is closed without an answer;
//! - errors are `{message, description, resource, errors}`, where `message` is the machine's code.
//!
//! Beside the API, under `/__simulator/` and with the token the account started with: `GET stats`, `GET
//! truth?offset=&limit=` (one line of JSON per slug) and `POST mutate` (see [`Mutation`], and
//! `{"op":"renew_token"}`).

mod account;
mod changes;
mod edits;
mod fault_names;
mod faults;
mod link;
mod list;
mod listing;
mod records;
mod reply;
mod rough;
mod routes;
mod server;
mod shape;
mod slugs;
mod stats;
mod truth;
mod wire;
mod words;

pub use account::{Account, Planted};
pub use edits::{Mutation, MutationError};
pub use faults::{Fault, FaultPlan, PlanError, RetryAfter};
pub use records::RecordFault;
pub use server::{Options, Ready, Running, Server, StartError};
pub use shape::{Group, Shape};
pub use stats::{ListCall, Stats, Struck};
pub use truth::{Expect, Truth, location_form};
