//! Stage two: a worker claims a chunk, lets the sink write it, and settles it, in one transaction.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use db::{Timestamp, Tx};
use tokio::time::Instant;

use super::Event;
use super::busy::Held;
use super::host::{Context, HostError, Stop};
use crate::failpoint;
use crate::manifest::{self, Entry};
use crate::sink::{ChunkContext, Prepared, Sink, SinkError};
use crate::store::chunks::{self, Chunk, Exception, Settlement};
use crate::store::{jobs, pages};
use crate::{Counts, Outcome, Reason, StagedRecord, Written};

/// The reason code of a record that ended its worker's process again and again.
pub(super) const KILLS_WORKER: &str = "kills_worker";
/// The first pause before a chunk is tried again, doubled up to the longest, with full jitter.
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_LONGEST: Duration = Duration::from_secs(1);
/// Tries to find out what became of a commit before the host gives up and starts again from what is stored.
const LOOK_UPS: u32 = 20;

/// Processes chunks until the job halts.
pub(super) async fn worker(context: Arc<Context>) -> Result<(), HostError> {
    let serial = !context.sink.parallel();
    let mut next: Option<Pick<'_>> = None;
    while !context.halt.is_cancelled() {
        let change = context.next_change();
        let pick = match next.take() {
            Some(pick) => Some(pick),
            None => attempt(&context, serial).await?,
        };
        let Some((chunk, _held)) = pick else {
            change.wait().await;
            continue;
        };
        if chunk.attempts > context.limits.attempts_max && corner(&context, &chunk).await? {
            continue;
        }
        next = process(&context, &chunk, serial).await?;
        super::rules::wait_for_rate(&context).await?;
    }
    if let Some((chunk, _held)) = next {
        forgive(&context, &chunk).await?;
    }
    Ok(())
}

/// A chunk at which an attempt was counted.
type Pick<'c> = (Chunk, Held<'c>);

/// Counts an attempt in a small transaction of its own, so that a chunk which kills its worker is noticed. Where one
/// chunk follows another, the attempt is counted with the settling of the first one instead.
async fn attempt(context: &Context, serial: bool) -> Result<Option<Pick<'_>>, HostError> {
    let _turn = context.picked.turn().await;
    let mut reader = context.shared.store.database().read().await?;
    let due = chunks::any_due(reader.conn(), context.id(), serial).await?;
    drop(reader);
    if !due {
        return Ok(None);
    }
    let mut tx = context.shared.store.database().begin().await?;
    let Some(chunk) = chunks::attempt(tx.conn(), context.id(), serial, &context.picked.keys()).await? else {
        tx.rollback().await?;
        return Ok(None);
    };
    failpoint::pass("attempt.before_commit");
    tx.commit().await?;
    failpoint::pass("attempt.after_commit");
    Ok(Some((chunk, context.picked.hold(chunk.key()))))
}

/// A chunk that was begun too often without being settled: it is halved, until the record that kills its worker stands
/// alone. `true` if it was halved; a lone record is left to [`process`], which puts it into quarantine.
async fn corner(context: &Context, chunk: &Chunk) -> Result<bool, HostError> {
    if chunk.records < 2 {
        return Ok(false);
    }
    let mut tx = context.shared.store.database().begin().await?;
    chunks::split(tx.conn(), context.id(), chunk).await?;
    tx.commit().await?;
    tracing::warn!(job = %context.id(), segment = chunk.segment, first = chunk.first_ordinal,
        records = chunk.records, "a chunk was begun too often; trying its halves");
    Ok(true)
}

/// What came of one transaction over a chunk.
enum Tried<'c> {
    Settled(Settled<'c>),
    NotOurs,
}

struct Settled<'c> {
    counts: Counts,
    written: Vec<Written>,
    next: Option<Pick<'c>>,
}

/// Why a transaction over a chunk was undone.
enum Undone {
    Again { error: SinkError, deadlock: bool },
    Isolate,
    Unknown(db::Error),
    Stop(HostError),
    Abort(String),
}

/// Processes a chunk until it is settled or given up. Returns the chunk to go on with, if one was picked meanwhile.
async fn process<'c>(
    context: &'c Context,
    chunk: &Chunk,
    serial: bool,
) -> Result<Option<Pick<'c>>, HostError> {
    let began = Instant::now();
    let mut isolating = false;
    let mut retries = 0u32;
    let mut following = None;
    let records = match context.handoff.take((chunk.part, chunk.segment, chunk.first_ordinal), chunk.records)
    {
        Some(records) => records,
        None => load(context, chunk).await?,
    };
    let records = tell_apart(&*context.sink, records);
    failpoint::pass("chunk.before_write");
    loop {
        let attempt = Attempt { context, chunk, serial, isolating, retries, records: &records, began };
        match attempt.run().await {
            Ok(Tried::Settled(Settled { counts, written, next })) => {
                following = next;
                context.sink.committed(&written);
                context.shared.metrics.chunk(counts.records(), began.elapsed());
                context.progress(Event::Settled { job: context.id(), counts });
                break;
            }
            Ok(Tried::NotOurs) => {
                forgive(context, chunk).await?;
                context.handoff.settled();
                tokio::time::sleep(RETRY_FIRST).await;
                return Ok(None);
            }
            Err(Undone::Isolate) => isolating = true,
            Err(Undone::Unknown(error)) => {
                tracing::warn!(job = %context.id(), %error, "looking up whether a chunk was settled");
                if was_settled(context, chunk).await? {
                    break;
                }
            }
            Err(Undone::Again { error, deadlock }) => {
                context.shared.metrics.retry(deadlock);
                retries += 1;
                if retries > context.limits.chunk_retries_max {
                    forgive(context, chunk).await?;
                    return Err(HostError::Stop(Stop::failed(format!(
                        "a chunk did not go through in {retries} tries: {error}"
                    ))));
                }
                if context.halt.is_cancelled() {
                    forgive(context, chunk).await?;
                    return Ok(None);
                }
                tokio::time::sleep(pause(retries)).await;
            }
            Err(Undone::Abort(reason)) => return Err(HostError::Stop(Stop::undoing(reason))),
            Err(Undone::Stop(error)) => {
                forgive(context, chunk).await?;
                return Err(error);
            }
        }
    }
    failpoint::pass("chunk.after_commit");
    context.handoff.settled();
    context.wake();
    Ok(following)
}

fn pause(retries: u32) -> Duration {
    RETRY_FIRST
        .saturating_mul(2u32.saturating_pow(retries.min(10)))
        .min(RETRY_LONGEST)
        .mul_f64(rand::random())
}

async fn load(context: &Context, chunk: &Chunk) -> Result<Vec<StagedRecord>, HostError> {
    let mut reader = context.shared.store.database().read().await?;
    let records = pages::records(
        reader.conn(),
        context.id(),
        chunk.part,
        chunk.segment,
        chunk.first_ordinal,
        chunk.records,
    )
    .await?;
    Ok(records)
}

/// Gives records that repeat the bytes of another one, but have no identity, to the sink like any other.
pub(super) fn tell_apart(sink: &dyn Sink, mut records: Vec<StagedRecord>) -> Vec<StagedRecord> {
    for record in records.iter_mut().filter(|record| record.duplicate_of.is_some()) {
        if !sink.has_identity(&record.raw) {
            record.duplicate_of = None;
        }
    }
    records
}

async fn forgive(context: &Context, chunk: &Chunk) -> Result<(), HostError> {
    let mut tx = context.shared.store.database().begin().await?;
    chunks::forgive(tx.conn(), context.id(), chunk).await?;
    tx.commit().await?;
    Ok(())
}

/// Reads the chunk with a lock, which waits for a commit that is still in flight at the server.
async fn was_settled(context: &Context, chunk: &Chunk) -> Result<bool, HostError> {
    let look_up = async || {
        let mut tx = context.shared.store.database().begin().await?;
        let settled = chunks::settled_after_doubt(tx.conn(), context.id(), chunk).await?;
        tx.rollback().await?;
        Ok::<bool, db::Error>(settled)
    };
    for tries in 1..LOOK_UPS {
        match look_up().await {
            Err(error) if error.is_transient() => tokio::time::sleep(pause(tries)).await,
            known => return Ok(known?),
        }
    }
    Ok(look_up().await?)
}

/// One transaction over a chunk.
struct Attempt<'a, 'c> {
    context: &'c Context,
    chunk: &'a Chunk,
    serial: bool,
    isolating: bool,
    retries: u32,
    records: &'a [StagedRecord],
    began: Instant,
}

impl<'c> Attempt<'_, 'c> {
    async fn run(&self) -> Result<Tried<'c>, Undone> {
        let chunk = self.chunk_context();
        let originals: Arc<[StagedRecord]> =
            self.records.iter().filter(|record| record.duplicate_of.is_none()).cloned().collect();
        // A chunk that is isolated is prepared in ever smaller parts.
        let first = if self.isolating { 0..0 } else { self.part(0, originals.len()) };
        let prepared = self.prepare(chunk, originals.clone(), first).await.map_err(Undone::Stop)?;
        let mut tx = self.context.shared.store.database().begin_bulk().await.map_err(undone)?;
        match self.inside(&mut tx, &chunk, &originals, prepared).await {
            Ok(Some(settled)) => {
                failpoint::pass("chunk.before_commit");
                tx.commit().await.map_err(undone)?;
                Ok(Tried::Settled(settled))
            }
            // Waited for: a transaction that is only dropped holds its locks for a while, against the next try too.
            Ok(None) => {
                tx.rollback().await.map_err(undone)?;
                Ok(Tried::NotOurs)
            }
            Err(why) => {
                // On a broken connection there is nothing to roll back; the reason is the first error.
                let _ = tx.rollback().await;
                Err(why)
            }
        }
    }

    /// The part of a chunk that begins at `start` and goes to the sink at once.
    fn part(&self, start: usize, end: usize) -> Range<usize> {
        start..end.min(start.saturating_add(self.context.limits.part_records.max(1)))
    }

    /// On a thread of its own: the loops that fetch share theirs with this one, and go on meanwhile.
    fn prepare(
        &self,
        chunk: ChunkContext,
        originals: Arc<[StagedRecord]>,
        part: Range<usize>,
    ) -> impl Future<Output = Result<Prepared, HostError>> + use<> {
        let sink = self.context.sink.clone();
        let preparing = (!part.is_empty())
            .then(|| tokio::task::spawn_blocking(move || sink.prepare(&chunk, &originals[part])));
        async move {
            match preparing {
                None => Ok(Prepared::default()),
                Some(preparing) => preparing
                    .await
                    .map_err(|error| HostError::Stop(Stop::failed(format!("reading a chunk: {error}")))),
            }
        }
    }

    /// `None`: the chunk is not this worker's.
    async fn inside(
        &self,
        tx: &mut Tx,
        chunk: &ChunkContext,
        originals: &Arc<[StagedRecord]>,
        prepared: Prepared,
    ) -> Result<Option<Settled<'c>>, Undone> {
        if !chunks::claim(tx.conn(), self.context.id(), self.chunk, self.serial).await.map_err(undone)? {
            return Ok(None);
        }
        if self.records.len() != usize::try_from(self.chunk.records).unwrap_or_default() {
            return Err(Undone::Stop(HostError::Stop(Stop::failed(format!(
                "chunk {}/{}/{} holds {} staged records where {} were staged",
                self.chunk.part,
                self.chunk.segment,
                self.chunk.first_ordinal,
                self.records.len(),
                self.chunk.records
            )))));
        }
        let written = self.write(tx, chunk, originals, prepared).await?;
        failpoint::pass("chunk.after_write");
        let (settlement, written) = self.settlement(written);
        if !chunks::settle(tx.conn(), self.context.id(), self.chunk, &settlement).await.map_err(undone)? {
            return Ok(None);
        }
        jobs::touch(tx.conn(), self.context.id()).await.map_err(undone)?;
        Ok(Some(Settled { counts: settlement.counts, written, next: self.pick_next(tx).await? }))
    }

    /// Counts the attempt at the next chunk along with this one's settling: one commit for each chunk instead of two.
    async fn pick_next(&self, tx: &mut Tx) -> Result<Option<Pick<'c>>, Undone> {
        if self.context.halt.is_cancelled() {
            return Ok(None);
        }
        let _turn = self.context.picked.turn().await;
        let keys = self.context.picked.keys();
        let next = chunks::attempt(tx.conn(), self.context.id(), self.serial, &keys).await.map_err(undone)?;
        Ok(next.map(|chunk| (chunk, self.context.picked.hold(chunk.key()))))
    }

    /// Lets the sink write what the engine does not know to be a duplicate; outcomes come back in order of ordinal.
    async fn write(
        &self,
        tx: &mut Tx,
        chunk: &ChunkContext,
        originals: &Arc<[StagedRecord]>,
        prepared: Prepared,
    ) -> Result<Vec<Written>, Undone> {
        let written = if self.chunk.attempts > self.context.limits.attempts_max {
            originals.iter().map(|_| kills_worker(self.chunk.attempts)).collect()
        } else if self.isolating {
            self.isolate(tx, chunk, originals).await?
        } else {
            self.write_parts(tx, chunk, originals, prepared).await?
        };
        if written.len() != originals.len() {
            return Err(Undone::Stop(HostError::Stop(Stop::failed(format!(
                "the sink answered for {} of {} records",
                written.len(),
                originals.len()
            )))));
        }
        let mut written = written.into_iter();
        Ok(self
            .records
            .iter()
            .map(|record| match record.duplicate_of {
                Some(original) => duplicate(original),
                None => written.next().expect("the lengths were compared"),
            })
            .collect())
    }

    /// Writes a chunk part by part, each of which is read while the one before it is written. A chunk is as large as
    /// its transaction should be, a part as large as what the sink holds in memory.
    async fn write_parts(
        &self,
        tx: &mut Tx,
        chunk: &ChunkContext,
        originals: &Arc<[StagedRecord]>,
        mut prepared: Prepared,
    ) -> Result<Vec<Written>, Undone> {
        let mut written = Vec::with_capacity(originals.len());
        let mut part = self.part(0, originals.len());
        while !part.is_empty() {
            let following = self.part(part.end, originals.len());
            let preparing = self.prepare(*chunk, originals.clone(), following.clone());
            let records = &originals[part];
            let done =
                self.context.sink.write(tx, chunk, records, prepared).await.map_err(|error| match error {
                    SinkError::Refused(_) => Undone::Isolate,
                    SinkError::Db(error) if error.is_refusal() => Undone::Isolate,
                    other => from_sink(other),
                })?;
            written.extend(done);
            prepared = preparing.await.map_err(Undone::Stop)?;
            part = following;
        }
        Ok(written)
    }

    /// Writes the records in ever smaller parts, in order, so that what the database refuses ends up alone.
    async fn isolate(
        &self,
        tx: &mut Tx,
        chunk: &ChunkContext,
        records: &[StagedRecord],
    ) -> Result<Vec<Written>, Undone> {
        let mut done = Vec::with_capacity(records.len());
        let mut parts: Vec<&[StagedRecord]> = vec![records];
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            tx.savepoint().await.map_err(undone)?;
            let sink = &self.context.sink;
            let refused = match sink.write(tx, chunk, part, sink.prepare(chunk, part)).await {
                Ok(written) => {
                    tx.release().await.map_err(undone)?;
                    done.extend(written);
                    continue;
                }
                Err(SinkError::Refused(reason)) => reason,
                Err(SinkError::Db(error)) if error.is_refusal() => refusal(&error),
                Err(other) => return Err(from_sink(other)),
            };
            tx.undo().await.map_err(undone)?;
            if part.len() == 1 {
                let (id, label) = sink.identity(&part[0].raw).unzip();
                done.push(Written::failed(id, label, refused));
            } else {
                let (left, right) = part.split_at(part.len() / 2);
                parts.push(right);
                parts.push(left);
            }
        }
        Ok(done)
    }

    fn chunk_context(&self) -> ChunkContext {
        ChunkContext { job: self.context.id(), now: Timestamp::here(), isolating: self.isolating }
    }

    fn settlement(&self, written: Vec<Written>) -> (Settlement, Vec<Written>) {
        let retries = i32::try_from(self.retries).unwrap_or(i32::MAX);
        let micros = i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        let settlement = settle(self.records, &written, self.context.limits.notes_max, retries, micros);
        (settlement, written)
    }
}

/// Counters, manifest block and exceptions of a chunk.
pub(super) fn settle(
    records: &[StagedRecord],
    written: &[Written],
    notes_max: i64,
    retries: i32,
    process_micros: i64,
) -> Settlement {
    let mut counts = Counts::default();
    let mut entries = Vec::with_capacity(records.len());
    let mut exceptions = Vec::new();
    for (record, written) in records.iter().zip(written) {
        let reason = reason_of(written);
        counts.add(written.outcome, written.targets);
        entries.push(Entry {
            ordinal: record.place.ordinal,
            source_id: written.source_id.clone(),
            reference: written.reference.clone(),
            outcome: written.outcome,
            reason: reason.as_ref().map(|reason| reason.code.to_string()),
            came: *record.fingerprint.as_bytes(),
            written: written.digest,
        });
        if let Some(reason) = reason {
            exceptions.push(Exception {
                ordinal: record.place.ordinal,
                source_id: written.source_id.as_deref().map(storable),
                label: written.label.as_deref().map(storable),
                outcome: written.outcome,
                code: reason.code.to_string(),
                detail: storable(&reason.detail),
                raw: record.raw.clone(),
            });
        }
    }
    Settlement { counts, block: manifest::pack(&entries), exceptions, retries, process_micros, notes_max }
}

/// The sink's reason; where it owes one and gave none, a failed record must still be in quarantine.
fn reason_of(written: &Written) -> Option<Cow<'_, Reason>> {
    let owed = matches!(written.outcome, Outcome::Skipped | Outcome::Filtered | Outcome::Failed);
    match &written.reason {
        Some(reason) => Some(Cow::Borrowed(reason)),
        None => owed.then(|| Cow::Owned(Reason::new("unexplained", "no reason was given"))),
    }
}

/// Postgres keeps no U+0000 in a text; a message about it shows it as the symbol for it.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}

pub(super) fn duplicate(original: i32) -> Written {
    Written {
        source_id: None,
        label: None,
        reference: None,
        outcome: Outcome::DuplicateInSource,
        reason: Some(Reason::new(
            "same_bytes",
            format!("byte for byte the record {original} of the same segment"),
        )),
        digest: [0; 16],
        targets: 0,
    }
}

fn kills_worker(attempts: i32) -> Written {
    let detail = format!("begun {attempts} times, and each time the process ended before it was settled");
    Written::failed(None, None, Reason::new(KILLS_WORKER, detail))
}

/// The reason for a record that the database refused alone.
fn refusal(error: &db::Error) -> Reason {
    match error {
        db::Error::Unique { constraint, .. } => Reason::new("unique_violation", constraint.clone()),
        other => Reason::new("refused_by_database", other.message()),
    }
}

fn from_sink(error: SinkError) -> Undone {
    match error {
        SinkError::Db(error) => undone(error),
        SinkError::Retry(_) => Undone::Again { error, deadlock: false },
        SinkError::Abort(reason) => Undone::Abort(reason),
        SinkError::Refused(_) => Undone::Isolate,
        SinkError::Fatal(_) => Undone::Stop(error.into()),
    }
}

fn undone(error: db::Error) -> Undone {
    match error {
        db::Error::CommitUnknown(_) => Undone::Unknown(error),
        db::Error::Retry(_) => {
            let deadlock = error.is_deadlock();
            Undone::Again { error: SinkError::Db(error), deadlock }
        }
        other => Undone::Stop(other.into()),
    }
}
