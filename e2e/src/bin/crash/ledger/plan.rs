//! Which cases are run: counted and timed on an undisturbed migration, chosen by a seed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::bail;
use engine::failpoint::POINTS;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::case::{At, Case, PROCESSES_MAX, Role, Victim};
use super::cast::Cast;
use super::company::Company;
use super::core::Core;
use super::judge::judge;
use crate::case::{Database, Extent, hits, spread_cuts};
use crate::ground::Ground;
use crate::proxy::Proxy;
use crate::run::World;

/// A ledger's run ends after a million records; the imports visit it.
pub(crate) const NOT_PASSED: &[&str] = &["run.boundary"];
/// Passed by whoever comes first.
pub(super) const ANYBODYS: &[&str] = &["clean.", "state.", "certify.", "complete."];
/// Passed by every process that works on chunks.
const WORKERS: &[&str] = &["attempt.", "chunk."];
/// Inside a transaction, at which a frozen process holds locks; and the one with which a fetcher has only its lease.
const FREEZES: &[(Role, &str, u64)] = &[
    (Role::Fetcher, "page.before_commit", 7),
    (Role::Worker, "chunk.before_commit", 1),
    (Role::Fetcher, "lease.before_commit", 1),
    (Role::Fetcher, "lease.before_commit", 2),
    (Role::Fetcher, "page.after_commit", 5),
    (Role::Fetcher, "chunk.after_write", 1),
    (Role::Fetcher, "attempt.before_commit", 2),
    (Role::Fetcher, "state.before_commit", 1),
    (Role::Fetcher, "certify.before_commit", 1),
    (Role::Fetcher, "complete.before_commit", 1),
    (Role::Worker, "attempt.before_commit", 1),
    (Role::Worker, "chunk.after_write", 2),
    (Role::Worker, "chunk.before_write", 1),
];
/// Those of the short selection.
const FREEZES_SHORT: usize = 2;
/// The short selection of aborts.
const ABORTS_SHORT: &[(Victim, &str)] = &[
    (Victim::One(Role::Fetcher), "page.before_commit"),
    (Victim::One(Role::Fetcher), "page.after_commit"),
    (Victim::One(Role::Worker), "attempt.after_commit"),
    (Victim::One(Role::Worker), "chunk.before_commit"),
    (Victim::Any, "complete.before_commit"),
];
/// Random moments lie within so many times an undisturbed migration's duration; what comes too late is made earlier.
const MOMENT_MAX: f64 = 1.05;
/// At most so many kills of one migration.
const KILLS_MAX: usize = 3;
/// A process needs so long to start.
const START: Duration = Duration::from_millis(150);

/// What an undisturbed migration tells.
pub(crate) struct Undisturbed {
    hits: BTreeMap<(Role, &'static str), u64>,
    pub(crate) duration: Duration,
    /// COMMITs of the fetcher's process.
    commits: u64,
}

/// Migrates undisturbed: counts, times, and checks that nothing differs when nothing happens.
pub(crate) async fn observe(world: &World) -> anyhow::Result<Undisturbed> {
    let _using = world.server.gate.read().await;
    let prepared = world.ledger.prepared(world).await?;
    let ground =
        Ground::make(Database::Postgres, &world.folder, &world.server, Some(&prepared.template)).await?;
    let core = Core::start(&world.binary, world.ledger.export).await?;
    let proxy = Proxy::start(world.server.address()?, None).await?;
    let partial = prepared.truth.bad > 0;
    let direct = ground.url(None)?;
    let mut cast = Cast::new(&world.binary, &ground.folder, direct, &core, world.ledger.export, partial)?;
    cast.url = ground.url(Some(proxy.address()))?;
    let began = Instant::now();
    let mut company = Company::raise(&cast, 3, None)?;
    company.end().await?;
    let duration = began.elapsed();
    company.dismiss().await?;
    let roles = [Role::Fetcher, Role::Worker];
    let points = roles.into_iter().flat_map(|role| POINTS.iter().map(move |point| (role, *point)));
    let hits = points.map(|(role, point)| ((role, point), cast.passed(role, point))).collect();
    let verdict = judge(&cast, &prepared.truth, 0).await?;
    if !verdict.holds() {
        bail!("undisturbed, source and target differ: {verdict:?}: {}", ground.folder.display());
    }
    let commits = proxy.commits();
    ground.remove().await?;
    Ok(Undisturbed { hits, duration, commits })
}

/// The cases, in the order in which they are run.
pub(crate) fn plan(extent: Extent, seen: &Undisturbed, seed: u64) -> Vec<Case> {
    let mut chance = StdRng::seed_from_u64(seed ^ 0x9e37_79b9_7f4a_7c15);
    let mut cases = aborts(extent, seen);
    let freezes = if extent.every_hit { FREEZES } else { &FREEZES[..FREEZES_SHORT] };
    cases.extend(freezes.iter().map(|(role, point, hit)| {
        let at = At::Point((*point).to_owned(), *hit);
        Case::Freeze { role: *role, at }
    }));
    cases.extend(spread_cuts(seen.commits, extent.cuts, false).map(Case::Cut));
    cases.extend(spread_cuts(seen.commits, extent.cuts_of_all, true).map(Case::Cut));
    let longest = seen.duration.mul_f64(MOMENT_MAX).max(2 * START);
    let moment = |chance: &mut StdRng| chance.random_range(START..longest);
    for number in 0..extent.freezes {
        let role = [Role::Fetcher, Role::Worker][number % 2];
        cases.push(Case::Freeze { role, at: At::Moment(moment(&mut chance)) });
    }
    for number in 0..extent.kills {
        let processes = 1 + number % PROCESSES_MAX;
        let roles: &[Role] = match processes {
            1 => &[Role::Fetcher],
            PROCESSES_MAX => &[Role::Fetcher, Role::Worker, Role::Joiner],
            _ => &[Role::Fetcher, Role::Worker],
        };
        let count = chance.random_range(1..=KILLS_MAX);
        let mut kills: Vec<(Role, Duration)> = (0..count)
            .map(|_| (*roles.choose(&mut chance).expect("there is one"), moment(&mut chance)))
            .collect();
        kills.sort_by_key(|(_, moment)| *moment);
        cases.push(Case::Kill { processes, kills });
    }
    // Last: each needs the server for itself.
    cases.extend((0..extent.stops).map(|_| Case::Stop { after: moment(&mut chance) }));
    cases
}

fn aborts(extent: Extent, seen: &Undisturbed) -> Vec<Case> {
    let victims = |point: &str| {
        let starts = |points: &[&str]| points.iter().any(|start| point.starts_with(start));
        if starts(ANYBODYS) {
            vec![Victim::Any]
        } else if starts(WORKERS) {
            vec![Victim::One(Role::Fetcher), Victim::One(Role::Worker)]
        } else {
            vec![Victim::One(Role::Fetcher)]
        }
    };
    let mut cases = Vec::new();
    for point in POINTS.iter().filter(|point| !NOT_PASSED.contains(point)) {
        for victim in victims(point) {
            if !extent.every_hit && !ABORTS_SHORT.contains(&(victim, point)) {
                continue;
            }
            let role = if victim == Victim::One(Role::Worker) { Role::Worker } else { Role::Fetcher };
            let counted = seen.hits.get(&(role, *point)).copied().unwrap_or_default();
            let hits = hits(extent, counted);
            cases.extend(hits.into_iter().map(|hit| Case::Abort { victim, point: (*point).to_owned(), hit }));
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const FULL: Extent =
        Extent { every_hit: true, kills: 40, stops: 10, freezes: 8, cuts: 5, cuts_of_all: 1 };

    fn seen() -> Undisturbed {
        let roles = [Role::Fetcher, Role::Worker];
        let points = roles.into_iter().flat_map(|role| POINTS.iter().map(move |point| ((role, *point), 9)));
        Undisturbed { hits: points.collect(), duration: Duration::from_secs(2), commits: 60 }
    }

    #[test]
    fn every_point_is_visited_by_whoever_passes_it() {
        let cases = plan(FULL, &seen(), 1);
        let points: BTreeSet<&str> = cases
            .iter()
            .filter_map(|case| match case {
                Case::Abort { point, .. } => Some(point.as_str()),
                _ => None,
            })
            .collect();
        let all = POINTS.iter().copied().filter(|point| !NOT_PASSED.contains(point));
        assert_eq!(points, all.collect());
        let worker = |case: &&Case| matches!(case, Case::Abort { victim: Victim::One(Role::Worker), point, .. } if point == "chunk.before_commit");
        assert_eq!(cases.iter().filter(worker).count(), 3, "first, second and last");
    }

    #[test]
    fn the_extent_decides_how_many_there_are_and_the_seed_which() {
        let cases = plan(FULL, &seen(), 1);
        let count = |kind: fn(&Case) -> bool| cases.iter().filter(|case| kind(case)).count();
        assert_eq!(count(|case| matches!(case, Case::Kill { .. })), 40);
        for processes in 1..=PROCESSES_MAX {
            let of =
                |case: &&Case| matches!(case, Case::Kill { processes: these, .. } if *these == processes);
            assert_eq!(cases.iter().filter(of).count(), 10, "{processes}");
        }
        assert_eq!(count(|case| matches!(case, Case::Stop { .. })), 10);
        assert_eq!(count(|case| matches!(case, Case::Freeze { at: At::Moment(_), .. })), 8);
        assert_eq!(count(|case| matches!(case, Case::Cut(_))), 18);
        assert_eq!(cases, plan(FULL, &seen(), 1));
        assert_ne!(cases, plan(FULL, &seen(), 2));
    }
}
