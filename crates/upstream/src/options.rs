//! What a caller may set, with the limits that hold when nothing is set.

use std::time::Duration;

use http::HeaderMap;

use crate::chance::Chance;

/// Settings of a client. Every one has a limit as its default; none can be switched off by leaving it out.
#[derive(Debug, Clone)]
pub struct Options {
    /// Longest time to open a connection, TLS included.
    pub connect_timeout: Duration,
    /// Longest silence between two reads of an answer.
    pub read_timeout: Duration,
    /// Longest time of one attempt from the first byte sent to the last byte read.
    pub attempt_timeout: Duration,
    /// Most bytes of a body, counted both as received and as decoded, so that a small compressed body
    /// cannot grow without end.
    pub body_max_bytes: usize,
    /// When and how often to ask again.
    pub retry: RetryPolicy,
    /// How many requests the API bears; `None` sends as fast as it answers.
    pub pace: Option<Pace>,
    /// Value of `User-Agent`.
    pub user_agent: String,
    /// Headers of every request. Secrets belong into [`Credentials`](crate::Credentials) instead.
    pub headers: HeaderMap,
    /// Certificates in PEM to trust beside the machine's and Mozilla's, for APIs behind a private authority.
    pub extra_roots_pem: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            attempt_timeout: Duration::from_secs(120),
            body_max_bytes: 32 * 1024 * 1024,
            retry: RetryPolicy::default(),
            pace: None,
            user_agent: concat!("crossdock/", env!("CARGO_PKG_VERSION")).to_owned(),
            headers: HeaderMap::new(),
            extra_roots_pem: None,
        }
    }
}

/// The pace of an API, as its documentation states it.
///
/// At most `requests` in any stretch of `per`, and at most `concurrent` at once. A request counts until
/// `per` has passed since its answer, so the server, which counts earlier, never counts more than `requests`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Requests allowed in any window of length `per`; at least 1.
    pub requests: u32,
    /// Length of the window.
    pub per: Duration,
    /// Requests allowed at the same time; at least 1.
    pub concurrent: u32,
}

/// Exponential backoff with full jitter, and how long a server may make us wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts after the first one.
    pub max_retries: u32,
    /// Ceiling of the first wait; doubles with each retry.
    pub base: Duration,
    /// The ceiling never rises above this.
    pub cap: Duration,
    /// A server's wish up to this is waited for in place; a longer one ends the request with
    /// [`Error::WaitUntil`](crate::Error::WaitUntil), so that the caller can put the work aside.
    pub longest_wait: Duration,
    /// A retry that would come later than this after the call is not made, however many are left; if the server
    /// asked for it, the request ends with [`Error::WaitUntil`](crate::Error::WaitUntil).
    pub patience: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 5,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(20),
            // Whoever watches a job takes 30 minutes without progress for a hang, and a request that waits makes
            // none. 5 retries × 300 s, each up to 1 s longer, are 25 min 5 s. The attempts come on top (2 min each
            // at most), and so do pauses that other requests of the client were asked for: hence a limit for the
            // sum. Its 26 min and one last attempt of 2 min are 28 min.
            longest_wait: Duration::from_secs(300),
            patience: Duration::from_secs(26 * 60),
        }
    }
}

impl RetryPolicy {
    /// The wait after try `attempt` (counted from 1) failed: uniform between nothing and
    /// `min(cap, base * 2^(attempt-1))`. The jitter is drawn after the cap, so that waits at the cap still
    /// differ (AWS Architecture Blog, "Exponential Backoff And Jitter", *full jitter*).
    pub(crate) fn backoff(&self, attempt: u32, chance: &dyn Chance) -> Duration {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        let ceiling = self.base.saturating_mul(doubled).min(self.cap);
        ceiling.mul_f64(chance.uniform().clamp(0.0, 1.0))
    }

    /// The wait when the server asked for `asked`: never earlier than that, and up to a tenth or one second
    /// later, so that clients which were refused together do not come back together.
    pub(crate) fn as_asked(&self, asked: Duration, chance: &dyn Chance) -> Duration {
        let spread = asked.mul_f64(0.1).min(Duration::from_secs(1));
        asked.saturating_add(spread.mul_f64(chance.uniform().clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FixedChance, SeededChance};

    #[test]
    fn ceilings_double_from_one_second_and_stop_at_twenty() {
        let policy = RetryPolicy::default();
        let ceilings: Vec<u64> = (1..=7).map(|k| policy.backoff(k, &FixedChance(1.0)).as_secs()).collect();
        assert_eq!(ceilings, [1, 2, 4, 8, 16, 20, 20]);
        assert_eq!(policy.backoff(u32::MAX, &FixedChance(1.0)), policy.cap);
    }

    #[test]
    fn waits_are_uniform_under_the_ceiling() {
        let policy = RetryPolicy::default();
        for attempt in [1_u32, 3, 5, 9] {
            let ceiling = policy.backoff(attempt, &FixedChance(1.0)).as_secs_f64();
            let seed = 7 + u64::from(attempt);
            let chance = SeededChance::new(seed);
            let draws: Vec<f64> =
                (0..10_000).map(|_| policy.backoff(attempt, &chance).as_secs_f64()).collect();
            let mean = draws.iter().sum::<f64>() / 10_000.0;
            assert!((mean / ceiling - 0.5).abs() < 0.02, "seed {seed}: mean {mean} of ceiling {ceiling}");
            assert!(draws.iter().all(|draw| (0.0..=ceiling).contains(draw)), "seed {seed}");
        }
    }

    #[test]
    fn a_servers_wish_is_never_undercut_and_overshot_by_a_second_at_most() {
        let policy = RetryPolicy::default();
        let cases = [(3.0, 0.0, 3.0), (3.0, 1.0, 3.3), (60.0, 1.0, 61.0), (0.5, 0.5, 0.525)];
        for (asked, draw, expected) in cases {
            let wait = policy.as_asked(Duration::from_secs_f64(asked), &FixedChance(draw));
            assert!((wait.as_secs_f64() - expected).abs() < 1e-6, "{asked} {draw}: {wait:?}");
        }
    }
}
