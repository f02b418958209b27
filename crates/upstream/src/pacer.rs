//! Keeps the pace an API documents, so that a well-behaved client hardly ever meets a refusal.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::clock::Clock;
use crate::options::Pace;

/// A sliding window over finished requests plus those under way.
///
/// A request counts from its start until `per` after its answer. The server counts it somewhere between the
/// two, so whatever the network's delays, no window of length `per` at the server holds more than `requests`.
#[derive(Debug)]
pub(crate) struct Pacer {
    pace: Pace,
    places: Semaphore,
    window: Mutex<Window>,
    finished: Notify,
}

#[derive(Debug, Default)]
struct Window {
    under_way: usize,
    /// Ends of the requests that still count, oldest first; at most `requests` of them.
    ends: VecDeque<Duration>,
}

enum Step {
    Go,
    SleepFor(Duration),
    AwaitEnd,
}

impl Pacer {
    pub(crate) fn new(pace: Pace) -> Self {
        let places =
            usize::try_from(pace.concurrent).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        Self { pace, places: Semaphore::new(places), window: Mutex::default(), finished: Notify::new() }
    }

    /// Returns when the pace allows one more request.
    pub(crate) async fn turn<'a>(&'a self, clock: &'a dyn Clock) -> Turn<'a> {
        let place = self.places.acquire().await.expect("the semaphore is never closed");
        loop {
            let finished = self.finished.notified();
            tokio::pin!(finished);
            finished.as_mut().enable();
            match self.step(clock.monotonic()) {
                Step::Go => return Turn { pacer: self, clock, _place: place },
                Step::SleepFor(wait) => clock.sleep(wait).await,
                Step::AwaitEnd => finished.await,
            }
        }
    }

    fn step(&self, now: Duration) -> Step {
        let mut window = self.window.lock();
        while window.ends.front().is_some_and(|end| *end + self.pace.per <= now) {
            window.ends.pop_front();
        }
        if window.under_way + window.ends.len() < self.pace.requests as usize {
            window.under_way += 1;
            return Step::Go;
        }
        window.ends.front().map_or(Step::AwaitEnd, |oldest| Step::SleepFor(*oldest + self.pace.per - now))
    }
}

/// The right to one request under the pace, held until its answer has been read.
pub(crate) struct Turn<'a> {
    pacer: &'a Pacer,
    clock: &'a dyn Clock,
    _place: SemaphorePermit<'a>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut window = self.pacer.window.lock();
        window.under_way -= 1;
        window.ends.push_back(self.clock.monotonic());
        drop(window);
        self.pacer.finished.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::clock::SystemClock;

    const PER: Duration = Duration::from_secs(60);

    /// Runs `total` requests of `length` each, all wanting to go at once; returns their starts, and the most
    /// that were under way together.
    async fn run(pace: Pace, total: usize, length: Duration) -> (Vec<Duration>, usize) {
        let clock: Arc<SystemClock> = Arc::new(SystemClock::new());
        let pacer = Arc::new(Pacer::new(pace));
        let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..total)
            .map(|_| {
                let (clock, pacer, inside, most) =
                    (clock.clone(), pacer.clone(), inside.clone(), most.clone());
                tokio::spawn(async move {
                    let _turn = pacer.turn(&*clock).await;
                    let start = clock.monotonic();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(length).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    start
                })
            })
            .collect();
        let mut starts = Vec::new();
        for task in tasks {
            starts.push(task.await.unwrap());
        }
        starts.sort();
        (starts, most.load(Ordering::SeqCst))
    }

    #[tokio::test(start_paused = true)]
    async fn no_window_holds_more_requests_than_allowed() {
        let pace = Pace { requests: 10, per: PER, concurrent: 4 };
        let (starts, most) = run(pace, 35, Duration::from_millis(300)).await;
        assert_eq!(most, 4);
        assert_eq!(starts.len(), 35);
        for (first, eleventh) in starts.iter().zip(&starts[10..]) {
            assert!(*eleventh - *first >= PER, "eleven requests within {:?}", *eleventh - *first);
        }
        let fair = PER * 3 + Duration::from_secs(10);
        assert!(starts[34] < fair, "the pace is used, not undercut: {:?}", starts[34]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pace_of_one_is_one_at_a_time_and_a_window_apart() {
        let pace = Pace { requests: 1, per: PER, concurrent: 1 };
        let (starts, most) = run(pace, 3, Duration::ZERO).await;
        assert_eq!(most, 1);
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= PER), "{starts:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_given_up_while_it_waits_takes_nothing() {
        let clock = SystemClock::new();
        let pacer = Pacer::new(Pace { requests: 5, per: PER, concurrent: 1 });
        let held = pacer.turn(&clock).await;
        let given_up = tokio::time::timeout(Duration::from_secs(1), pacer.turn(&clock)).await;
        assert!(given_up.is_err());
        drop(held);
        drop(pacer.turn(&clock).await);
        assert_eq!(clock.monotonic().as_secs(), 1);
    }
}
