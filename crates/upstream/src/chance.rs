//! Chance, injected so that a test can name its draws.

use std::sync::Arc;

/// A source of uniform draws, used for jitter only.
pub trait Chance: Send + Sync + 'static {
    /// A number in `0.0 ..= 1.0`.
    fn uniform(&self) -> f64;
}

impl<C: Chance + ?Sized> Chance for Arc<C> {
    fn uniform(&self) -> f64 {
        (**self).uniform()
    }
}

/// Draws from the thread's generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadChance;

impl Chance for ThreadChance {
    fn uniform(&self) -> f64 {
        rand::random::<f64>()
    }
}
