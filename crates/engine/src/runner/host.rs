//! The host of one job in one process: it starts fetchers and workers, watches the job's state, and moves the job on
//! when its parts have come to an end.

use std::sync::Arc;

use db::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::busy::{Parts, Picked};
use super::handoff::Handoff;
use super::rules::{self, Rules};
use super::{Event, HostState, Shared, check, fetch, undo, work};
use crate::failpoint;
use crate::job::Mode;
use crate::kind::Certified;
use crate::store::{chunks, jobs, pages, partitions};
use crate::{Job, JobEvent, JobId, Kind, Limits, Sink, SinkError, Source, SourceError, Status};

/// Why a loop of a job cannot go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum HostError {
    /// The database failed.
    #[error(transparent)]
    Db(#[from] db::Error),
    /// The job itself comes to a stop, in a state that says why.
    #[error("{}", .0.reason.as_deref().unwrap_or("stopped"))]
    Stop(Stop),
    /// Another fetcher has taken the partition over, or the job was cancelled; nothing is wrong here.
    #[error("another fetcher has taken over")]
    Fenced,
}

/// A state the job is to move to once what is staged was processed.
#[derive(Debug, Clone)]
pub(super) struct Stop {
    pub(super) to: Status,
    pub(super) reason: Option<String>,
    pub(super) until: Option<Timestamp>,
    /// Process what is staged first.
    pub(super) drain: bool,
    /// Undo what the job wrote.
    pub(super) undo: bool,
}

impl Stop {
    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self { to: Status::Failed, reason: Some(reason.into()), until: None, drain: false, undo: false }
    }

    /// The source failed; what it gave before is processed first.
    pub(super) fn fetching(reason: impl Into<String>) -> Self {
        Self { drain: true, ..Self::failed(reason) }
    }

    /// The job's rule forbids to go on, and what it wrote is undone.
    pub(super) fn undoing(reason: impl Into<String>) -> Self {
        Self { undo: true, ..Self::failed(reason) }
    }
}

impl From<SourceError> for Stop {
    fn from(error: SourceError) -> Self {
        let (to, until) = match &error {
            SourceError::Unauthorized(_) => (Status::AwaitingToken, None),
            SourceError::WaitUntil { until, .. } => (Status::Waiting, Some(*until)),
            _ => (Status::Failed, None),
        };
        Self { to, reason: Some(error.to_string()), until, drain: true, undo: false }
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
    /// The bounds of this job.
    pub(super) limits: Limits,
    pub(super) kind: Arc<dyn Kind>,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) handoff: Handoff,
    /// Something changed: a page or chunk committed, a loop ended.
    pub(super) changed: Notify,
    /// Fetchers stop at the next safe point.
    pub(super) stop_fetching: CancellationToken,
    /// All loops stop at the next safe point.
    pub(super) halt: CancellationToken,
    pub(super) parts: Parts,
    pub(super) picked: Picked,
    pub(super) rules: Rules,
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

    /// Tells what was committed. A host that gets on is not one that fails again and again.
    pub(super) fn progress(&self, event: Event) {
        if let Some(HostState::Running { failures }) = self.shared.hosted.lock().get_mut(&self.id()) {
            *failures = 0;
        }
        if let Event::Settled { counts, .. } = &event {
            self.rules.settled(counts);
        }
        self.send(event);
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

    /// The first stop wins; a later one is a consequence of it. Only one that cannot wait replaces one that can.
    fn stop_with(&self, stop: Stop) {
        let drain = stop.drain;
        {
            let mut known = self.stop.lock();
            if known.as_ref().is_none_or(|known| known.drain && !drain) {
                *known = Some(stop);
            }
        }
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
            () = tokio::time::sleep(self.context.limits.poll) => {}
            () = self.context.halt.cancelled() => {}
        }
    }
}

/// Hosts the job until it has come to an end, was stopped, or the database fails. `false`: it cannot be hosted here.
pub(super) async fn host(shared: Arc<Shared>, id: JobId, stop: CancellationToken) -> db::Result<bool> {
    let Some(job) = shared.store.job(id).await? else { return Ok(true) };
    let Some(kind) = shared.kinds.iter().find(|kind| kind.name() == job.kind).cloned() else {
        // Another process may know this kind.
        tracing::debug!(job = %id, kind = job.kind, "no such kind of job in this process");
        return Ok(false);
    };
    let sink = match kind.sink(&job).await {
        Ok(sink) => sink,
        Err(SinkError::Db(error)) => return Err(error),
        Err(error) if job.status == Status::Running => {
            move_job(&shared, &job, &*kind, &Stop::failed(error.to_string())).await?;
            return Ok(true);
        }
        Err(error) => {
            tracing::error!(job = %id, %error, "what the job wrote cannot be undone in this process");
            return Ok(false);
        }
    };
    let mut reader = shared.store.database().read().await?;
    let undoing = jobs::phase(reader.conn(), id).await?.undoing;
    drop(reader);
    let halt = stop.child_token();
    let limits = kind.limits(&job, &shared.limits);
    let context = Arc::new(Context {
        handoff: Handoff::new(limits.handoff_bytes),
        rules: Rules::new(&limits),
        limits,
        shared,
        kind,
        sink,
        changed: Notify::new(),
        stop_fetching: halt.child_token(),
        halt,
        parts: Parts::default(),
        picked: Picked::default(),
        stop: Mutex::new(None),
        job,
    });
    if undoing {
        return undo::undo(&context).await.map(|()| true);
    }
    if context.job.status != Status::Running {
        return Ok(true);
    }
    let result = run(&context).await;
    conclude(&context, result).await.map(|()| true)
}

/// Moves the job to where its loops came to a stop.
async fn conclude(context: &Context, result: Result<End, HostError>) -> db::Result<()> {
    match result {
        Ok(End::Done) => Ok(()),
        // Whoever is fenced because the job was cancelled may see it before the watch does.
        Ok(End::Halted) | Err(HostError::Fenced) => halted(context).await,
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

/// How the loops came to their end.
enum End {
    /// The job is over.
    Done,
    /// This process stops, or somebody moved the job.
    Halted,
}

/// The loops, from their start to their joint end.
async fn run(context: &Arc<Context>) -> Result<End, HostError> {
    let mut loops: JoinSet<Result<(), HostError>> = JoinSet::new();
    let fetches = start_fetchers(context, &mut loops).await?;
    if context.job.mode == Mode::Stream {
        start_workers(context, &mut loops);
    }
    let result = tokio::select! {
        result = coordinate(context, &mut loops, fetches) => result,
        error = watch(context) => Err(error.into()),
    };
    context.halt.cancel();
    context.wake();
    while let Some(ended) = loops.join_next().await {
        if let (Ok(Err(HostError::Db(error))), Ok(_)) = (ended, &result) {
            return Err(error.into());
        }
    }
    result
}

/// Asks for the source, and fetches if there is one. `false`: its credentials are not known in this process, or it
/// cannot be had; what is staged needs no source.
async fn start_fetchers(
    context: &Arc<Context>,
    loops: &mut JoinSet<Result<(), HostError>>,
) -> Result<bool, HostError> {
    let source = match context.kind.source(&context.job).await {
        Ok(Some(source)) => source,
        Ok(None) => return Ok(false),
        Err(error) => {
            context.stop_with(error.into());
            return Ok(false);
        }
    };
    partition(context, &*source).await?;
    for _ in 0..context.fetchers(&*source) {
        loops.spawn(fetch::fetcher(context.clone(), source.clone()));
    }
    Ok(true)
}

fn start_workers(context: &Arc<Context>, loops: &mut JoinSet<Result<(), HostError>>) {
    // On SQLite one transaction writes at a time; a second worker would only wait.
    let side_by_side = context.sink.parallel() && !context.shared.alone;
    let workers = if side_by_side { context.limits.workers.max(1) } else { 1 };
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
        Err(db::Error::Unique { .. }) => {
            tx.rollback().await?;
            return partitioned_elsewhere(context).await;
        }
        inserted => inserted?,
    }
    failpoint::pass("lease.before_commit");
    tx.commit().await?;
    failpoint::pass("lease.after_commit");
    Ok(())
}

/// Another process was faster, and its answer is the same; or the source named two partitions alike.
async fn partitioned_elsewhere(context: &Context) -> Result<(), HostError> {
    let mut reader = context.shared.store.database().read().await?;
    if jobs::phase(reader.conn(), context.id()).await?.partitioned {
        return Ok(());
    }
    Err(SourceError::Malformed("the source names two partitions alike".into()).into())
}

/// Follows the job's state in the database; halts the loops when somebody stopped the job. Returns on a broken
/// database only.
async fn watch(context: &Context) -> db::Error {
    loop {
        tokio::time::sleep(context.limits.poll).await;
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

/// The coordinator looks at most that often in the time of a poll.
const LOOKS_A_POLL: u32 = 20;

/// Takes the ends of loops, and moves the job on.
async fn coordinate(
    context: &Arc<Context>,
    loops: &mut JoinSet<Result<(), HostError>>,
    mut fetches: bool,
) -> Result<End, HostError> {
    let hosted_since = Instant::now();
    let mut checking = context.job.mode != Mode::Stream;
    loop {
        let change = context.next_change();
        while let Some(ended) = loops.try_join_next() {
            take_end(context, ended)?;
        }
        if context.halt.is_cancelled() {
            return match context.stopped() {
                Some(stop) if !stop.drain => Err(HostError::Stop(stop)),
                _ => Ok(End::Halted),
            };
        }
        let remaining = tidy(context).await?;
        rules::judge(context).await?;
        if remaining.partitions == 0 && checking {
            if check::check(context).await? {
                start_workers(context, loops);
            }
            checking = false;
            continue;
        }
        if let Some(stop) = context.stopped() {
            if checking || drained(context).await? {
                return Err(HostError::Stop(stop));
            }
        } else if remaining.broken > 0 && remaining.broken == remaining.partitions {
            if checking || drained(context).await? {
                return Err(HostError::Stop(broken(context).await?));
            }
        } else if remaining.partitions == 0 && remaining.chunks == 0 {
            rules::judge_now(context).await?;
            if let Some(end) = finish(context).await? {
                return Ok(end);
            }
        } else if !fetches {
            // Somebody may have given the credentials meanwhile.
            fetches = start_fetchers(context, loops).await?;
            if !fetches && (checking || drained(context).await?) {
                await_token(context, hosted_since).await?;
            }
        }
        tokio::select! {
            () = change.wait() => {}
            Some(ended) = loops.join_next(), if !loops.is_empty() => take_end(context, ended)?,
        }
        // Commits come in quick succession; there is no need to look after each.
        tokio::time::sleep(context.limits.poll / LOOKS_A_POLL).await;
    }
}

fn take_end(context: &Context, ended: Result<Result<(), HostError>, JoinError>) -> Result<(), HostError> {
    match ended {
        Ok(Ok(()) | Err(HostError::Fenced)) => {}
        Ok(Err(HostError::Stop(stop))) => context.stop_with(stop),
        Ok(Err(HostError::Db(error))) => return Err(error.into()),
        Err(panicked) => context.stop_with(Stop::failed(format!("a loop of the job broke: {panicked}"))),
    }
    Ok(())
}

/// The stop of a job of which some partitions are given up and the others are through.
async fn broken(context: &Context) -> Result<Stop, HostError> {
    let mut reader = context.shared.store.database().read().await?;
    let all = partitions::list(reader.conn(), context.id()).await?;
    let mut given_up = all.iter().filter(|partition| partition.status == "broken");
    let told = given_up.next().map(|first| {
        let reason = first.reason.as_deref().unwrap_or_default();
        let alone = all.iter().filter(|partition| partition.status != "left_out").count() == 1;
        match given_up.count() {
            0 if alone => reason.to_owned(),
            0 => format!("partition {}: {reason}; the others came over", first.key),
            more => format!("partition {} and {more} more: {reason}; the others came over", first.key),
        }
    });
    Ok(Stop::fetching(told.unwrap_or_default()))
}

/// Whether nothing that is staged can be processed now. A serial sink leaves the chunks behind an unfinished partition.
async fn drained(context: &Context) -> Result<bool, HostError> {
    let mut reader = context.shared.store.database().read().await?;
    Ok(!chunks::any_due(reader.conn(), context.id(), !context.sink.parallel()).await?)
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

/// Completes the job; if its numbers do not add up, it fails and says so. `None`: another process is still cleaning.
async fn finish(context: &Context) -> Result<Option<End>, HostError> {
    let completed = completable(context).await? && {
        // A dry run wrote nothing that could be certified.
        if context.job.mode != Mode::DryRun {
            match context.kind.certify(&context.job).await? {
                Certified::Holds => {}
                Certified::NotNow => return Ok(None),
                Certified::Fails(reason) => return Err(HostError::Stop(Stop::failed(reason))),
            }
        }
        let mut tx = context.shared.store.database().begin().await?;
        let completed = jobs::complete(tx.conn(), context.id()).await?;
        failpoint::pass("complete.before_commit");
        tx.commit().await?;
        failpoint::pass("complete.after_commit");
        completed
    };
    let Some(job) = context.shared.store.job(context.id()).await? else { return Ok(Some(End::Done)) };
    if completed {
        context.observe(&JobEvent::RunCompleted { run: job.run, counts: job.counts, fetched: job.fetched });
        context.kind.observe(&job, &JobEvent::Moved { to: Status::Completed, reason: None });
        context.send(Event::Moved { job: job.id, to: Status::Completed });
        return Ok(Some(End::Done));
    }
    if job.status != Status::Running {
        return Ok(Some(End::Halted));
    }
    let mut reader = context.shared.store.database().read().await?;
    let remaining = jobs::remaining(reader.conn(), context.id()).await?;
    let cleaning = pages::any_cleanable(reader.conn(), context.id()).await?;
    drop(reader);
    if cleaning || remaining.partitions > 0 || remaining.chunks > 0 {
        return Ok(None);
    }
    // Another process may have cleaned the last segment between the two looks.
    if completable(context).await? {
        return Ok(None);
    }
    Err(HostError::Stop(Stop::failed(format!(
        "the numbers do not add up: {} records were fetched, {} have an outcome, {} segments are not clean",
        job.fetched,
        job.counts.records(),
        remaining.segments
    ))))
}

/// Whether the job would complete now: nothing is left, everything is cleaned, the numbers add up.
async fn completable(context: &Context) -> Result<bool, HostError> {
    let mut tx = context.shared.store.database().begin().await?;
    let completable = jobs::complete(tx.conn(), context.id()).await?;
    tx.rollback().await?;
    Ok(completable)
}

/// The loops were halted: by a stop of this process, or because somebody moved the job.
async fn halted(context: &Context) -> db::Result<()> {
    let Some(job) = context.shared.store.job(context.id()).await? else { return Ok(()) };
    if job.status == Status::Running {
        return Ok(());
    }
    context.observe(&JobEvent::RunCompleted { run: job.run, counts: job.counts, fetched: job.fetched });
    context.kind.observe(&job, &JobEvent::Moved { to: job.status, reason: job.reason.clone() });
    context.send(Event::Moved { job: job.id, to: job.status });
    Ok(())
}

/// Pages are left and this process cannot fetch. Once nobody holds a lease, the job waits for a token.
async fn await_token(context: &Context, hosted_since: Instant) -> Result<(), HostError> {
    if !context.shared.alone && hosted_since.elapsed() < context.limits.token_grace {
        return Ok(());
    }
    let database = context.shared.store.database();
    let mut reader = database.read().await?;
    let partitioned = jobs::phase(reader.conn(), context.id()).await?.partitioned;
    let grace = context.limits.token_grace;
    let unheld = !partitioned || partitions::any_unheld(reader.conn(), context.id(), grace).await?;
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
    Err(HostError::Stop(Stop { to: Status::AwaitingToken, ..Stop::fetching(reason) }))
}

/// Moves the job and tells it.
async fn move_job(shared: &Shared, job: &Job, kind: &dyn Kind, stop: &Stop) -> db::Result<()> {
    let mut tx = shared.store.database().begin().await?;
    if !jobs::move_to(tx.conn(), job.id, stop.to, stop.reason.as_deref(), stop.until).await? {
        return tx.rollback().await;
    }
    if stop.undo {
        jobs::set_undoing(tx.conn(), job.id, true).await?;
    }
    failpoint::pass("state.before_commit");
    tx.commit().await?;
    failpoint::pass("state.after_commit");
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
