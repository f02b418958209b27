//! How a run shows that it gets on: bars on a terminal, a line now and then elsewhere.

use std::collections::VecDeque;
use std::fmt;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use engine::{Job, Status};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::commands::say;

/// How often the bars are redrawn.
pub(super) const EVERY: Duration = Duration::from_millis(200);
/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// The stretch over which the rate is taken.
const RATE_OVER: Duration = Duration::from_secs(30);

/// Where a job stands, as far as people want to see it move.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standing {
    /// Records that came from the source, and how many there are, if it says so.
    fetched: i64,
    expected: Option<i64>,
    /// Of these, the ones that wait to be processed.
    staged: i64,
    /// Records that are new or renewed in the target; on a dry run, those that would be.
    written: i64,
    /// Records that have an outcome, whatever it is.
    settled: i64,
    quarantined: i64,
    per_second: i64,
    left: Option<Duration>,
    /// More to say about its state.
    state: Option<String>,
}

impl Standing {
    fn of(job: &Job, per_second: i64) -> Self {
        let settled = job.counts.records();
        let left = match job.expected {
            Some(expected) if per_second > 0 => {
                let seconds = (expected - settled).max(0) / per_second;
                Some(Duration::from_secs(seconds.unsigned_abs()))
            }
            _ => None,
        };
        let reason = job.reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
        let state = match (job.status, job.waiting_until) {
            (Status::Queued, _) => Some("queued behind another job into the same table".to_owned()),
            (Status::Waiting, Some(until)) => Some(format!("waiting until {until}{reason}")),
            _ => None,
        };
        Self {
            fetched: job.fetched,
            expected: job.expected,
            staged: (job.fetched - settled).max(0),
            written: job.counts.imported + job.counts.updated,
            settled,
            quarantined: job.counts.failed,
            per_second,
            left,
            state,
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fetched {}", self.fetched)?;
        if let Some(expected) = self.expected {
            write!(f, " of {expected}")?;
        }
        write!(
            f,
            ", staged {}, written {}, quarantined {}, {} records/s",
            self.staged, self.written, self.quarantined, self.per_second
        )?;
        if let Some(left) = self.left {
            write!(f, ", {} left", spoken(left))?;
        }
        if let Some(state) = &self.state {
            write!(f, "; {state}")?;
        }
        Ok(())
    }
}

/// Hours, minutes and seconds as a clock shows them.
fn spoken(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// Records settled in a second, over the last stretch.
#[derive(Default)]
struct Rate {
    seen: VecDeque<(Duration, i64)>,
}

impl Rate {
    /// Notes how many are settled at `now`, in time since the watching began.
    fn at(&mut self, now: Duration, settled: i64) -> i64 {
        self.seen.push_back((now, settled));
        // The one before the stretch stays: the rate is taken over at least as long.
        while self.seen.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) >= RATE_OVER) {
            self.seen.pop_front();
        }
        let (since, before) = self.seen.front().copied().unwrap_or((now, settled));
        let millis = i64::try_from(now.saturating_sub(since).as_millis()).unwrap_or(i64::MAX);
        if millis == 0 { 0 } else { (settled - before).max(0).saturating_mul(1000) / millis }
    }
}

/// Shows a job to whoever watches.
pub(super) struct Progress {
    began: Instant,
    rate: Rate,
    shown: Shown,
}

enum Shown {
    Bars(Box<Bars>),
    Lines { last: Instant },
    Nothing,
}

impl Progress {
    /// Quiet: who reads the object at the end wants nothing else.
    pub(super) fn new(quiet: bool) -> Self {
        let shown = if quiet {
            Shown::Nothing
        } else if std::io::stderr().is_terminal() {
            Shown::Bars(Box::new(Bars::new()))
        } else {
            Shown::Lines { last: Instant::now() }
        };
        Self { began: Instant::now(), rate: Rate::default(), shown }
    }

    pub(super) fn show(&mut self, job: &Job) {
        let standing = Standing::of(job, self.rate.at(self.began.elapsed(), job.counts.records()));
        match &mut self.shown {
            Shown::Bars(bars) => bars.show(&standing),
            Shown::Lines { last } if last.elapsed() >= LINE_EVERY => {
                *last = Instant::now();
                say(&standing);
            }
            Shown::Lines { .. } | Shown::Nothing => {}
        }
    }

    pub(super) fn clear(&self) {
        if let Shown::Bars(bars) = &self.shown {
            bars.all.clear().unwrap_or_default();
        }
    }
}

/// A bar for each stage.
struct Bars {
    all: MultiProgress,
    fetched: ProgressBar,
    staged: ProgressBar,
    written: ProgressBar,
    quarantined: ProgressBar,
    pace: ProgressBar,
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::new();
        let line = |name: &str, template: &str| {
            let bar = all.add(ProgressBar::new(0));
            bar.set_style(style(template));
            bar.set_prefix(format!("{name:<11}"));
            bar
        };
        let bars = Self {
            fetched: line("fetched", OPEN),
            staged: line("staged", OPEN),
            written: line("written", OPEN),
            quarantined: line("quarantined", OPEN),
            pace: line("", "{spinner} [{elapsed_precise}] {msg}"),
            all,
        };
        bars.pace.enable_steady_tick(EVERY);
        bars
    }

    fn show(&self, standing: &Standing) {
        let of = standing.expected.map_or_else(String::new, |expected| format!(" of {expected}"));
        let counted = |bar: &ProgressBar, position: i64, message: String| {
            match standing.expected {
                Some(expected) => {
                    bar.set_style(style(COUNTED));
                    bar.set_length(expected.max(standing.fetched).unsigned_abs());
                }
                None => bar.set_style(style(OPEN)),
            }
            bar.set_position(position.unsigned_abs());
            bar.set_message(message);
        };
        counted(&self.fetched, standing.fetched, format!("{}{of}", standing.fetched));
        let written = format!("{}; {}{of} have their outcome", standing.written, standing.settled);
        counted(&self.written, standing.settled, written);
        self.staged.set_message(standing.staged.to_string());
        self.quarantined.set_message(standing.quarantined.to_string());
        let left = standing.left.map_or_else(String::new, |left| format!(", {} left", spoken(left)));
        let state = standing.state.as_ref().map_or_else(String::new, |state| format!("; {state}"));
        self.pace.set_message(format!("{} records/s{left}{state}", standing.per_second));
    }
}

const COUNTED: &str = "  {prefix} {bar:30} {msg}";
const OPEN: &str = "  {prefix} {msg}";

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is correct").progress_chars("█▉▊▋▌▍▎▏ ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing() -> Standing {
        Standing {
            fetched: 1_500,
            expected: None,
            staged: 200,
            written: 1_190,
            settled: 1_300,
            quarantined: 10,
            per_second: 650,
            left: None,
            state: None,
        }
    }

    #[test]
    fn a_line_tells_every_stage() {
        assert_eq!(
            standing().to_string(),
            "fetched 1500, staged 200, written 1190, quarantined 10, 650 records/s"
        );
        let standing = Standing {
            expected: Some(9_000),
            left: Some(Duration::from_secs(3_725)),
            state: Some("waiting until noon".to_owned()),
            ..standing()
        };
        assert_eq!(
            standing.to_string(),
            "fetched 1500 of 9000, staged 200, written 1190, quarantined 10, 650 records/s, 1:02:05 left; waiting until noon"
        );
        assert_eq!(spoken(Duration::from_secs(61)), "1:01");
    }

    #[test]
    fn the_rate_is_that_of_the_last_half_minute() {
        let mut rate = Rate::default();
        assert_eq!(rate.at(Duration::ZERO, 1_000_000), 0, "what was settled before is not this run's pace");
        assert_eq!(rate.at(Duration::from_secs(10), 1_001_000), 100);
        assert_eq!(rate.at(Duration::from_secs(40), 1_001_000), 0);
        assert_eq!(rate.at(Duration::from_secs(45), 1_002_000), 28);
    }
}
