//! One case from the fresh database to the verdict.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::sync::Mutex;

use crate::case::{Case, Database};
use crate::compare::TruthRow;
use crate::ground::Ground;
use crate::importer::{Ending, Importer};
use crate::judge::{Verdict, judge};
use crate::proxy::{Cut, Proxy};
use crate::server::Server;
use crate::simulator::{Account, Simulator};

/// The point that only an account larger than a run passes, and the points passed once for each segment.
pub(crate) const RUN_POINT: &str = "run.boundary";
pub(crate) const SEGMENT_POINTS: &[&str] = &["segment.closed", "clean.before_commit", "clean.after_commit"];
/// Tries to make a disturbance land while the import runs.
const TRIES: usize = 12;
/// Starts that an import may need after its database or its connection went away.
const STARTS_MAX: usize = 3;

/// What all cases share.
pub(crate) struct World {
    pub(crate) binary: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) server: Server,
    pub(crate) accounts: Accounts,
    /// Keep what holds, too.
    keep: bool,
    truths: Mutex<HashMap<Account, Arc<Vec<TruthRow>>>>,
}

/// Which account is imported in which case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accounts {
    pub(crate) plain: Account,
    /// Larger than a segment.
    pub(crate) segments: Account,
    /// Larger than a run.
    pub(crate) runs: Account,
}

/// How a case went.
pub(crate) struct Report {
    /// As it was made in the end.
    pub(crate) case: Case,
    pub(crate) verdict: Verdict,
    /// How many times the import was interrupted.
    pub(crate) interruptions: usize,
    /// The process went on by itself.
    pub(crate) survived: bool,
    /// How much of the account had been asked for at the interruption, from 0 to 1.
    pub(crate) share: f64,
    /// Where everything was kept, if something does not hold.
    pub(crate) kept: Option<PathBuf>,
}

/// What a disturbance did.
struct Landed {
    interruptions: usize,
    survived: bool,
}

enum Disturbed {
    Landed(Landed),
    /// The import was over before; a case that may land.
    Missed(Case),
}

enum Attempt {
    Judged(Box<Report>),
    Missed(Case),
}

impl World {
    pub(crate) fn new(
        binary: PathBuf,
        folder: PathBuf,
        server: Server,
        accounts: Accounts,
        keep: bool,
    ) -> Self {
        Self { binary, folder, server, accounts, keep, truths: Mutex::default() }
    }

    pub(crate) async fn truth(
        &self,
        simulator: &Simulator,
        account: Account,
    ) -> anyhow::Result<Arc<Vec<TruthRow>>> {
        let mut truths = self.truths.lock().await;
        if let Some(truth) = truths.get(&account) {
            return Ok(Arc::clone(truth));
        }
        let truth = Arc::new(simulator.truth().await?);
        truths.insert(account, Arc::clone(&truth));
        Ok(truth)
    }

    pub(crate) fn account(&self, case: &Case) -> Account {
        match case {
            Case::Abort { point, .. } if point == RUN_POINT => self.accounts.runs,
            Case::Abort { point, .. } if SEGMENT_POINTS.contains(&point.as_str()) => self.accounts.segments,
            _ => self.accounts.plain,
        }
    }
}

/// Runs a case; one that comes too late for the import is made earlier and run again.
pub(crate) async fn run(world: &World, case: &Case) -> Report {
    let mut case = case.clone();
    for _ in 0..TRIES {
        match attempt(world, &case).await {
            Ok(Attempt::Judged(report)) => return *report,
            Ok(Attempt::Missed(earlier)) => case = earlier,
            Err(error) => return Report::failed(case, format!("{error:#}")),
        }
    }
    Report::failed(case, format!("did not land in {TRIES} tries"))
}

impl Report {
    fn failed(case: Case, why: String) -> Self {
        let verdict = Verdict { complaints: vec![why], ..Verdict::default() };
        Self { case, verdict, interruptions: 0, survived: false, share: 0.0, kept: None }
    }
}

async fn attempt(world: &World, case: &Case) -> anyhow::Result<Attempt> {
    let (mut _using, mut _stopping) = (None, None);
    match (case, case.database()) {
        (Case::Stop { .. }, _) => _stopping = Some(world.server.gate.write().await),
        (_, Database::Postgres) => _using = Some(world.server.gate.read().await),
        (_, Database::Sqlite) => {}
    }
    let ground = Ground::make(case.database(), &world.folder, &world.server).await?;
    match on_ground(world, &ground, case).await {
        Ok(Attempt::Missed(earlier)) => {
            ground.remove().await?;
            Ok(Attempt::Missed(earlier))
        }
        Ok(Attempt::Judged(mut report)) => {
            if report.verdict.holds() && !world.keep {
                ground.remove().await?;
            } else {
                report.kept = Some(ground.keep().await);
            }
            Ok(Attempt::Judged(report))
        }
        Err(error) => {
            let mut report = Report::failed(case.clone(), format!("{error:#}"));
            report.kept = Some(ground.keep().await);
            Ok(Attempt::Judged(Box::new(report)))
        }
    }
}

async fn on_ground(world: &World, ground: &Ground<'_>, case: &Case) -> anyhow::Result<Attempt> {
    let account = world.account(case);
    let simulator = Simulator::start(&world.binary, account).await?;
    let truth = world.truth(&simulator, account).await?;
    let proxy = match case {
        Case::Cut { moment, commit, all } => {
            let cut = Cut { moment: *moment, commit: *commit, all: *all };
            Some(Proxy::start(world.server.address()?, Some(cut)).await?)
        }
        _ => None,
    };
    let url = ground.url(proxy.as_ref().map(Proxy::address))?;
    let importer = Importer::new(&world.binary, ground, &simulator, url, account.lease_seconds);
    let landed = match disturb(world, &importer, case, proxy.as_ref()).await? {
        Disturbed::Landed(landed) => landed,
        Disturbed::Missed(earlier) => return Ok(Attempt::Missed(earlier)),
    };
    let share = simulator.asked().await?.pages() as f64 / (account.pages().max(2) - 1) as f64;
    if !landed.survived {
        go_on(&importer, case).await?;
    }
    let verdict = judge(&importer, account, &truth, landed.interruptions).await?;
    Ok(Attempt::Judged(Box::new(Report {
        case: case.clone(),
        verdict,
        interruptions: landed.interruptions,
        survived: landed.survived,
        share,
        kept: None,
    })))
}

async fn disturb(
    world: &World,
    importer: &Importer<'_>,
    case: &Case,
    proxy: Option<&Proxy>,
) -> anyhow::Result<Disturbed> {
    match case {
        Case::Abort { database, point, hit } => abort(importer, *database, point, *hit).await,
        Case::Kill { database, after } => kill(importer, *database, after).await,
        Case::Stop { after } => stop(world, importer, *after).await,
        Case::Cut { moment, all, .. } => {
            let proxy = proxy.context("a cut needs its proxy")?;
            let ending = importer.start(None)?.end().await?;
            if !proxy.has_cut() {
                expect_done(ending)?;
                let commit = proxy.commits().max(1);
                return Ok(Disturbed::Missed(Case::Cut { moment: *moment, commit, all: *all }));
            }
            Ok(Disturbed::once(ending))
        }
    }
}

impl Disturbed {
    /// Interrupted once; the process has ended so.
    fn once(ending: Ending) -> Self {
        Self::Landed(Landed { interruptions: 1, survived: ending == Ending::Done })
    }
}

async fn abort(
    importer: &Importer<'_>,
    database: Database,
    point: &str,
    hit: u64,
) -> anyhow::Result<Disturbed> {
    let ending = importer.start(Some(&format!("{point}:{hit}")))?.end().await?;
    if ending == Ending::Aborted {
        return Ok(Disturbed::once(ending));
    }
    expect_done(ending)?;
    // How chunks fall depends on time: this import passed the point less often than the one that was counted.
    let passed = importer.ground.passed(point);
    if passed == 0 {
        bail!("the import never passes {point}");
    }
    Ok(Disturbed::Missed(Case::Abort { database, point: point.to_owned(), hit: passed.min(hit) }))
}

async fn kill(importer: &Importer<'_>, database: Database, after: &[Duration]) -> anyhow::Result<Disturbed> {
    let mut kills = 0;
    for moment in after {
        let mut running = importer.start(None)?;
        let ended = running.ends_within(*moment).await?;
        let killed = match ended {
            Some(ending) => {
                expect_done(ending)?;
                false
            }
            None => running.kill().await?,
        };
        if !killed && kills == 0 {
            let after = after.iter().map(|moment| earlier(*moment)).collect();
            return Ok(Disturbed::Missed(Case::Kill { database, after }));
        }
        kills += usize::from(killed);
        if !killed {
            break;
        }
    }
    Ok(Disturbed::Landed(Landed { interruptions: kills, survived: false }))
}

async fn stop(world: &World, importer: &Importer<'_>, after: Duration) -> anyhow::Result<Disturbed> {
    let mut running = importer.start(None)?;
    if let Some(ending) = running.ends_within(after).await? {
        expect_done(ending)?;
        return Ok(Disturbed::Missed(Case::Stop { after: earlier(after) }));
    }
    world.server.stop_immediate().await?;
    world.server.restart().await?;
    Ok(Disturbed::once(running.end().await?))
}

fn earlier(moment: Duration) -> Duration {
    moment.mul_f64(0.7)
}

fn expect_done(ending: Ending) -> anyhow::Result<()> {
    if ending != Ending::Done {
        bail!("undisturbed, the import ended with {ending:?}");
    }
    Ok(())
}

/// Starts the same command again until it is through. After a crash of its own process, once must be enough.
async fn go_on(importer: &Importer<'_>, case: &Case) -> anyhow::Result<()> {
    let starts = match case {
        Case::Abort { .. } | Case::Kill { .. } => 1,
        Case::Stop { .. } | Case::Cut { .. } => STARTS_MAX,
    };
    let mut ending = Ending::Done;
    for _ in 0..starts {
        ending = importer.start(None)?.end().await?;
        if ending == Ending::Done {
            return Ok(());
        }
    }
    bail!("started again {starts} times, the import ended with {ending:?}")
}
