//! `GET /imports/{id}?expires=…&sig=…`: how an import stands, for whoever has the link.

use axum::extract::{Path, State};
use axum::http::Uri;
use engine::Status;
use engine::store::history::SegmentLine;
use imports::{ImportReport, LogEntry};
use maud::{Markup, html};

use super::layout::{Html, page};
use super::parts::{self, Signature, number, refresh, segments};
use crate::api::{Query, Shared, id};
use crate::problem::Problem;

/// Entries of the error log that the page shows; the API and the command line give all that are kept.
const LOG_SHOWN: usize = 200;

pub(crate) async fn handle(
    State(api): State<Shared>,
    Path(text): Path<String>,
    uri: Uri,
    Query(signature): Query<Signature>,
) -> Result<Html, Problem> {
    parts::allow(&api, uri.path(), signature.expires, &signature.sig)?;
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
            span.status.(parts::tone(report.status, report.outcome)) { (words(report)) }
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
    parts::counts([
        report.imported,
        report.updated,
        report.unchanged,
        report.skipped,
        report.filtered,
        report.duplicates,
        report.failed,
    ])
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
                (parts::log("link", log.iter().take(LOG_SHOWN).map(|entry| parts::LogRow {
                    name: entry.source_slug.as_deref().or(entry.source_id.as_deref()),
                    outcome: &entry.outcome,
                    code: &entry.reason,
                    detail: &entry.detail,
                })))
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
