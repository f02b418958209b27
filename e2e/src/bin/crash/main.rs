//! `crash`: interrupts imports and migrations of the real binary in every way it knows, lets them go on, and compares
//! source and target. What is tested and how to read the result stands in `docs/crash-proof.md`.

mod case;
mod differences;
mod ground;
mod http;
mod ledger;
mod links;
mod process;
mod proxy;
mod run;
mod server;
mod tally;
mod wire;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Context;
use clap::Parser;
use tokio::sync::{Mutex, mpsc};

use crate::case::{Case, Database, Extent};
use crate::ledger::Export;
use crate::links::{Account, Accounts};
use crate::run::{Report, World};
use crate::server::Server;
use crate::tally::{Subject, Tally};

/// Crashes imports of links and migrations of ledger records, lets them go on, and compares source and target.
#[derive(Debug, Parser)]
#[command(
    name = "crash",
    after_help = "The binary is CROSSDOCK_BIN, by default the one beside this program. \
Postgres is the server of `scripts/pg run`."
)]
struct Args {
    /// Everything: each fail point at its first, second and last hit, many cuts; of imports 200 kills on each database and 20
    /// stops, of migrations 100 cases with kills, 25 with frozen processes, 10 stops
    #[arg(long, conflicts_with = "short")]
    full: bool,
    /// The selection that `make test` contains (this is the default)
    #[arg(long)]
    short: bool,
    /// Decides the account, the export and the moments; a random one by default
    #[arg(long)]
    seed: Option<u64>,
    /// Only these: `links`, `ledger`, or one case, as a report names it
    #[arg(long, value_name = "WHAT")]
    only: Option<Only>,
    /// Only this: a million records with 50 kills, beside an undisturbed migration of the same
    #[arg(long, conflicts_with_all = ["full", "short", "only"])]
    million: bool,
    /// How many records --million takes
    #[arg(long, default_value_t = 1_000_000, requires = "million")]
    records: u64,
    /// How many kills --million makes
    #[arg(long, default_value_t = 50, requires = "million")]
    kills: usize,
    /// How long each page of --million takes at the source
    #[arg(long, default_value_t = 300, requires = "million", value_name = "MS")]
    latency_ms: u64,
    /// Keep the databases and logs of cases that hold, too
    #[arg(long)]
    keep: bool,
    /// Cases run side by side on each database
    #[arg(long, default_value_t = 2)]
    lanes: usize,
}

const FULL: Extent = Extent { every_hit: true, kills: 200, stops: 20, freezes: 0, cuts: 8, cuts_of_all: 4 };
const SHORT: Extent = Extent { every_hit: false, kills: 6, stops: 2, freezes: 0, cuts: 1, cuts_of_all: 0 };
/// The same for migrations, which take longer and run in several processes.
const LEDGER_FULL: Extent =
    Extent { every_hit: true, kills: 100, stops: 10, freezes: 12, cuts: 6, cuts_of_all: 2 };
const LEDGER_SHORT: Extent =
    Extent { every_hit: false, kills: 3, stops: 1, freezes: 0, cuts: 1, cuts_of_all: 0 };
/// Records that are set aside, and records given twice, at once and much later.
const LEDGER_FAULTS: &str = "missing-id@40,nul@900,unknown-wallet@1100,duplicate@300,duplicate@500:700";
/// Larger than a segment of 50 pages of 100 links.
const SEGMENTS_LINKS: u64 = 5_100;
/// Larger than a run of 50,000 links.
const RUNS_LINKS: u64 = 50_100;
/// Told on the way each time so many cases are through.
const PROGRESS_EVERY: usize = 25;

/// What `--only` selects.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Only {
    Subject(Subject),
    Case(Case),
}

impl std::str::FromStr for Only {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let subject = Subject::ALL.into_iter().find(|subject| subject.name() == text);
        subject.map_or_else(|| text.parse().map(Self::Case), |subject| Ok(Self::Subject(subject)))
    }
}

impl Args {
    fn extent(&self, subject: Subject) -> Extent {
        match subject {
            Subject::Links if self.full => FULL,
            Subject::Links => SHORT,
            Subject::Ledger if self.full => LEDGER_FULL,
            Subject::Ledger => LEDGER_SHORT,
        }
    }

    fn export(&self, seed: u64) -> Export {
        Export {
            records: if self.full { 3_000 } else { 1_400 },
            seed,
            faults: LEDGER_FAULTS,
            latency_ms: 8,
            partitions: 1,
            page_records: 50,
            segment_pages: 8,
            chunk_records: 100,
            lease_seconds: 2,
        }
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
    let folder = tempfile::Builder::new().prefix("crossdock-crash-").tempdir()?;
    let server = Server::from_environment()?;
    if args.million {
        tell(format!("crash: --million --seed {seed}"));
        let extent = ledger::million::Extent {
            records: args.records,
            kills: args.kills,
            latency_ms: args.latency_ms,
            seed,
        };
        let figures = ledger::million::run(&binary()?, &server, folder.path(), extent).await?;
        print(serde_json::to_string(&figures)?);
        print(figures.to_string());
        return Ok(figures.hold());
    }
    tell(format!("crash: {}", args.again(seed)));
    let world = Arc::new(World {
        binary: binary()?,
        folder: folder.path().to_owned(),
        server,
        links: links::Sources::new(args.accounts(seed)),
        ledger: ledger::Sources::new(args.export(seed)),
        keep: args.keep,
    });
    let mut tallies = Vec::new();
    match &args.only {
        Some(Only::Case(case)) => {
            let subject = Subject::of(case);
            let tally = Tally::new(subject);
            tallies.push(run_all(args, seed, &world, vec![vec![case.clone()]], tally).await);
        }
        only => {
            for subject in Subject::ALL {
                if only.as_ref().is_none_or(|only| *only == Only::Subject(subject)) {
                    let began = Instant::now();
                    let queues = planned(args, seed, &world, subject).await.inspect_err(|_| keep(&world))?;
                    let tally = run_all(args, seed, &world, queues, Tally::new(subject)).await;
                    tell(format!("crash: {:.0?}; {}", began.elapsed(), tally.details()));
                    tallies.push(tally);
                }
            }
        }
    }
    let mut holds = tallies.iter().all(|tally| tally.failed == 0);
    if !holds || args.keep {
        let kept = folder.keep();
        tell(format!("crash: kept in {}", kept.display()));
    }
    for tally in &tallies {
        let unvisited =
            if matches!(args.only, Some(Only::Case(_))) { Vec::new() } else { tally.unvisited(args.full) };
        if !unvisited.is_empty() {
            tell(format!("crash: nothing was aborted at {}", unvisited.join(", ")));
            holds = false;
        }
        print(tally.to_string());
    }
    Ok(holds)
}

/// The queues of cases of a subject, which are run side by side.
async fn planned(
    args: &Args,
    seed: u64,
    world: &Arc<World>,
    subject: Subject,
) -> anyhow::Result<Vec<Vec<Case>>> {
    let extent = args.extent(subject);
    match subject {
        Subject::Links => {
            let on = |database| async move {
                let seen = links::observe(world, database).await?;
                tell(format!("crash: links, undisturbed on {database}: {:.2?}", seen.duration));
                let cases = links::plan(extent, database, &seen, seed);
                anyhow::Ok(cases.into_iter().map(Case::Links).collect())
            };
            let (sqlite, postgres) = tokio::try_join!(on(Database::Sqlite), on(Database::Postgres))?;
            Ok(vec![sqlite, postgres])
        }
        Subject::Ledger => {
            let seen = ledger::observe(world).await?;
            tell(format!("crash: ledger, undisturbed: {:.2?}", seen.duration));
            Ok(vec![ledger::plan(extent, &seen, seed).into_iter().map(Case::Ledger).collect()])
        }
    }
}

/// Runs the queues side by side, `lanes` cases of each at a time.
async fn run_all(
    args: &Args,
    seed: u64,
    world: &Arc<World>,
    queues: Vec<Vec<Case>>,
    mut tally: Tally,
) -> Tally {
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
