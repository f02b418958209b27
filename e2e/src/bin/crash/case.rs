//! What is done to a job, and the name by which it can be done again.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::{ledger, links};

/// Which database a job writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Database {
    /// A file.
    Sqlite,
    /// A database of the test server.
    Postgres,
}

/// When a connection is cut, seen from its COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The server never sees it.
    Before,
    /// The server gets it, and the client is cut off at once.
    During,
    /// The server has answered, and the client never sees the answer.
    After,
}

/// All three.
pub(crate) const MOMENTS: [Moment; 3] = [Moment::Before, Moment::During, Moment::After];

/// One disturbance of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Case {
    /// Of an import of links.
    Links(links::Case),
    /// Of a migration of ledger records.
    Ledger(ledger::Case),
}

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Second and last hits of each point too, and all of them everywhere.
    pub(crate) every_hit: bool,
    /// For links, on each database.
    pub(crate) kills: usize,
    pub(crate) stops: usize,
    /// Processes of a ledger frozen at random moments; those frozen at fail points come on top.
    pub(crate) freezes: usize,
    /// Commits that are cut, at each of the three moments.
    pub(crate) cuts: u64,
    /// As many once more, with all connections cut.
    pub(crate) cuts_of_all: u64,
}

/// A cut, as cases of both kinds know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) moment: Moment,
    /// At the so many-th COMMIT of all connections, from 1.
    pub(crate) commit: u64,
    /// Cut the other connections too.
    pub(crate) all: bool,
}

impl Case {
    pub(crate) fn database(&self) -> Database {
        match self {
            Self::Links(case) => case.database(),
            Self::Ledger(_) => Database::Postgres,
        }
    }

    /// Whether it stops the server that others use.
    pub(crate) fn stops_the_server(&self) -> bool {
        matches!(self, Self::Links(links::Case::Stop { .. }) | Self::Ledger(ledger::Case::Stop { .. }))
    }
}

impl Database {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

impl Moment {
    fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::During => "during",
            Self::After => "after",
        }
    }
}

/// Cuts at `number` of `commits` COMMITs, spread, at each of the three moments.
pub(crate) fn spread_cuts(commits: u64, number: u64, all: bool) -> impl Iterator<Item = Cut> {
    let places = (0..number).map(move |place| 1 + (2 * place + 1) * commits.saturating_sub(1) / (2 * number));
    places.flat_map(move |commit| MOMENTS.map(|moment| Cut { moment, commit, all }))
}

/// The hits of a point that are visited: the first, or the first, the second and the last.
pub(crate) fn hits(extent: Extent, counted: u64) -> Vec<u64> {
    let mut hits = if extent.every_hit { vec![1, 2, counted] } else { vec![1] };
    // A point that was not passed is tried all the same: the case then says that it is never passed.
    hits.retain(|hit| *hit >= 1 && *hit <= counted.max(1));
    hits.sort_unstable();
    hits.dedup();
    hits
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cut/{}:{}{}", self.moment.name(), self.commit, if self.all { "/all" } else { "" })
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Links(case) => case.fmt(f),
            Self::Ledger(case) => write!(f, "ledger/{case}"),
        }
    }
}

impl FromStr for Database {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres),
            _ => bail!("'{text}' is neither sqlite nor postgres"),
        }
    }
}

impl FromStr for Case {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text.strip_prefix("ledger/") {
            Some(case) => case.parse().map(Self::Ledger),
            None => text.parse().map(Self::Links),
        }
    }
}

/// Reads a moment as it is written, `250000us`.
pub(crate) fn micros(text: &str) -> anyhow::Result<Duration> {
    let number = text.strip_suffix("us").context("write a moment as microseconds, for example 250000us")?;
    Ok(Duration::from_micros(number.parse()?))
}

/// Reads `POINT:HIT`.
pub(crate) fn place(text: &str) -> anyhow::Result<(String, u64)> {
    let (point, hit) = text.rsplit_once(':').context("write POINT:HIT")?;
    Ok((point.to_owned(), hit.parse()?))
}

/// Reads `MOMENT:COMMIT`.
pub(crate) fn cut(place: &str, all: bool) -> anyhow::Result<Cut> {
    let (name, commit) = place.split_once(':').context("write MOMENT:COMMIT")?;
    let moment = MOMENTS.into_iter().find(|moment| moment.name() == name);
    let moment = moment.context("the moment is before, during or after")?;
    Ok(Cut { moment, commit: commit.parse()?, all })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_case_is_enough_to_do_it_again() {
        for name in [
            "abort/sqlite/page.before_commit:3",
            "abort/postgres/run.boundary:1",
            "kill/sqlite/412500us",
            "kill/postgres/412500us+7us",
            "stop/1us",
            "cut/before:17",
            "cut/during:1/all",
            "cut/after:2",
            "ledger/abort/fetcher/page.before_commit:3",
            "ledger/abort/any/complete.after_commit:1",
            "ledger/kill/4/worker@412500us+fetcher@7us+joiner@9us",
            "ledger/freeze/fetcher/lease.before_commit:1",
            "ledger/freeze/worker/3us",
            "ledger/stop/1us",
            "ledger/cut/during:1/all",
        ] {
            let case: Case = name.parse().unwrap_or_else(|error| panic!("{name}: {error:#}"));
            assert_eq!(case.to_string(), name);
        }
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        for name in [
            "",
            "kill/mysql/1us",
            "kill/sqlite/1ms",
            "abort/sqlite/page",
            "cut/later:1",
            "stop/1us/all",
            "ledger",
            "ledger/abort/sqlite/page.before_commit:3",
            "ledger/kill/5/worker@1us",
            "ledger/kill/1/worker",
            "ledger/freeze/any/1us",
        ] {
            assert!(name.parse::<Case>().is_err(), "{name}");
        }
    }

    #[test]
    fn cuts_lie_within_the_job() {
        let places: Vec<u64> = spread_cuts(60, 3, false).map(|cut| cut.commit).collect();
        assert_eq!(places, [10, 10, 10, 30, 30, 30, 50, 50, 50]);
    }
}
