//! Time as the client sees it, injected so that no test has to wait.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tokio::time::Instant;

/// Wall time, steady time and sleep.
///
/// Waits are measured on [`Clock::monotonic`]; [`Clock::now`] serves only for instants that leave the
/// client, and for dates of servers that send no `Date`.
#[async_trait]
pub trait Clock: Send + Sync + 'static {
    /// The wall clock, which may jump.
    fn now(&self) -> SystemTime;

    /// Time since some fixed beginning; never goes back.
    fn monotonic(&self) -> Duration;

    /// Returns when [`Clock::monotonic`] has advanced by `duration`.
    async fn sleep(&self, duration: Duration);
}

#[async_trait]
impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> SystemTime {
        (**self).now()
    }

    fn monotonic(&self) -> Duration {
        (**self).monotonic()
    }

    async fn sleep(&self, duration: Duration) {
        (**self).sleep(duration).await;
    }
}

/// The clock of the machine. Cannot be moved.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    beginning: Instant,
}

impl SystemClock {
    /// A clock whose steady time begins now.
    #[must_use]
    pub fn new() -> Self {
        Self { beginning: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn monotonic(&self) -> Duration {
        self.beginning.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
