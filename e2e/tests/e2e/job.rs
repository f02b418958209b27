//! `crossdock job`: steering imports from another process.

use serde_json::json;

use crate::ground::{Database, Done, Ground, Process, Simulator, on_both};

/// The account answers its tenth list request, somewhere in the middle, so late that what is to happen before happens.
const HELD: &str = "slow@10:10000";

/// The only import of the database, as soon as there is one.
fn job_id(ground: &Ground) -> String {
    let deadline = std::time::Instant::now() + crate::ground::PATIENCE;
    loop {
        let jobs = ground.json(&["job", "list", "--json"]);
        if let Some(id) = jobs[0]["id"].as_str() {
            return id.to_owned();
        }
        assert!(std::time::Instant::now() < deadline, "no import was made");
    }
}

fn an_import_is_paused_from_elsewhere_and_goes_on(database: Database) {
    let ground = Ground::new(database);
    let account = Simulator::start(700, &["--faults", HELD]);
    let mut import = Process::start(&mut ground.import_command(&account, &[]));
    let id = job_id(&ground);
    ground.until(&id, "pages are fetched", |job| job["pages"].as_i64() >= Some(2));
    let paused = ground.json(&["job", "pause", &id, "--json"]);
    assert_eq!((&paused["id"], &paused["status"]), (&json!(id), &json!("paused")));
    // The process that ran it ends, and says how it stands.
    assert_eq!(import.wait(), 1, "{}", import.rest_of_talk());
    let shown = ground.job(&id);
    assert_eq!(shown["job"]["status"], "paused");
    assert!(shown["job"]["source_links"].as_i64() < Some(700), "{shown}");

    let mut resume =
        ground.command(&["job", "resume", &id, "--base-url", &account.url, "--pace", "none", "--json"]);
    let done = Done::of(resume.env("CROSSDOCK_SOURCE_TOKEN", &account.token));
    assert_eq!((done.code, done.json()["imported"].as_i64()), (0, Some(700)), "{done:?}");
    assert_eq!(done.json()["duplicates"].as_i64(), Some(0));
    assert_eq!(ground.json(&["job", "verify", &id, "--json"])["holds"], true);
}

on_both!(an_import_is_paused_from_elsewhere_and_goes_on);

fn a_cancelled_import_ends_for_good(database: Database) {
    let ground = Ground::new(database);
    let account = Simulator::start(700, &["--faults", HELD]);
    let mut import = Process::start(&mut ground.import_command(&account, &[]));
    let id = job_id(&ground);
    ground.until(&id, "pages are fetched", |job| job["pages"].as_i64() >= Some(2));
    assert_eq!(ground.json(&["job", "cancel", &id, "--json"])["status"], "cancelled");
    assert_eq!(import.wait(), 1, "{}", import.rest_of_talk());
    for action in ["resume", "pause"] {
        let done = ground.run(&["job", action, &id, "--json"]);
        assert_eq!(done.code, 2, "{action}: {done:?}");
        done.says(&["an import that is cancelled cannot be"]);
    }
    // What it wrote can be taken back.
    let written = ground.job(&id)["job"]["imported"].as_i64();
    let undone = ground.json(&["job", "undo", &id, "--json"]);
    assert_eq!(undone["removed"].as_i64(), written, "{undone}");
}

on_both!(a_cancelled_import_ends_for_good);

fn an_import_is_shown_verified_and_undone(database: Database) {
    let ground = Ground::new(database);
    let account = Simulator::start(300, &["--faults", "missing-long-url@4,javascript-destination@7"]);
    let done = ground.import(&account, &[]);
    assert_eq!(done.code, 3, "{done:?}");
    let summary = done.json();
    for key in [
        "job",
        "status",
        "outcome",
        "source_links",
        "slugs",
        "imported",
        "updated",
        "unchanged",
        "skipped",
        "filtered",
        "failed",
        "retries",
        "seconds",
    ] {
        assert!(summary.get(key).is_some(), "{key}: {summary}");
    }
    assert_eq!((&summary["status"], &summary["outcome"]), (&json!("completed"), &json!("partial")));
    let id = summary["job"].as_str().expect("an id").to_owned();

    let shown = ground.run(&["job", "show", &id, "--json"]);
    assert_eq!(shown.code, 3, "showing tells how it stands");
    let shown = shown.json();
    for key in ["source_links", "slugs", "imported", "failed", "retries"] {
        assert_eq!(shown["job"][key], summary[key], "{key}");
    }
    let codes: Vec<&str> = shown["error_log"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|entry| entry["reason"].as_str())
        .collect();
    assert_eq!(codes, ["missing_destination", "destination_scheme"]);
    let records: i64 =
        shown["history"].as_array().expect("a list").iter().filter_map(|line| line["records"].as_i64()).sum();
    assert_eq!(records, 300);
    let text = ground.run(&["job", "show", &id]);
    assert!(text.stdout.contains("history:") && text.stdout.contains("missing_destination"), "{text:?}");

    let listed = ground.json(&["job", "list", "--json"]);
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["id"]), (Some(1), &json!(id)));
    let verified = ground.json(&["job", "verify", &id, "--json"]);
    assert_eq!(
        (&verified["holds"], &verified["records"], &verified["verified"]),
        (&json!(true), &json!(300), &json!(298))
    );

    let undone = ground.json(&["job", "undo", &id, "--json"]);
    assert_eq!((&undone["removed"], &undone["edited"]), (&json!(298), &json!(0)), "{undone}");
    let done = ground.import(&account, &[]);
    assert_eq!(done.json()["imported"].as_i64(), Some(298), "after an undo it comes again: {done:?}");
}

on_both!(an_import_is_shown_verified_and_undone);

#[test]
fn what_is_no_job_is_refused() {
    let ground = Ground::new(Database::Sqlite);
    for action in ["show", "pause", "resume", "cancel", "verify", "undo"] {
        for (id, said) in [("0000000000000", "there is no such import"), ("nonsense!", "nonsense!")] {
            let done = ground.run(&["job", action, id]);
            assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{action} {id}: {done:?}");
            done.says(&[said]);
        }
    }
}
