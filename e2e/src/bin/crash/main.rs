//! `crash`: interrupts imports of the real binary in every way it knows, lets them go on, and compares source and
//! target. What is tested and how to read the result stands in `docs/crash-proof.md`.

mod case;
mod compare;
mod ground;
mod http;
mod importer;
mod judge;
mod plan;
mod proxy;
mod run;
mod server;
mod simulator;
mod tally;
mod target;
mod wire;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Context;
use clap::Parser;
use tokio::sync::{Mutex, mpsc};

use crate::case::{Case, Database};
use crate::plan::Extent;
use crate::run::{Accounts, Report, World};
use crate::server::Server;
use crate::simulator::Account;
use crate::tally::Tally;

/// Crashes imports, lets them go on, and compares source and target.
#[derive(Debug, Parser)]
#[command(
    name = "crash",
    after_help = "The binary is CROSSDOCK_BIN, by default the one beside this program. \
Postgres is the server of `scripts/pg run`."
)]
struct Args {
    /// Everything: each fail point at its first, second and last hit, 200 kills on each database, 20 stops, many cuts
    #[arg(long, conflicts_with = "short")]
    full: bool,
    /// The selection that `make test` contains (this is the default)
    #[arg(long)]
    short: bool,
    /// Decides the account and the moments; a random one by default
    #[arg(long)]
    seed: Option<u64>,
    /// Only this case, as a report names it
    #[arg(long, value_name = "CASE")]
    only: Option<Case>,
    /// Keep the databases and logs of cases that hold, too
    #[arg(long)]
    keep: bool,
    /// Cases run side by side on each database
    #[arg(long, default_value_t = 2)]
    lanes: usize,
}

const FULL: Extent = Extent { every_hit: true, kills: 200, stops: 20, cuts: 8, cuts_of_all: 4 };
const SHORT: Extent = Extent { every_hit: false, kills: 6, stops: 2, cuts: 1, cuts_of_all: 0 };
/// Larger than a segment of 50 pages of 100 links.
const SEGMENTS_LINKS: u64 = 5_100;
/// Larger than a run of 50,000 links.
const RUNS_LINKS: u64 = 50_100;
/// Told on the way each time so many cases are through.
const PROGRESS_EVERY: usize = 25;

impl Args {
    fn extent(&self) -> Extent {
        if self.full { FULL } else { SHORT }
    }

    /// Small ones answer slowly enough to be interrupted between their pages. In full, the steps that are taken once for
    /// a segment have a second and a last time.
    fn accounts(&self, seed: u64) -> Accounts {
        let plain =
            Account { links: if self.full { 1_500 } else { 1_000 }, latency_ms: 8, seed, lease_seconds: 1 };
        let segments = Account { links: SEGMENTS_LINKS, latency_ms: 0, ..plain };
        Accounts {
            plain,
            segments: if self.full { segments } else { plain },
            // A lease that is lost on a busy machine would end the run before its boundary.
            runs: Account { links: RUNS_LINKS, latency_ms: 0, lease_seconds: 15, ..plain },
        }
    }

    /// The options with which the same cases are found again.
    fn again(&self, seed: u64) -> String {
        format!("{} --seed {seed}", if self.full { "--full" } else { "--short" })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match crash(&args).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            print(format!("crash: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn crash(args: &Args) -> anyhow::Result<bool> {
    let seed = args.seed.unwrap_or_else(random_seed);
    tell(format!("crash: {}", args.again(seed)));
    let folder = tempfile::Builder::new().prefix("crossdock-crash-").tempdir()?;
    let server = Server::from_environment()?;
    let world =
        Arc::new(World::new(binary()?, folder.path().to_owned(), server, args.accounts(seed), args.keep));
    let began = Instant::now();
    let queues = match &args.only {
        Some(case) => vec![vec![case.clone()]],
        None => {
            let planned = |database| {
                let world = Arc::clone(&world);
                async move {
                    let seen = plan::observe(&world, database).await?;
                    tell(format!("crash: undisturbed on {database}: {:.2?}", seen.duration));
                    anyhow::Ok(plan::plan(args.extent(), database, &seen, seed))
                }
            };
            let (sqlite, postgres) = tokio::try_join!(planned(Database::Sqlite), planned(Database::Postgres))
                .inspect_err(|_| keep(&world))?;
            vec![sqlite, postgres]
        }
    };
    let tally = run_all(args, seed, &world, queues).await;
    let unvisited = if args.only.is_some() { Vec::new() } else { tally.unvisited() };
    tell(format!("crash: {:.0?}; {}", began.elapsed(), tally.details()));
    if !unvisited.is_empty() {
        tell(format!("crash: no import was aborted at {}", unvisited.join(", ")));
    }
    if tally.failed > 0 || args.keep {
        let kept = folder.keep();
        tell(format!("crash: kept in {}", kept.display()));
    }
    print(tally.to_string());
    Ok(tally.failed == 0 && unvisited.is_empty())
}

/// Runs the queues side by side, `lanes` cases of each at a time.
async fn run_all(args: &Args, seed: u64, world: &Arc<World>, queues: Vec<Vec<Case>>) -> Tally {
    let total: usize = queues.iter().map(Vec::len).sum();
    let (send, mut reports) = mpsc::unbounded_channel::<Report>();
    for queue in queues {
        let queue = Arc::new(Mutex::new(VecDeque::from(queue)));
        for _ in 0..args.lanes.max(1) {
            let (world, queue, send) = (Arc::clone(world), Arc::clone(&queue), send.clone());
            tokio::spawn(async move {
                while let Some(case) = { queue.lock().await.pop_front() } {
                    let _ = send.send(run::run(&world, &case).await);
                }
            });
        }
    }
    drop(send);
    let mut tally = Tally::default();
    while let Some(report) = reports.recv().await {
        tally.add(&report);
        if !report.verdict.holds() {
            tell_failure(&report, &args.again(seed));
        }
        if tally.cases.is_multiple_of(PROGRESS_EVERY) && tally.cases < total {
            tell(format!("[{} of {total}] {tally}", tally.cases));
        }
    }
    tally
}

fn tell_failure(report: &Report, options: &str) {
    tell(format!("FAILED {}: {}", report.case, report.verdict.differences));
    for line in report.verdict.differences.findings.iter().chain(&report.verdict.complaints) {
        tell(format!("  {line}"));
    }
    if let Some(kept) = &report.kept {
        tell(format!("  kept in {}", kept.display()));
    }
    tell(format!(
        "  again: scripts/pg run cargo run -p crossdock-e2e --bin crash -- {options} --only {}",
        report.case
    ));
}

/// Keeps the folder of a run that could not begin.
fn keep(world: &World) {
    let kept = world.folder.with_extension("kept");
    if std::fs::rename(&world.folder, &kept).is_ok() {
        tell(format!("crash: kept in {}", kept.display()));
    }
}

/// `CROSSDOCK_BIN`, or the binary beside this one.
fn binary() -> anyhow::Result<PathBuf> {
    let path = match std::env::var_os("CROSSDOCK_BIN") {
        Some(path) => PathBuf::from(path),
        None => std::env::current_exe()?.with_file_name("crossdock"),
    };
    path.canonicalize().with_context(|| {
        format!("there is no {}; build it with `cargo build --package crossdock-cli`", path.display())
    })
}

fn random_seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::from(since.subsec_nanos()) % 1_000_000
}

/// Progress goes to standard error.
#[allow(clippy::print_stderr)]
fn tell(line: impl AsRef<str>) {
    eprintln!("{}", line.as_ref());
}

/// The closing line goes to standard output.
#[allow(clippy::print_stdout)]
fn print(line: impl AsRef<str>) {
    println!("{}", line.as_ref());
}
