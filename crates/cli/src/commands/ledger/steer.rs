//! `crossdock ledger pause|cancel|resume`: steering a job from any process that reaches its database.

use db::Database;
use engine::{Job, JobId, Status, Store};

use super::{Known, Summary, job, run, tell};
use crate::commands::say;
use crate::exit::{Exit, usage};
use crate::settings::File;

/// Moves the job's row; whoever hosts the job sees it within a poll and stops at the next safe point.
pub(super) async fn pause(args: &Known, database: &Database) -> anyhow::Result<Exit> {
    let before = job(database, args.job).await?;
    if before.status == Status::Paused {
        return told(args, database).await;
    }
    moved(args, database, Status::Paused, |status, id| match status {
        Status::Completed | Status::Cancelled => format!("job {id} is {status}; there is nothing to pause"),
        _ => format!("job {id} is {status} already; `crossdock ledger resume {id}` goes on with it"),
    })
    .await
}

/// As [`pause`], for good: what was written stays, what is staged goes.
pub(super) async fn cancel(args: &Known, database: &Database) -> anyhow::Result<Exit> {
    let exit = moved(args, database, Status::Cancelled, |status, id| {
        format!("job {id} is {status}; `crossdock ledger rollback {id}` removes what it wrote")
    })
    .await?;
    say(format!("what it wrote stays; `crossdock ledger rollback {}` removes it", args.job));
    Ok(exit)
}

/// Puts a resting job back into the queue and hosts it here until it rests again.
pub(super) async fn resume(args: &Known, database: &Database, file: &File) -> anyhow::Result<Exit> {
    let before = job(database, args.job).await?;
    let id = before.id;
    match before.status {
        Status::Completed | Status::Cancelled => {
            return Err(usage(format!(
                "job {id} is {}, which is final; `crossdock ledger run DIR` begins another one",
                before.status
            )));
        }
        // Its process may be gone; if it is not, this one joins in.
        Status::Queued | Status::Running => {}
        Status::Waiting | Status::Paused | Status::AwaitingToken | Status::Failed => {
            Store::new(database.clone()).move_job(id, Status::Queued, None, None).await?;
        }
    }
    run::drive(database, file, id, args.json).await
}

async fn moved(
    args: &Known,
    database: &Database,
    to: Status,
    refusal: impl Fn(Status, JobId) -> String,
) -> anyhow::Result<Exit> {
    let before = job(database, args.job).await?;
    if !Store::new(database.clone()).move_job(before.id, to, None, None).await? {
        // It may have moved by itself between the two looks.
        let now: Job = job(database, args.job).await?;
        return Err(usage(refusal(now.status, now.id)));
    }
    told(args, database).await
}

async fn told(args: &Known, database: &Database) -> anyhow::Result<Exit> {
    tell(&Summary::of(&job(database, args.job).await?, None, None), args.json)?;
    Ok(Exit::Clean)
}
