//! Counting clicks without making a redirect wait.
//!
//! A redirect pushes its click into a block in memory; a full block (1,000 clicks), or one that is a second old, goes
//! to a writer task, which commits all that wait in one transaction. Every ten seconds the blocks are folded into
//! sums per link and hour.
//!
//! **What can be lost.** A process that is killed loses the clicks of at most the last second, or fewer if 1,000 came
//! within it, and the blocks whose commit was under way. While the database does not take them, up to
//! [`BLOCKS_WAITING`] blocks (64,000 clicks) wait; what comes beyond that is dropped and counted in
//! `crossdock_clicks_dropped`. An orderly stop writes everything. A commit whose outcome is unknown is not sent
//! again: such a block may be lost, and is never counted twice. A block that cannot be read when it is folded stays in
//! the database and is counted in `crossdock_click_blocks_set_aside`; the others go on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use db::{Database, Id, Timestamp};
use links::{CLICKS_PER_BATCH, Click};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::visitor::Visitor;

/// Full blocks that wait for the writer.
pub const BLOCKS_WAITING: usize = 64;
/// The age at which a block is written, full or not.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// The wait after a failed write.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// Tries to write what is left at a stop, before it is given up.
const LAST_TRIES: u32 = 5;
/// How often blocks are folded into sums.
const ROLL_UP_EVERY: Duration = Duration::from_secs(10);
/// Blocks folded in one transaction: it holds SQLite's only writer meanwhile, and the sums are kept in memory.
const ROLL_UP_BLOCKS: u32 = 512;
/// Up to so many blocks are folded without waiting for more.
const FEW_BLOCKS: u64 = 64;
/// So many blocks are not left to grow further.
const MANY_BLOCKS: u64 = 8_192;
/// A busy process folds, and any process purges the change feed, every so many times.
const MINUTE: u32 = 6;

/// Where redirects leave their clicks.
pub(crate) struct Clicks {
    filling: Arc<Mutex<Vec<Click>>>,
    full: mpsc::Sender<Vec<Click>>,
    metrics: Metrics,
}

/// Takes the blocks to the database.
pub(crate) struct Writer {
    filling: Arc<Mutex<Vec<Click>>>,
    full: mpsc::Receiver<Vec<Click>>,
    metrics: Metrics,
    clock: Arc<dyn Clock>,
    /// Blocks written by this process and not folded since.
    unfolded: Arc<AtomicU64>,
}

/// A counter and its writer.
pub(crate) fn channel(clock: Arc<dyn Clock>, metrics: Metrics) -> (Clicks, Writer) {
    let filling = Arc::new(Mutex::new(Vec::with_capacity(CLICKS_PER_BATCH)));
    let (sender, receiver) = mpsc::channel(BLOCKS_WAITING);
    let clicks = Clicks { filling: filling.clone(), full: sender, metrics: metrics.clone() };
    (clicks, Writer { filling, full: receiver, metrics, clock, unfolded: Arc::default() })
}

impl Clicks {
    /// Counts a click. Never waits for the database.
    pub(crate) fn count(&self, link_id: Id, visitor: Visitor, at: Timestamp) {
        let bot = visitor == Visitor::Program;
        if bot {
            self.metrics.clicks_bot.inc()
        } else {
            self.metrics.clicks_human.inc()
        };
        let full = {
            let mut filling = self.filling.lock();
            filling.push(Click { link_id, at, bot });
            if filling.len() < CLICKS_PER_BATCH {
                return;
            }
            std::mem::replace(&mut *filling, Vec::with_capacity(CLICKS_PER_BATCH))
        };
        if let Err(refused) = self.full.try_send(full) {
            self.metrics.clicks_dropped.inc_by(refused.into_inner().len() as u64);
        }
    }
}

impl Writer {
    /// Writes and folds blocks until `stop`, then writes what is left.
    pub(crate) async fn run(mut self, database: Database, stop: CancellationToken) {
        let folding =
            tokio::spawn(fold(database.clone(), self.unfolded.clone(), self.metrics.clone(), stop.clone()));
        let mut ticks = tokio::time::interval(FLUSH_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut blocks: VecDeque<Vec<Click>> = VecDeque::new();
        while !stop.is_cancelled() {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = ticks.tick() => self.take_started(&mut blocks),
                Some(block) = self.full.recv() => blocks.push_back(block),
            }
            while blocks.len() < BLOCKS_WAITING
                && let Ok(block) = self.full.try_recv()
            {
                blocks.push_back(block);
            }
            if !self.write(&database, &mut blocks).await {
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = tokio::time::sleep(RETRY_AFTER) => {}
                }
            }
        }
        self.write_rest(&database, blocks).await;
        // It has seen the stop, and waits for nothing but a transaction under way.
        let _ = folding.await;
    }

    fn take_started(&self, blocks: &mut VecDeque<Vec<Click>>) {
        let mut filling = self.filling.lock();
        if !filling.is_empty() {
            blocks.push_back(std::mem::replace(&mut *filling, Vec::with_capacity(CLICKS_PER_BATCH)));
        }
    }

    async fn write_rest(mut self, database: &Database, mut blocks: VecDeque<Vec<Click>>) {
        while let Ok(block) = self.full.try_recv() {
            blocks.push_back(block);
        }
        self.take_started(&mut blocks);
        for _ in 0..LAST_TRIES {
            if self.write(database, &mut blocks).await {
                return;
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
        let lost: usize = blocks.iter().map(Vec::len).sum();
        self.metrics.clicks_dropped.inc_by(lost as u64);
        tracing::error!(clicks = lost, "clicks could not be written before the stop");
    }

    /// Writes all blocks in one transaction and empties the list; `false` if they are to be tried again.
    async fn write(&self, database: &Database, blocks: &mut VecDeque<Vec<Click>>) -> bool {
        if blocks.is_empty() {
            return true;
        }
        let now = self.clock.now();
        let clicks: usize = blocks.iter().map(Vec::len).sum();
        let written = async {
            let mut tx = database.begin().await?;
            for block in blocks.iter() {
                links::record_clicks(&mut tx, now, block).await?;
            }
            tx.commit().await.map_err(links::Error::from)
        };
        match written.await {
            Ok(()) => {
                self.metrics.clicks_written.inc_by(clicks as u64);
                self.unfolded.fetch_add(blocks.len() as u64, Ordering::Relaxed);
                blocks.clear();
                true
            }
            Err(links::Error::Db(db::Error::CommitUnknown(error))) => {
                tracing::error!(%error, clicks, "it is unknown whether these clicks were written; they are not sent again");
                blocks.clear();
                true
            }
            Err(error) => {
                tracing::warn!(%error, clicks, "clicks wait because they could not be written");
                false
            }
        }
    }
}

/// Folds blocks into sums, those of other processes too, and keeps the change feed short.
async fn fold(database: Database, unfolded: Arc<AtomicU64>, metrics: Metrics, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(ROLL_UP_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut rounds: u32 = 0;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        rounds = rounds.wrapping_add(1);
        let waiting = unfolded.load(Ordering::Relaxed);
        if is_due(waiting, rounds) {
            unfolded.fetch_sub(waiting, Ordering::Relaxed);
            if let Err(error) = fold_aside(&database, &metrics, &stop).await {
                tracing::warn!(%error, "clicks could not be summed up; they are kept for the next time");
            }
        }
        if rounds.is_multiple_of(MINUTE)
            && let Err(error) = purge(&database).await
        {
            tracing::warn!(%error, "the change feed could not be purged");
        }
    }
}

fn is_due(waiting: u64, rounds: u32) -> bool {
    waiting <= FEW_BLOCKS || waiting >= MANY_BLOCKS || rounds.is_multiple_of(MINUTE)
}

/// On a thread of its own: adding up half a million clicks must not hold up the redirects of this thread.
async fn fold_aside(database: &Database, metrics: &Metrics, stop: &CancellationToken) -> links::Result<()> {
    let (database, metrics, stop) = (database.clone(), metrics.clone(), stop.clone());
    let runtime = tokio::runtime::Handle::current();
    let folding = tokio::task::spawn_blocking(move || runtime.block_on(fold_all(&database, &metrics, &stop)));
    // A panic in there is told by its own message; what was not committed is folded the next time.
    folding.await.unwrap_or(Ok(()))
}

async fn fold_all(database: &Database, metrics: &Metrics, stop: &CancellationToken) -> links::Result<()> {
    while !stop.is_cancelled() {
        let mut tx = database.begin().await?;
        let rolled = links::roll_up(&mut tx, ROLL_UP_BLOCKS).await?;
        tx.commit().await?;
        for block in &rolled.set_aside {
            metrics.click_blocks_set_aside.inc();
            tracing::error!(
                %block,
                "a block of clicks cannot be read: it is damaged, or a newer version wrote it; it is kept and not counted"
            );
        }
        if rolled.blocks() < u64::from(ROLL_UP_BLOCKS) {
            break;
        }
    }
    Ok(())
}

async fn purge(database: &Database) -> links::Result<()> {
    let mut tx = database.begin().await?;
    links::purge_changes(&mut tx).await?;
    Ok(tx.commit().await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    fn counter() -> (Clicks, Writer) {
        let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
        channel(Arc::new(SystemClock), metrics)
    }

    fn count(clicks: &Clicks, times: usize) {
        for _ in 0..times {
            clicks.count(Id::from_stored(1), Visitor::Human, Timestamp::from_micros(0));
        }
    }

    #[test]
    fn a_block_is_handed_on_when_it_is_full() {
        let (clicks, mut writer) = counter();
        count(&clicks, CLICKS_PER_BATCH - 1);
        assert!(writer.full.try_recv().is_err());
        count(&clicks, 1);
        assert_eq!(writer.full.try_recv().unwrap().len(), CLICKS_PER_BATCH);
        assert!(writer.filling.lock().is_empty());
    }

    #[test]
    fn a_busy_process_folds_every_minute_and_a_quiet_one_at_once() {
        for (waiting, round, due) in [
            (0, 1, true),
            (FEW_BLOCKS, 1, true),
            (FEW_BLOCKS + 1, 1, false),
            (FEW_BLOCKS + 1, MINUTE, true),
            (MANY_BLOCKS, 1, true),
        ] {
            assert_eq!(is_due(waiting, round), due, "{waiting} blocks, round {round}");
        }
    }

    db::on_both!(
        a_block_that_cannot_be_read_is_counted_once_and_stops_nothing,
        [&links::ROOM],
        |database: Database| async move {
            let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
            let stop = CancellationToken::new();
            let link = Id::new();
            let mut tx = database.begin().await.unwrap();
            let now = Timestamp::from_micros(0);
            match tx.conn() {
                db::Conn::Sqlite(conn) => {
                    let sql = "INSERT INTO click_batches (id, taken_at, clicks) VALUES (0, 0, x'ff')";
                    sqlx::query(sql).execute(conn).await.map(drop).unwrap();
                }
                db::Conn::Postgres(pg) => {
                    let sql = "INSERT INTO click_batches (id, taken_at, clicks) VALUES (0, now(), '\\xff')";
                    pg.query(sql).execute(&mut *pg.conn).await.map(drop).unwrap();
                }
            }
            links::record_clicks(&mut tx, now, &[Click { link_id: link, at: now, bot: false }])
                .await
                .unwrap();
            tx.commit().await.unwrap();
            for _ in 0..2 {
                fold_aside(&database, &metrics, &stop).await.unwrap();
            }
            assert_eq!(metrics.click_blocks_set_aside.get(), 1);
            let mut reader = database.read().await.unwrap();
            let totals = links::click_totals(reader.conn(), &[link]).await.unwrap();
            assert_eq!(totals, [(link, links::Count { humans: 1, bots: 0 })]);
        }
    );

    #[test]
    fn clicks_beyond_the_waiting_blocks_are_dropped_and_counted() {
        let (clicks, writer) = counter();
        count(&clicks, CLICKS_PER_BATCH * (BLOCKS_WAITING + 2) + 5);
        assert_eq!(clicks.metrics.clicks_dropped.get(), 2 * CLICKS_PER_BATCH as u64);
        assert_eq!(writer.filling.lock().len(), 5);
        assert_eq!(clicks.metrics.clicks_human.get(), (CLICKS_PER_BATCH * (BLOCKS_WAITING + 2) + 5) as u64);
    }
}
