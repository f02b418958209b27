//! `crossdock ledger run`: a migration to its certificate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::ledger::{LedgerKind, Ledgers};
use anyhow::Context;
use db::Database;
use engine::metrics::Metrics;
use engine::{Job, JobId, Mode, Runner, Status, Store};
use indicatif::{ProgressBar, ProgressStyle};
use prometheus_client::registry::Registry;

use super::{Declared, finish, job, told};
use crate::commands::{say, stop_on_signal};
use crate::exit::Exit;
use crate::settings::File;
use crate::wire;

/// How often the bar is redrawn.
const EVERY: Duration = Duration::from_millis(200);

pub(super) async fn migrate(args: &Declared, database: &Database, file: &File) -> anyhow::Result<Exit> {
    let (folder, variables) = args.read()?;
    let ledgers = Ledgers::new(database.clone());
    let store = Store::new(database.clone());
    let id = match ledgers.unfinished(&folder, &variables).await? {
        Some(id) => {
            say(format!("going on with job {id} from its checkpoint"));
            resume(&store, id).await?;
            id
        }
        None => ledgers.start(folder, variables, Mode::Stream).await.map_err(|error| told(args, error))?,
    };
    drive(database, file, id, args.json).await
}

/// Hosts a job in this process until it rests or a signal comes, and tells how it stands then.
pub(super) async fn drive(database: &Database, file: &File, id: JobId, json: bool) -> anyhow::Result<Exit> {
    let store = Store::new(database.clone());
    let limits = wire::limits(database, file.lease()?, file.workers());
    let kind = Arc::new(LedgerKind::new(database.clone()));
    let runner = Runner::new(store.clone(), vec![kind], limits, Metrics::register(&mut Registry::default()));
    let stop = stop_on_signal()?;
    let done = stop.child_token();
    let running = tokio::spawn({
        let (runner, done) = (runner.clone(), done.clone());
        async move { runner.run(done).await }
    });
    let watched = tokio::select! {
        job = watch(&store, id) => Some(job?),
        () = stop.cancelled() => {
            say("stopping at the next safe point …");
            None
        }
    };
    done.cancel();
    running.await?;
    let ended = match watched {
        Some(seen) => seen,
        None => {
            say("stopped; the same command goes on from here");
            job(database, id).await?
        }
    };
    finish(&Ledgers::new(database.clone()), &ended, json).await
}

async fn resume(store: &Store, id: JobId) -> anyhow::Result<()> {
    let resting = [Status::Paused, Status::AwaitingToken, Status::Failed, Status::Waiting];
    if store.job(id).await?.is_some_and(|job| resting.contains(&job.status)) {
        store.move_job(id, Status::Queued, None, None).await?;
    }
    Ok(())
}

/// Draws a job until it rests.
async fn watch(store: &Store, id: JobId) -> anyhow::Result<Job> {
    let bar = ProgressBar::new_spinner();
    let style =
        ProgressStyle::with_template("{spinner} [{elapsed_precise}] {msg}").expect("the template is correct");
    bar.set_style(style);
    bar.enable_steady_tick(EVERY);
    let began = Instant::now();
    let mut first = None;
    loop {
        let job = match store.job(id).await {
            Ok(job) => job.context("the job is gone")?,
            Err(error) if error.is_transient() => {
                tokio::time::sleep(EVERY).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let settled = job.counts.records();
        let from = *first.get_or_insert(settled);
        #[allow(clippy::cast_precision_loss)] // A rate for people.
        let rate = (settled - from) as f64 / began.elapsed().as_secs_f64().max(0.001);
        bar.set_message(format!(
            "fetched {}, settled {settled}, quarantined {}, {rate:.0} records/s{}",
            job.fetched,
            job.counts.failed,
            left(&job, rate)
        ));
        if !matches!(job.status, Status::Queued | Status::Running | Status::Waiting) {
            bar.finish_and_clear();
            return Ok(job);
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// The time left, where the source says how much there is.
fn left(job: &Job, rate: f64) -> String {
    match job.expected {
        Some(expected) if rate > 0.0 => {
            #[allow(clippy::cast_precision_loss)] // A time for people.
            let seconds = (expected - job.counts.records()).max(0) as f64 / rate;
            format!(", {seconds:.0} s left")
        }
        _ => String::new(),
    }
}
