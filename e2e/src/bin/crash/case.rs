//! What is done to an import, and the name by which it can be done again.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};

/// Which database the import writes to.
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

/// One disturbance of one import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Case {
    /// The process aborts when it passes a fail point for the `hit`-th time.
    Abort { database: Database, point: String, hit: u64 },
    /// SIGKILL so long after the start; every further one so long after the start of the process that went on.
    Kill { database: Database, after: Vec<Duration> },
    /// Postgres is stopped as by a crash so long after the start, and started again.
    Stop { after: Duration },
    /// The connection that sends the `commit`-th COMMIT is cut, or all of them are.
    Cut { moment: Moment, commit: u64, all: bool },
}

impl Case {
    pub(crate) fn database(&self) -> Database {
        match self {
            Self::Abort { database, .. } | Self::Kill { database, .. } => *database,
            Self::Stop { .. } | Self::Cut { .. } => Database::Postgres,
        }
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

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abort { database, point, hit } => write!(f, "abort/{database}/{point}:{hit}"),
            Self::Kill { database, after } => {
                let moments: Vec<String> =
                    after.iter().map(|moment| format!("{}us", moment.as_micros())).collect();
                write!(f, "kill/{database}/{}", moments.join("+"))
            }
            Self::Stop { after } => write!(f, "stop/{}us", after.as_micros()),
            Self::Cut { moment, commit, all } => {
                write!(f, "cut/{}:{commit}{}", moment.name(), if *all { "/all" } else { "" })
            }
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
        let parts: Vec<&str> = text.split('/').collect();
        let case = match parts.as_slice() {
            ["abort", database, place] => {
                let (point, hit) = place.rsplit_once(':').context("write POINT:HIT")?;
                Self::Abort { database: database.parse()?, point: point.to_owned(), hit: hit.parse()? }
            }
            ["kill", database, moments] => Self::Kill {
                database: database.parse()?,
                after: moments.split('+').map(micros).collect::<anyhow::Result<_>>()?,
            },
            ["stop", moment] => Self::Stop { after: micros(moment)? },
            ["cut", place] => cut(place, false)?,
            ["cut", place, "all"] => cut(place, true)?,
            _ => bail!(
                "'{text}' is no case; write abort/DATABASE/POINT:HIT, kill/DATABASE/Nus[+Nus], stop/Nus or \
                 cut/MOMENT:COMMIT[/all]"
            ),
        };
        Ok(case)
    }
}

fn micros(text: &str) -> anyhow::Result<Duration> {
    let number = text.strip_suffix("us").context("write a moment as microseconds, for example 250000us")?;
    Ok(Duration::from_micros(number.parse()?))
}

fn cut(place: &str, all: bool) -> anyhow::Result<Case> {
    let (name, commit) = place.split_once(':').context("write MOMENT:COMMIT")?;
    let moment = MOMENTS.into_iter().find(|moment| moment.name() == name);
    let moment = moment.context("the moment is before, during or after")?;
    Ok(Case::Cut { moment, commit: commit.parse()?, all })
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
        ] {
            let case: Case = name.parse().unwrap();
            assert_eq!(case.to_string(), name);
        }
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        for name in
            ["", "kill/mysql/1us", "kill/sqlite/1ms", "abort/sqlite/page", "cut/later:1", "stop/1us/all"]
        {
            assert!(name.parse::<Case>().is_err(), "{name}");
        }
    }
}
