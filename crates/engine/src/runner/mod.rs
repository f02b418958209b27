//! The loops: a scheduler that starts jobs, and for each running job a host with fetchers and workers.
//!
//! Any number of processes may run a [`Runner`] on one Postgres. Who fetches is decided by the partition's lease, who
//! processes by row locks, who may move a job by conditional updates; nothing is decided in memory. On SQLite one
//! process at a time runs jobs (the caller holds the runner lock).
//!
//! A host that meets a broken database ends and is started again after a pause, from what is stored: the path after
//! a lost connection is the path after a crash.

mod busy;
mod check;
mod fetch;
mod handoff;
mod host;
mod open_segment;
mod rules;
mod undo;
mod work;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use db::{Kind as DatabaseKind, Result};
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::metrics::Metrics;
use crate::store::jobs;
use crate::{Counts, Job, JobId, Kind, RejectRule, Status, Store};

/// The bounds of the loops. The defaults are the product's constants; tests use smaller ones.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Pages of a segment.
    pub pages_per_segment: i32,
    /// Segments that may be staged and not cleaned before fetching waits.
    pub segments_ahead: i64,
    /// Bytes that may be staged and not cleaned before fetching waits.
    pub staged_bytes: i64,
    /// A chunk is made as soon as this many records are staged, or earlier if the workers have nothing to do. No
    /// chunk is larger than a segment.
    pub chunk_records: i32,
    /// At most this many records of a chunk are given to the sink at once.
    pub part_records: usize,
    /// Workers for each job whose sink is parallel.
    pub workers: usize,
    /// A run ends at the last page boundary not above this many records.
    pub run_records: i64,
    /// A run ends after this much time of fetching.
    pub run_budget: Duration,
    /// How long a fetcher's lease lasts; it is renewed with each page and three times within this time.
    pub lease: Duration,
    /// Entries of a job's error log.
    pub notes_max: i64,
    /// Attempts at a chunk after which it is suspected of killing its worker and split.
    pub attempts_max: i32,
    /// Times a chunk transaction is run again for deadlocks and the like before the job fails.
    pub chunk_retries_max: u32,
    /// Bytes of staged chunks kept in memory on their way to a worker.
    pub handoff_bytes: usize,
    /// How often a job's state and new work are looked for in the database.
    pub poll: Duration,
    /// A running job without progress for this long is failed by the sweep.
    pub stuck_minutes: i32,
    /// What a job staged that checks first and rests for this long is removed.
    pub staged_days: i32,
    /// A snapshot of the database that is held for this long is warned of.
    pub snapshot_old: Duration,
    /// How often the sweep runs.
    pub sweep_every: Duration,
    /// How long nobody may hold a partition's lease before a job whose credentials are unknown here is
    /// `awaiting_token`. Not waited for on SQLite, where there is one runner.
    pub token_grace: Duration,
    /// How many of a job's records may fail before the job stops.
    pub rejects: RejectRule,
    /// Rows that this process may write in a second for a job; any number if there is none.
    pub rows_per_second: Option<NonZeroU32>,
}

/// Workers of a process that is told no number; each holds a connection while it works.
const WORKERS_MAX: usize = 8;

impl Default for Limits {
    fn default() -> Self {
        Self {
            pages_per_segment: 100,
            segments_ahead: 4,
            staged_bytes: 64 * 1024 * 1024,
            chunk_records: 2500,
            part_records: 1000,
            workers: 2,
            run_records: 50_000,
            run_budget: Duration::from_secs(30 * 60),
            lease: Duration::from_secs(15),
            notes_max: 1000,
            attempts_max: 5,
            chunk_retries_max: 20,
            handoff_bytes: 16 * 1024 * 1024,
            poll: Duration::from_millis(200),
            stuck_minutes: 30,
            staged_days: 7,
            snapshot_old: Duration::from_secs(10 * 60),
            sweep_every: Duration::from_secs(5 * 60),
            token_grace: Duration::from_secs(20),
            rejects: RejectRule::default(),
            rows_per_second: None,
        }
    }
}

impl Limits {
    /// The bounds for a kind of database.
    ///
    /// SQLite writes a page of its file anew for nearly every row of an index whose keys come in no order, but only
    /// once in a transaction: with four times as many records in a chunk it writes half as much for each of them. Its
    /// other writers wait longer for their turn, half a second where links come as fast as they can be written. On
    /// Postgres nothing is gained, and locks would be held for longer.
    ///
    /// On Postgres there is one worker more than cores: each waits for the server for a while.
    pub fn suited_to(kind: db::Kind) -> Self {
        let limits = Self::default();
        match kind {
            db::Kind::Sqlite => Self { chunk_records: 4 * limits.chunk_records, ..limits },
            db::Kind::Postgres => {
                let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
                Self { workers: (cores + 1).clamp(limits.workers, WORKERS_MAX), ..limits }
            }
        }
    }
}

/// Something that happened to a job, for progress bars and pages. Lossy: who reads too slowly misses some and reads
/// the job instead.
#[derive(Debug, Clone)]
pub enum Event {
    /// Pages were committed.
    Fetched {
        /// The job.
        job: JobId,
        /// Records of these pages.
        records: i64,
    },
    /// A chunk was settled.
    Settled {
        /// The job.
        job: JobId,
        /// What became of its records.
        counts: Counts,
    },
    /// The job's state changed.
    Moved {
        /// The job.
        job: JobId,
        /// The new state.
        to: Status,
    },
}

/// Runs jobs. Cheap to clone.
#[derive(Clone)]
pub struct Runner {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    kinds: Vec<Arc<dyn Kind>>,
    limits: Limits,
    metrics: Metrics,
    events: broadcast::Sender<Event>,
    nudge: Notify,
    holder: String,
    /// No other process can be running jobs: on SQLite the caller holds the runner lock.
    alone: bool,
    hosted: Mutex<HashMap<JobId, HostState>>,
}

/// Where this process stands with a job, and how many times in a row its host ended with a passing error.
enum HostState {
    Running { failures: u32 },
    Resting { failures: u32, until: Instant },
}

/// The first pause after a host met a broken database, doubled up to the longest.
const REST_FIRST: Duration = Duration::from_millis(100);
const REST_LONGEST: Duration = Duration::from_secs(5);
const EVENTS_KEPT: usize = 1024;

impl Runner {
    /// A runner for these kinds of jobs.
    pub fn new(store: Store, kinds: Vec<Arc<dyn Kind>>, limits: Limits, metrics: Metrics) -> Self {
        let holder = format!("{}-{}", std::process::id(), db::Id::new());
        let (events, _) = broadcast::channel(EVENTS_KEPT);
        let alone = store.database().kind() == DatabaseKind::Sqlite;
        Self {
            shared: Arc::new(Shared {
                store,
                kinds,
                limits,
                metrics,
                events,
                nudge: Notify::new(),
                holder,
                alone,
                hosted: Mutex::default(),
            }),
        }
    }

    /// The store it runs on.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Subscribes to what happens in this process.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.shared.events.subscribe()
    }

    /// Looks for work at once: a job was made or resumed by this process.
    pub fn nudge(&self) {
        self.shared.nudge.notify_one();
    }

    /// Runs jobs until `stop`, then returns when every host has stopped at a safe point. Jobs that were running stay
    /// `running` and are taken up by the next runner.
    pub async fn run(&self, stop: CancellationToken) {
        let hosts = TaskTracker::new();
        let mut next_sweep = Instant::now();
        let mut errors: u32 = 0;
        while !stop.is_cancelled() {
            let mut pause = self.shared.limits.poll;
            match self.tick(&hosts, &stop, &mut next_sweep).await {
                Ok(()) => errors = 0,
                Err(error) => {
                    errors = errors.saturating_add(1);
                    pause = rest(errors);
                    tracing::warn!(%error, "the scheduler cannot read the database; trying again");
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.shared.nudge.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        hosts.close();
        hosts.wait().await;
    }

    /// Waits until the job rests: neither queued nor running nor waiting. Returns it as it then is.
    pub async fn rest_of(&self, id: JobId) -> Result<Option<Job>> {
        let mut errors = 0;
        loop {
            match self.status_of(id).await {
                // The sums of a long job are not read before they are wanted.
                Ok(Some(Status::Queued | Status::Running | Status::Waiting)) => {}
                Ok(_) => match self.shared.store.job(id).await {
                    // Resumed in between.
                    Ok(Some(job))
                        if matches!(job.status, Status::Queued | Status::Running | Status::Waiting) => {}
                    Err(error) if error.is_transient() => {}
                    known => return known,
                },
                Err(error) if error.is_transient() => {
                    errors += 1;
                    tokio::time::sleep(rest(errors)).await;
                }
                Err(error) => return Err(error),
            }
            tokio::time::sleep(self.shared.limits.poll).await;
        }
    }

    async fn status_of(&self, id: JobId) -> Result<Option<Status>> {
        let mut reader = self.shared.store.database().read().await?;
        jobs::status(reader.conn(), id).await
    }

    async fn tick(
        &self,
        hosts: &TaskTracker,
        stop: &CancellationToken,
        next_sweep: &mut Instant,
    ) -> Result<()> {
        if Instant::now() >= *next_sweep {
            self.sweep().await?;
            *next_sweep = Instant::now() + self.shared.limits.sweep_every;
        }
        self.start_due().await?;
        let mut reader = self.shared.store.database().read().await?;
        let active = jobs::active(reader.conn()).await?;
        let discardable = jobs::discardable(reader.conn()).await?;
        drop(reader);
        for id in discardable {
            undo::discard(&self.shared, id).await?;
        }
        for (id, _) in active {
            if self.may_host(id) {
                let runner = self.clone();
                let stop = stop.clone();
                hosts.spawn(async move { runner.host_job(id, stop).await });
            }
        }
        Ok(())
    }

    async fn start_due(&self) -> Result<()> {
        let database = self.shared.store.database();
        let mut reader = database.read().await?;
        if !jobs::any_due(reader.conn()).await? {
            return Ok(());
        }
        drop(reader);
        let mut tx = database.begin().await?;
        let started = match jobs::start_due(tx.conn()).await {
            // Another process started a job of the same lane at the same moment.
            Err(db::Error::Unique { .. }) => return Ok(()),
            started => started?,
        };
        crate::failpoint::pass("state.before_commit");
        tx.commit().await?;
        crate::failpoint::pass("state.after_commit");
        for job in started {
            let _ = self.shared.events.send(Event::Moved { job, to: Status::Running });
        }
        Ok(())
    }

    async fn sweep(&self) -> Result<()> {
        let mut tx = self.shared.store.database().begin().await?;
        let stuck = jobs::sweep_stuck(tx.conn(), self.shared.limits.stuck_minutes).await?;
        tx.commit().await?;
        if !stuck.is_empty() {
            self.shared.metrics.stuck(stuck.len());
            tracing::warn!(count = stuck.len(), "imports stuck-sweep flipped jobs to failed");
        }
        self.expire_staged().await?;
        self.look_for_old_snapshots().await
    }

    /// Dry runs and jobs that check first hold their whole source on disk; nobody has come back for these.
    async fn expire_staged(&self) -> Result<()> {
        let days = self.shared.limits.staged_days;
        let reason = format!("what it had staged expired after {days} days; resuming it starts over");
        let mut tx = self.shared.store.database().begin().await?;
        let expired = jobs::expire_staged(tx.conn(), days, &reason).await?;
        tx.commit().await?;
        for job in expired {
            tracing::info!(%job, days, "staged records of an abandoned job expired; resuming it starts over");
        }
        Ok(())
    }

    /// A transaction that somebody left open keeps the server from removing dead rows: what is staged and deleted stays
    /// on disk, and every claim walks over it.
    async fn look_for_old_snapshots(&self) -> Result<()> {
        let mut reader = self.shared.store.database().read().await?;
        let oldest = jobs::oldest_snapshot(reader.conn()).await?;
        drop(reader);
        self.shared.metrics.oldest_snapshot(oldest);
        if oldest >= self.shared.limits.snapshot_old {
            tracing::warn!(
                seconds = oldest.as_secs(),
                "the database's oldest snapshot is old, so dead rows cannot be removed; look for the transaction in \
                 pg_stat_activity (backend_xmin)"
            );
        }
        Ok(())
    }

    /// Marks the job as hosted here, unless it is already or rests after an error.
    fn may_host(&self, id: JobId) -> bool {
        let mut hosted = self.shared.hosted.lock();
        let failures = match hosted.get(&id) {
            Some(HostState::Running { .. }) => return false,
            Some(HostState::Resting { until, .. }) if Instant::now() < *until => return false,
            Some(HostState::Resting { failures, .. }) => *failures,
            None => 0,
        };
        hosted.insert(id, HostState::Running { failures });
        true
    }

    async fn host_job(&self, id: JobId, stop: CancellationToken) {
        let result = host::host(self.shared.clone(), id, stop).await;
        let mut hosted = self.shared.hosted.lock();
        match (result, hosted.remove(&id)) {
            (Err(error), Some(HostState::Running { failures })) => {
                tracing::warn!(job = %id, %error, "the job's loops stopped; they start again from the checkpoint");
                let failures = failures.saturating_add(1);
                hosted.insert(id, HostState::Resting { failures, until: Instant::now() + rest(failures) });
            }
            // Another process knows this kind of job; no need to look at it with every poll.
            (Ok(false), _) => {
                hosted.insert(id, HostState::Resting { failures: 0, until: Instant::now() + REST_LONGEST });
            }
            (_, _) => self.shared.nudge.notify_one(),
        }
    }
}

/// Doubles with each failure in a row, with full jitter above half.
fn rest(failures: u32) -> Duration {
    let ceiling = REST_FIRST.saturating_mul(2u32.saturating_pow(failures.min(10))).min(REST_LONGEST);
    ceiling.mul_f64(0.5 + rand::random::<f64>() / 2.0)
}
