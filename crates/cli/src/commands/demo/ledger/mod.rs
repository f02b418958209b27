//! `crossdock demo ledger`: the worked example from an export API to a certificate, with several processes of which two
//! are killed on the way.

mod bank;
mod cast;
mod journey;

use std::path::Path;

use ::ledger::{Certificate, Ledgers};
use anyhow::Context;
use db::{Address, Database, Id, Kind};
use engine::{Job, Status, Store};
use serde::{Deserialize, Serialize};
use simulators::wallet_logs::{FaultPlan, Logs};

use self::bank::Found;
use self::cast::{Cast, Simulator};
use self::journey::Journey;
use crate::args::DemoLedger;
use crate::commands::verify_slugs::no_tls;
use crate::commands::{print, print_json, say, stop_on_signal};
use crate::exit::{Exit, usage};

/// The object that `--json` ends with.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    job: String,
    records: i64,
    imported: i64,
    updated: i64,
    unchanged: i64,
    filtered: i64,
    failed: i64,
    duplicate_in_source: i64,
    kills: u32,
    /// From the first process to the completed job, its certificate included.
    seconds: f64,
    records_per_second: f64,
    /// Of the process that used most.
    peak_rss_bytes: u64,
    certificate: &'a Certificate,
}

/// What the simulator says of itself at `/truth`.
#[derive(Debug, Deserialize)]
struct Truth {
    count: i64,
    good: i64,
    bad: i64,
    repeated: i64,
}

pub(super) async fn run(args: &DemoLedger, database: Option<&str>) -> anyhow::Result<Exit> {
    let url = database.filter(|url| !url.starts_with("sqlite:")).ok_or_else(|| {
        usage("a ledger lives on Postgres: give --database postgres://…, or let `make demo-ledger` start one")
    })?;
    let address: Address = url.parse().map_err(|error: db::Error| usage(error.to_string()))?;
    debug_assert_eq!(address.kind(), Kind::Postgres);
    let logs = std::env::temp_dir().join(format!("crossdock-demo-{}", Id::new()));
    std::fs::create_dir(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let result = Box::pin(on(args, url, &address, &logs)).await;
    if matches!(result, Ok(Exit::Clean)) {
        std::fs::remove_dir_all(&logs).with_context(|| format!("cannot remove {}", logs.display()))?;
    } else {
        tell_logs(&logs);
    }
    result
}

/// Says where the processes' logs are, if there are any.
fn tell_logs(logs: &Path) {
    if logs.exists() && std::fs::remove_dir(logs).is_err() {
        say(format!("what the processes said is kept in {}", logs.display()));
    }
}

async fn on(args: &DemoLedger, url: &str, address: &Address, logs: &Path) -> anyhow::Result<Exit> {
    let stop = stop_on_signal()?;
    let database = Database::open(address).await.with_context(|| format!("cannot open {address}"))?;
    for room in [&engine::ROOM, &::ledger::ROOM] {
        database.migrate(room).await.with_context(|| format!("cannot migrate {address}"))?;
    }
    let plan: FaultPlan = args.faults.parse().map_err(|error| usage(format!("--faults: {error}")))?;
    let export = Logs::generate(args.count, args.seed).with_faults(&plan);
    if bank::is_the_demos(&database).await? {
        journey::end_interrupted(&database).await?;
    }
    let words = format!("--count {} --seed {} --faults {}", args.count, args.seed, args.faults);
    let found = bank::prepare(&database, &export, &words, args.fresh).await?;
    let mut cast = Cast::new(url, logs)?;
    let simulator = cast.simulator(args.count, args.seed, &args.faults).await?;
    say(format!("a simulated core-service exports {} wallet logs at {}", args.count, simulator.ready.url));
    if found == Found::Same {
        say("the bank is that of an earlier demo over the same logs; what came then is unchanged now");
    }
    let journey = Journey::new(&database, &simulator, args.seed, args.count);
    let Some(arrived) = journey.travel(&mut cast, &stop).await? else {
        std::fs::remove_dir_all(logs)?;
        say("stopped; the same command goes over the same logs again");
        return Ok(Exit::Failed);
    };
    say("verifying: every row of the target against what came …");
    let ledgers = Ledgers::new(database.clone());
    let certificate = tokio::select! {
        verified = ledgers.verify(arrived.job.id) => verified?,
        () = stop.cancelled() => return Ok(Exit::Failed),
    };
    let truth = ask_truth(&simulator).await?;
    let job = Store::new(database.clone()).job(arrived.job.id).await?.context("the job is gone")?;
    let exit = tell(args.json, &job, &arrived, &certificate, &truth)?;
    if !args.exit {
        say(format!(
            "the bank stays in {address}, schema bank; look at it with psql, change a row, and ask again:\n  \
             crossdock ledger verify {} --database {address}\nthe core-service answers until Ctrl-C",
            job.id
        ));
        stop.cancelled().await;
    }
    database.close().await;
    Ok(exit)
}

/// What the simulator says of its export. It was on this machine all the time.
async fn ask_truth(simulator: &Simulator) -> anyhow::Result<Truth> {
    let client = reqwest::Client::builder().no_proxy().use_preconfigured_tls(no_tls()).build()?;
    let answer = client.get(format!("{}/truth", simulator.ready.url)).send().await?.bytes().await?;
    serde_json::from_slice(&answer).context("the simulator's truth cannot be read")
}

/// What is not as the source says, in sentences.
fn differences(job: &Job, truth: &Truth) -> Vec<String> {
    let counts = &job.counts;
    let standing = counts.imported + counts.updated + counts.unchanged;
    let mut found = Vec::new();
    let mut compare = |what: &str, here: i64, there: i64| {
        if here != there {
            found.push(format!("{what}: {here}, and {there} at the source"));
        }
    };
    compare("records", job.fetched, truth.count);
    compare("failed", counts.failed, truth.bad);
    // In a demo that is run again, a record given twice meets a row that another job wrote: both are unchanged.
    if counts.imported == 0 {
        compare(
            "standing and given twice",
            standing + counts.duplicate_in_source,
            truth.good + truth.repeated,
        );
    } else {
        compare("standing", standing, truth.good);
        compare("given twice", counts.duplicate_in_source, truth.repeated);
    }
    found
}

fn tell(
    json: bool,
    job: &Job,
    arrived: &journey::Arrived,
    certificate: &Certificate,
    truth: &Truth,
) -> anyhow::Result<Exit> {
    let differences = differences(job, truth);
    for line in &differences {
        say(format!("not as at the source: {line}"));
    }
    let right = job.status == Status::Completed && certificate.holds && differences.is_empty();
    let seconds = arrived.took.as_secs_f64();
    #[allow(clippy::cast_precision_loss)] // For people to read.
    let rate = job.fetched as f64 / seconds.max(0.001);
    let counts = &job.counts;
    let summary = Summary {
        job: job.id.to_string(),
        records: job.fetched,
        imported: counts.imported,
        updated: counts.updated,
        unchanged: counts.unchanged,
        filtered: counts.filtered,
        failed: counts.failed,
        duplicate_in_source: counts.duplicate_in_source,
        kills: arrived.kills,
        seconds: (seconds * 1000.0).round() / 1000.0,
        records_per_second: rate.round(),
        peak_rss_bytes: arrived.peak_rss_bytes,
        certificate,
    };
    if json {
        print_json(&summary)?;
    } else {
        print(certificate.markdown())?;
        print(format!(
            "{} records in {seconds:.1} s ({rate:.0} records/s) by 3 processes, {} of which were killed and replaced\n\
             imported {}, unchanged {}, given twice {}, failed {} (the source was made with {} broken records)\n{}",
            summary.records,
            summary.kills,
            summary.imported + summary.updated,
            summary.unchanged,
            summary.duplicate_in_source,
            summary.failed,
            truth.bad,
            if right {
                "the certificate holds: none lost, none twice, none altered"
            } else {
                "SOMETHING IS WRONG"
            }
        ))?;
    }
    Ok(if right { Exit::Clean } else { Exit::Failed })
}
