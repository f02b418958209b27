//! `crossdock demo`, as the README's first command runs it.

use std::net::TcpStream;
use std::time::Instant;

use crate::ground::{Database, Done, Ground, PATIENCE, Process, bare, on_both, server_url};

fn demo(database: Database, args: &[&str]) -> Done {
    let mut command = bare(&["demo", "--exit", "--json"]);
    if database == Database::Postgres {
        command.args(["--database", &server_url()]);
    }
    Done::of(command.args(args))
}

fn the_demo_brings_everything_over_and_says_so(database: Database) {
    let done = demo(database, &["--count", "300"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.stdout.lines().count(), 1, "one object on standard output: {}", done.stdout);
    let summary = done.json();
    for key in [
        "source_links",
        "slugs",
        "imported",
        "unchanged",
        "skipped",
        "failed",
        "planted_failures",
        "verified",
        "mismatched",
        "seconds",
        "links_per_second",
        "pages",
        "retries",
        "peak_rss_bytes",
    ] {
        assert!(summary[key].is_number(), "{key}: {summary}");
    }
    assert_eq!((summary["source_links"].as_i64(), summary["imported"].as_i64()), (Some(300), Some(300)));
    assert_eq!((summary["failed"].as_i64(), summary["mismatched"].as_i64()), (Some(0), Some(0)));
    assert_eq!(summary["verified"], summary["slugs"]);
    assert_eq!(summary["pages"].as_i64(), Some(3));
}

on_both!(the_demo_brings_everything_over_and_says_so);

fn the_rough_demo_fails_exactly_what_was_planted(database: Database) {
    let done = demo(database, &["--count", "700", "--faults", "rough"]);
    assert_eq!(done.code, 0, "{done:?}");
    let summary = done.json();
    assert!(summary["planted_failures"].as_i64() > Some(0), "{summary}");
    assert_eq!(summary["failed"], summary["planted_failures"]);
    assert_eq!(summary["mismatched"].as_i64(), Some(0));
    assert!(summary["retries"].as_i64() > Some(0), "{summary}");
}

on_both!(the_rough_demo_fails_exactly_what_was_planted);

#[test]
fn what_cannot_be_a_demo_is_refused_with_advice() {
    let done = Done::of(&mut bare(&["demo", "--exit", "--faults", "bang@3"]));
    assert_eq!(done.code, 2);
    done.says(&["bang", "--help-faults"]);
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("mine.db");
    std::fs::write(&file, "precious").expect("the file can be written");
    let url = format!("sqlite://{}", file.display());
    let done = Done::of(&mut bare(&["demo", "--exit", "--database", &url]));
    assert_eq!(done.code, 2);
    done.says(&["mine.db exists; a demo needs a new file"]);
    assert_eq!(std::fs::read(&file).expect("it is there"), b"precious");
}

/// The demo of a ledger in the ground's database.
fn ledger(ground: &Ground, args: &[&str]) -> Done {
    let mut command = bare(&["demo", "ledger", "--exit", "--json", "--database", &ground.url]);
    Done::of(command.args(args))
}

#[test]
fn the_ledgers_demo_survives_its_kills_and_finds_everything_unchanged_when_run_again() {
    let ground = Ground::new(Database::Postgres);
    let done = ledger(&ground, &["--count", "8000"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.stdout.lines().count(), 1, "one object on standard output: {}", done.stdout);
    let first = done.json();
    let counts = |summary: &serde_json::Value| {
        ["records", "imported", "updated", "unchanged", "filtered", "failed", "duplicate_in_source", "kills"]
            .map(|key| summary[key].as_i64().unwrap_or_else(|| panic!("{key}: {summary}")))
    };
    assert_eq!(counts(&first), [8000, 8000, 0, 0, 0, 0, 0, 2], "{done:?}");
    assert_eq!(first["certificate"]["holds"], true);
    for key in ["seconds", "records_per_second", "peak_rss_bytes"] {
        assert!(first[key].as_f64() > Some(0.0), "{key}: {first}");
    }
    let again = ledger(&ground, &["--count", "8000"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(counts(&again.json())[..7], [8000, 0, 0, 8000, 0, 0, 0], "{again:?}");
    let other = ledger(&ground, &["--count", "2000", "--seed", "2"]);
    assert_eq!(other.code, 2, "{other:?}");
    other.says(&["--count 8000 --seed 1 --faults none", "--fresh"]);
    let fresh = ledger(&ground, &["--count", "2000", "--seed", "2", "--faults", "rough", "--fresh"]);
    assert_eq!(fresh.code, 0, "{fresh:?}");
    let summary = fresh.json();
    assert!(summary["failed"].as_i64() >= Some(12), "{summary}");
    assert!(summary["duplicate_in_source"].as_i64() > Some(0), "{summary}");
}

#[test]
fn the_ledgers_demo_leaves_another_bank_alone() {
    let ground = Ground::new(Database::Postgres);
    ground.execute("CREATE SCHEMA bank; CREATE TABLE bank.vault AS SELECT 7 AS gold");
    for more in [&[][..], &["--fresh"]] {
        let done = ledger(&ground, more);
        assert_eq!(done.code, 2, "{done:?}");
        done.says(&["is not the demo's"]);
    }
    ground.execute("INSERT INTO bank.vault VALUES (8)");
    let done = Done::of(&mut bare(&["demo", "ledger", "--exit", "--database", "sqlite://x.db"]));
    assert_eq!(done.code, 2);
    done.says(&["a ledger lives on Postgres", "make demo-ledger"]);
}

/// However the demo ends, its processes end with it: none of them is connected to the database any more.
/// Waits until nobody listens at an address any more.
fn until_closed(address: &str) {
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < deadline, "somebody still listens at {address}");
        std::thread::yield_now();
    }
}

#[test]
fn the_ledgers_demo_leaves_no_process_behind() {
    let ground = Ground::new(Database::Postgres);
    for ending in [Process::terminate, |demo: &mut Process| {
        demo.kill();
        -1
    }] {
        let args = ["demo", "ledger", "--count", "100000", "--database", &ground.url];
        let mut demo = Process::start(&mut bare(&args));
        let line = demo.hears("wallet logs at http://");
        let simulator = line.rsplit("http://").next().expect("an address").trim_end_matches('/').to_owned();
        demo.hears("two workers are at work");
        ground.until_connected(|others| others >= 3);
        assert!(TcpStream::connect(&simulator).is_ok(), "{simulator}");
        assert_ne!(ending(&mut demo), 0);
        ground.until_connected(|others| others == 0);
        until_closed(&simulator);
    }
}
