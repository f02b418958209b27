//! `crossdock demo`, as the README's first command runs it.

use crate::ground::{Database, Done, bare, on_both, server_url};

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
