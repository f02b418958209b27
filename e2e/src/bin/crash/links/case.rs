//! What is done to an import.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::bail;

use crate::case::{self, Cut, Database, micros};

/// One disturbance of one import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Case {
    /// The process aborts when it passes a fail point for the `hit`-th time.
    Abort { database: Database, point: String, hit: u64 },
    /// SIGKILL so long after the start; every further one so long after the start of the process that went on.
    Kill { database: Database, after: Vec<Duration> },
    /// Postgres is stopped as by a crash so long after the start, and started again.
    Stop { after: Duration },
    /// The connection that sends a COMMIT is cut, or all of them are.
    Cut(Cut),
}

impl Case {
    pub(crate) fn database(&self) -> Database {
        match self {
            Self::Abort { database, .. } | Self::Kill { database, .. } => *database,
            Self::Stop { .. } | Self::Cut(_) => Database::Postgres,
        }
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
            Self::Cut(cut) => cut.fmt(f),
        }
    }
}

impl FromStr for Case {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let case = match parts.as_slice() {
            ["abort", database, place] => {
                let (point, hit) = case::place(place)?;
                Self::Abort { database: database.parse()?, point, hit }
            }
            ["kill", database, moments] => Self::Kill {
                database: database.parse()?,
                after: moments.split('+').map(micros).collect::<anyhow::Result<_>>()?,
            },
            ["stop", moment] => Self::Stop { after: micros(moment)? },
            ["cut", place] => Self::Cut(case::cut(place, false)?),
            ["cut", place, "all"] => Self::Cut(case::cut(place, true)?),
            _ => bail!(
                "'{text}' is no case; write abort/DATABASE/POINT:HIT, kill/DATABASE/Nus[+Nus], stop/Nus or \
                 cut/MOMENT:COMMIT[/all], or ledger/ and one of its own"
            ),
        };
        Ok(case)
    }
}
