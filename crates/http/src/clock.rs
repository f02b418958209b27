//! The time that expiry, click hours and signed links are judged by.

use std::time::{SystemTime, UNIX_EPOCH};

use db::Timestamp;

/// Where this crate's loops and requests take their `now` from. The production clock cannot be moved; a test's can.
pub trait Clock: Send + Sync + 'static {
    /// The present instant.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // A clock set before 1970 gives 1970.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}
