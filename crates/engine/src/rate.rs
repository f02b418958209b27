//! How fast a process may write.

use std::num::NonZeroU32;
use std::time::Duration;

/// A bucket of tokens, one for each row. Rows are paid for after they were written, because nobody knows before how many
/// a chunk becomes: who wrote more than the bucket held waits until it is level again. Nothing is saved up for later, so that
/// the rate holds in every stretch that is longer than a chunk takes.
#[derive(Debug, Clone)]
pub struct RowBucket {
    per_second: NonZeroU32,
    /// When the rows written so far are paid for, in time since the bucket was made.
    level_at: Duration,
}

impl RowBucket {
    /// A bucket that lets `per_second` rows through a second.
    pub fn new(per_second: NonZeroU32) -> Self {
        Self { per_second, level_at: Duration::ZERO }
    }

    /// Notes that `rows` were written at `now`, in time since the bucket was made.
    pub fn took(&mut self, rows: u64, now: Duration) {
        let nanos = u128::from(rows) * 1_000_000_000 / u128::from(self.per_second.get());
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.level_at = self.level_at.max(now).saturating_add(cost);
    }

    /// How long to wait at `now` before the next rows may be written.
    pub fn wait(&self, now: Duration) -> Duration {
        self.level_at.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn bucket(per_second: u32) -> RowBucket {
        RowBucket::new(NonZeroU32::new(per_second).unwrap())
    }

    #[test]
    fn rows_are_waited_for_after_they_were_written() {
        let mut bucket = bucket(1_000);
        assert_eq!(bucket.wait(Duration::ZERO), Duration::ZERO);
        bucket.took(5_000, SECOND);
        assert_eq!(bucket.wait(SECOND), 5 * SECOND);
        assert_eq!(bucket.wait(4 * SECOND), 2 * SECOND);
        assert_eq!(bucket.wait(6 * SECOND), Duration::ZERO);
    }

    #[test]
    fn workers_add_up() {
        let mut bucket = bucket(1_000);
        bucket.took(2_000, Duration::ZERO);
        bucket.took(2_000, SECOND);
        assert_eq!(bucket.wait(SECOND), 3 * SECOND);
    }

    #[test]
    fn an_idle_hour_buys_nothing() {
        let mut bucket = bucket(10);
        bucket.took(10, 3_600 * SECOND);
        assert_eq!(bucket.wait(3_600 * SECOND), SECOND);
    }

    #[test]
    fn over_a_long_time_the_rate_holds_to_the_row() {
        let mut bucket = bucket(700);
        let (mut now, mut rows) = (Duration::ZERO, 0);
        while now < 600 * SECOND {
            bucket.took(333, now);
            rows += 333;
            now += bucket.wait(now);
        }
        let allowed = 700 * 600;
        assert!((allowed..=allowed + 333).contains(&rows), "{rows}");
    }

    #[test]
    fn the_largest_numbers_overflow_nothing() {
        let mut bucket = bucket(1);
        bucket.took(u64::MAX, Duration::MAX);
        assert_eq!(bucket.wait(Duration::MAX), Duration::ZERO);
        assert!(bucket.wait(Duration::ZERO) > SECOND);
    }
}
