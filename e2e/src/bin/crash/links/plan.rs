//! Which cases are run: counted and timed on undisturbed imports, chosen by a seed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use engine::failpoint::POINTS;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::case::{Database, Extent, hits, spread_cuts};
use crate::ground::Ground;
use crate::links::case::Case;
use crate::links::importer::{Importer, ROLE};
use crate::links::judge::judge;
use crate::links::simulator::{Account, Simulator};
use crate::links::{RUN_POINT, SEGMENT_POINTS};
use crate::process::Ending;
use crate::proxy::Proxy;
use crate::run::World;

/// Random moments lie within so many times an undisturbed import's duration; what comes too late is made earlier.
const MOMENT_MAX: f64 = 1.1;
/// Every so many-th killed import is killed once more as soon as it goes on.
const KILLED_AGAIN_EVERY: usize = 5;

/// Imports have no certificate.
pub(crate) const NOT_PASSED: &[&str] = &["certify.before_commit", "certify.after_commit"];

/// The points that the short selection aborts at on Postgres: one for each durable step.
const SHORT_ON_POSTGRES: &[&str] = &[
    "lease.after_commit",
    "page.before_commit",
    "page.after_commit",
    "attempt.after_commit",
    "chunk.before_commit",
    "chunk.after_commit",
    "complete.before_commit",
];

/// What an undisturbed import tells.
pub(crate) struct Undisturbed {
    /// How often each point is passed.
    pub(crate) hits: BTreeMap<&'static str, u64>,
    /// From the start of the process to its end, with the plain account.
    pub(crate) duration: Duration,
    /// COMMITs of an import of the plain account; 0 on SQLite.
    pub(crate) commits: u64,
}

/// Imports undisturbed: counts, times, and checks that nothing differs when nothing happens.
pub(crate) async fn observe(world: &World, database: Database) -> anyhow::Result<Undisturbed> {
    let mut seen = import(world, database, world.links.accounts.plain).await?;
    if world.links.accounts.segments != world.links.accounts.plain {
        let large = import(world, database, world.links.accounts.segments).await?;
        seen.hits.extend(large.hits.into_iter().filter(|(point, _)| SEGMENT_POINTS.contains(point)));
    }
    Ok(seen)
}

async fn import(world: &World, database: Database, account: Account) -> anyhow::Result<Undisturbed> {
    let _using = world.server.gate.read().await;
    let ground = Ground::make(database, &world.folder, &world.server, None).await?;
    let simulator = Simulator::start(&world.binary, account).await?;
    let truth = world.links.truth(&simulator, account).await?;
    let proxy = match database {
        Database::Sqlite => None,
        Database::Postgres => Some(Proxy::start(world.server.address()?, None).await?),
    };
    let url = ground.url(proxy.as_ref().map(Proxy::address))?;
    let importer = Importer::new(&world.binary, &ground, &simulator, url, account.lease_seconds);
    let began = Instant::now();
    let ending = importer.start(None)?.end().await?;
    let duration = began.elapsed();
    ensure!(
        ending == Ending::Done,
        "undisturbed, the import ended with {ending:?}: {}",
        ground.folder.display()
    );
    let commits = proxy.as_ref().map_or(0, Proxy::commits);
    let hits = POINTS.iter().map(|point| (*point, ground.passed(ROLE, point))).collect();
    let verdict = judge(&importer, account, &truth, 0).await?;
    if !verdict.holds() {
        bail!("undisturbed, source and target differ: {verdict:?}: {}", ground.folder.display());
    }
    ground.remove().await?;
    Ok(Undisturbed { hits, duration, commits })
}

/// The cases on one database, in the order in which they are run.
pub(crate) fn plan(extent: Extent, database: Database, seen: &Undisturbed, seed: u64) -> Vec<Case> {
    let mut chance = StdRng::seed_from_u64(seed ^ (database as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut cases = aborts(extent, database, seen);
    if database == Database::Postgres {
        cases.extend(spread_cuts(seen.commits, extent.cuts, false).map(Case::Cut));
        cases.extend(spread_cuts(seen.commits, extent.cuts_of_all, true).map(Case::Cut));
    }
    let mut moment = || seen.duration.mul_f64(chance.random_range(0.0..MOMENT_MAX));
    for number in 1..=extent.kills {
        let after = if number % KILLED_AGAIN_EVERY == 0 { vec![moment(), moment()] } else { vec![moment()] };
        cases.push(Case::Kill { database, after });
    }
    if database == Database::Postgres {
        // Last: each needs the server for itself.
        cases.extend((0..extent.stops).map(|_| Case::Stop { after: moment() }));
    }
    cases
}

fn aborts(extent: Extent, database: Database, seen: &Undisturbed) -> Vec<Case> {
    let mut cases = Vec::new();
    let wanted =
        |point: &str| extent.every_hit || database == Database::Sqlite || SHORT_ON_POSTGRES.contains(&point);
    // The one that takes longest comes first.
    let (boundary, others): (Vec<&str>, Vec<&str>) = POINTS.iter().partition(|point| **point == RUN_POINT);
    let points = boundary.into_iter().chain(others).filter(|point| !NOT_PASSED.contains(point));
    for point in points.filter(|point| wanted(point)) {
        let counted = if point == RUN_POINT { 1 } else { seen.hits.get(point).copied().unwrap_or_default() };
        let hits = hits(extent, counted);
        cases.extend(hits.into_iter().map(|hit| Case::Abort { database, point: point.to_owned(), hit }));
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Cut;

    fn seen() -> Undisturbed {
        let mut hits: BTreeMap<&'static str, u64> = POINTS.iter().map(|point| (*point, 1)).collect();
        hits.extend([
            ("page.before_commit", 15),
            ("lease.after_commit", 2),
            (RUN_POINT, 0),
            ("segment.closed", 0),
        ]);
        Undisturbed { hits, duration: Duration::from_secs(1), commits: 60 }
    }

    fn count(cases: &[Case], kind: fn(&Case) -> bool) -> usize {
        cases.iter().filter(|case| kind(case)).count()
    }

    const FULL: Extent =
        Extent { every_hit: true, kills: 200, stops: 20, freezes: 0, cuts: 5, cuts_of_all: 1 };

    #[test]
    fn every_point_is_visited_at_its_first_second_and_last_hit() {
        let cases = plan(FULL, Database::Sqlite, &seen(), 1);
        let hits = |wanted: &str| -> Vec<u64> {
            let hit = |case: &Case| match case {
                Case::Abort { point, hit, .. } if point == wanted => Some(*hit),
                _ => None,
            };
            cases.iter().filter_map(hit).collect()
        };
        assert_eq!(hits("page.before_commit"), [1, 2, 15]);
        assert_eq!(hits("lease.after_commit"), [1, 2]);
        for point in POINTS.iter().filter(|point| !NOT_PASSED.contains(point)) {
            assert_eq!(hits(point)[0], 1, "{point}");
        }
    }

    #[test]
    fn the_extent_decides_how_many_kills_stops_and_cuts_there_are() {
        let postgres = plan(FULL, Database::Postgres, &seen(), 1);
        assert_eq!(count(&postgres, |case| matches!(case, Case::Kill { .. })), 200);
        assert_eq!(count(&postgres, |case| matches!(case, Case::Stop { .. })), 20);
        assert_eq!(count(&postgres, |case| matches!(case, Case::Cut(Cut { all: false, .. }))), 15);
        assert_eq!(count(&postgres, |case| matches!(case, Case::Cut(Cut { all: true, .. }))), 3);
        let sqlite = plan(FULL, Database::Sqlite, &seen(), 1);
        assert_eq!(count(&sqlite, |case| matches!(case, Case::Stop { .. } | Case::Cut(_))), 0);
    }

    #[test]
    fn the_same_seed_gives_the_same_cases() {
        let once = plan(FULL, Database::Postgres, &seen(), 7);
        assert_eq!(once, plan(FULL, Database::Postgres, &seen(), 7));
        assert_ne!(once, plan(FULL, Database::Postgres, &seen(), 8));
    }
}
