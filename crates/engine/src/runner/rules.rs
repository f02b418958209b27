//! The rules that bound a job while it runs, as the loops of its host obey them: how many of its records may fail, and how
//! fast this process may write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Limits;
use super::host::{Context, HostError, Stop};
use crate::Counts;
use crate::rate::RowBucket;
use crate::rejects::{Judgement, RejectLimit};
use crate::store::{history, jobs};

/// Reason codes named when a job stops for its rejects.
const CODES_NAMED: i64 = 3;
/// A job that waits for its rate for longer says so often that it lives, or the sweep would take it for a stalled one.
const TOUCH_EVERY: Duration = Duration::from_secs(60);

/// What the rules remember in this process.
pub(super) struct Rules {
    /// Records failed here since the job was last judged.
    due: AtomicBool,
    judged: Mutex<Option<Instant>>,
    bucket: Option<Mutex<RowBucket>>,
    began: Instant,
}

impl Rules {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            // What failed before this process came.
            due: AtomicBool::new(true),
            judged: Mutex::new(None),
            bucket: limits.rows_per_second.map(|rate| Mutex::new(RowBucket::new(rate))),
            began: Instant::now(),
        }
    }

    /// Notes what a chunk settled in this process.
    pub(super) fn settled(&self, counts: &Counts) {
        if counts.failed > 0 {
            self.due.store(true, Ordering::Relaxed);
        }
        if let Some(bucket) = &self.bucket {
            bucket.lock().took(rows_written(counts), self.began.elapsed());
        }
    }

    fn wait(&self) -> Duration {
        self.bucket.as_ref().map_or(Duration::ZERO, |bucket| bucket.lock().wait(self.began.elapsed()))
    }

    /// Whether to look now: at most once in the time of a poll, and only if something may have changed.
    fn looks(&self, poll: Duration) -> bool {
        if !self.due.load(Ordering::Relaxed) {
            return false;
        }
        let mut judged = self.judged.lock();
        if judged.is_some_and(|last| last.elapsed() < poll) {
            return false;
        }
        *judged = Some(Instant::now());
        true
    }
}

/// The rows that were written. The counters hold those that stand, among them the ones that stood before; where a chunk has
/// both, its rows are taken to be spread alike.
fn rows_written(counts: &Counts) -> u64 {
    let written = counts.imported + counts.updated;
    let standing = written + counts.unchanged;
    if standing == 0 {
        return 0;
    }
    u64::try_from(i128::from(counts.targets) * i128::from(written) / i128::from(standing)).unwrap_or(0)
}

/// Waits until this process may write again. Called between chunks, where no transaction is open.
pub(super) async fn wait_for_rate(context: &Context) -> Result<(), HostError> {
    loop {
        let wait = context.rules.wait();
        if wait.is_zero() {
            return Ok(());
        }
        tokio::select! {
            () = context.halt.cancelled() => return Ok(()),
            () = tokio::time::sleep(wait.min(TOUCH_EVERY)) => {}
        }
        if wait > TOUCH_EVERY {
            let mut tx = context.shared.store.database().begin().await?;
            jobs::touch(tx.conn(), context.id()).await?;
            tx.commit().await?;
        }
    }
}

/// Whether the job may go on with so many records that failed; otherwise it stops, with their commonest reasons.
pub(super) async fn judge(context: &Context) -> Result<(), HostError> {
    if context.limits.rejects.limit == RejectLimit::Off || !context.rules.looks(context.limits.poll) {
        return Ok(());
    }
    judge_now(context).await
}

/// The same, however lately it was judged: the last records may have failed in another process.
pub(super) async fn judge_now(context: &Context) -> Result<(), HostError> {
    let rule = context.limits.rejects;
    if rule.limit == RejectLimit::Off {
        return Ok(());
    }
    // Before the job is read: what fails meanwhile is judged again.
    context.rules.due.store(false, Ordering::Relaxed);
    let Some(job) = context.shared.store.job(context.id()).await? else { return Ok(()) };
    let (settled, failed) = (job.counts.records(), job.counts.failed);
    match rule.judge(settled, failed) {
        Judgement::Fine => Ok(()),
        Judgement::TooEarly => {
            context.rules.due.store(true, Ordering::Relaxed);
            Ok(())
        }
        Judgement::TooMany => {
            let mut reader = context.shared.store.database().read().await?;
            let codes = history::reason_codes(reader.conn(), context.id(), CODES_NAMED).await?;
            Err(HostError::Stop(Stop::failed(rule.sentence(settled, failed, &codes))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_stood_before_were_not_written() {
        let counts = |imported, updated, unchanged, targets| Counts {
            imported,
            updated,
            unchanged,
            targets,
            ..Counts::default()
        };
        assert_eq!(rows_written(&counts(10, 0, 0, 20)), 20);
        assert_eq!(rows_written(&counts(0, 0, 10, 20)), 0);
        assert_eq!(rows_written(&counts(3, 2, 5, 20)), 10);
        assert_eq!(rows_written(&counts(0, 0, 0, 0)), 0);
    }
}
