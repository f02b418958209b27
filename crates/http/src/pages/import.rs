//! `GET /imports/{id}?expires=…&sig=…`: how an import stands, for whoever has the link.

use axum::extract::{Path, State};
use axum::http::Uri;
use engine::Status;
use engine::store::history::SegmentLine;
use imports::{ImportReport, LogEntry};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{Html, page};
use crate::api::{Query, Shared, id};
use crate::problem::{Code, Problem};

/// Entries of the error log that the page shows; the API and the command line give all that are kept.
const LOG_SHOWN: usize = 200;
/// Segments that the page shows, the latest.
const SEGMENTS_SHOWN: usize = 100;
/// How often a page of a moving import is loaded again.
const REFRESH_SECONDS: u32 = 3;
/// How often one that waits for a person is.
const REFRESH_SLOWLY_SECONDS: u32 = 15;

/// What opens the page.
#[derive(Debug, Deserialize)]
pub(crate) struct Signature {
    #[serde(default)]
    expires: i64,
    #[serde(default)]
    sig: String,
}

pub(crate) async fn handle(
    State(api): State<Shared>,
    Path(text): Path<String>,
    uri: Uri,
    Query(signature): Query<Signature>,
) -> Result<Html, Problem> {
    let now = api.clock.now();
    if !api.page_key.allows(uri.path(), signature.expires, &signature.sig, now) {
        return Err(Problem::new(
            Code::InvalidSignature,
            "this link does not open the page, or does not any more",
        )
        .for_people());
    }
    show(&api, &text).await.map_err(Problem::for_people)
}

async fn show(api: &Shared, text: &str) -> Result<Html, Problem> {
    let id = engine::JobId(id(text)?);
    let report = api.imports.get(None, id).await?;
    let history = api.imports.history(id).await?;
    let log = api.imports.error_log(id).await?;
    let remarks = api.imports.remarks(id).await?;
    let title = format!("Import from {} to {}", vendor(&report.vendor), report.domain);
    Ok(Html(page(&title, refresh(report.status), &content(&title, &report, &history, &log, &remarks))))
}

/// The vendor's name as it writes itself.
fn vendor(word: &str) -> &str {
    match word {
        "bitly" => "Bitly",
        other => other,
    }
}

pub(super) fn refresh(status: Status) -> Option<u32> {
    match status {
        Status::Queued | Status::Running | Status::Waiting => Some(REFRESH_SECONDS),
        Status::Paused | Status::AwaitingToken | Status::Failed => Some(REFRESH_SLOWLY_SECONDS),
        Status::Completed | Status::Cancelled => None,
    }
}

fn content(
    title: &str,
    report: &ImportReport,
    history: &[SegmentLine],
    log: &[LogEntry],
    remarks: &[LogEntry],
) -> Markup {
    html! {
        h1 { (title) }
        p {
            span.status.(tone(report)) { (words(report)) }
            @if report.dry_run { " " span.status.soft { "dry run: nothing is written" } }
        }
        @if let Some(forecast) = &report.forecast { p { "Needs " (forecast.to_string()) "." } }
        @if let Some(reason) = &report.reason { p { (reason) } }
        @if let Some(until) = report.waiting_until { p.soft { "Goes on by itself at " (until) } }
        div.card {
            (progress(report))
            (counts(report))
        }
        (hosts(report))
        (left_behind(report))
        (errors(report, log))
        (parts(report))
        (remarks_on_links(remarks))
        (segments(history))
        p.soft { "Import " code { (report.id) } ", made " (report.created_at) }
    }
}

fn tone(report: &ImportReport) -> &'static str {
    match report.status {
        Status::Completed if report.outcome == Some("clean") => "good",
        Status::Completed | Status::Paused | Status::AwaitingToken | Status::Waiting => "warn",
        Status::Failed | Status::Cancelled => "bad",
        Status::Queued | Status::Running => "busy",
    }
}

fn words(report: &ImportReport) -> &'static str {
    match (report.status, report.failed) {
        (Status::Queued, _) => "queued",
        (Status::Running, _) => "running",
        (Status::Waiting, _) => "waiting for the vendor",
        (Status::Paused, _) => "paused",
        (Status::AwaitingToken, _) => "awaiting the vendor's token",
        (Status::Completed, 0) if report.outcome == Some("clean") => "completed",
        (Status::Completed, 0) => "completed, but the source counts more",
        (Status::Completed, _) => "completed, with failed records",
        (Status::Failed, _) => "failed",
        (Status::Cancelled, _) => "cancelled",
    }
}

fn progress(report: &ImportReport) -> Markup {
    let settled = report.settled();
    let whole = if report.status == Status::Completed {
        report.source_links
    } else {
        report.expected.unwrap_or(0).max(report.source_links)
    };
    html! {
        @if report.status == Status::Completed { progress max="1" value="1" {} }
        // Without a number from the source nobody knows how much is to come.
        @else if report.expected.is_none() && !report.status.is_final() { progress {} }
        @else { progress max=(whole.max(1)) value=(settled) {} }
        p.soft {
            (number(settled)) " of "
            @if report.expected.is_some() || report.status == Status::Completed { (number(whole)) }
            @else { (number(report.source_links)) " fetched so far" }
            " links, " (number(report.slugs)) " slugs, run " (report.run)
            @if report.retries > 0 { ", " (number(report.retries)) " retries" }
        }
    }
}

fn counts(report: &ImportReport) -> Markup {
    let all = [
        ("imported", report.imported),
        ("updated", report.updated),
        ("unchanged", report.unchanged),
        ("skipped", report.skipped),
        ("filtered", report.filtered),
        ("duplicates", report.duplicates),
        ("failed", report.failed),
    ];
    html! {
        dl.counts {
            @for (name, count) in all { div { dt { (name) } dd { (number(count)) } } }
        }
    }
}

/// Where the slugs of each host go, if a check has met them.
fn hosts(report: &ImportReport) -> Markup {
    let Some(hosts) = &report.hosts else { return html! {} };
    html! {
        h2 { "Hosts of short URLs at the source" }
        div.card {
            table {
                tr { th { "host" } th.number { "slugs" } th { "go to" } }
                @for host in &hosts.met {
                    tr {
                        td.text { (host.host) @if host.is_vendors { " (the vendor's own)" } }
                        td.number { (number(i64::try_from(host.slugs).unwrap_or(i64::MAX))) }
                        td.text {
                            @match &host.domain {
                                Some(domain) => { (domain) }
                                None => { "left out" }
                            }
                        }
                    }
                }
                @if hosts.others > 0 {
                    tr {
                        td { "further hosts" }
                        td.number { (number(i64::try_from(hosts.others).unwrap_or(i64::MAX))) }
                        td {}
                    }
                }
            }
        }
    }
}

fn left_behind(report: &ImportReport) -> Markup {
    html! {
        h2 { "What does not come over" }
        div.card { ul { @for sentence in &report.left_behind { li { (sentence) } } } }
    }
}

fn errors(report: &ImportReport, log: &[LogEntry]) -> Markup {
    html! {
        h2 { "Error log" }
        @if log.is_empty() { p.soft { "Nothing to report." } }
        @else {
            div.card {
                table {
                    tr { th { "link" } th { "outcome" } th { "reason" } th { "detail" } }
                    @for entry in log.iter().take(LOG_SHOWN) {
                        tr {
                            td.text { (entry.source_slug.as_deref().or(entry.source_id.as_deref()).unwrap_or("–")) }
                            td { (entry.outcome) }
                            td { code { (entry.reason) } }
                            td.text { (entry.detail) }
                        }
                    }
                }
                @if log.len() > LOG_SHOWN {
                    p.soft { "The first " (LOG_SHOWN) " of " (number(entries(report, log))) "." }
                }
            }
        }
    }
}

/// Parts of the account that did not come over, if there are any.
fn parts(report: &ImportReport) -> Markup {
    let missing: Vec<_> = report
        .partitions
        .iter()
        .filter(|part| matches!(part.status.as_str(), "left_out" | "broken"))
        .collect();
    html! {
        @if !missing.is_empty() {
            h2 { "Parts of the account that did not come over" }
            ul { @for part in missing { li { (part.reason.as_deref().unwrap_or(&part.key)) } } }
        }
    }
}

fn remarks_on_links(remarks: &[LogEntry]) -> Markup {
    let (rekeys, left): (Vec<&LogEntry>, Vec<&LogEntry>) =
        remarks.iter().partition(|entry| entry.is_possible_rekey());
    html! {
        @if !rekeys.is_empty() {
            h2 { "Possible re-keys" }
            p.soft { "The vendor may have given these links new ids: an earlier import brought the same under another one." }
            ul { @for entry in rekeys.iter().take(LOG_SHOWN) { li { (entry.detail) } } }
            @if rekeys.len() > LOG_SHOWN { p.soft { "The first " (LOG_SHOWN) "; the API gives all that are kept." } }
        }
        @if !left.is_empty() {
            h2 { "Links that came over without something" }
            ul {
                @for entry in left.iter().take(LOG_SHOWN) {
                    li { (entry.source_slug.as_deref().unwrap_or("")) ": " (entry.detail) }
                }
            }
            @if left.len() > LOG_SHOWN { p.soft { "The first " (LOG_SHOWN) "; the API gives all that are kept." } }
        }
    }
}

/// The log keeps a thousand entries and the counters go on.
fn entries(report: &ImportReport, log: &[LogEntry]) -> i64 {
    (report.failed + report.skipped + report.filtered).max(i64::try_from(log.len()).unwrap_or(i64::MAX))
}

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
