//! Learning what other processes have changed.

use std::sync::Arc;
use std::time::Duration;

use db::Timestamp;
use links::{Change, Changes, Mark};
use tokio_util::sync::CancellationToken;

use super::Redirects;

/// How often the feed is asked. With a late commit and a slow answer added, others' changes are seen within 2 s.
const EVERY: Duration = Duration::from_millis(500);
/// A feed that does not answer in this time is asked again.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Every so many readings the domains are read again without being told to.
const DOMAINS_EVERY: u32 = 120;

impl Redirects {
    /// Follows the change feed until `stop`. To be started before the first request, with the mark that
    /// [`Redirects::start`] gave.
    pub(crate) async fn follow(self: Arc<Self>, mut mark: Mark, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut reached = self.clock.now();
        let mut failing = false;
        let mut readings: u32 = 0;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let asked_at = self.clock.now();
            match self.read_feed(mark).await {
                Ok(changes) => {
                    if failing {
                        tracing::info!("the change feed answers again");
                        failing = false;
                    }
                    mark = changes.mark;
                    readings = readings.wrapping_add(1);
                    let overdue = self.was_away_too_long(reached, asked_at);
                    self.apply(changes, overdue, readings.is_multiple_of(DOMAINS_EVERY)).await;
                    reached = asked_at;
                }
                Err(cause) if !failing => {
                    failing = true;
                    tracing::error!(cause, "the change feed cannot be read; known links go on as they were");
                }
                Err(_) => {}
            }
        }
    }

    /// Reads the domains, and where the feed stands: in that order nothing that happens in between is missed,
    /// because the mark is read first.
    ///
    /// # Errors
    /// The database's.
    pub(crate) async fn start(&self) -> links::Result<Mark> {
        let mut reader = self.database.read().await?;
        let mark = links::changes_mark(reader.conn()).await?;
        drop(reader);
        self.domains_changed().await?;
        Ok(mark)
    }

    async fn read_feed(&self, mark: Mark) -> Result<Changes, String> {
        let reading = async {
            let mut reader = self.database.read().await?;
            links::changes_since(reader.conn(), mark).await
        };
        match tokio::time::timeout(ANSWER_LIMIT, reading).await {
            Ok(changes) => changes.map_err(|error| error.to_string()),
            Err(_) => Err("no answer in time".into()),
        }
    }

    /// Changes that old may have been purged before they were read.
    fn was_away_too_long(&self, reached: Timestamp, now: Timestamp) -> bool {
        let kept = u64::try_from(links::CHANGES_KEPT_SECONDS).unwrap_or(0);
        now.since(reached) >= Duration::from_secs(kept / 2)
    }

    async fn apply(&self, changes: Changes, overdue: bool, domains_due: bool) {
        let mut domains_changed = overdue || domains_due || changes.everything;
        if overdue || changes.everything {
            self.everything_changed();
        }
        let mut added = false;
        for change in &changes.changes {
            match change {
                Change { link_id: Some(link), key: Some(_), .. } => {
                    self.link_changed(*link);
                    added = true;
                }
                Change { key: None, .. } => domains_changed = true,
                Change { link_id: None, .. } => self.everything_changed(),
            }
        }
        if added {
            self.slugs_added();
        }
        if domains_changed && let Err(error) = self.domains_changed().await {
            tracing::error!(%error, "the domains could not be read again");
        }
    }
}
