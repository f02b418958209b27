//! What is done to a migration.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::case::{self, Cut, micros};

/// At most so many processes work on one job.
pub(crate) const PROCESSES_MAX: usize = 4;

/// What a process does for the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// `ledger run`: makes the job, fetches and processes, and ends with the job.
    Fetcher,
    /// `worker` without the source's credential: it processes.
    Worker,
    /// `worker` with the credential: it fetches a partition that is free, too.
    Joiner,
}

/// Which processes are armed with a fail point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Victim {
    One(Role),
    /// All: whoever comes by first.
    Any,
}

/// Where a process is frozen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum At {
    Point(String, u64),
    Moment(Duration),
}

/// One disturbance of one migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Case {
    /// A process aborts when it passes a fail point for the `hit`-th time.
    Abort { victim: Victim, point: String, hit: u64 },
    /// Of so many processes some are killed, each so long after the start, and replaced.
    Kill { processes: usize, kills: Vec<(Role, Duration)> },
    /// A process is frozen, and wakes when the others are through.
    Freeze { role: Role, at: At },
    /// Postgres is stopped as by a crash so long after the start, and started again.
    Stop { after: Duration },
    /// The connection with which the fetcher's process sends a COMMIT is cut, or all of its connections are.
    Cut(Cut),
}

impl Role {
    pub(crate) const ALL: [Self; 3] = [Self::Fetcher, Self::Worker, Self::Joiner];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fetcher => "fetcher",
            Self::Worker => "worker",
            Self::Joiner => "joiner",
        }
    }
}

impl Victim {
    pub(crate) fn is(self, role: Role) -> bool {
        self == Self::Any || self == Self::One(role)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Victim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(role) => role.fmt(f),
            Self::Any => f.write_str("any"),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Point(point, hit) => write!(f, "{point}:{hit}"),
            Self::Moment(moment) => write!(f, "{}us", moment.as_micros()),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abort { victim, point, hit } => write!(f, "abort/{victim}/{point}:{hit}"),
            Self::Kill { processes, kills } => {
                let kills: Vec<String> =
                    kills.iter().map(|(role, moment)| format!("{role}@{}us", moment.as_micros())).collect();
                write!(f, "kill/{processes}/{}", kills.join("+"))
            }
            Self::Freeze { role, at } => write!(f, "freeze/{role}/{at}"),
            Self::Stop { after } => write!(f, "stop/{}us", after.as_micros()),
            Self::Cut(cut) => cut.fmt(f),
        }
    }
}

impl FromStr for Role {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let role = Self::ALL.into_iter().find(|role| role.name() == text);
        role.with_context(|| format!("'{text}' is none of fetcher, worker and joiner"))
    }
}

impl FromStr for Case {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let case = match parts.as_slice() {
            ["abort", victim, place] => {
                let victim = if *victim == "any" { Victim::Any } else { Victim::One(victim.parse()?) };
                let (point, hit) = case::place(place)?;
                Self::Abort { victim, point, hit }
            }
            ["kill", processes, kills] => {
                let processes: usize = processes.parse()?;
                if !(1..=PROCESSES_MAX).contains(&processes) {
                    bail!("there are 1 to {PROCESSES_MAX} processes");
                }
                let kills = kills.split('+').map(kill).collect::<anyhow::Result<_>>()?;
                Self::Kill { processes, kills }
            }
            ["freeze", role, at] => {
                let at = match micros(at) {
                    Ok(moment) => At::Moment(moment),
                    Err(_) => {
                        let (point, hit) = case::place(at)?;
                        At::Point(point, hit)
                    }
                };
                Self::Freeze { role: role.parse()?, at }
            }
            ["stop", moment] => Self::Stop { after: micros(moment)? },
            ["cut", place] => Self::Cut(case::cut(place, false)?),
            ["cut", place, "all"] => Self::Cut(case::cut(place, true)?),
            _ => bail!(
                "'ledger/{text}' is no case; write ledger/ and abort/VICTIM/POINT:HIT, kill/PROCESSES/ROLE@Nus[+ROLE@Nus], \
                 freeze/ROLE/POINT:HIT, freeze/ROLE/Nus, stop/Nus or cut/MOMENT:COMMIT[/all]"
            ),
        };
        Ok(case)
    }
}

fn kill(text: &str) -> anyhow::Result<(Role, Duration)> {
    let (role, moment) = text.split_once('@').context("write ROLE@Nus")?;
    Ok((role.parse()?, micros(moment)?))
}
