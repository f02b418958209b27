//! From the job to its rest: the processes, their kills, and who replaces them.

use std::time::{Duration, Instant};

use ::ledger::{Ledgers, Variables};
use anyhow::{Context, bail};
use db::{Conn, Database};
use engine::store::jobs;
use engine::{Job, Mode, Status, Store};
use indicatif::{ProgressBar, ProgressStyle};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_util::sync::CancellationToken;

use super::bank;
use super::cast::{Cast, Player, Role, Simulator};
use crate::commands::say;
use crate::exit::usage;
use crate::peak;

/// How often the job is looked at: often enough to kill where it was meant.
const EVERY: Duration = Duration::from_millis(20);
/// The parts of the logs within which a process is killed: of what is fetched, and of what has its outcome.
const FETCHER_DIES: std::ops::Range<f64> = 0.25..0.35;
const WORKER_DIES: std::ops::Range<f64> = 0.45..0.55;
/// Looks in a row at which the database may fail to answer.
const ERRORS_MAX: u32 = 100;
/// More ledger jobs than any demo leaves unfinished.
const JOBS_MAX: i64 = 1_000;
/// Processes of an earlier demo that was ended by force are gone after its lease, and a bit.
const LIVE_TRIES: u32 = 30;
const LIVE_PAUSE: Duration = Duration::from_millis(100);

/// A job that came to its rest.
pub(super) struct Arrived {
    pub(super) job: Job,
    pub(super) took: Duration,
    pub(super) kills: u32,
    pub(super) peak_rss_bytes: u64,
}

pub(super) struct Journey<'j> {
    database: &'j Database,
    simulator: &'j Simulator,
    /// How many records are fetched when the fetcher dies, and have an outcome when a worker does.
    fetcher_dies: i64,
    worker_dies: i64,
}

impl<'j> Journey<'j> {
    pub(super) fn new(database: &'j Database, simulator: &'j Simulator, seed: u64, count: u64) -> Self {
        let mut chance = StdRng::seed_from_u64(seed);
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // A moment need not be exact.
        let mut of = |part: std::ops::Range<f64>| (count as f64 * chance.random_range(part)) as i64;
        Self { database, simulator, fetcher_dies: of(FETCHER_DIES), worker_dies: of(WORKER_DIES) }
    }

    /// Runs the migration. `None`: it was stopped.
    pub(super) async fn travel(
        &self,
        cast: &mut Cast,
        stop: &CancellationToken,
    ) -> anyhow::Result<Option<Arrived>> {
        let store = Store::new(self.database.clone());
        let began = Instant::now();
        let variables = Variables::of([("CORE_URL", self.simulator.ready.url.as_str())]);
        let id = Ledgers::new(self.database.clone()).start(bank::folder(), variables, Mode::Stream).await?;
        let token = self.simulator.ready.token.as_str();
        let mut players = Vec::new();
        for role in [Role::Fetcher, Role::Worker, Role::Worker] {
            players.push(cast.start(role, token)?);
        }
        say("a fetcher and two workers are at work; one of each kind will be killed");
        let bar = bar();
        let (mut kills, mut peak_rss_bytes, mut errors) = (0, 0, 0);
        let mut doomed = vec![Role::Fetcher, Role::Worker];
        let job = loop {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = stop.cancelled() => {
                    bar.finish_and_clear();
                    return Ok(None);
                }
            }
            let job = match store.job(id).await {
                Ok(job) => job.context("the job is gone")?,
                Err(error) if error.is_transient() && errors < ERRORS_MAX => {
                    errors += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            errors = 0;
            bar.set_message(format!("fetched {}, settled {}", job.fetched, job.counts.records()));
            for player in &mut players {
                peak_rss_bytes = peak_rss_bytes.max(player.look()?);
            }
            if !matches!(job.status, Status::Queued | Status::Running | Status::Waiting) {
                break job;
            }
            if let Some(role) = self.dies(&job, &mut doomed) {
                let place = format!("fetched {}, settled {}", job.fetched, job.counts.records());
                replace(cast, &mut players, role, token).await?;
                kills += 1;
                bar.suspend(|| say(format!("killed a {} ({place}); another takes its place", role.name())));
            }
        };
        bar.finish_and_clear();
        let took = began.elapsed();
        for player in &mut players {
            player.kill().await?;
        }
        if job.status != Status::Completed {
            bail!("the job is {}: {}", job.status, job.reason.as_deref().unwrap_or("no reason is known"));
        }
        peak_rss_bytes = peak_rss_bytes.max(peak::peak_rss_bytes().unwrap_or_default());
        Ok(Some(Arrived { job, took, kills, peak_rss_bytes }))
    }

    /// Whose turn it is to die.
    fn dies(&self, job: &Job, doomed: &mut Vec<Role>) -> Option<Role> {
        let at = doomed.iter().position(|role| match role {
            Role::Fetcher => job.fetched >= self.fetcher_dies,
            Role::Worker => job.counts.records() >= self.worker_dies,
        })?;
        Some(doomed.remove(at))
    }
}

/// Kills a process of this kind, and starts another.
async fn replace(cast: &mut Cast, players: &mut Vec<Player>, role: Role, token: &str) -> anyhow::Result<()> {
    let victim = players.iter().position(|player| player.role == role).context("each kind has a process")?;
    players.remove(victim).kill().await?;
    players.push(cast.start(role, token)?);
    Ok(())
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    let style =
        ProgressStyle::with_template("{spinner} [{elapsed_precise}] {msg}").expect("the template is correct");
    bar.set_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Cancels what earlier demos left unfinished in their bank: their core-service is gone, and the next job would queue
/// behind them.
///
/// # Errors
/// A usage error if somebody is at work.
pub(super) async fn end_interrupted(database: &Database) -> anyhow::Result<()> {
    let mut reader = database.read().await?;
    let found = jobs::list(reader.conn(), ::ledger::kind::KIND, None, JOBS_MAX).await?;
    drop(reader);
    let ours = |job: &Job| job.lane == bank::LANE && !job.status.is_final();
    let unfinished: Vec<Job> = found.into_iter().filter(ours).collect();
    if unfinished.is_empty() {
        return Ok(());
    }
    for attempt in 0.. {
        if !anybody_fetches(database).await? {
            break;
        }
        if attempt == LIVE_TRIES {
            return Err(usage(
                "a ledger job is running over the demo's bank; let it end, or give the demo another database",
            ));
        }
        tokio::time::sleep(LIVE_PAUSE).await;
    }
    let store = Store::new(database.clone());
    for job in unfinished {
        say(format!("job {} of this database was left unfinished; it is cancelled", job.id));
        store.move_job(job.id, Status::Cancelled, Some("another demo began"), None).await?;
    }
    Ok(())
}

async fn anybody_fetches(database: &Database) -> anyhow::Result<bool> {
    let mut reader = database.read().await?;
    let Conn::Postgres(pg) = reader.conn() else { unreachable!("the address was looked at") };
    let held = "SELECT EXISTS (SELECT 1 FROM crossdock.partitions p JOIN crossdock.jobs j ON j.id = p.job_id
        WHERE j.lane = $1 AND j.status = 'running' AND p.lease_until > clock_timestamp())";
    Ok(sqlx::query_scalar(held).persistent(false).bind(bank::LANE).fetch_one(&mut *pg.conn).await?)
}
