//! `GET /jobs?workspace=…&expires=…&sig=…` and `GET /jobs/{id}?expires=…&sig=…`: how jobs stand, for whoever has the link.
//!
//! The API gives the links to whoever has a token with the scope `jobs:read` ([`crate::jobs`]).

use axum::extract::{Path, State};
use db::Id;
use engine::JobId;
use engine::store::partitions::State as Partition;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::layout::{Html, page};
use super::parts::{self, Signature, allow, closed, number, refresh, segments};
use crate::api::{Api, Query, Shared, id};
use crate::jobs::{self, JobView, WholeJob};
use crate::problem::Problem;

/// Jobs that the list shows, the newest.
const LISTED: i64 = 100;
/// Notes that a page shows; the API gives all that are kept.
const NOTES_SHOWN: usize = 200;

/// What opens the list.
#[derive(Debug, Deserialize)]
pub(crate) struct ListSignature {
    #[serde(default)]
    workspace: String,
    #[serde(default)]
    expires: i64,
    #[serde(default)]
    sig: String,
}

/// The list's path as it is signed: whose it is must not be exchanged.
fn list_path(workspace: Id) -> String {
    format!("/jobs?workspace={workspace}")
}

/// The address of the list of a workspace's jobs and of nobody's, until `expires`.
pub(crate) fn list_url(api: &Api, workspace: Id, expires: i64) -> String {
    let path = list_path(workspace);
    let signature = api.page_key.signature(&path, expires);
    format!("{}{path}&expires={expires}&sig={signature}", api.rendering.public_url)
}

pub(crate) async fn list(
    State(api): State<Shared>,
    Query(signature): Query<ListSignature>,
) -> Result<Html, Problem> {
    let workspace: Id = signature.workspace.parse().map_err(|_| closed())?;
    allow(&api, &list_path(workspace), signature.expires, &signature.sig)?;
    let views = jobs::list(&api, workspace, None, LISTED).await.map_err(Problem::for_people)?;
    let expires = signature.expires;
    let address = |view: &JobView| {
        let path = format!("/jobs/{}", view.id);
        format!("{path}?expires={expires}&sig={}", api.page_key.signature(&path, expires))
    };
    let content = html! {
        h1 { "Jobs" }
        @if views.is_empty() { p.soft { "There is none yet." } }
        @else {
            div.card {
                table {
                    tr {
                        th { "job" } th { "kind" } th { "state" }
                        @for name in ["fetched", "imported", "failed"] { th.number { (name) } }
                        th { "made" }
                    }
                    @for view in &views {
                        tr {
                            td.text { a href=(address(view)) { (view.title) } }
                            td { (view.kind) }
                            td { (state(view)) }
                            td.number { (number(view.fetched)) }
                            td.number { (number(view.imported)) }
                            td.number { (number(view.failed)) }
                            td { (view.created_at) }
                        }
                    }
                }
                @if i64::try_from(views.len()).is_ok_and(|shown| shown == LISTED) {
                    p.soft { "The latest " (LISTED) "; the API gives all." }
                }
            }
        }
    };
    Ok(Html(page("Jobs", views.iter().filter_map(|view| refresh(view.status)).min(), &content)))
}

pub(crate) async fn one(
    State(api): State<Shared>,
    Path(text): Path<String>,
    Query(signature): Query<Signature>,
) -> Result<Html, Problem> {
    let job = JobId(id(&text).map_err(Problem::for_people)?);
    allow(&api, &format!("/jobs/{job}"), signature.expires, &signature.sig)?;
    let whole = jobs::whole(&api, None, job).await.map_err(Problem::for_people)?;
    Ok(Html(page(&whole.job.title, refresh(whole.job.status), &content(&whole))))
}

fn state(view: &JobView) -> String {
    match view.outcome {
        Some(outcome) => format!("{}, {outcome}", view.status),
        None => view.status.to_string(),
    }
}

fn content(whole: &WholeJob) -> Markup {
    let job = &whole.job;
    html! {
        h1 { (job.title) }
        p {
            span.status.(parts::tone(job.status, job.outcome)) { (state(job)) }
            @if job.dry_run { " " span.status.soft { "dry run: nothing is written" } }
        }
        @if let Some(reason) = &job.reason { p { (reason) } }
        @if let Some(until) = job.waiting_until { p.soft { "Goes on by itself at " (until) } }
        div.card { (counts(job)) }
        @if let Some(certificate) = &whole.certificate { (proof(certificate)) }
        (failures(&whole.failures))
        (partitions(&whole.partitions))
        (notes(whole))
        (segments(&whole.history))
        p.soft {
            "Job " code { (job.id) } " (" (job.kind) "), made " (job.created_at)
            @if let Some(ended) = job.finished_at { ", ended " (ended) }
        }
    }
}

fn counts(job: &JobView) -> Markup {
    html! {
        p.soft {
            (number(job.fetched)) " records fetched"
            @if let Some(expected) = job.expected { " of " (number(expected)) }
            " in " (number(job.pages)) " pages, run " (job.run)
            @if job.retries > 0 { ", " (number(job.retries)) " retries" }
        }
        (parts::counts([
            job.imported,
            job.updated,
            job.unchanged,
            job.skipped,
            job.filtered,
            job.duplicate_in_source,
            job.failed,
        ]))
    }
}

fn proof(certificate: &Value) -> Markup {
    let holds = certificate["holds"] == Value::Bool(true);
    let failings = certificate["failings"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        h2 { "Certificate" }
        p { span.status.(if holds { "good" } else { "bad" }) { @if holds { "holds" } @else { "does not hold" } } }
        @if !failings.is_empty() { ul { @for failing in failings { li { (failing.as_str().unwrap_or_default()) } } } }
        details {
            summary { "All of it" }
            pre { (serde_json::to_string_pretty(certificate).unwrap_or_default()) }
        }
    }
}

fn failures(failures: &[(String, i64)]) -> Markup {
    html! {
        @if !failures.is_empty() {
            h2 { "Failed records by reason" }
            div.card {
                table { @for (code, count) in failures { tr { td { code { (code) } } td.number { (number(*count)) } } } }
            }
        }
    }
}

fn partitions(partitions: &[Partition]) -> Markup {
    html! {
        @if !partitions.is_empty() {
            h2 { "Parts" }
            div.card {
                table {
                    tr { th { "part" } th { "state" } th.number { "records" } th.number { "counted by the source" } }
                    @for part in partitions {
                        tr {
                            td.text { (part.key) }
                            td.text { (part.status) @if let Some(reason) = &part.reason { ": " (reason) } }
                            td.number { (number(part.records)) }
                            td.number { @if let Some(expected) = part.expected { (number(expected)) } }
                        }
                    }
                }
            }
        }
    }
}

fn notes(whole: &WholeJob) -> Markup {
    html! {
        h2 { "Notes" }
        @if whole.notes.is_empty() { p.soft { "Nothing to report." } }
        @else {
            div.card {
                (parts::log("record", whole.notes.iter().take(NOTES_SHOWN).map(|note| parts::LogRow {
                    name: note.label.as_deref().or(note.source_id.as_deref()),
                    outcome: &note.outcome,
                    code: &note.code,
                    detail: &note.detail,
                })))
                @if whole.notes.len() > NOTES_SHOWN { p.soft { "The first " (NOTES_SHOWN) "; the API gives all that are kept." } }
            }
        }
    }
}
