//! What a whole run comes to.

use std::collections::BTreeSet;
use std::fmt;

use engine::failpoint::POINTS;

use crate::case::{Case, Database};
use crate::compare::Differences;
use crate::run::Report;

/// The sums over all cases.
#[derive(Default)]
pub(crate) struct Tally {
    databases: BTreeSet<Database>,
    points: BTreeSet<String>,
    aborts: u64,
    kills: usize,
    stops: u64,
    cuts: u64,
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
            Case::Abort { point, .. } => {
                self.points.insert(point.clone());
                self.aborts += 1;
            }
            Case::Kill { .. } => {
                self.kills += report.interruptions;
                let stage = match report.share {
                    share if share <= 0.0 => 0,
                    share if share < 1.0 => 1,
                    _ => 2,
                };
                self.stages[stage] += 1;
            }
            Case::Stop { .. } => self.stops += 1,
            Case::Cut { .. } => self.cuts += 1,
        }
        self.survived += u64::from(report.survived);
        self.again += report.verdict.again;
        self.again_max = self.again_max.max(report.verdict.again.div_ceil(report.verdict.resumed.max(1)));
        self.resumed += report.verdict.resumed;
    }

    /// Points at which no import was aborted.
    pub(crate) fn unvisited(&self) -> Vec<&'static str> {
        POINTS.iter().copied().filter(|point| !self.points.contains(*point)).collect()
    }

    /// The figures that the closing line has no room for.
    pub(crate) fn details(&self) -> String {
        let [before, within, after] = self.stages;
        format!(
            "kills before the first cursor {before}, between {within}, after the last page was asked for {after}; the \
             process lived through {} of {} stops and cuts; fetching began again {} times and asked for {} pages \
             again, at most {} each time",
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
        write!(
            f,
            "crash: {} databases, {} aborts at {} points, {} kills, {} immediate stops, {} connection cuts: {}",
            self.databases.len(),
            self.aborts,
            self.points.len(),
            self.kills,
            self.stops,
            self.cuts,
            self.differences
        )?;
        if self.failed > 0 {
            write!(f, "; {} of {} cases FAILED", self.failed, self.cases)?;
        }
        Ok(())
    }
}
