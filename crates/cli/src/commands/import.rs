//! `crossdock import`: one import in this process, from the token to the report.

use std::collections::BTreeMap;

use db::{Address, Database, Timestamp};
use engine::{JobId, SourceError, Status};
use imports::{Conflict, Filter, HostsMet, ImportReport, Imports, LogEntry, Mapper, NewImport, Token};
use links::{DomainSettings, Host, Workspace};
use prometheus_client::registry::Registry;
use serde::Serialize;
use vendors::bitly::{BitlyMapper, Survey};

use super::{default_workspace, exit_of, open, print, print_json, say, stop_on_signal};
use crate::args::{Import, ImportBitly, ImportVendor};
use crate::exit::{Exit, usage};
use crate::lock::{self, Holder, Taken};
use crate::settings::File;
use crate::{progress, source_token, wire};

/// The job as one object, as `--json` ends with it.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    job: JobId,
    status: Status,
    outcome: Option<&'static str>,
    source_links: i64,
    slugs: i64,
    imported: i64,
    updated: i64,
    unchanged: i64,
    skipped: i64,
    filtered: i64,
    duplicates: i64,
    failed: i64,
    retries: i64,
    seconds: f64,
    reason: Option<String>,
    /// Where the slugs of each host of the source go, as far as a check has met them.
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<HostsMet>,
    peak_rss_bytes: Option<u64>,
}

impl Summary {
    pub(super) fn of(report: &ImportReport) -> Self {
        Self {
            job: report.id,
            status: report.status,
            outcome: report.outcome,
            source_links: report.source_links,
            slugs: report.slugs,
            imported: report.imported,
            updated: report.updated,
            unchanged: report.unchanged,
            skipped: report.skipped,
            filtered: report.filtered,
            duplicates: report.duplicates,
            failed: report.failed,
            retries: report.retries,
            seconds: report.seconds(),
            reason: report.reason.clone(),
            hosts: report.hosts.clone(),
            peak_rss_bytes: crate::peak::peak_rss_bytes(),
        }
    }
}

pub(super) async fn run(args: &Import, address: &Address, file: &File) -> anyhow::Result<Exit> {
    let ImportVendor::Bitly(args) = &args.vendor;
    let wanted = Wanted::read(args)?;
    let database = open(address).await?;
    let _lock = match lock::take(&database, "import bitly", None)? {
        Taken::Ours(lock) => lock,
        Taken::Theirs(holder) => return Err(busy(holder.as_ref(), &wanted)),
    };
    let token = source_token::read("Bitly")?;
    let vendor = wire::BitlyVendor::new(args.source.clone());
    let account = vendor.account(&wanted.filter, &token).map_err(anyhow::Error::from)?;
    let workspace = default_workspace(&database).await?;
    make_domains(&database, &workspace, &wanted).await?;
    let mut registry = Registry::default();
    let limits = wire::limits(&database, file.lease()?, file.workers());
    let longest = file.destination_length_max()?;
    let no_caches = imports::sink::no_caches();
    let parts = wire::parts(&database, &args.source, limits, longest, &mut registry, no_caches);
    let new = NewImport {
        workspace_id: workspace.id,
        vendor: "bitly".into(),
        domain: Some(wanted.domain.clone()),
        conflict: wanted.conflict,
        filter: wanted.filter.clone(),
        dry_run: args.dry_run,
        request_id: None,
    };
    let id = match parts.imports.unfinished(&new).await? {
        Some(id) => {
            say(format!("going on with import {id} from its checkpoint"));
            parts.imports.resume(Some(workspace.id), id, Some(token)).await?;
            id
        }
        None => {
            let survey = match account.survey().await {
                Ok(survey) => survey,
                Err(error) => return refused(&error),
            };
            tell_survey(&survey);
            for sentence in BitlyMapper.left_behind() {
                say(format!("does not come over: {sentence}"));
            }
            parts.imports.start_with(&new, token, Some(&survey.into())).await?
        }
    };
    let stop = stop_on_signal()?;
    let report = drive(&parts, id, &stop).await?;
    finish(&parts.imports, &report, args.json, stop.is_cancelled()).await
}

/// Runs jobs in this process until the import rests or somebody stops the process.
pub(super) async fn drive(
    parts: &wire::Parts,
    id: JobId,
    stop: &tokio_util::sync::CancellationToken,
) -> anyhow::Result<ImportReport> {
    let done = stop.child_token();
    let running = {
        let (runner, done) = (parts.runner.clone(), done.clone());
        tokio::spawn(async move { runner.run(done).await })
    };
    let report = tokio::select! {
        report = progress::watch(&parts.imports, id) => report?,
        () = stop.cancelled() => {
            say("stopping at the next safe point …");
            done.cancel();
            running.await?;
            return Ok(parts.imports.get(None, id).await?);
        }
    };
    done.cancel();
    running.await?;
    Ok(report)
}

/// Tells how the import stands, and ends with its exit code.
pub(super) async fn finish(
    imports: &Imports,
    report: &ImportReport,
    json: bool,
    stopped: bool,
) -> anyhow::Result<Exit> {
    if json {
        print_json(&Summary::of(report))?;
    } else {
        print(sentence(report))?;
        print_hosts(report, HOSTS_SHOWN)?;
        tell_log(imports, report).await?;
    }
    if stopped && report.status == Status::Running {
        say("stopped; the same command goes on from here");
    }
    Ok(exit_of(report.status, report.outcome))
}

pub(super) fn sentence(report: &ImportReport) -> String {
    let outcome = report.outcome.map_or_else(String::new, |outcome| format!(" ({outcome})"));
    let reason = report.reason.as_deref().map_or_else(String::new, |reason| format!("\n  {reason}"));
    format!(
        "import {} is {}{outcome}: {} links, {} slugs in {:.1} s\n  imported {}, updated {}, unchanged {}, skipped {}, \
         filtered {}, given twice {}, failed {}; {} repeats{reason}",
        report.id,
        report.status,
        report.source_links,
        report.slugs,
        report.seconds(),
        report.imported,
        report.updated,
        report.unchanged,
        report.skipped,
        report.filtered,
        report.duplicates,
        report.failed,
        report.retries,
    )
}

/// Hosts shown at the end of an import; `job show` has all that are kept.
const HOSTS_SHOWN: usize = 20;

/// Says where the slugs of each host of the source go, if a check has met them.
pub(super) fn print_hosts(report: &ImportReport, limit: usize) -> anyhow::Result<()> {
    let Some(hosts) = &report.hosts else { return Ok(()) };
    print("hosts of short URLs at the source, their slugs, and where they go:")?;
    for line in hosts.lines(limit) {
        print(format!("  {line}"))?;
    }
    Ok(())
}

/// Entries of the error log shown on the terminal; `job show` has all that are kept.
const LOG_SHOWN: usize = 20;

async fn tell_log(imports: &Imports, report: &ImportReport) -> anyhow::Result<()> {
    for partition in report.partitions.iter().filter(|partition| partition.status == "left_out") {
        say(format!("  left out: {}", partition.reason.as_deref().unwrap_or(&partition.key)));
    }
    let log = imports.error_log(report.id).await?;
    for entry in log.iter().take(LOG_SHOWN) {
        say(format!("  {}: {} ({})", entry.outcome, entry.detail, entry.reason));
    }
    if log.len() > LOG_SHOWN {
        say(format!("  … and more: crossdock job show {}", report.id));
    }
    let (rekeys, remarks): (Vec<_>, Vec<_>) =
        imports.remarks(report.id).await?.into_iter().partition(LogEntry::is_possible_rekey);
    if let Some(first) = rekeys.first() {
        say(format!(
            "  {} links may be earlier ones under new ids, for example: {}; crossdock job show {} lists them",
            rekeys.len(),
            first.detail,
            report.id
        ));
    }
    if let Some(first) = remarks.first() {
        say(format!(
            "  {} links came over without something they had, for example {}: {}; crossdock job show {} lists them",
            remarks.len(),
            first.source_slug.as_deref().unwrap_or("one"),
            first.detail,
            report.id
        ));
    }
    Ok(())
}

fn refused(error: &SourceError) -> anyhow::Result<Exit> {
    say(format!("crossdock: {error}"));
    Ok(if matches!(error, SourceError::Unauthorized(_)) { Exit::AwaitingToken } else { Exit::Failed })
}

fn tell_survey(survey: &Survey) {
    if let Some(login) = &survey.login {
        say(format!("Bitly account of {login}"));
    }
    for group in &survey.groups {
        let name = group.name.as_deref().unwrap_or("");
        let domains = if group.domains.is_empty() {
            "no domain of its own".to_owned()
        } else {
            group.domains.join(", ")
        };
        let choice = match (group.is_chosen, group.is_active) {
            (true, _) => "comes over",
            (false, false) => "is not active and stays",
            (false, true) => "stays",
        };
        say(format!("  group {} {name} ({domains}) {choice}", group.guid));
    }
    say(format!("this import needs {}", survey.calls));
    if let Some(limit) = &survey.monthly_limit {
        say(format!("calls left this month: {} of {}", limit.left(), limit.limit));
    }
}

/// What the command line asks for, with hosts normalised.
pub(super) struct Wanted {
    domain: Host,
    conflict: Conflict,
    filter: Filter,
}

impl Wanted {
    fn read(args: &ImportBitly) -> anyhow::Result<Self> {
        let domain = host("--domain", &args.domain)?;
        let vendor_hosts = BitlyMapper.vendor_hosts();
        let mut map_domain = BTreeMap::new();
        for rule in &args.map_domain {
            let (from, to) = rule
                .split_once('=')
                .ok_or_else(|| usage(format!("--map-domain '{rule}' is not of the form A=B")))?;
            let (from, to) = (host("--map-domain", from)?, host("--map-domain", to)?);
            map_domain.insert(from.to_string(), to.to_string());
        }
        for to in std::iter::once(domain.as_str()).chain(map_domain.values().map(String::as_str)) {
            if vendor_hosts.contains(&to) {
                return Err(usage(format!("{to} belongs to Bitly; name a domain of your own")));
            }
        }
        let only_domain = args
            .only_domain
            .iter()
            .map(|text| host("--only-domain", text).map(|host| host.to_string()))
            .collect::<anyhow::Result<Vec<String>>>()?;
        let conflict = args.on_conflict.parse().map_err(usage)?;
        Ok(Self {
            domain,
            conflict,
            filter: Filter { group_guid: args.group.clone(), map_domain, only_domain },
        })
    }
}

fn host(option: &str, text: &str) -> anyhow::Result<Host> {
    Host::new(text).map_err(|error| usage(format!("{option} '{text}': {error}")))
}

/// Makes the domains the import writes to, and says so.
async fn make_domains(database: &Database, workspace: &Workspace, wanted: &Wanted) -> anyhow::Result<()> {
    let mut tx = database.begin().await?;
    let mut made = Vec::new();
    let others = wanted.filter.map_domain.values().map(|host| Host::new(host));
    for host in std::iter::once(Ok(wanted.domain.clone())).chain(others) {
        let host = host.map_err(|error| usage(error.to_string()))?;
        let settings = DomainSettings::default();
        let (domain, new) =
            links::ensure_domain(&mut tx, workspace.id, &host, &settings, Timestamp::here()).await?;
        if domain.workspace_id != workspace.id {
            return Err(usage(format!("the domain {host} belongs to another workspace")));
        }
        if new {
            made.push(domain);
        }
    }
    if let (None, Some(first)) = (workspace.default_domain_id, made.first()) {
        links::set_default_domain(&mut tx, workspace.id, Some(first.id)).await?;
    }
    tx.commit().await?;
    for (index, domain) in made.iter().enumerate() {
        let default = workspace.default_domain_id.is_none() && index == 0;
        let default =
            if default { "; it is the workspace's default now, because there was none" } else { "" };
        say(format!("made the domain {}{default}", domain.host));
    }
    Ok(())
}

/// The database has a runner already: say how to ask it.
fn busy(holder: Option<&Holder>, wanted: &Wanted) -> anyhow::Error {
    let Some(holder) = holder else {
        return usage("another process runs the jobs of this database; wait for it, or ask it over HTTP");
    };
    match &holder.url {
        None => {
            usage(format!("{} runs the jobs of this database; wait until it has ended", holder.describe()))
        }
        Some(url) => {
            let body = serde_json::json!({
                "vendor": "bitly",
                "domain": wanted.domain.as_str(),
                "conflict": wanted.conflict,
                "filter": wanted.filter,
                "token": "THE BITLY TOKEN",
            });
            usage(format!(
                "{} runs the jobs of this database; start the import there:\n  \
                 curl -X POST {url}/v1/imports -H 'Authorization: Bearer YOUR_API_TOKEN' \
                 -H 'Content-Type: application/json' -d '{body}'",
                holder.describe()
            ))
        }
    }
}

/// The import of a demo: no survey, no prompts.
pub(super) async fn start_plain(
    parts: &wire::Parts,
    domain: &str,
    token: Token,
) -> anyhow::Result<(Workspace, JobId)> {
    let workspace = default_workspace(&parts.database).await?;
    let wanted =
        Wanted { domain: host("the domain", domain)?, conflict: Conflict::Suffix, filter: Filter::default() };
    make_domains(&parts.database, &workspace, &wanted).await?;
    let new = NewImport {
        workspace_id: workspace.id,
        vendor: "bitly".into(),
        domain: Some(wanted.domain),
        conflict: wanted.conflict,
        filter: wanted.filter,
        dry_run: false,
        request_id: None,
    };
    let id = parts.imports.start(&new, token).await?;
    Ok((workspace, id))
}
