//! `crossdock ledger quarantine`: what failed, kept whole, and what becomes of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use ::ledger::quarantine::{Look, Which};
use ::ledger::retry::{Retried, Retry};
use ::ledger::{Folder, Ledgers, Variables};
use anyhow::Context;
use clap::{Args, Subcommand};
use db::Database;
use engine::JobId;

use super::{able, job, pairs, refused};
use crate::commands::{print, print_json, say};
use crate::exit::{Exit, usage};

/// Records read at once while they are exported; each may be as large as a page of its source.
const PAGE: i64 = 100;

#[derive(Debug, Args)]
pub(super) struct Quarantine {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the records of a job that failed and are open
    #[command(after_help = "Examples:
  crossdock ledger quarantine list 0HZX…
  crossdock ledger quarantine list 0HZX… --code unknown_wallet --limit 1000 --json")]
    List {
        /// The job's id
        job: JobId,
        /// Only records with this reason
        #[arg(long)]
        code: Option<String>,
        /// Records listed
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Print JSON, one line for each record
        #[arg(long)]
        json: bool,
    },
    /// Show a record with its reason and its bytes
    #[command(after_help = "Examples:
  crossdock ledger quarantine show 0HZX… WL-4711
  crossdock ledger quarantine show 0HZX… 0/12/345")]
    Show {
        /// The job's id
        job: JobId,
        /// Its reference, its id at the source, or its place as `list` shows it
        record: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write all open records with their bytes, one JSON object a line
    #[command(after_help = "Bytes that are no UTF-8 are in `raw_base64` instead of `raw`.

Examples:
  crossdock ledger quarantine export 0HZX… --output rejects.ndjson
  crossdock ledger quarantine export 0HZX… --code unknown_wallet | jq -r .raw")]
    Export {
        /// The job's id
        job: JobId,
        /// Only records with this reason
        #[arg(long)]
        code: Option<String>,
        /// The file; standard output without one
        #[arg(long)]
        output: Option<PathBuf>,
    },
    /// Try the kept bytes of open records again; the source is not asked
    #[command(
        after_help = "With a folder whose map or proof was mended, records go through it, and it becomes the job's
once one of them leaves the quarantine. Target, key and references must be the same. The retry is a line of the history.
Ends with 0 if nothing is left, 3 if records still fail, 1 if the certificate does not hold afterwards.

Examples:
  crossdock ledger quarantine retry 0HZX…
  crossdock ledger quarantine retry 0HZX… --folder pipelines/wallet-logs --code unknown_wallet"
    )]
    Retry {
        /// The job's id
        job: JobId,
        /// The mended folder; the job's own without it
        #[arg(long, value_name = "DIR")]
        folder: Option<PathBuf>,
        /// A value for ${NAME}, instead of the job's; repeatable
        #[arg(long = "set", value_name = "NAME=VALUE")]
        set: Vec<String>,
        /// Only records with this reason
        #[arg(long)]
        code: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Decide that records will not come over; they stay failed and accounted for
    #[command(after_help = "Examples:
  crossdock ledger quarantine discard 0HZX… WL-4711 0/12/345 --why 'test wallets'
  crossdock ledger quarantine discard 0HZX… --code missing_id --why 'noise of the export'")]
    Discard {
        /// The job's id
        job: JobId,
        /// References, ids at the source, or places
        #[arg(required_unless_present_any = ["code", "all"], conflicts_with_all = ["code", "all"])]
        records: Vec<String>,
        /// All open records with this reason
        #[arg(long, conflicts_with = "all")]
        code: Option<String>,
        /// All open records
        #[arg(long)]
        all: bool,
        /// Why, for whoever reads it later
        #[arg(long, default_value = "")]
        why: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(args: &Quarantine, database: &Database) -> anyhow::Result<Exit> {
    let ledgers = Ledgers::new(database.clone());
    match &args.action {
        Action::List { job: id, code, limit, json } => {
            job(database, *id).await?;
            list(&ledgers, *id, code.as_deref(), *limit, *json).await
        }
        Action::Show { job: id, record, json } => {
            job(database, *id).await?;
            show(&ledgers, *id, record, *json).await
        }
        Action::Export { job: id, code, output } => {
            job(database, *id).await?;
            export(&ledgers, *id, code.as_deref(), output.as_ref()).await
        }
        Action::Retry { job: id, folder, set, code, json } => {
            job(database, *id).await?;
            let retry = with(&ledgers, *id, folder.as_ref(), set, code.clone()).await?;
            let done = ledgers.retry(*id, retry).await.map_err(|error| match (error, folder) {
                (::ledger::service::Error::Declaration(problems), Some(folder)) => refused(folder, &problems),
                (other, _) => able(other),
            })?;
            tell(&done, *id, *json)
        }
        Action::Discard { job: id, records, code, all: _, why, json } => {
            job(database, *id).await?;
            let which = match code {
                Some(code) => Which::Code(code.clone()),
                None if records.is_empty() => Which::All,
                None => Which::Named(records.clone()),
            };
            let by = std::env::var("USER").ok().filter(|user| !user.is_empty());
            let count = ledgers.discard(*id, &which, by.as_deref(), why).await.map_err(able)?;
            if *json {
                print_json(&serde_json::json!({ "discarded": count }))?;
            } else {
                print(format!(
                    "{count} records are discarded; they stay failed, and the certificate names them"
                ))?;
            }
            Ok(Exit::Clean)
        }
    }
}

async fn list(
    ledgers: &Ledgers,
    id: JobId,
    code: Option<&str>,
    limit: u32,
    json: bool,
) -> anyhow::Result<Exit> {
    let look = Look { code, limit: i64::from(limit), ..Look::default() };
    for held in ledgers.quarantined(id, look).await.map_err(able)? {
        if json {
            print_json(&held.exported())?;
        } else {
            let (name, detail) = (plain(held.name().as_bytes()), plain(held.detail.as_bytes()));
            print(format!("{name}  {}: {detail}", held.code))?;
        }
    }
    let (open, discarded) = ledgers.quarantine_counts(id).await.map_err(able)?;
    say(format!("open: {}; discarded: {}", counted(&open), counted(&discarded)));
    Ok(Exit::Clean)
}

fn counted(codes: &BTreeMap<String, i64>) -> String {
    let each: Vec<String> = codes.iter().map(|(code, count)| format!("{code} {count}")).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}

async fn show(ledgers: &Ledgers, id: JobId, record: &str, json: bool) -> anyhow::Result<Exit> {
    let held = ledgers.quarantined_as(id, record).await.map_err(able)?;
    if held.is_empty() {
        return Err(usage(format!(
            "nothing in quarantine is called {record}; `crossdock ledger quarantine list {id}` shows what there is"
        )));
    }
    for one in &held {
        if json {
            print_json(&one.exported())?;
            continue;
        }
        print(format!(
            "{} ({}), since {}\n  place {} (partition/segment/ordinal), id at the source {}\n  {}\n  {} bytes: {}",
            plain(one.name().as_bytes()),
            one.code,
            one.at,
            one.place,
            one.source_id.as_ref().map_or_else(|| "unknown".to_owned(), |id| plain(id.as_bytes())),
            plain(one.detail.as_bytes()),
            one.raw.len(),
            plain(&one.raw),
        ))?;
    }
    Ok(Exit::Clean)
}

async fn export(
    ledgers: &Ledgers,
    id: JobId,
    code: Option<&str>,
    output: Option<&PathBuf>,
) -> anyhow::Result<Exit> {
    let mut out: Box<dyn Write + Send> = match output {
        Some(path) => Box::new(BufWriter::new(create(path)?)),
        None => Box::new(BufWriter::new(std::io::stdout())),
    };
    let cannot = || match output {
        Some(path) => format!("cannot write {}", path.display()),
        None => "cannot write to standard output".to_owned(),
    };
    let (mut after, mut count) = (None, 0_u64);
    loop {
        let look = Look { code, after, limit: PAGE, bytes: true };
        let page = ledgers.quarantined(id, look).await.map_err(able)?;
        let Some(last) = page.last() else { break };
        after = Some(last.place);
        for held in &page {
            let line = serde_json::to_string(&held.exported()).context("cannot write JSON")?;
            writeln!(out, "{line}").with_context(cannot)?;
            count += 1;
        }
    }
    out.flush().with_context(cannot)?;
    say(format!("{count} records"));
    Ok(Exit::Clean)
}

/// For its owner alone: records are other people's money.
fn create(path: &PathBuf) -> anyhow::Result<std::fs::File> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let open = || {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        // One that was there keeps its mode otherwise. A pipe or a terminal has no owner's mode to set.
        if file.metadata()?.is_file() {
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
        Ok::<_, std::io::Error>(file)
    };
    open().with_context(|| format!("cannot write {}", path.display()))
}

/// What is tried: the values are those of the job, except what is set here and what only a new folder names.
async fn with(
    ledgers: &Ledgers,
    id: JobId,
    folder: Option<&PathBuf>,
    set: &[String],
    code: Option<String>,
) -> anyhow::Result<Retry> {
    let folder =
        folder.map(|path| Folder::load(path).map_err(|problems| refused(path, &problems))).transpose()?;
    if folder.is_none() && set.is_empty() {
        return Ok(Retry { code, ..Retry::default() });
    }
    let declared = ledgers.declared(id).await?.with_context(|| format!("there is no ledger job {id}"))?;
    let own = declared.variables.names().filter_map(|name| Some((name, declared.variables.get(name)?)));
    let named = folder.as_ref().unwrap_or(&declared.folder).text("pipeline.toml").to_owned();
    let variables = Variables::of(own.chain(pairs(set)?)).with_environment(&named);
    Ok(Retry { folder, variables: Some(variables), code })
}

fn tell(done: &Retried, id: JobId, json: bool) -> anyhow::Result<Exit> {
    let exit = match (done.holds, done.failing.is_empty()) {
        (Some(false), _) => Exit::Failed,
        (_, false) => Exit::Partial,
        (_, true) => Exit::Clean,
    };
    if json {
        print_json(done)?;
        return Ok(exit);
    }
    if done.taken == 0 {
        print("nothing is open; nothing was tried")?;
        return Ok(exit);
    }
    let moved = &done.moved;
    let mut text = format!(
        "retry {}: {} records tried; imported {}, updated {}, unchanged {}, filtered {}, given twice {}; still failing: {}",
        done.number,
        done.taken,
        moved.imported,
        moved.updated,
        moved.unchanged,
        moved.filtered,
        moved.duplicate_in_source,
        counted(&done.failing),
    );
    match (done.holds, &done.failings) {
        (Some(true), _) => text.push_str("\nthe certificate holds"),
        (Some(false), why) => {
            write!(
                text,
                "\n{}; `crossdock ledger verify {id}` names each row",
                why.as_deref().unwrap_or_default()
            )?;
        }
        (None, _) => {
            write!(text, "\nthe certificate is computed when the job ends: `crossdock ledger resume {id}`")?;
        }
    }
    print(text)?;
    Ok(exit)
}

/// Bytes as one line that does nothing to a terminal: control characters, marks that turn the direction of writing and
/// bytes that are no UTF-8 are escaped.
pub(super) fn plain(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            let turns =
                matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            if letter.is_control() || turns || matches!(letter, '\u{2028}' | '\u{2029}') {
                text.extend(letter.escape_default());
            } else {
                text.push(letter);
            }
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("writing to a string cannot fail");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_is_shown_does_nothing_to_a_terminal() {
        for (bytes, expected) in [
            (&b"{\"a\":1}"[..], "{\"a\":1}"),
            (b"\x1b[31mred\r\n", "\\u{1b}[31mred\\r\\n"),
            ("\u{9b}1m\u{202e}abc".as_bytes(), "\\u{9b}1m\\u{202e}abc"),
            (b"caf\xc3\xa9 \xff\xfe", "caf\u{e9} \\xff\\xfe"),
        ] {
            assert_eq!(plain(bytes), expected);
        }
    }
}
