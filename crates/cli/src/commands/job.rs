//! `crossdock job`: listing, showing and steering imports.

use db::{Address, Database};
use engine::{JobId, Status};
use imports::{HOSTS_MAX, ImportReport, Imports};
use prometheus_client::registry::Registry;

use super::import::{drive, finish, print_hosts, sentence};
use super::{exit_of, open, print, print_json, say, stop_on_signal};
use crate::args::{Job, JobAction, JobResume, SourceArgs};
use crate::exit::{Exit, usage};
use crate::lock::{self, Taken};
use crate::settings::File;
use crate::{source_token, wire};

/// Imports shown by `list`.
const LISTED: i64 = 50;

pub(super) async fn run(args: &Job, address: &Address, file: &File) -> anyhow::Result<Exit> {
    let database = open(address).await?;
    if let JobAction::Resume(resume) = &args.action {
        return self::resume(resume, &database, file, args.json).await;
    }
    let mut registry = Registry::default();
    let limits = wire::limits(&database, None, None);
    let longest = links::DESTINATION_LENGTH_MAX;
    let no_caches = imports::sink::no_caches();
    let parts = wire::parts(&database, &SourceArgs::default(), limits, longest, &mut registry, no_caches);
    let imports = &parts.imports;
    match &args.action {
        JobAction::List => list(&database, imports, args.json).await,
        JobAction::Show(which) => show(imports, id(&which.id)?, args.json).await,
        JobAction::Pause(which) => moved(imports.pause(None, id(&which.id)?).await, args.json),
        JobAction::Cancel(which) => moved(imports.cancel(None, id(&which.id)?).await, args.json),
        JobAction::Verify(which) => verify(imports, id(&which.id)?, args.json).await,
        JobAction::Undo(which) => {
            let done = imports.undo(None, id(&which.id)?).await.map_err(person)?;
            if args.json {
                print_json(&done)?;
            } else {
                print(format!(
                    "removed {} links, put {} back; left {} edited here, {} written by a later import, {} deleted before",
                    done.removed, done.restored, done.edited, done.written_by_another_job, done.deleted
                ))?;
            }
            Ok(Exit::Clean)
        }
        JobAction::Resume(_) => unreachable!("resuming was dealt with above"),
    }
}

fn id(text: &str) -> anyhow::Result<JobId> {
    text.parse().map_err(|error: db::IdError| usage(error.to_string()))
}

/// Errors that the person who typed can cure.
fn person(error: imports::Error) -> anyhow::Error {
    match error {
        imports::Error::NotFound | imports::Error::State { .. } => usage(error.to_string()),
        other => other.into(),
    }
}

async fn list(database: &Database, imports: &Imports, json: bool) -> anyhow::Result<Exit> {
    let mut reader = database.read().await?;
    let workspaces = links::workspaces(reader.conn()).await?;
    drop(reader);
    let mut reports: Vec<ImportReport> = Vec::new();
    for workspace in workspaces {
        reports.extend(imports.list(workspace.id, None, LISTED).await?);
    }
    if json {
        return print_json(&reports).map(|()| Exit::Clean);
    }
    for report in reports {
        print(format!(
            "{}  {:14} {} to {}: {} links, {} failed, made {}",
            report.id,
            report.status.as_str(),
            report.vendor,
            report.domain,
            report.source_links,
            report.failed,
            report.created_at
        ))?;
    }
    Ok(Exit::Clean)
}

async fn show(imports: &Imports, id: JobId, json: bool) -> anyhow::Result<Exit> {
    let report = imports.get(None, id).await.map_err(person)?;
    let history = imports.history(id).await?;
    let log = imports.error_log(id).await?;
    let remarks = imports.remarks(id).await?;
    if json {
        let whole = serde_json::json!({
            "job": report, "history": history, "error_log": log, "remarks": remarks,
        });
        print_json(&whole)?;
        return Ok(exit_of(report.status, report.outcome));
    }
    print(sentence(&report))?;
    print(format!(
        "  from {} to {}; slugs that are taken: {}",
        report.vendor, report.domain, report.conflict
    ))?;
    if let Some(forecast) = &report.forecast {
        print(format!("  needs {forecast}"))?;
    }
    for partition in &report.partitions {
        let reason = partition.reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
        let counted = partition.expected.map_or_else(String::new, |counted| format!(" of {counted}"));
        print(format!(
            "  part {} {}, {}{counted} records{reason}",
            partition.key, partition.status, partition.records
        ))?;
    }
    print_hosts(&report, HOSTS_MAX)?;
    print("history:")?;
    for line in &history {
        print(format!(
            "  run {} segment {}/{} {}: {} pages, {} staged, imported {}, updated {}, unchanged {}, skipped {}, \
             filtered {}, given twice {}, failed {}, retried {}, cleaned {}; fetched in {:.2} s, processed in {:.2} s",
            line.run,
            line.part,
            line.segment,
            line.status,
            line.pages,
            line.records,
            line.imported,
            line.updated,
            line.unchanged,
            line.skipped,
            line.filtered,
            line.duplicate_in_source,
            line.failed,
            line.retries,
            line.cleaned,
            seconds(line.fetch_micros),
            seconds(line.process_micros),
        ))?;
    }
    for entry in log.iter().chain(&remarks) {
        print(format!("  {}: {} ({})", entry.outcome, entry.detail, entry.reason))?;
    }
    Ok(exit_of(report.status, report.outcome))
}

#[allow(clippy::cast_precision_loss)] // For people to read.
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

fn moved(report: imports::Result<ImportReport>, json: bool) -> anyhow::Result<Exit> {
    let report = report.map_err(person)?;
    if json {
        print_json(&report)?;
    } else {
        print(format!("import {} is {}", report.id, report.status))?;
    }
    Ok(Exit::Clean)
}

async fn verify(imports: &Imports, id: JobId, json: bool) -> anyhow::Result<Exit> {
    let verification = imports.verify(None, id).await.map_err(person)?;
    if json {
        print_json(&verification)?;
    } else {
        print(format!(
            "{}: {} records, {} stand as written, {} stand nowhere by their outcome, {} lost, {} altered, \
             {} edited here, {} deleted here",
            if verification.holds { "holds" } else { "DOES NOT HOLD" },
            verification.records,
            verification.verified,
            verification.absent,
            verification.lost,
            verification.altered,
            verification.edited,
            verification.deleted
        ))?;
        for finding in &verification.findings {
            print(format!("  {:?}: {}", finding.verdict, finding.source_id))?;
        }
    }
    Ok(if verification.holds { Exit::Clean } else { Exit::Failed })
}

/// Goes on with an import in this process, or tells who does.
async fn resume(args: &JobResume, database: &Database, file: &File, json: bool) -> anyhow::Result<Exit> {
    let id = id(&args.id)?;
    let mut registry = Registry::default();
    let limits = wire::limits(database, file.lease()?, file.workers());
    let longest = file.destination_length_max()?;
    let no_caches = imports::sink::no_caches();
    let parts = wire::parts(database, &args.source, limits, longest, &mut registry, no_caches);
    let report = parts.imports.get(None, id).await.map_err(person)?;
    let _lock = match lock::take(database, "job resume", None)? {
        Taken::Ours(lock) => lock,
        Taken::Theirs(holder) => {
            let holder = holder.map_or_else(
                || "another process".to_owned(),
                |holder| match &holder.url {
                    Some(url) => format!(
                        "{}; with a token: curl -X POST {url}/v1/imports/{id}/resume \
                     -H 'Authorization: Bearer YOUR_API_TOKEN' -H 'Content-Type: application/json' \
                     -d '{{\"token\":\"THE SOURCE TOKEN\"}}'",
                        holder.describe()
                    ),
                    None => holder.describe(),
                },
            );
            if report.status == Status::AwaitingToken {
                return Err(usage(format!("the import needs the source's token, which goes to {holder}")));
            }
            say(format!("the import goes on in {holder}"));
            return moved(parts.imports.resume(None, id, None).await, json);
        }
    };
    let token = match source_token::given()? {
        Some(token) => Some(token),
        None if report.status == Status::AwaitingToken => Some(source_token::read(&report.vendor)?),
        None => None,
    };
    parts.imports.resume(None, id, token).await.map_err(person)?;
    let stop = stop_on_signal()?;
    let report = drive(&parts, id, &stop).await?;
    finish(&parts.imports, &report, json, stop.is_cancelled()).await
}
