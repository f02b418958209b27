//! What a whole run comes to.

use std::collections::BTreeSet;
use std::fmt;

use engine::failpoint::POINTS;

use std::time::Duration;

use crate::case::{Case, Database};
use crate::differences::Differences;
use crate::run::Report;
use crate::{ledger, links};

/// What is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Links,
    Ledger,
}

impl Subject {
    pub(crate) const ALL: [Self; 2] = [Self::Links, Self::Ledger];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Links => "links",
            Self::Ledger => "ledger",
        }
    }

    pub(crate) fn of(case: &Case) -> Self {
        match case {
            Case::Links(_) => Self::Links,
            Case::Ledger(_) => Self::Ledger,
        }
    }
}

/// The sums over all cases of a subject.
pub(crate) struct Tally {
    subject: Subject,
    databases: BTreeSet<Database>,
    points: BTreeSet<String>,
    aborts: usize,
    kills: usize,
    freezes: u64,
    stops: u64,
    cuts: u64,
    /// The longest that the chunk of a killed worker, and the partition of a killed fetcher, waited.
    chunk_waited: Option<Duration>,
    partition_waited: Option<Duration>,
    pub(crate) failed: u64,
    differences: Differences,
    /// Stops and cuts that the process itself lived through.
    survived: u64,
    /// Pages asked for again: all of them, and the most for one time that fetching began again; and these times.
    again: u64,
    again_max: u64,
    resumed: u64,
    /// Kills before the first, between, and after the last page was asked for.
    stages: [u64; 3],
    pub(crate) cases: usize,
}

impl Tally {
    pub(crate) fn new(subject: Subject) -> Self {
        Self {
            subject,
            databases: BTreeSet::new(),
            points: BTreeSet::new(),
            aborts: 0,
            kills: 0,
            freezes: 0,
            stops: 0,
            cuts: 0,
            chunk_waited: None,
            partition_waited: None,
            failed: 0,
            differences: Differences::default(),
            survived: 0,
            again: 0,
            again_max: 0,
            resumed: 0,
            stages: [0; 3],
            cases: 0,
        }
    }

    pub(crate) fn add(&mut self, report: &Report) {
        self.cases += 1;
        if !report.verdict.holds() {
            self.failed += 1;
        }
        self.differences += report.verdict.differences.clone();
        if report.interruptions == 0 {
            return;
        }
        self.databases.insert(report.case.database());
        match &report.case {
            Case::Links(links::Case::Abort { point, .. })
            | Case::Ledger(ledger::Case::Abort { point, .. }) => {
                self.points.insert(point.clone());
                self.aborts += report.interruptions;
            }
            Case::Links(links::Case::Kill { .. }) | Case::Ledger(ledger::Case::Kill { .. }) => {
                self.kills += report.interruptions;
                let stage = match report.share {
                    share if share <= 0.0 => 0,
                    share if share < 1.0 => 1,
                    _ => 2,
                };
                self.stages[stage] += 1;
            }
            Case::Ledger(ledger::Case::Freeze { .. }) => self.freezes += 1,
            Case::Links(links::Case::Stop { .. }) | Case::Ledger(ledger::Case::Stop { .. }) => {
                self.stops += 1;
            }
            Case::Links(links::Case::Cut(_)) | Case::Ledger(ledger::Case::Cut(_)) => self.cuts += 1,
        }
        self.chunk_waited = self.chunk_waited.max(report.replaced.chunk);
        self.partition_waited = self.partition_waited.max(report.replaced.partition);
        let outlives = matches!(
            report.case,
            Case::Links(links::Case::Stop { .. } | links::Case::Cut(_))
                | Case::Ledger(ledger::Case::Stop { .. } | ledger::Case::Cut(_))
        );
        self.survived += u64::from(report.survived && outlives);
        self.again += report.verdict.again;
        self.again_max = self.again_max.max(report.verdict.again.div_ceil(report.verdict.resumed.max(1)));
        self.resumed += report.verdict.resumed;
    }

    /// Points at which nothing was aborted. The short selection of migrations aborts at few.
    pub(crate) fn unvisited(&self, full: bool) -> Vec<&'static str> {
        let wanted = |point: &&str| match self.subject {
            Subject::Links => !links::NOT_PASSED.contains(point),
            Subject::Ledger => full && !ledger::NOT_PASSED.contains(point),
        };
        POINTS.iter().copied().filter(|point| wanted(point) && !self.points.contains(*point)).collect()
    }

    /// The figures that the closing line has no room for.
    pub(crate) fn details(&self) -> String {
        let [before, within, after] = self.stages;
        let waited = |time: Option<Duration>| time.map_or("-".to_owned(), |time| format!("{time:.1?}"));
        let replaced = match self.subject {
            Subject::Links => String::new(),
            Subject::Ledger => format!(
                "; a killed worker's chunk was settled within {}, a killed fetcher's partition taken within {}",
                waited(self.chunk_waited),
                waited(self.partition_waited)
            ),
        };
        format!(
            "{}: first kills before the first cursor {before}, between {within}, after the last page was asked for {after}; the \
             process lived through {} of {} stops and cuts; fetching began again {} times and asked for {} pages \
             again, at most {} each time{replaced}",
            self.subject.name(),
            self.survived,
            self.stops + self.cuts,
            self.resumed,
            self.again,
            self.again_max,
        )
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (aborts, points, kills, cuts) = (self.aborts, self.points.len(), self.kills, self.cuts);
        match self.subject {
            Subject::Links => write!(f, "crash: {} databases, ", self.databases.len())?,
            Subject::Ledger => write!(f, "crash ledger: 1 to 4 processes, ")?,
        }
        write!(f, "{aborts} aborts at {points} points, {kills} kills, ")?;
        if self.subject == Subject::Ledger {
            write!(f, "{} frozen processes, ", self.freezes)?;
        }
        write!(f, "{} immediate stops, {cuts} connection cuts: {}", self.stops, self.differences)?;
        if self.failed > 0 {
            write!(f, "; {} of {} cases FAILED", self.failed, self.cases)?;
        }
        Ok(())
    }
}
