//! One case from the fresh database to the verdict.

use std::path::PathBuf;
use std::time::Duration;

use crate::case::{Case, Database};
use crate::differences::Differences;
use crate::ground::Ground;
use crate::server::Server;
use crate::{ledger, links};

/// Tries to make a disturbance land while the job runs.
const TRIES: usize = 12;

/// What all cases share.
pub(crate) struct World {
    pub(crate) binary: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) server: Server,
    pub(crate) links: links::Sources,
    pub(crate) ledger: ledger::Sources,
    /// Keep what holds, too.
    pub(crate) keep: bool,
}

/// The verdict over one target.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) differences: Differences,
    /// What else does not hold, in sentences.
    pub(crate) complaints: Vec<String>,
    /// Pages that the source was asked for again.
    pub(crate) again: u64,
    /// How many times fetching began again.
    pub(crate) resumed: u64,
}

impl Verdict {
    pub(crate) fn holds(&self) -> bool {
        self.differences.is_none() && self.complaints.is_empty()
    }
}

/// How a case went.
pub(crate) struct Report {
    /// As it was made in the end.
    pub(crate) case: Case,
    pub(crate) verdict: Verdict,
    /// How many times the job was interrupted.
    pub(crate) interruptions: usize,
    /// The process went on by itself.
    pub(crate) survived: bool,
    /// How much of the source had been asked for at the interruption, from 0 to 1.
    pub(crate) share: f64,
    /// How long it took until somebody did what a killed or frozen process had been doing.
    pub(crate) replaced: Replaced,
    /// Where everything was kept, if something does not hold.
    pub(crate) kept: Option<PathBuf>,
}

/// The longest that others waited.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Replaced {
    /// For a killed worker's chunk, until it was settled.
    pub(crate) chunk: Option<Duration>,
    /// For a killed fetcher's partition, until it was taken.
    pub(crate) partition: Option<Duration>,
}

/// What a disturbance did.
pub(crate) struct Landed {
    pub(crate) interruptions: usize,
    pub(crate) survived: bool,
}

pub(crate) enum Disturbed {
    Landed(Landed),
    /// The job was over before; a case that may land.
    Missed(Case),
}

pub(crate) enum Attempt {
    Judged(Box<Report>),
    Missed(Case),
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
        Self {
            case,
            verdict,
            interruptions: 0,
            survived: false,
            share: 0.0,
            replaced: Replaced::default(),
            kept: None,
        }
    }
}

async fn attempt(world: &World, case: &Case) -> anyhow::Result<Attempt> {
    let (mut _using, mut _stopping) = (None, None);
    if case.stops_the_server() {
        _stopping = Some(world.server.gate.write().await);
    } else if case.database() == Database::Postgres {
        _using = Some(world.server.gate.read().await);
    }
    let template = match case {
        Case::Links(_) => None,
        Case::Ledger(_) => Some(world.ledger.prepared(world).await?.template.as_str()),
    };
    let ground = Ground::make(case.database(), &world.folder, &world.server, template).await?;
    let attempted = match case {
        Case::Links(case) => links::play(world, &ground, case).await,
        Case::Ledger(case) => ledger::play(world, &ground, case).await,
    };
    match attempted {
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

/// A moment that is more likely to come in time.
pub(crate) fn earlier(moment: Duration) -> Duration {
    moment.mul_f64(0.7)
}
