//! One pause for all requests of a client, and one probe at its end.
//!
//! When many requests are refused together and each waits on its own, they come back together and are refused
//! again (BCApps#10417). So a refusal closes the gate for everybody. When the time is over, one request goes
//! first; while it is under way the others stay. If it is refused as well, the pause is prolonged; if it is
//! answered, the others follow one by one.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::chance::Chance;
use crate::clock::Clock;

/// Those who waited for the probe follow it this far apart, half of it more or less.
const FOLLOWER_GAP: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct Pause {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Closed until this moment of the steady clock, and then until a probe has passed.
    until: Option<Duration>,
    probing: bool,
    /// When the latest of those who follow a probe leaves.
    last_follower: Duration,
}

enum Step {
    Pass { as_probe: bool },
    SleepFor(Duration),
    AwaitProbe,
}

impl Pause {
    /// Closes the gate for `wait` from now; a longer pause that is already on stays.
    pub(crate) fn close(&self, now: Duration, wait: Duration) {
        let mut state = self.state.lock();
        let until = now + wait;
        state.until = Some(state.until.map_or(until, |already| already.max(until)));
    }

    /// Returns when a request may be sent.
    pub(crate) async fn pass(&self, clock: &dyn Clock, chance: &dyn Chance) -> Passage<'_> {
        let mut followed_a_probe = false;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Listen before looking, or a change in between would be missed.
            changed.as_mut().enable();
            match self.step(clock.monotonic()) {
                Step::Pass { as_probe: false } if followed_a_probe => {
                    followed_a_probe = false;
                    let gap = FOLLOWER_GAP.mul_f64(0.5 + chance.uniform().clamp(0.0, 1.0));
                    clock.sleep(self.line_up(clock.monotonic(), gap)).await;
                }
                Step::Pass { as_probe } => return Passage { pause: self, is_probe: as_probe },
                Step::SleepFor(wait) => clock.sleep(wait).await,
                Step::AwaitProbe => {
                    followed_a_probe = true;
                    changed.await;
                }
            }
        }
    }

    fn step(&self, now: Duration) -> Step {
        let mut state = self.state.lock();
        match state.until {
            None => Step::Pass { as_probe: false },
            Some(until) if now < until => Step::SleepFor(until - now),
            Some(_) if state.probing => Step::AwaitProbe,
            Some(_) => {
                state.probing = true;
                Step::Pass { as_probe: true }
            }
        }
    }

    /// The wait until `gap` behind whoever follows the probe before us.
    fn line_up(&self, now: Duration, gap: Duration) -> Duration {
        let mut state = self.state.lock();
        state.last_follower = state.last_follower.max(now) + gap;
        state.last_follower - now
    }

    fn end_probe(&self, now_open: bool) {
        let mut state = self.state.lock();
        state.probing = false;
        if now_open {
            state.until = None;
        }
        drop(state);
        self.changed.notify_waiters();
    }
}

/// The right to send one request. Dropped without [`Passage::answered`], a probe has decided nothing and the
/// next in line becomes the probe.
pub(crate) struct Passage<'a> {
    pause: &'a Pause,
    is_probe: bool,
}

impl Passage<'_> {
    /// The server answered and did not refuse: a probe opens the gate.
    pub(crate) fn answered(mut self) {
        if std::mem::take(&mut self.is_probe) {
            self.pause.end_probe(true);
        }
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.pause.end_probe(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::clock::SystemClock;
    use crate::testing::SeededChance;

    struct Crowd {
        pause: Pause,
        clock: SystemClock,
        chance: SeededChance,
        inside: AtomicU32,
        times: Mutex<Vec<Duration>>,
    }

    impl Crowd {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                pause: Pause::default(),
                clock: SystemClock::new(),
                chance: SeededChance::new(85),
                inside: AtomicU32::new(0),
                times: Mutex::default(),
            })
        }

        async fn enter(&self) -> Passage<'_> {
            let passage = self.pause.pass(&self.clock, &self.chance).await;
            self.times.lock().push(self.clock.monotonic());
            self.inside.fetch_add(1, Ordering::SeqCst);
            passage
        }

        fn now(&self) -> Duration {
            self.clock.monotonic()
        }

        fn times(&self) -> Vec<Duration> {
            self.times.lock().clone()
        }
    }

    fn wait_seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_pause_one_goes_first_and_the_others_follow_one_by_one() {
        let crowd = Crowd::new();
        crowd.pause.close(crowd.now(), wait_seconds(30));
        let workers: Vec<_> = (0..8)
            .map(|_| {
                let crowd = Arc::clone(&crowd);
                tokio::spawn(async move {
                    let passage = crowd.enter().await;
                    if passage.is_probe {
                        tokio::time::sleep(wait_seconds(5)).await;
                        assert_eq!(
                            crowd.inside.load(Ordering::SeqCst),
                            1,
                            "nobody passes while the probe is out"
                        );
                    }
                    passage.answered();
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        let times = crowd.times();
        assert!((times[0].as_secs_f64() - 30.0).abs() < 0.01, "the probe leaves on time: {times:?}");
        assert!(times[1].as_secs() >= 35, "the others wait for its answer: {times:?}");
        let gaps: Vec<u128> = times[1..].windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
        assert!(gaps.iter().all(|gap| (49..=151).contains(gap)), "no two in lock-step: {gaps:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_probe_prolongs_the_pause_for_everybody() {
        let crowd = Crowd::new();
        crowd.pause.close(crowd.now(), wait_seconds(10));
        let probe = crowd.enter().await;
        let follower = tokio::spawn({
            let crowd = Arc::clone(&crowd);
            async move { crowd.enter().await.answered() }
        });
        tokio::task::yield_now().await;
        crowd.pause.close(crowd.now(), wait_seconds(60));
        drop(probe);
        follower.await.unwrap();
        let times = crowd.times();
        assert_eq!([times[0].as_secs(), times[1].as_secs()], [10, 70], "{times:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_vanishes_hands_over_to_the_next() {
        let crowd = Crowd::new();
        crowd.pause.close(crowd.now(), wait_seconds(10));
        let probe = crowd.enter().await;
        let follower = tokio::spawn({
            let crowd = Arc::clone(&crowd);
            async move {
                let passage = crowd.enter().await;
                assert!(passage.is_probe);
                passage.answered();
            }
        });
        tokio::task::yield_now().await;
        drop(probe);
        follower.await.unwrap();
        assert!(matches!(crowd.pause.step(crowd.now()), Step::Pass { as_probe: false }));
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_refusal_does_not_shorten_the_pause() {
        let crowd = Crowd::new();
        crowd.pause.close(crowd.now(), wait_seconds(30));
        crowd.pause.close(crowd.now(), wait_seconds(3));
        crowd.enter().await.answered();
        assert_eq!(crowd.times()[0].as_secs(), 30);
    }
}
