//! Taking back: what an aborted job wrote, and what a cancelled job staged.

use super::Shared;
use super::host::Context;
use crate::job::Mode;
use crate::store::{chunks, jobs};
use crate::{JobId, SinkError};

const DISCARD_AT_ONCE: i64 = 5000;
const UNDO_AT_ONCE: i64 = 500;

/// Removes what a cancelled job staged. A crash meanwhile is harmless: the job is found again by its segments.
pub(super) async fn discard(shared: &Shared, id: JobId) -> db::Result<()> {
    while discard_some(shared, id).await? {}
    Ok(())
}

/// `false` when nothing is left, or when another process is at it.
async fn discard_some(shared: &Shared, id: JobId) -> db::Result<bool> {
    let mut tx = shared.store.database().begin_bulk().await?;
    if !chunks::take_turn(tx.conn(), id).await? {
        tx.rollback().await?;
        return Ok(false);
    }
    let gone = jobs::discard_staged(tx.conn(), id, DISCARD_AT_ONCE).await?;
    if gone < DISCARD_AT_ONCE {
        jobs::discarded(tx.conn(), id).await?;
    }
    tx.commit().await?;
    Ok(gone == DISCARD_AT_ONCE)
}

/// Undoes what a job wrote whose rule forbade to go on. The mark in the job makes this resume after a crash, and only
/// the transaction that finds nothing left takes it away.
pub(super) async fn undo(context: &Context) -> db::Result<()> {
    while !context.halt.is_cancelled() {
        match undo_some(context).await? {
            Undone::Some => {}
            Undone::All => return start_anew(context).await,
            Undone::NotNow => tokio::time::sleep(context.limits.poll).await,
            Undone::Elsewhere | Undone::Impossible(_) => return Ok(()),
        }
    }
    Ok(())
}

enum Undone {
    Some,
    All,
    /// Another process is at it, or the sink asks for another try.
    NotNow,
    /// Another process has done it.
    Elsewhere,
    Impossible(SinkError),
}

async fn undo_some(context: &Context) -> db::Result<Undone> {
    let mut tx = context.shared.store.database().begin_bulk().await?;
    let done = undo_inside(context, &mut tx).await?;
    // Both are waited for: what follows needs the locks that this transaction holds.
    // The last step may still tidy up behind the others.
    if matches!(done, Undone::Some | Undone::All) {
        tx.commit().await?;
    } else {
        tx.rollback().await?;
    }
    if let Undone::Impossible(error) = &done {
        give_up(context, error).await?;
    }
    Ok(done)
}

async fn undo_inside(context: &Context, tx: &mut db::Tx) -> db::Result<Undone> {
    if !jobs::phase(tx.conn(), context.id()).await?.undoing {
        return Ok(Undone::Elsewhere);
    }
    if !chunks::take_turn(tx.conn(), context.id()).await? {
        return Ok(Undone::NotNow);
    }
    // A worker of another process may still be writing; no chunk of this job is claimed from here on.
    chunks::hold_all(tx.conn(), context.id()).await?;
    // A dry run wrote nothing; only what it staged goes.
    if context.job.mode == Mode::DryRun {
        return Ok(Undone::All);
    }
    match context.sink.undo(tx, context.id(), UNDO_AT_ONCE).await {
        Ok(0) => Ok(Undone::All),
        Ok(_) => Ok(Undone::Some),
        Err(SinkError::Db(error)) => Err(error),
        Err(SinkError::Retry(_)) => Ok(Undone::NotNow),
        Err(error) => Ok(Undone::Impossible(error)),
    }
}

/// The job says so, and keeps its records of what it wrote.
async fn give_up(context: &Context, error: &SinkError) -> db::Result<()> {
    tracing::error!(job = %context.id(), %error, "what the job wrote cannot be undone");
    let mut tx = context.shared.store.database().begin().await?;
    jobs::set_undoing(tx.conn(), context.id(), false).await?;
    jobs::append_reason(tx.conn(), context.id(), &format!("what it wrote could not be undone: {error}"))
        .await?;
    tx.commit().await
}

/// Everything is undone: a resume begins at the beginning, and the counters speak of nothing that is not there.
async fn start_anew(context: &Context) -> db::Result<()> {
    discard(&context.shared, context.id()).await?;
    let mut tx = context.shared.store.database().begin().await?;
    if !chunks::take_turn(tx.conn(), context.id()).await? {
        return tx.rollback().await;
    }
    jobs::reset(tx.conn(), context.id()).await?;
    tx.commit().await
}
