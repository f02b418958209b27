//! Cases of imports.

use std::time::Duration;

use anyhow::{Context, bail};

use crate::case::{Cut, Database};
use crate::ground::Ground;
use crate::links::case::Case;
use crate::links::importer::{Importer, ROLE};
use crate::links::judge::judge;
use crate::links::simulator::Simulator;
use crate::process::Ending;
use crate::proxy::Proxy;
use crate::run::{Attempt, Disturbed, Landed, Replaced, Report, World, earlier};

/// Starts that an import may need after its database or its connection went away.
const STARTS_MAX: usize = 3;

/// Plays a case.
pub(crate) async fn play(world: &World, ground: &Ground<'_>, case: &Case) -> anyhow::Result<Attempt> {
    let account = world.links.account(case);
    let simulator = Simulator::start(&world.binary, account).await?;
    let truth = world.links.truth(&simulator, account).await?;
    let proxy = match case {
        Case::Cut(cut) => Some(Proxy::start(world.server.address()?, Some(*cut)).await?),
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
        case: crate::case::Case::Links(case.clone()),
        verdict,
        interruptions: landed.interruptions,
        survived: landed.survived,
        share,
        replaced: Replaced::default(),
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
        Case::Cut(cut) => {
            let proxy = proxy.context("a cut needs its proxy")?;
            let ending = importer.start(None)?.end().await?;
            if !proxy.has_cut() {
                expect_done(ending)?;
                let commit = proxy.commits().max(1);
                return Ok(missed(Case::Cut(Cut { commit, ..*cut })));
            }
            Ok(once(ending))
        }
    }
}

/// Interrupted once; the process has ended so.
fn once(ending: Ending) -> Disturbed {
    Disturbed::Landed(Landed { interruptions: 1, survived: ending == Ending::Done })
}

fn missed(case: Case) -> Disturbed {
    Disturbed::Missed(crate::case::Case::Links(case))
}

async fn abort(
    importer: &Importer<'_>,
    database: Database,
    point: &str,
    hit: u64,
) -> anyhow::Result<Disturbed> {
    let ending = importer.start(Some(&format!("{point}:{hit}")))?.end().await?;
    if ending == Ending::Aborted {
        return Ok(once(ending));
    }
    expect_done(ending)?;
    // How chunks fall depends on time: this import passed the point less often than the one that was counted.
    let passed = importer.ground.passed(ROLE, point);
    if passed == 0 {
        bail!("the import never passes {point}");
    }
    Ok(missed(Case::Abort { database, point: point.to_owned(), hit: passed.min(hit) }))
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
            return Ok(missed(Case::Kill { database, after }));
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
        return Ok(missed(Case::Stop { after: earlier(after) }));
    }
    world.server.stop_immediate().await?;
    world.server.restart().await?;
    Ok(once(running.end().await?))
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
        Case::Stop { .. } | Case::Cut(_) => STARTS_MAX,
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
