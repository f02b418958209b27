//! Bitly, API v4.
//!
//! Read 2026-11: the API reference and its "Rate Limits" and "Pagination" pages (<https://dev.bitly.com/>), the
//! copies of Bitly's own OpenAPI files in `api-evangelist/bitly` on GitHub, and what clients of others report of
//! real answers (shlinkio/shlink#2095, thedevs-network/kutt#382, tanepiper/node-bitly#71, the importers of
//! `dubinc/dub` and `shlinkio/shlink-importer`).
//!
//! **Paging.** `GET /groups/{guid}/bitlinks`, newest first, 100 at most (50 if nothing is said). The next page is
//! asked with the `search_after` of the last one; only values that the API gave are taken. The end is an empty
//! `search_after` together with an empty `next`. Archived links are left out unless `archived=both` is sent: a
//! walk without it loses them silently. Links are listed per group; a token sees the groups of its owner, and one
//! that is not active refuses its list.
//!
//! **Limits.** Five connections at once per address; this call 150 times a minute and 1,500 an hour. A month has
//! 1,000 calls on the free plan, 5,000, 25,000 or 50,000 on others, counted from the first. Neither limit sends
//! `Retry-After`. They are told apart by `message` alone: `RATE_LIMIT_EXCEEDED` passes, `API_USAGE_LIMIT_EXCEEDED`
//! and `MONTHLY_LIMIT_EXCEEDED` last to the end of the month. The limit has also come as 403, and from the older API
//! with the code in `status_txt`.
//!
//! **Oddities.**
//! - `link` is always the generated hash; custom back-halves stand in `custom_bitlinks`, newest first, and the
//!   older ones still redirect. So a link has one address for its hash and one for every back-half.
//! - `id` is `host/hash` and is split at its first slash only. Its parts are read as those of a back-half's URL are;
//!   the source id stays as received.
//! - Dates carry `+0000`, which is no RFC 3339.
//! - Titles are taken from web pages and have come with raw control characters and unescaped quotes.
//! - `long_url` may be missing or empty. Bitly undoes percent-encoding when it saves one, so it may hold blanks and
//!   raw UTF-8, and blanks around it that browsers drop.
//! - An archived link still redirects.
//! - No count of links is told anywhere: what an import needs is estimated from samples.

mod map;
mod source;
mod survey;

mod answers;
mod wire;

pub use map::BitlyMapper;
pub use source::{Bitly, BitlyOptions};
pub use survey::{Allowance, CallsNeeded, Certainty, LinkCount, Survey, SurveyedGroup};

/// Links on one page, the most that Bitly gives.
pub const PAGE_SIZE: u64 = 100;

/// The address of Bitly's own API.
pub const BASE_URL: &str = "https://api-ssl.bitly.com/v4";
