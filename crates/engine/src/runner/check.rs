//! Checking everything before anything is written: dry runs, and the conflict rule `fail`.

use super::host::{Context, HostError, Stop};
use super::work::settle;
use super::{Event, rules};
use crate::job::Mode;
use crate::sink::{Checker, ChunkContext};
use crate::store::chunks::{self, Chunk};
use crate::store::{jobs, pages};
use crate::{StagedRecord, Written};

/// Chunks read at once.
const CHUNKS_AT_ONCE: i64 = 50;

/// Checks every chunk in order. A dry run settles each with its foretold outcome; a job that checks first fails if the
/// check says so. Returns whether chunks are to be written now.
///
/// After a crash the check begins anew, because what it remembers between chunks is gone; settled chunks of a dry run
/// stay as they are.
pub(super) async fn check(context: &Context) -> Result<bool, HostError> {
    let database = context.shared.store.database();
    let mut reader = database.read().await?;
    let checked = jobs::phase(reader.conn(), context.id()).await?.checked;
    drop(reader);
    let writes = context.job.mode == Mode::CheckFirst;
    if checked {
        return Ok(writes);
    }
    let Some(mut checker) = context.sink.checker() else {
        return Err(HostError::Stop(Stop::failed("this sink offers no check before writing")));
    };
    let mut after = None;
    loop {
        let mut reader = database.read().await?;
        let next = chunks::in_order_after(reader.conn(), context.id(), after, CHUNKS_AT_ONCE).await?;
        drop(reader);
        let Some(last) = next.last() else { break };
        after = Some((last.part, last.segment, last.first_ordinal));
        for chunk in &next {
            if context.halt.is_cancelled() {
                return Ok(false);
            }
            check_chunk(context, &mut *checker, chunk, writes).await?;
            rules::judge(context).await?;
            rules::wait_for_rate(context).await?;
        }
    }
    if let Err(reason) = checker.verdict() {
        // Where another process checked everything before and writes now, this check met what that one wrote.
        let mut reader = database.read().await?;
        if jobs::phase(reader.conn(), context.id()).await?.checked {
            return Ok(writes);
        }
        return Err(HostError::Stop(Stop::failed(reason)));
    }
    checker.done().await?;
    let mut tx = database.begin().await?;
    jobs::set_checked(tx.conn(), context.id()).await?;
    tx.commit().await?;
    Ok(writes)
}

async fn check_chunk(
    context: &Context,
    checker: &mut dyn Checker,
    chunk: &Chunk,
    writes: bool,
) -> Result<(), HostError> {
    let began = tokio::time::Instant::now();
    let database = context.shared.store.database();
    let mut reader = database.read().await?;
    let records = pages::records(
        reader.conn(),
        context.id(),
        chunk.part,
        chunk.segment,
        chunk.first_ordinal,
        chunk.records,
    )
    .await?;
    let records = super::work::tell_apart(&*context.sink, records);
    let originals: Vec<StagedRecord> = records.iter().filter(|r| r.duplicate_of.is_none()).cloned().collect();
    let chunk_context = ChunkContext { job: context.id(), now: db::Timestamp::here(), isolating: false };
    let foretold: Vec<Written> = checker.check(&mut reader, &chunk_context, &originals).await?;
    drop(reader);
    if writes {
        return Ok(());
    }
    if foretold.len() != originals.len() {
        return Err(HostError::Stop(Stop::failed(format!(
            "the check answered for {} of {} records",
            foretold.len(),
            originals.len()
        ))));
    }
    let mut foretold = foretold.into_iter();
    let written: Vec<Written> = records
        .iter()
        .filter_map(|record| match record.duplicate_of {
            Some(original) => Some(super::work::duplicate(original)),
            None => foretold.next(),
        })
        .collect();
    let micros = i64::try_from(began.elapsed().as_micros()).unwrap_or(i64::MAX);
    let settlement = settle(&records, &written, context.limits.notes_max, 0, micros);
    let mut tx = database.begin().await?;
    let settled = chunks::settle(tx.conn(), context.id(), chunk, &settlement).await?;
    tx.commit().await?;
    if settled {
        context.progress(Event::Settled { job: context.id(), counts: settlement.counts });
    }
    Ok(())
}
