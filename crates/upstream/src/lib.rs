//! A polite HTTP client for the paginated APIs we read.
//!
//! It asks one API on one origin, at the pace the API documents, and gives back whole answers or a reason that
//! says what the caller can do. What may be tried again is tried again here, so that whoever pages through an
//! account sees pages and final errors only.
//!
//! * **Limits.** Time to connect, silence, time per attempt, bytes of a body, retries, redirects and the wait a
//!   server may ask for all have one; see [`Options`].
//! * **Whole or not at all.** A body that is cut, by its length, its chunks or its compression, is a broken
//!   transport, never data. With [`Request::expect_json`] neither is an empty body, HTML, or half a document.
//! * **Retry.** 429, 500, 502, 503, 504 and broken transport, with full jitter; `Retry-After` in every form
//!   servers send it. After a 429 all requests of a client pause together, then one goes first.
//! * **Meaning.** A source teaches the client by [`Classify`] that this 403 is a rate limit, this 429 the end of
//!   a month's quota, this 200 an error.
//! * **Origin.** Redirects and `next` links are followed on the API's own origin only; the credential goes
//!   nowhere else and appears in no error, log line or debug output.
//!
//! It refuses to know any vendor, any page format, and everything else of this workspace. Time and chance are
//! given to it ([`Clock`], [`Chance`]); [`testing`] has a clock on which waiting takes no time.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use crossdock_upstream::{Client, Error, FixedHeader, Options, Pace, Reply, Url, Verdict};
//!
//! # async fn example() -> Result<(), Error> {
//! let base = Url::parse("https://api.example.com/v4").expect("a constant URL is valid");
//! let pace = Pace { requests: 150, per: Duration::from_secs(60), concurrent: 4 };
//! let client = Client::builder(base)
//!     .options(Options { pace: Some(pace), ..Options::default() })
//!     .credentials(FixedHeader::bearer("a token from a prompt")?)
//!     .classify(|reply: &Reply<'_>| match reply.status.as_u16() {
//!         403 if reply.body.starts_with(b"slow down") => {
//!             Verdict::RateLimited { after: Some(Duration::from_secs(60)), reason: "403 slow down".to_owned() }
//!         }
//!         _ => Verdict::Default,
//!     })
//!     .build()?;
//!
//! let page = client.get_json("groups/g1/links", &[("size", "100")]).await?;
//! println!("{} bytes after {} attempts", page.body.len(), page.attempts);
//! # Ok(())
//! # }
//! ```

mod client;
mod error;
mod options;
mod request;

mod call;
mod classify;
mod credentials;
mod exchange;

mod decode;
mod excerpt;
mod origin;
mod pacer;
mod pause;
mod retry_after;
mod shape;
mod tls;

mod chance;
mod clock;
mod stats;
pub mod testing;

pub use chance::{Chance, ThreadChance};
pub use classify::{Classify, Reply, Verdict};
pub use client::{Builder, Client};
pub use clock::{Clock, SystemClock};
pub use credentials::{Credentials, FixedHeader};
pub use error::{Broken, Error};
pub use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
pub use options::{Options, Pace, RetryPolicy};
pub use request::{Answer, Request};
pub use stats::{Observe, Stats};
pub use url::Url;
