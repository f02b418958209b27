//! The host of one job in one process: it starts fetchers and workers, watches the job's state, and moves the job on
//! when its parts have come to an end.

use std::sync::Arc;

use db::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::handoff::Handoff;
use super::{Event, Shared, check, fetch, work};
use crate::failpoint;
use crate::job::Mode;
use crate::store::{jobs, pages, partitions};
use crate::{Job, JobEvent, JobId, Kind, Sink, SinkError, Source, SourceError, Status};

/// Why a loop of a job cannot go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum HostError {
    /// The database failed.
    #[error(transparent)]
    Db(#[from] db::Error),
    /// The job itself comes to a stop, in a state that says why.
    #[error("{}", .0.reason.as_deref().unwrap_or("stopped"))]
    Stop(Stop),
}

/// A state the job is to move to once what is staged was processed.
#[derive(Debug, Clone)]
pub(super) struct Stop {
    pub(super) to: Status,
    pub(super) reason: Option<String>,
    pub(super) until: Option<Timestamp>,
    /// Process what is staged first.
    pub(super) drain: bool,
}

impl Stop {
    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self { to: Status::Failed, reason: Some(reason.into()), until: None, drain: false }
    }
}

impl From<SourceError> for Stop {
    fn from(error: SourceError) -> Self {
        let (to, until) = match &error {
            SourceError::Unauthorized(_) => (Status::AwaitingToken, None),
            SourceError::WaitUntil { until, .. } => (Status::Waiting, Some(*until)),
            _ => (Status::Failed, None),
        };
        Self { to, reason: Some(error.to_string()), until, drain: true }
    }
}

impl From<SourceError> for HostError {
    fn from(error: SourceError) -> Self {
        Self::Stop(error.into())
    }
}

impl From<SinkError> for HostError {
    fn from(error: SinkError) -> Self {
        match error {
            SinkError::Db(error) => Self::Db(error),
            other => Self::Stop(Stop::failed(other.to_string())),
        }
    }
}

/// What the loops of one job share.
pub(super) struct Context {
    pub(super) shared: Arc<Shared>,
    pub(super) job: Job,
    pub(super) kind: Arc<dyn Kind>,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) handoff: Handoff,
    /// Something changed: a page or chunk committed, a loop ended.
    pub(super) changed: Notify,
    /// Fetchers stop at the next safe point.
    pub(super) stop_fetching: CancellationToken,
    /// All loops stop at the next safe point.
    pub(super) halt: CancellationToken,
    stop: Mutex<Option<Stop>>,
}

impl Context {
    pub(super) fn id(&self) -> JobId {
        self.job.id
    }

    /// How many partitions are fetched side by side. One, for a serial sink: it takes the partitions in order, so what
    /// was fetched of later ones would only fill the staging that the first one waits for.
    pub(super) fn fetchers(&self, source: &dyn Source) -> usize {
        if self.sink.parallel() { source.profile().parallel_partitions.max(1) } else { 1 }
    }

    pub(super) fn send(&self, event: Event) {
        // Nobody may be listening.
        let _ = self.shared.events.send(event);
    }

    pub(super) fn observe(&self, event: &JobEvent) {
        self.kind.observe(&self.job, event);
    }

    /// Wakes every loop that waits for work or for room.
    pub(super) fn wake(&self) {
        self.changed.notify_waiters();
    }

    /// Begins to listen for a change; what happens from here on is not missed.
    pub(super) fn next_change(&self) -> Change<'_> {
        let mut notified = Box::pin(self.changed.notified());
        notified.as_mut().enable();
        Change { notified, context: self }
    }

    /// The first stop wins; a later one is a consequence of it.
    fn stop_with(&self, stop: Stop) {
        let drain = stop.drain;
        self.stop.lock().get_or_insert(stop);
        self.stop_fetching.cancel();
        if !drain {
            self.halt.cancel();
        }
        self.wake();
    }

    fn stopped(&self) -> Option<Stop> {
        self.stop.lock().clone()
    }
}

/// A change to wait for, listened for since it was made.
pub(super) struct Change<'c> {
    notified: std::pin::Pin<Box<tokio::sync::futures::Notified<'c>>>,
    context: &'c Context,
}

impl Change<'_> {
    /// Waits for the change, or for the poll interval, which shows changes made by other processes.
    pub(super) async fn wait(self) {
        tokio::select! {
            () = self.notified => {}
            () = tokio::time::sleep(self.context.shared.limits.poll) => {}
            () = self.context.halt.cancelled() => {}
        }
    }
}

/// Hosts the job until it has come to an end, was stopped, or the database fails.
pub(super) async fn host(shared: Arc<Shared>, id: JobId, stop: CancellationToken) -> db::Result<()> {
    let Some(job) = shared.store.job(id).await? else { return Ok(()) };
    let Some(kind) = shared.kinds.iter().find(|kind| kind.name() == job.kind).cloned() else {
        // Another process may know this kind.
        tracing::debug!(job = %id, kind = job.kind, "no such kind of job in this process");
        return Ok(());
    };
    let sink = match kind.sink(&job).await {
        Ok(sink) => sink,
        Err(SinkError::Db(error)) => return Err(error),
        Err(error) => return move_job(&shared, &job, &*kind, &Stop::failed(error.to_string())).await,
    };
    let halt = stop.child_token();
    let context = Arc::new(Context {
        handoff: Handoff::new(shared.limits.handoff_bytes),
        shared,
        kind,
        sink,
        changed: Notify::new(),
        stop_fetching: halt.child_token(),
        halt,
        stop: Mutex::new(None),
        job,
    });
    if context.job.status != Status::Running {
        return undo(&context).await;
    }
    let result = run(&context).await;
    context.halt.cancel();
    match result {
        Ok(()) => Ok(()),
        Err(HostError::Db(error)) if error.is_transient() || matches!(error, db::Error::CommitUnknown(_)) => {
            Err(error)
        }
        Err(HostError::Db(error)) => {
            let stop = Stop::failed(error.to_string());
            move_job(&context.shared, &context.job, &*context.kind, &stop).await
        }
        Err(HostError::Stop(stop)) => move_job(&context.shared, &context.job, &*context.kind, &stop).await,
    }
}

/// The loops, from their start to their joint end.
async fn run(context: &Arc<Context>) -> Result<(), HostError> {
    let source = match context.kind.source(&context.job).await {
        Ok(source) => source,
        Err(error) => return Err(error.into()),
    };
    if let Some(source) = &source {
        partition(context, &**source).await?;
    }
    let mut loops: JoinSet<Result<(), HostError>> = JoinSet::new();
    if let Some(source) = &source {
        for _ in 0..context.fetchers(&**source) {
            loops.spawn(fetch::fetcher(context.clone(), source.clone()));
        }
    }
    if context.job.mode == Mode::Stream {
        start_workers(context, &mut loops);
    }
    let result = tokio::select! {
        result = coordinate(context, &mut loops, source.is_none()) => result,
        error = watch(context) => Err(error.into()),
    };
    context.halt.cancel();
    context.wake();
    while let Some(ended) = loops.join_next().await {
        if let (Ok(Err(HostError::Db(error))), Ok(())) = (ended, &result) {
            return Err(error.into());
        }
    }
    result
}

fn start_workers(context: &Arc<Context>, loops: &mut JoinSet<Result<(), HostError>>) {
    let workers = if context.sink.parallel() { context.shared.limits.workers.max(1) } else { 1 };
    for _ in 0..workers {
        loops.spawn(work::worker(context.clone()));
    }
}

/// Asks the source for its partitions, once in the life of the job.
async fn partition(context: &Context, source: &dyn Source) -> Result<(), HostError> {
    let database = context.shared.store.database();
    let mut reader = database.read().await?;
    let known = jobs::phase(reader.conn(), context.id()).await?.partitioned;
    drop(reader);
    if known {
        return Ok(());
    }
    let specs = source.partitions().await?;
    let mut tx = database.begin().await?;
    match partitions::insert(tx.conn(), context.id(), &specs).await {
        // Another process was faster; its answer is the same.
        Err(db::Error::Unique { .. }) => return Ok(()),
        inserted => inserted?,
    }
    failpoint::pass("lease.before_commit");
    tx.commit().await?;
    failpoint::pass("lease.after_commit");
    Ok(())
}

/// Follows the job's state in the database; halts the loops when somebody stopped the job. Returns on a broken
/// database only.
async fn watch(context: &Context) -> db::Error {
    loop {
        tokio::time::sleep(context.shared.limits.poll).await;
        let status = async {
            let mut reader = context.shared.store.database().read().await?;
            jobs::status(reader.conn(), context.id()).await
        };
        match status.await {
            Ok(Some(Status::Running)) => {}
            Ok(_) => {
                context.halt.cancel();
                context.wake();
            }
            Err(error) => return error,
        }
    }
}

/// Takes the ends of loops, and moves the job on.
async fn coordinate(
    context: &Arc<Context>,
    loops: &mut JoinSet<Result<(), HostError>>,
    without_source: bool,
) -> Result<(), HostError> {
    let hosted_since = Instant::now();
    let mut checking = context.job.mode != Mode::Stream;
    loop {
        let change = context.next_change();
        while let Some(ended) = loops.try_join_next() {
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(HostError::Stop(stop))) => context.stop_with(stop),
                Ok(Err(HostError::Db(error))) => return Err(error.into()),
                Err(panicked) => {
                    context.stop_with(Stop::failed(format!("a loop of the job broke: {panicked}")))
                }
            }
        }
        if context.halt.is_cancelled() && context.stopped().is_none() {
            return halted(context).await;
        }
        if let Some(stop) = context.stopped().filter(|stop| !stop.drain) {
            return Err(HostError::Stop(stop));
        }
        let remaining = tidy(context).await?;
        if remaining.partitions == 0 && checking {
            if check::check(context).await? {
                start_workers(context, loops);
            }
            checking = false;
            continue;
        }
        if remaining.chunks == 0 || checking {
            if let Some(stop) = context.stopped() {
                return Err(HostError::Stop(stop));
            }
            if remaining.partitions == 0 && remaining.chunks == 0 {
                return finish(context, remaining.segments).await;
            }
            if without_source {
                await_token(context, hosted_since).await?;
            }
        }
        change.wait().await;
    }
}

/// Cleans what is settled and tells what is left.
async fn tidy(context: &Context) -> Result<jobs::Remaining, HostError> {
    let database = context.shared.store.database();
    let mut reader = database.read().await?;
    let remaining = jobs::remaining(reader.conn(), context.id()).await?;
    // Chunks of a dry run are settled by the check, which reads all of them again after a crash.
    let checked = context.job.mode == Mode::Stream || jobs::phase(reader.conn(), context.id()).await?.checked;
    let cleanable =
        remaining.segments > 0 && checked && pages::any_cleanable(reader.conn(), context.id()).await?;
    drop(reader);
    if !cleanable {
        return Ok(remaining);
    }
    let mut tx = database.begin().await?;
    let cleaned = pages::clean(tx.conn(), context.id()).await?;
    if cleaned == 0 {
        tx.rollback().await?;
        return Ok(remaining);
    }
    failpoint::pass("clean.before_commit");
    tx.commit().await?;
    failpoint::pass("clean.after_commit");
    context.wake();
    Ok(jobs::Remaining { segments: remaining.segments - cleaned, ..remaining })
}

/// Completes the job; if its numbers do not add up, it fails and says so.
async fn finish(context: &Context, uncleaned: i64) -> Result<(), HostError> {
    let mut tx = context.shared.store.database().begin().await?;
    let completed = jobs::complete(tx.conn(), context.id()).await?;
    failpoint::pass("complete.before_commit");
    tx.commit().await?;
    failpoint::pass("complete.after_commit");
    let job = context.shared.store.job(context.id()).await?;
    match job {
        Some(job) if completed => {
            context.observe(&JobEvent::RunCompleted {
                run: job.run,
                counts: job.counts,
                fetched: job.fetched,
            });
            context.kind.observe(&job, &JobEvent::Moved { to: Status::Completed, reason: None });
            context.send(Event::Moved { job: job.id, to: Status::Completed });
            Ok(())
        }
        Some(job) if job.status == Status::Running => Err(HostError::Stop(Stop::failed(format!(
            "the numbers do not add up: {} records were fetched, {} have an outcome, {uncleaned} segments are not clean",
            job.fetched,
            job.counts.records()
        )))),
        _ => Ok(()),
    }
}

/// The loops were halted: by a stop of this process, or because somebody moved the job.
async fn halted(context: &Context) -> Result<(), HostError> {
    let Some(job) = context.shared.store.job(context.id()).await? else { return Ok(()) };
    if job.status == Status::Running {
        return Ok(());
    }
    context.kind.observe(&job, &JobEvent::Moved { to: job.status, reason: job.reason.clone() });
    context.send(Event::Moved { job: job.id, to: job.status });
    if job.status == Status::Cancelled {
        discard(&context.shared, job.id).await?;
    }
    Ok(())
}

/// Pages are left and this process cannot fetch. Once nobody holds a lease, the job waits for a token.
async fn await_token(context: &Context, hosted_since: Instant) -> Result<(), HostError> {
    if !context.shared.alone && hosted_since.elapsed() < context.shared.limits.token_grace {
        return Ok(());
    }
    let database = context.shared.store.database();
    let mut reader = database.read().await?;
    let partitioned = jobs::phase(reader.conn(), context.id()).await?.partitioned;
    let unheld = !partitioned || partitions::any_unheld(reader.conn(), context.id()).await?;
    drop(reader);
    // On SQLite a lease that is still held belongs to a process that is gone: this one holds the runner lock.
    if !unheld && !context.shared.alone {
        return Ok(());
    }
    if partitioned && fetch::flush_tails(context).await? {
        context.wake();
        return Ok(());
    }
    let reason = "pages are left to fetch and no token is at hand; resume the job with the source's token";
    Err(HostError::Stop(Stop {
        to: Status::AwaitingToken,
        reason: Some(reason.into()),
        until: None,
        drain: true,
    }))
}

/// Moves the job and tells it.
async fn move_job(shared: &Shared, job: &Job, kind: &dyn Kind, stop: &Stop) -> db::Result<()> {
    if !shared.store.move_job(job.id, stop.to, stop.reason.as_deref(), stop.until).await? {
        return Ok(());
    }
    if let Some(now) = shared.store.job(job.id).await? {
        kind.observe(
            &now,
            &JobEvent::RunCompleted { run: now.run, counts: now.counts, fetched: now.fetched },
        );
        kind.observe(&now, &JobEvent::Moved { to: stop.to, reason: stop.reason.clone() });
    }
    let _ = shared.events.send(Event::Moved { job: job.id, to: stop.to });
    Ok(())
}

const DISCARD_AT_ONCE: i64 = 5000;

/// Removes what a cancelled job staged.
async fn discard(shared: &Shared, id: JobId) -> db::Result<()> {
    loop {
        let mut tx = shared.store.database().begin().await?;
        let gone = jobs::discard_staged(tx.conn(), id, DISCARD_AT_ONCE).await?;
        tx.commit().await?;
        if gone < DISCARD_AT_ONCE {
            return Ok(());
        }
    }
}

const UNDO_AT_ONCE: i64 = 500;

/// Undoes what a job wrote whose rule forbade to go on. The mark in the job makes this resume after a crash.
async fn undo(context: &Context) -> db::Result<()> {
    let database = context.shared.store.database();
    while !context.halt.is_cancelled() {
        let mut tx = database.begin().await?;
        let gone = match context.sink.undo(&mut tx, context.id(), UNDO_AT_ONCE).await {
            Ok(gone) => gone,
            Err(SinkError::Db(error)) => return Err(error),
            Err(error) => {
                tracing::error!(job = %context.id(), %error, "what the job wrote cannot be undone");
                0
            }
        };
        if gone == 0 {
            jobs::set_undoing(tx.conn(), context.id(), false).await?;
            tx.commit().await?;
            return Ok(());
        }
        tx.commit().await?;
    }
    Ok(())
}
