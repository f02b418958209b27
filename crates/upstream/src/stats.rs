//! Counters for metrics, and a hook that hears of each retry.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a client has done since it was built. Clones of a client count together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// HTTP requests sent, redirects and retries included.
    pub requests: u64,
    /// Requests sent again after a temporary failure.
    pub retries: u64,
    /// Answers that said we ask too often.
    pub rate_limited: u64,
    /// Time spent waiting for retries, pauses and the pace, summed over all requests.
    pub waited: Duration,
    /// Bytes of bodies as received.
    pub wire_bytes: u64,
    /// Bytes of bodies of accepted answers, decoded.
    pub body_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: AtomicU64,
    retries: AtomicU64,
    rate_limited: AtomicU64,
    waited_nanos: AtomicU64,
    wire_bytes: AtomicU64,
    body_bytes: AtomicU64,
}

impl Counters {
    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn rate_limited(&self) {
        self.rate_limited.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn waited(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.waited_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, wire_bytes: u64) {
        self.wire_bytes.fetch_add(wire_bytes, Ordering::Relaxed);
    }

    pub(crate) fn accepted(&self, body_bytes: usize) {
        self.body_bytes.fetch_add(body_bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            requests: read(&self.requests),
            retries: read(&self.retries),
            rate_limited: read(&self.rate_limited),
            waited: Duration::from_nanos(read(&self.waited_nanos)),
            wire_bytes: read(&self.wire_bytes),
            body_bytes: read(&self.body_bytes),
        }
    }
}

/// Hears of each retry before its wait begins, for progress and metrics. Must return at once.
pub trait Observe: Send + Sync + 'static {
    /// `reason` is fit for people and logs; `wait` is what comes before the next attempt.
    fn on_retry(&self, reason: &str, wait: Duration);
}

impl<F: Fn(&str, Duration) + Send + Sync + 'static> Observe for F {
    fn on_retry(&self, reason: &str, wait: Duration) {
        self(reason, wait);
    }
}
