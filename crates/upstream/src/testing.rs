//! A clock that can be moved and draws that can be named, for tests of this crate and of its callers.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::chance::Chance;
use crate::clock::Clock;

/// A clock on which sleeping takes no time: each sleep is recorded and moves the clock to its end.
///
/// Clones share one time. Sleeps that begin at the same moment overlap, as real ones would.
#[derive(Debug, Clone)]
pub struct TestClock {
    shared: Arc<Mutex<Virtual>>,
}

#[derive(Debug)]
struct Virtual {
    beginning: SystemTime,
    elapsed: Duration,
    sleeps: Vec<Duration>,
}

impl TestClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn at(now: SystemTime) -> Self {
        let virtual_time = Virtual { beginning: now, elapsed: Duration::ZERO, sleeps: Vec::new() };
        Self { shared: Arc::new(Mutex::new(virtual_time)) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.shared.lock().elapsed += by;
    }

    /// How far the clock has moved.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.shared.lock().elapsed
    }

    /// Every sleep asked for so far, in order.
    #[must_use]
    pub fn sleeps(&self) -> Vec<Duration> {
        self.shared.lock().sleeps.clone()
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> SystemTime {
        let shared = self.shared.lock();
        shared.beginning + shared.elapsed
    }

    fn monotonic(&self) -> Duration {
        self.shared.lock().elapsed
    }

    async fn sleep(&self, duration: Duration) {
        let end = {
            let mut shared = self.shared.lock();
            shared.sleeps.push(duration);
            shared.elapsed + duration
        };
        // Others that want to sleep at this same moment get to say so first.
        tokio::task::yield_now().await;
        let mut shared = self.shared.lock();
        shared.elapsed = shared.elapsed.max(end);
    }
}

/// Always the same draw.
#[derive(Debug, Clone, Copy)]
pub struct FixedChance(pub f64);

impl Chance for FixedChance {
    fn uniform(&self) -> f64 {
        self.0
    }
}

/// Draws from a seed; a failing test prints the seed it used.
#[derive(Debug)]
pub struct SeededChance(Mutex<StdRng>);

impl SeededChance {
    /// The sequence that belongs to `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }
}

impl Chance for SeededChance {
    fn uniform(&self) -> f64 {
        self.0.lock().random::<f64>()
    }
}
