//! What a source gets from outside: time, chance, and somebody who hears of retries.

use std::fmt;
use std::sync::Arc;

use upstream::{Builder, Chance, Clock, Observe, SystemClock};

/// Time, chance and an observer for a source's client; what is not given is the machine's.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// Tells the time and waits.
    pub clock: Option<Arc<dyn Clock>>,
    /// Draws the jitter.
    pub chance: Option<Arc<dyn Chance>>,
    /// Hears of each retry before its wait begins.
    pub observe: Option<Arc<dyn Observe>>,
}

impl Surroundings {
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock::new()))
    }

    /// Puts them around a client.
    pub(crate) fn around(self, mut builder: Builder) -> Builder {
        if let Some(clock) = self.clock {
            builder = builder.clock(clock);
        }
        if let Some(chance) = self.chance {
            builder = builder.chance(chance);
        }
        if let Some(observe) = self.observe {
            builder = builder.observe(move |reason: &str, wait| observe.on_retry(reason, wait));
        }
        builder
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Surroundings").finish_non_exhaustive()
    }
}
