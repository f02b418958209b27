//! `crossdock ledger run`: dry runs, limits, folders that change, and the command at the end.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::ground::{Database, Done, Ground, Process};

const SCHEMA: &str =
    "CREATE TABLE moves (reference TEXT PRIMARY KEY, wallet TEXT NOT NULL, amount NUMERIC(20,2) NOT NULL)";
const PIPELINE: &str = r#"
name = "moves"

[source]
file = "${MOVES}"

[record]
id = "id"
reference = "M-{id}"

[fields.id]
pointer = "/id"
type = "bigint"

[fields.wallet]
pointer = "/wallet"
type = "text"

[fields.amount]
pointer = "/amount"
type = "numeric(20,2)"

[target]
table = "moves"
key = ["reference"]

[stage]
chunk_records = 100
"#;
const MAP: &str = "SELECT _record, _reference AS reference, wallet, amount,
    CASE WHEN wallet = 'w9' THEN 'unknown_wallet: ' || wallet END AS _reject
FROM staged
";
const PROOF: &str = "SELECT reference AS _reference, wallet, amount FROM target\n";

/// A target, a folder, and a file of records of which every tenth is refused if so wanted.
struct Migration {
    ground: Ground,
    folder: PathBuf,
    file: PathBuf,
}

impl Migration {
    fn new(records: usize, bad: bool) -> Self {
        let ground = Ground::new(Database::Postgres);
        ground.execute(SCHEMA);
        let folder = ground.folder.path().join("moves");
        fs::create_dir(&folder).expect("a folder can be made");
        for (name, text) in [("pipeline.toml", PIPELINE), ("map.sql", MAP), ("proof.sql", PROOF)] {
            fs::write(folder.join(name), text).expect("a file can be written");
        }
        let mut lines = String::new();
        for id in 1..=records {
            let wallet = if bad && id % 10 == 0 { "w9" } else { "w1" };
            writeln!(lines, r#"{{"id":{id},"wallet":"{wallet}","amount":{id}.25}}"#).expect("a string grows");
        }
        let file = ground.folder.path().join("moves.ndjson");
        fs::write(&file, lines).expect("a file can be written");
        Self { ground, folder, file }
    }

    fn command(&self, more: &[&str]) -> Command {
        let folder = self.folder.to_str().expect("the folder's name is text");
        let mut command = self.ground.command(&["ledger", "run", folder, "--json"]);
        command.arg("--set").arg(format!("MOVES={}", self.file.display())).args(more).env("TZ", "UTC");
        command
    }

    fn run(&self, more: &[&str]) -> Done {
        Done::of(&mut self.command(more))
    }

    fn status(&self, id: &Value) -> Value {
        self.ground.run(&["ledger", "status", id.as_str().expect("an id is a text"), "--json"]).json()
    }
}

/// So many seconds from now, as a wall in UTC shows it.
fn in_seconds(seconds: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is set").as_secs();
    let day = (now + seconds) % 86_400;
    format!("{:02}:{:02}:{:02}", day / 3600, day / 60 % 60, day % 60)
}

#[test]
fn a_dry_run_ends_with_counts_and_the_real_one_with_the_same() {
    let migration = Migration::new(1_000, true);
    let dry = migration.run(&["--dry-run"]);
    let summary = dry.json();
    assert_eq!(dry.code, 3, "{dry:?}");
    assert_eq!((&summary["imported"], &summary["failed"]), (&json!(900), &json!(100)));
    assert_eq!(summary.get("certificate"), None, "nothing was written that could be certified");
    assert_eq!(dry.stdout.lines().count(), 1, "nothing but the object: {dry:?}");
    assert!(!dry.stderr.contains("records/s"), "no progress beside it: {dry:?}");

    let real = migration.run(&[]);
    assert_eq!(real.code, 3, "{real:?}");
    for counted in
        ["records", "imported", "updated", "unchanged", "filtered", "failed", "duplicate_in_source"]
    {
        assert_eq!(real.json()[counted], summary[counted], "{counted}");
    }
    assert_eq!(real.json()["certificate"]["holds"], true);
    assert_ne!(real.json()["job"], summary["job"]);
    // The times are those of the chunks, not of the looks.
    let (seconds, rate) = (real.json()["seconds"].as_f64(), real.json()["records_per_second"].as_f64());
    let product = seconds.unwrap_or_default() * rate.unwrap_or_default();
    assert!((product - 1_000.0).abs() < 0.01, "{product}");
}

#[test]
fn a_command_is_told_how_a_job_ended_and_changes_nothing_about_it() {
    let migration = Migration::new(100, false);
    let out = migration.ground.folder.path().join("told");
    let command = format!(
        "cat > {0}; echo \"$CROSSDOCK_JOB $CROSSDOCK_STATUS $CROSSDOCK_OUTCOME\" >> {0}; echo noise; exit 9",
        out.display()
    );
    let done = migration.run(&["--on-complete", &command]);
    assert_eq!(done.code, 0, "{done:?}");
    done.says(&["the command of --on-complete ended with exit code 9", "noise"]);
    assert_eq!(done.stdout.lines().count(), 1, "{done:?}");
    let told = fs::read_to_string(&out).expect("the command has run");
    let (summary, words) = told.trim_end().split_once('\n').expect("two lines");
    let summary: Value = serde_json::from_str(summary).expect("the summary is JSON");
    assert_eq!((&summary["job"], &summary["imported"]), (&done.json()["job"], &json!(100)));
    assert_eq!(words, format!("{} completed clean", done.json()["job"].as_str().expect("an id")));
}

#[test]
fn a_changed_folder_is_refused_until_somebody_accepts_it() {
    let migration = Migration::new(3_000, true);
    let stopped = migration.run(&["--stop-on-rejects", "0", "--on-complete", "cat > told"]);
    assert_eq!((stopped.code, stopped.json()["status"].as_str()), (1, Some("failed")), "{stopped:?}");
    let reason = stopped.json()["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("unknown_wallet (") && reason.contains("the limit on rejects is 0"), "{reason}");
    assert!(migration.ground.folder.path().join("told").exists(), "any end is one");

    let map = MAP.replace("'unknown_wallet: ' || wallet", "NULL");
    fs::write(migration.folder.join("map.sql"), map).expect("a file can be written");
    let refused = migration.run(&[]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let id = stopped.json()["job"].clone();
    refused.says(&[id.as_str().expect("an id"), "map.sql (from line 2)", "--accept-changes", "--new-job"]);

    let ended = migration.run(&["--accept-changes"]);
    assert_eq!((ended.code, &ended.json()["job"]), (3, &id), "{ended:?}");
    assert_eq!(ended.json()["failed"], stopped.json()["failed"], "what comes now does not fail");
    assert_eq!(ended.json()["certificate"]["holds"], true);
    ended.says(&["with changed map.sql"]);
}

#[test]
fn a_run_pauses_itself_at_its_time_and_the_same_command_goes_on() {
    let migration = Migration::new(2_000, false);
    let paused = migration.run(&["--max-rows-per-second", "100", "--until", &in_seconds(3)]);
    assert_eq!((paused.code, paused.json()["status"].as_str()), (5, Some("paused")), "{paused:?}");
    assert!(paused.json()["reason"].as_str().unwrap_or_default().contains("until"), "{paused:?}");
    let imported = paused.json()["imported"].as_i64().unwrap_or_default();
    assert!((1..2_000).contains(&imported), "{imported}");
    assert_eq!(migration.status(&paused.json()["job"])["imported"], imported, "nobody writes on");

    let ended = migration.run(&["--max-rows-per-second", "off"]);
    assert_eq!((ended.code, &ended.json()["job"]), (0, &paused.json()["job"]), "{ended:?}");
    assert_eq!(ended.json()["imported"], 2_000);
}

#[test]
fn a_run_that_is_stopped_says_that_it_is_not_finished() {
    let migration = Migration::new(2_000, false);
    let told = migration.ground.folder.path().join("told");
    let hook = format!("cat > {}", told.display());
    let mut run =
        Process::start(&mut migration.command(&["--max-rows-per-second", "100", "--on-complete", &hook]));
    run.hears("job ");
    assert_eq!(run.terminate(), 5, "{}", run.rest_of_talk());
    assert!(!told.exists(), "the job has not ended");
    let ended = migration.run(&["--max-rows-per-second", "off"]);
    assert_eq!((ended.code, &ended.json()["imported"]), (0, &json!(2_000)), "{ended:?}");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let migration = Migration::new(1, false);
    for (typed, says) in [
        (&["--until", "soon"][..], "is no time"),
        (&["--until", "2001-01-01T00:00:00Z"], "is over"),
        (&["--stop-on-rejects", "101%"], "is no limit on rejects"),
        (&["--max-rows-per-second", "0"], "is no rate"),
        (&["--new-job", "--accept-changes"], "cannot be used with"),
    ] {
        let done = migration.run(typed);
        assert_eq!(done.code, 2, "{typed:?}: {done:?}");
        done.says(&[says]);
    }
}

#[test]
fn a_job_is_paused_resumed_and_cancelled_by_other_processes() {
    let migration = Migration::new(400, false);
    let ground = &migration.ground;
    let mut run = Process::start(&mut migration.command(&["--max-rows-per-second", "100"]));
    run.hears("job ");
    let id = ground.json(&["ledger", "status", "--json"])["job"].as_str().expect("an id").to_owned();
    let paused = ground.run(&["ledger", "pause", &id]);
    assert_eq!(paused.code, 0, "{paused:?}");
    assert_eq!(run.wait(), 5, "{}", run.rest_of_talk());
    let before = migration.status(&json!(id));
    assert_eq!(before["status"], "paused");
    assert!(before["imported"].as_i64().expect("a number") < 400, "{before}");

    let ended = ground.run(&["ledger", "resume", &id, "--json"]);
    assert_eq!((ended.code, &ended.json()["imported"]), (0, &json!(400)), "{ended:?}");
    let refused = ground.run(&["ledger", "pause", &id]);
    assert_eq!(refused.code, 2, "{refused:?}");
    refused.says(&["nothing to pause"]);

    let migration = Migration::new(400, false);
    let ground = &migration.ground;
    let mut run = Process::start(&mut migration.command(&["--max-rows-per-second", "100"]));
    run.hears("job ");
    let id = ground.json(&["ledger", "status", "--json"])["job"].as_str().expect("an id").to_owned();
    let cancelled = ground.run(&["ledger", "cancel", &id]);
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    cancelled.says(&["ledger rollback"]);
    assert_eq!(run.wait(), 1, "{}", run.rest_of_talk());
    let refused = ground.run(&["ledger", "resume", &id]);
    assert_eq!(refused.code, 2, "{refused:?}");
    refused.says(&["final"]);
    let taken = ground.run(&["ledger", "rollback", &id, "--json"]);
    assert_eq!(taken.json()["left"], json!({}), "{taken:?}");
}
