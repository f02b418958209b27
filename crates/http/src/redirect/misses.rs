//! How many look-ups of unknown slugs may be under way, so that a flood of them cannot take the database from
//! everybody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Requests that may wait for their turn: each holds no more than its own memory.
const WAITING_MAX: usize = 1_024;
/// A client that waited this long is told to come back instead.
const WAIT: Duration = Duration::from_secs(2);

pub(crate) struct Misses {
    running: Semaphore,
    inside: Arc<AtomicUsize>,
    most: usize,
}

/// A place among the look-ups under way; given back when dropped.
pub(crate) struct Turn<'a> {
    _running: SemaphorePermit<'a>,
    _inside: Inside,
}

struct Inside(Arc<AtomicUsize>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Misses {
    /// At most `running` at once.
    pub(crate) fn new(running: usize) -> Self {
        Self::with_waiting(running, WAITING_MAX)
    }

    fn with_waiting(running: usize, waiting: usize) -> Self {
        Self { running: Semaphore::new(running), inside: Arc::default(), most: running + waiting }
    }

    /// Waits for a turn; `None` if too many wait already, or for too long.
    pub(crate) async fn enter(&self) -> Option<Turn<'_>> {
        if self.inside.fetch_add(1, Ordering::Relaxed) >= self.most {
            self.inside.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let inside = Inside(self.inside.clone());
        if let Ok(running) = self.running.try_acquire() {
            return Some(Turn { _running: running, _inside: inside });
        }
        let running = tokio::time::timeout(WAIT, self.running.acquire()).await.ok()?.ok()?;
        Some(Turn { _running: running, _inside: inside })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn beyond_the_waiting_room_nobody_waits() {
        let misses = Misses::with_waiting(1, 1);
        let first = misses.enter().await.unwrap();
        let mut second = Box::pin(misses.enter());
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        assert!(misses.enter().await.is_none());
        drop(first);
        let second = second.await.unwrap();
        drop(second);
        assert!(misses.enter().await.is_some());
    }

    #[tokio::test]
    async fn who_goes_away_while_waiting_gives_the_place_back() {
        let misses = Misses::with_waiting(1, 1);
        let first = misses.enter().await.unwrap();
        let mut second = Box::pin(misses.enter());
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        drop(second);
        drop(first);
        assert_eq!(misses.inside.load(Ordering::Relaxed), 0);
    }
}
