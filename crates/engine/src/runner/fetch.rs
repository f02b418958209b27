//! Stage one: a fetcher takes a partition's lease and follows its cursor, page by page.
//!
//! While a page is being committed, the next one is being fetched, unless the source's profile says no. A page that is
//! durable is never asked for again; a crash costs at most the page whose commit was under way and the one being fetched
//! beside it. What a page transaction could not answer for (a connection lost at COMMIT) is looked up, never sent again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Event;
use super::host::{Context, HostError, Stop};
use super::open_segment::OpenSegment;
use crate::failpoint;
use crate::job::Mode;
use crate::source::{Page, Profile};
use crate::store::pages::{self, Commit, NewChunk};
use crate::store::partitions::{self, Checkpoint};
use crate::store::{chunks, jobs, small};
use crate::{JobEvent, PartitionSpec, Position, Source, SourceError, StagedRecord, Status};

/// How long staged records wait for their chunk to fill while the workers have nothing to do.
const TAIL_WAITS_MAX: Duration = Duration::from_millis(50);
/// A segment is closed when it has so many records, however few its pages. What SQLite's staging has room for is
/// sixteen times that.
const RECORDS_PER_SEGMENT_MAX: i32 = 1 << 20;

/// Fetches one partition after the other until none is free or the job stops.
pub(super) async fn fetcher(context: Arc<Context>, source: Arc<dyn Source>) -> Result<(), HostError> {
    let one_by_one = context.fetchers(&*source) == 1;
    while !context.stop_fetching.is_cancelled() {
        let change = context.next_change();
        let Some(checkpoint) = take(&context, one_by_one).await? else {
            if nothing_left(&context).await? {
                return Ok(());
            }
            change.wait().await;
            continue;
        };
        let (part, epoch) = (checkpoint.part, checkpoint.epoch);
        let lost = CancellationToken::new();
        let result = {
            let fetching = fetch(&context, &*source, checkpoint, &lost);
            tokio::pin!(fetching);
            tokio::select! {
                result = &mut fetching => result,
                error = heartbeat(&context, part, epoch) => {
                    // The lease is lost or will be: stop before it ends. A page commit under way ends by itself.
                    lost.cancel();
                    match (fetching.await, error) {
                        (Ok(()), Some(error)) => Err(error.into()),
                        (result, _) => result,
                    }
                }
            }
        };
        // The partitions are independent: the others go on, and the job fails when they are through.
        let broken = match &result {
            Err(HostError::Stop(stop)) if stop.to == Status::Failed && stop.drain => {
                Some(stop.reason.as_deref().unwrap_or("it failed"))
            }
            _ => None,
        };
        release(&context, part, epoch, broken).await?;
        context.parts.give_back(part).await;
        match result {
            Err(HostError::Fenced) => context.next_change().wait().await,
            Err(error) if broken.is_none() => return Err(error),
            Ok(()) | Err(_) => {}
        }
        context.wake();
    }
    Ok(())
}

/// Whether there is no partition left to fetch: each has ended or is given up.
async fn nothing_left(context: &Context) -> Result<bool, HostError> {
    let mut reader = context.shared.store.database().read().await?;
    let remaining = jobs::remaining(reader.conn(), context.id()).await?;
    Ok(remaining.partitions == remaining.broken)
}

/// Takes a free partition and begins a run of it.
async fn take(context: &Context, one_by_one: bool) -> Result<Option<Checkpoint>, HostError> {
    let shared = &context.shared;
    let mut held = context.parts.look().await;
    let busy = held.clone();
    let mut reader = shared.store.database().read().await?;
    let free =
        partitions::any_free(reader.conn(), context.id(), &shared.holder, one_by_one, shared.alone, &busy)
            .await?;
    drop(reader);
    if !free {
        return Ok(None);
    }
    let mut tx = shared.store.database().begin().await?;
    let lease = seconds(context.limits.lease);
    let taken =
        partitions::take(tx.conn(), context.id(), &shared.holder, lease, one_by_one, shared.alone, &busy)
            .await?;
    let Some(mut checkpoint) = taken else {
        tx.rollback().await?;
        return Ok(None);
    };
    if pages::flush_chunk(tx.conn(), context.id(), checkpoint.part, checkpoint.epoch).await? {
        checkpoint.chunked = checkpoint.staged;
    }
    if let Some(run) = begin_run(context, &mut tx, checkpoint.part, checkpoint.epoch).await? {
        checkpoint.run = run;
        checkpoint.run_records = 0;
    }
    failpoint::pass("lease.before_commit");
    tx.commit().await?;
    failpoint::pass("lease.after_commit");
    held.push(checkpoint.part);
    drop(held);
    context.observe(&JobEvent::RunStarted { run: checkpoint.run });
    Ok(Some(checkpoint))
}

/// A run of its own for every stretch of fetching: after a take-over, and at a run boundary. `None`: the epoch is over.
async fn begin_run(
    context: &Context,
    tx: &mut db::Tx,
    part: i32,
    epoch: i64,
) -> Result<Option<i32>, HostError> {
    let run = jobs::next_run(tx.conn(), context.id()).await?;
    let held = partitions::begin_run(tx.conn(), context.id(), part, epoch, run).await?;
    Ok(held.then_some(run))
}

/// Gives the lease back. A partition that failed for good is given up in the same transaction, so that nobody takes it in
/// between.
async fn release(context: &Context, part: i32, epoch: i64, broken: Option<&str>) -> Result<(), HostError> {
    let mut tx = context.shared.store.database().begin().await?;
    if let Some(reason) = broken {
        partitions::break_off(tx.conn(), context.id(), part, epoch, reason).await?;
    }
    pages::flush_chunk(tx.conn(), context.id(), part, epoch).await?;
    partitions::release(tx.conn(), context.id(), part, epoch).await?;
    tx.commit().await?;
    Ok(())
}

/// Puts the tails of partitions that nobody fetches into chunks; `true` if there were any.
pub(super) async fn flush_tails(context: &Context) -> Result<bool, HostError> {
    let mut tx = context.shared.store.database().begin().await?;
    let tails = partitions::fence(tx.conn(), context.id(), context.shared.alone).await?;
    for (part, epoch) in &tails {
        pages::flush_chunk(tx.conn(), context.id(), *part, *epoch).await?;
    }
    tx.commit().await?;
    Ok(!tails.is_empty())
}

/// Renews the lease three times within it. Returns when it is lost (`None`) or when the database could not be
/// reached for so long that it will be.
async fn heartbeat(context: &Context, part: i32, epoch: i64) -> Option<db::Error> {
    if context.shared.alone {
        // Nobody can take over, and a renewal would queue behind a long chunk for the one writer there is.
        return std::future::pending().await;
    }
    let lease = context.limits.lease;
    let mut renewed = Instant::now();
    loop {
        tokio::time::sleep(lease / 3).await;
        let attempt = async {
            let mut tx = context.shared.store.database().begin().await?;
            let held = partitions::renew(tx.conn(), context.id(), part, epoch, seconds(lease)).await?;
            tx.commit().await?;
            Ok::<bool, db::Error>(held)
        };
        match tokio::time::timeout(lease / 3, attempt).await {
            Ok(Ok(true)) => renewed = Instant::now(),
            Ok(Ok(false)) => return None,
            Ok(Err(error)) if renewed.elapsed() > lease / 2 => return Some(error),
            Err(_) if renewed.elapsed() > lease / 2 => {
                return Some(db::Error::Connection(sqlx::Error::PoolTimedOut));
            }
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

/// A page on its way from the source into a commit.
struct Fetched {
    at: Position,
    page: Page,
    took: Duration,
}

/// The state of fetching one partition under one lease.
struct Fetch<'f> {
    context: &'f Context,
    source: &'f dyn Source,
    profile: Profile,
    spec: PartitionSpec,
    part: i32,
    epoch: i64,
    run: i32,
    run_records: i64,
    run_began: Instant,
    /// As stored: the next commit must find it unchanged.
    position: Position,
    segment: OpenSegment,
    /// Pages fetched over the life of the partition, as the next commit must find it.
    pages: i64,
    /// Staged records that are in no chunk yet, for the handoff. Taking over puts a former tail into a chunk.
    tail: Vec<StagedRecord>,
}

async fn fetch(
    context: &Context,
    source: &dyn Source,
    checkpoint: Checkpoint,
    lost: &CancellationToken,
) -> Result<(), HostError> {
    let mut reader = context.shared.store.database().read().await?;
    let resumed = pages::resume(reader.conn(), context.id(), checkpoint.part, checkpoint.segment).await?;
    drop(reader);
    let position = checkpoint.position().map_err(|error| HostError::Stop(Stop::failed(error.to_string())))?;
    let mut fetch = Fetch {
        context,
        source,
        profile: source.profile().clone(),
        spec: checkpoint.spec(),
        part: checkpoint.part,
        epoch: checkpoint.epoch,
        run: checkpoint.run,
        run_records: checkpoint.run_records,
        run_began: Instant::now(),
        position,
        segment: OpenSegment::new(&checkpoint, resumed),
        pages: checkpoint.pages,
        tail: Vec::new(),
    };
    fetch.follow(lost).await
}

impl Fetch<'_> {
    /// Follows the cursor to the end or to a safe point.
    async fn follow(&mut self, lost: &CancellationToken) -> Result<(), HostError> {
        let mut ready: Option<Fetched> = None;
        loop {
            if self.segment.pages == 0 && !self.wait_for_room(lost).await? {
                return Ok(());
            }
            let fetched = match ready.take() {
                Some(fetched) => fetched,
                None => match self.ask(self.position.clone(), lost).await {
                    None => return Ok(()),
                    Some(Err(SourceError::CursorExpired(reason))) => match self.reanchor(reason, lost).await?
                    {
                        Some(fetched) => fetched,
                        None => return Ok(()),
                    },
                    Some(fetched) => fetched?,
                },
            };
            if self.run_is_over(fetched.page.records.len()) && !self.end_run(lost).await? {
                return Ok(());
            }
            if self.segment.pages == 0 && !self.wait_for_room(lost).await? {
                return Ok(());
            }
            let next = self.segment.judge(&self.profile, &fetched.at, &fetched.page)?;
            let ended = next == Position::End;
            let commit = self.prepare(fetched, next.clone());
            if ended || lost.is_cancelled() || self.context.stop_fetching.is_cancelled() {
                self.commit(commit).await?;
                if ended || lost.is_cancelled() || self.context.stop_fetching.is_cancelled() {
                    return Ok(());
                }
                continue;
            }
            ready = self.commit_and_ask(commit, next, lost).await?;
        }
    }

    /// Commits a page, and meanwhile fetches the next one if the source does not mind. A failure to fetch is dealt with by the next round, after
    /// the commit.
    async fn commit_and_ask(
        &mut self,
        commit: Commit,
        next: Position,
        lost: &CancellationToken,
    ) -> Result<Option<Fetched>, HostError> {
        let (context, source, spec) = (self.context, self.source, self.spec.clone());
        // A segment's end waits for room before it asks on.
        if commit.close {
            self.commit(commit).await?;
            return Ok(None);
        }
        let asking = ask(context, source, &spec, next, lost);
        tokio::pin!(asking);
        let early = if self.profile.prefetch {
            let committing = self.commit(commit);
            tokio::pin!(committing);
            let first = match select(&mut committing, &mut asking).await {
                Either::Left((committed, _)) => Either::Left(committed),
                Either::Right((asked, _)) => Either::Right(asked),
            };
            match first {
                Either::Left(committed) => {
                    committed?;
                    None
                }
                Either::Right(asked) => {
                    committing.await?;
                    Some(asked)
                }
            }
        } else {
            self.commit(commit).await?;
            None
        };
        let asked = match early {
            Some(asked) => asked,
            None => loop {
                match tokio::time::timeout(TAIL_WAITS_MAX, &mut asking).await {
                    Ok(asked) => break asked,
                    Err(_) => self.flush_tail().await?,
                }
            },
        };
        match asked {
            Some(Ok(fetched)) => Ok(Some(fetched)),
            Some(Err(SourceError::CursorExpired(reason))) => self.reanchor(reason, lost).await,
            Some(Err(error)) => Err(error.into()),
            None => Ok(None),
        }
    }

    /// The source is slow and the workers wait: what is staged becomes a chunk before it is full.
    async fn flush_tail(&mut self) -> Result<(), HostError> {
        if self.context.job.mode != Mode::Stream || !self.context.handoff.is_idle() {
            return Ok(());
        }
        let chunks = self.chunks_if(true);
        if chunks.is_empty() {
            return Ok(());
        }
        let commit = self.commit_of(self.position.clone(), self.position.clone(), chunks, false);
        self.commit(commit).await
    }

    async fn ask(&self, at: Position, lost: &CancellationToken) -> Option<Result<Fetched, SourceError>> {
        ask(self.context, self.source, &self.spec, at, lost).await
    }

    /// Waits until few enough segments and bytes are staged ahead of processing. `false`: stop.
    async fn wait_for_room(&self, lost: &CancellationToken) -> Result<bool, HostError> {
        let limits = &self.context.limits;
        loop {
            if lost.is_cancelled() || self.context.stop_fetching.is_cancelled() {
                return Ok(false);
            }
            if self.context.job.mode != Mode::Stream {
                return Ok(true);
            }
            let change = self.context.next_change();
            let mut reader = self.context.shared.store.database().read().await?;
            let (segments, bytes) = pages::backlog(reader.conn(), self.context.id()).await?;
            drop(reader);
            self.context.shared.metrics.backlog(bytes);
            if segments < limits.segments_ahead && bytes < limits.staged_bytes {
                return Ok(true);
            }
            change.wait().await;
        }
    }

    fn run_is_over(&self, records: usize) -> bool {
        let limits = &self.context.limits;
        self.run_records > 0
            && (self.run_records + i64::from(small(records)) > limits.run_records
                || self.run_began.elapsed() >= limits.run_budget)
    }

    /// Ends the run in a checkpoint: closes the segment, waits until everything staged is processed, begins the next
    /// run. `false`: the job stops meanwhile.
    async fn end_run(&mut self, lost: &CancellationToken) -> Result<bool, HostError> {
        if self.segment.pages > 0 {
            let chunks = self.chunks_if(true);
            let commit = self.commit_of(self.position.clone(), self.position.clone(), chunks, true);
            self.commit(commit).await?;
        }
        failpoint::pass("run.boundary");
        if self.context.job.mode == Mode::Stream && !self.wait_until_processed(lost).await? {
            return Ok(false);
        }
        if let Some(job) = self.context.shared.store.job(self.context.id()).await? {
            self.context.observe(&JobEvent::RunCompleted {
                run: self.run,
                counts: job.counts,
                fetched: job.fetched,
            });
        }
        let mut tx = self.context.shared.store.database().begin().await?;
        let Some(run) = begin_run(self.context, &mut tx, self.part, self.epoch).await? else {
            tx.rollback().await?;
            return Ok(false);
        };
        tx.commit().await?;
        self.run = run;
        self.run_records = 0;
        self.run_began = Instant::now();
        self.context.observe(&JobEvent::RunStarted { run: self.run });
        Ok(true)
    }

    /// Waits until every chunk of this partition is settled. `false`: the job stops meanwhile.
    async fn wait_until_processed(&self, lost: &CancellationToken) -> Result<bool, HostError> {
        loop {
            if lost.is_cancelled() || self.context.stop_fetching.is_cancelled() {
                return Ok(false);
            }
            let change = self.context.next_change();
            let mut reader = self.context.shared.store.database().read().await?;
            let busy = chunks::any_ready(reader.conn(), self.context.id(), self.part).await?;
            drop(reader);
            if !busy {
                return Ok(true);
            }
            change.wait().await;
        }
    }

    /// The cursor died. Fetches the open segment again from its start, proves that the pages are what was staged, and
    /// returns the first page that goes beyond.
    async fn reanchor(
        &mut self,
        reason: String,
        lost: &CancellationToken,
    ) -> Result<Option<Fetched>, HostError> {
        let anchor = Position::from_stored(&self.segment.anchor)
            .map_err(|error| HostError::Stop(Stop::fetching(error.to_string())))?;
        tracing::info!(job = %self.context.id(), reason, anchor = %anchor, "fetching the segment again to find a fresh cursor");
        let mut at = anchor.clone();
        let mut seen = 0usize;
        let mut walked = HashSet::new();
        loop {
            let fetched = match self.ask(at.clone(), lost).await {
                None => return Ok(None),
                Some(Err(SourceError::CursorExpired(again))) => {
                    let what = if at == anchor {
                        "from which the open segment began"
                    } else {
                        "although it has just given it again"
                    };
                    return Err(HostError::Stop(Stop::fetching(format!(
                        "the source no longer accepts {at}, {what}: {again}"
                    ))));
                }
                Some(fetched) => fetched?,
            };
            let known = &self.segment.fingerprints[seen..];
            if known.is_empty() {
                return Ok(Some(Fetched { at: self.position.clone(), ..fetched }));
            }
            let came = fetched.page.records.iter().map(|raw| crate::Fingerprint::of(raw));
            let overlap = known.len().min(fetched.page.records.len());
            if let Some(place) = came.zip(known).position(|(came, known)| came != *known) {
                return Err(HostError::Stop(Stop::fetching(format!(
                    "after its cursor died the source gave another record {} of segment {} than was staged; \
                     start a new job, or cancel this one",
                    seen + place,
                    self.segment.segment
                ))));
            }
            seen += overlap;
            if overlap < fetched.page.records.len() {
                let mut page = fetched.page;
                page.records.drain(..overlap);
                return Ok(Some(Fetched { at: self.position.clone(), page, took: fetched.took }));
            }
            match &fetched.page.next {
                next @ Position::At(_) if walked.insert(next.to_stored()) => at = next.clone(),
                Position::End if seen < self.segment.fingerprints.len() => {
                    return Err(HostError::Stop(Stop::fetching(format!(
                        "after its cursor died the source ends after record {seen} of segment {}, of which {} were \
                         staged; start a new job, or cancel this one",
                        self.segment.segment,
                        self.segment.fingerprints.len()
                    ))));
                }
                Position::End => {
                    let page = Page { records: Vec::new(), ..fetched.page };
                    return Ok(Some(Fetched { at: self.position.clone(), page, took: fetched.took }));
                }
                next => {
                    let ring = format!("the cursors form a ring: {next} was visited before");
                    return Err(SourceError::Malformed(ring).into());
                }
            }
        }
    }

    /// Turns a page into a commit, and decides whether it closes the segment and makes a chunk.
    fn prepare(&mut self, fetched: Fetched, next: Position) -> Commit {
        let limits = &self.context.limits;
        let staged_before = self.segment.staged;
        let first_page = self.segment.pages;
        let retries = i64::from(fetched.page.retries);
        let total = fetched.page.counted(self.pages);
        let records = self.segment.take(&fetched.at, fetched.page.records);
        let close = next == Position::End
            || self.segment.pages >= limits.pages_per_segment
            || self.segment.staged >= RECORDS_PER_SEGMENT_MAX;
        self.tail.extend(records.iter().cloned());
        let chunks = self.chunks_if(close);
        let count = small(records.len());
        let from = self.position.clone();
        Commit {
            pages: vec![(fetched.at, count)],
            first_page,
            records,
            staged_before,
            retries,
            total,
            fetch_micros: i64::try_from(fetched.took.as_micros()).unwrap_or(i64::MAX),
            ..self.commit_of(from, next, chunks, close)
        }
    }

    /// A commit without pages.
    fn commit_of(&self, from: Position, to: Position, chunks: Vec<NewChunk>, close: bool) -> Commit {
        Commit {
            job: self.context.id(),
            part: self.part,
            epoch: self.epoch,
            segment: self.segment.segment,
            run: self.run,
            anchor: self.segment.anchor.clone(),
            from,
            to,
            pages: Vec::new(),
            first_page: self.segment.pages,
            records: Vec::new(),
            staged_before: self.segment.staged,
            chunks,
            close,
            retries: 0,
            total: None,
            fetch_micros: 0,
            lease_seconds: seconds(self.context.limits.lease),
        }
    }

    /// Chunks over the tail: when the segment closes or enough is staged. A page larger than a chunk becomes several.
    fn chunks_if(&self, close: bool) -> Vec<NewChunk> {
        let (first, records) = (self.segment.chunked, self.segment.staged - self.segment.chunked);
        let size = self.context.limits.chunk_records.max(1);
        if records == 0 || !(close || records >= size) {
            return Vec::new();
        }
        let count = (records / size).max(1);
        let end = |index: i32| {
            first
                + i32::try_from(i64::from(records) * i64::from(index) / i64::from(count))
                    .expect("a part of the records")
        };
        (0..count)
            .map(|index| NewChunk { first_ordinal: end(index), records: end(index + 1) - end(index) })
            .collect()
    }

    /// Makes a page durable, looks it up if its fate is unknown, and hands its chunk on.
    async fn commit(&mut self, commit: Commit) -> Result<(), HostError> {
        loop {
            match self.try_commit(&commit).await {
                Ok(true) => break,
                Ok(false) => return self.fenced().await,
                Err(db::Error::CommitUnknown(error)) => {
                    tracing::warn!(job = %self.context.id(), %error, "looking up whether a page was committed");
                    if self.was_committed(&commit).await? {
                        break;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        failpoint::pass("page.after_commit");
        self.committed(commit);
        Ok(())
    }

    async fn try_commit(&self, commit: &Commit) -> db::Result<bool> {
        let mut tx = self.context.shared.store.database().begin_bulk().await?;
        if !pages::commit(tx.conn(), commit).await? {
            tx.rollback().await?;
            return Ok(false);
        }
        jobs::touch(tx.conn(), self.context.id()).await?;
        failpoint::pass("page.before_commit");
        tx.commit().await?;
        Ok(true)
    }

    /// Reads the checkpoint with a lock, which waits for a commit that is still in flight at the server.
    async fn was_committed(&self, commit: &Commit) -> Result<bool, HostError> {
        let mut tx = self.context.shared.store.database().begin().await?;
        let found = partitions::progress_after_doubt(tx.conn(), self.context.id(), self.part).await?;
        tx.rollback().await?;
        if found.epoch != self.epoch {
            self.fenced().await?;
        }
        Ok(found.pages == self.pages + i64::from(small(commit.pages.len()))
            && found.segment == commit.segment + i32::from(commit.close)
            && found.chunked
                == if commit.close { 0 } else { commit.chunked().unwrap_or(self.segment.chunked) })
    }

    /// The commit was refused: somebody else fetches this partition now, or the job was cancelled.
    async fn fenced(&self) -> Result<(), HostError> {
        self.context.shared.metrics.fenced();
        let mut reader = self.context.shared.store.database().read().await?;
        let status = jobs::status(reader.conn(), self.context.id()).await?;
        drop(reader);
        if status == Some(Status::Running) {
            tracing::warn!(job = %self.context.id(), part = self.part, epoch = self.epoch,
                "another fetcher took this partition over; this one stops");
        }
        Err(HostError::Fenced)
    }

    /// After the commit: memory follows the database.
    fn committed(&mut self, commit: Commit) {
        let records = small(commit.records.len());
        self.run_records += i64::from(records);
        self.pages += i64::from(small(commit.pages.len()));
        self.position = commit.to.clone();
        if let Some(chunked) = commit.chunked() {
            self.segment.chunked = chunked;
            let mut tail = std::mem::take(&mut self.tail).into_iter();
            if self.context.job.mode == Mode::Stream {
                for chunk in &commit.chunks {
                    let records = tail.by_ref().take(usize::try_from(chunk.records).unwrap_or_default());
                    let key = (self.part, commit.segment, chunk.first_ordinal);
                    self.context.handoff.put(key, records.collect());
                }
            }
        }
        let took = Duration::from_micros(commit.fetch_micros.unsigned_abs());
        self.context.shared.metrics.page(commit.pages.len(), commit.records.len(), commit.retries, took);
        if commit.close {
            failpoint::pass("segment.closed");
            self.segment.roll(&commit.to);
        }
        self.context.progress(Event::Fetched { job: self.context.id(), records: i64::from(records) });
        self.context.wake();
    }
}

/// Asks the source for the page at `at`. `None`: the fetcher is to stop.
async fn ask(
    context: &Context,
    source: &dyn Source,
    spec: &PartitionSpec,
    at: Position,
    lost: &CancellationToken,
) -> Option<Result<Fetched, SourceError>> {
    let began = Instant::now();
    tokio::select! {
        biased;
        () = context.stop_fetching.cancelled() => None,
        () = lost.cancelled() => None,
        page = source.page(spec, &at) => Some(page.map(|page| Fetched { at, page, took: began.elapsed() })),
    }
}

fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs().max(1)).unwrap_or(i32::MAX)
}
