//! What the pages of imports and of other jobs share.

use engine::Status;
use engine::store::history::SegmentLine;
use maud::{Markup, html};
use serde::Deserialize;

use crate::api::Api;
use crate::problem::{Code, Problem};

/// Segments that a page shows, the latest.
const SEGMENTS_SHOWN: usize = 100;
/// How often a page of a moving job is loaded again.
const REFRESH_SECONDS: u32 = 3;
/// How often one that waits for a person is.
const REFRESH_SLOWLY_SECONDS: u32 = 15;
/// The outcomes, as pages name them.
const OUTCOMES: [&str; 7] =
    ["imported", "updated", "unchanged", "skipped", "filtered", "duplicates", "failed"];

/// What opens a page.
#[derive(Debug, Deserialize)]
pub(crate) struct Signature {
    #[serde(default)]
    pub(super) expires: i64,
    #[serde(default)]
    pub(super) sig: String,
}

/// Lets whoever has the link to a path of this server in.
pub(super) fn allow(api: &Api, path: &str, expires: i64, signature: &str) -> Result<(), Problem> {
    if api.page_key.allows(path, expires, signature, api.clock.now()) { Ok(()) } else { Err(closed()) }
}

pub(super) fn closed() -> Problem {
    Problem::new(Code::InvalidSignature, "this link does not open the page, or does not any more")
        .for_people()
}

/// The colour of a job's state.
pub(super) fn tone(status: Status, outcome: Option<&str>) -> &'static str {
    match status {
        Status::Completed if outcome == Some("clean") => "good",
        Status::Completed | Status::Paused | Status::AwaitingToken | Status::Waiting => "warn",
        Status::Failed | Status::Cancelled => "bad",
        Status::Queued | Status::Running => "busy",
    }
}

/// A record that did not simply arrive.
pub(super) struct LogRow<'a> {
    /// Its label or its id at the source, if one is known.
    pub(super) name: Option<&'a str>,
    pub(super) outcome: &'a str,
    pub(super) code: &'a str,
    pub(super) detail: &'a str,
}

/// How often the browser asks again for the page of a job in this state.
pub(super) fn refresh(status: Status) -> Option<u32> {
    match status {
        Status::Queued | Status::Running | Status::Waiting => Some(REFRESH_SECONDS),
        Status::Paused | Status::AwaitingToken | Status::Failed => Some(REFRESH_SLOWLY_SECONDS),
        Status::Completed | Status::Cancelled => None,
    }
}

/// How many records have each outcome, in the order of [`OUTCOMES`].
pub(super) fn counts(counts: [i64; OUTCOMES.len()]) -> Markup {
    html! {
        dl.counts {
            @for (name, count) in OUTCOMES.iter().zip(counts) { div { dt { (name) } dd { (number(count)) } } }
        }
    }
}

/// Records that did not simply arrive; `of` says what they are.
pub(super) fn log<'a>(of: &str, rows: impl Iterator<Item = LogRow<'a>>) -> Markup {
    html! {
        table {
            tr { th { (of) } th { "outcome" } th { "reason" } th { "detail" } }
            @for row in rows {
                tr {
                    td.text { (row.name.unwrap_or("–")) }
                    td { (row.outcome) }
                    td { code { (row.code) } }
                    td.text { (row.detail) }
                }
            }
        }
    }
}

/// The history, a line for each segment.
pub(super) fn segments(history: &[SegmentLine]) -> Markup {
    let shown = &history[history.len().saturating_sub(SEGMENTS_SHOWN)..];
    html! {
        h2 { "History" }
        @if shown.is_empty() { p.soft { "Nothing has been fetched yet." } }
        @else {
            div.card {
                table {
                    tr {
                        th { "segment" } th { "state" }
                        @for name in ["run", "pages", "records", "imported", "failed", "retries", "fetch s", "process s"] {
                            th.number { (name) }
                        }
                        th { "begun" }
                    }
                    @for line in shown {
                        tr {
                            td { (line.part) "/" (line.segment) }
                            td { (line.status) }
                            td.number { (line.run) }
                            td.number { (line.pages) }
                            td.number { (line.records) }
                            td.number { (line.imported) }
                            td.number { (line.failed) }
                            td.number { (line.retries) }
                            td.number { (seconds(line.fetch_micros)) }
                            td.number { (seconds(line.process_micros)) }
                            td { (line.started_at) }
                        }
                    }
                }
                @if shown.len() < history.len() { p.soft { "The latest " (shown.len()) " of " (history.len()) "." } }
            }
        }
    }
}

fn seconds(micros: i64) -> String {
    let tenths = micros / 100_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// With a thin space between groups of three digits.
pub(super) fn number(number: i64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (given, shown) in [(0, "0"), (999, "999"), (1000, "1\u{202f}000"), (-123456, "-123\u{202f}456")] {
            assert_eq!(number(given), shown);
        }
        assert_eq!(seconds(12_345_678), "12.3");
    }
}
