//! The log lines that people and alarms look for, with their fields.

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};

use crossdock_imports as imports;
use engine::Status;
use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

use crate::world::{World, import_test, record, token};

/// What this process has logged. Tests that run beside each other tell their lines by the job.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

static LINES: OnceLock<Lines> = OnceLock::new();

fn listen() -> &'static Lines {
    LINES.get_or_init(|| {
        let lines = Lines::default();
        tracing_subscriber::fmt().json().flatten_event(true).with_writer(lines.clone()).init();
        lines
    })
}

/// The lines of a job, without their times.
fn of_job(lines: &Lines, job: &str) -> Vec<Value> {
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(!text.contains("a-token-for-tests"), "the token is in no line");
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["job"] == job)
        .collect()
}

fn messages(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["message"].as_str().unwrap()).collect()
}

fn asked(world: &World) -> imports::NewImport {
    let filter =
        imports::Filter { only_domain: vec!["old.example.com".into()], ..imports::Filter::default() };
    imports::NewImport { request_id: Some("req-7".into()), filter, ..world.plain() }
}

import_test!(a_run_begins_and_ends_with_a_line_of_the_contract, world, {
    let lines = listen();
    world.account.set(&[
        record("a", "old.example.com/a", "https://example.com/"),
        record("bad", "old.example.com/bad", ""),
        record("out", "other.example.com/out", "https://example.com/"),
    ]);
    let report = world.import_as(&asked(&world)).await;
    world.stop().await;
    let lines = of_job(lines, &report.id.to_string());

    let starting =
        lines.iter().find(|line| line["message"] == "import: starting parcels run").expect("it starts");
    assert_eq!(starting["target_domain"], "go.example.com");
    assert_eq!(starting["conflict_strategy"], "suffix");
    assert_eq!(starting["filter"], "{\"only_domain\":[\"old.example.com\"]}");
    assert!(starting["workspace"].is_string());
    let complete =
        lines.iter().find(|line| line["message"] == "import: parcels run complete").expect("it completes");
    assert_eq!(
        [&complete["imported"], &complete["skipped"], &complete["failed"], &complete["total"]],
        [&Value::from(1), &Value::from(0), &Value::from(1), &Value::from(3)]
    );
    for line in &lines {
        assert_eq!(line["request"], "req-7", "the request's id is on every line of the job: {line}");
    }
});

import_test!(each_move_has_its_line, world, {
    let lines = listen();
    world.account.set(&[record("a", "old.example.com/a", "https://example.com/")]);
    world.account.close_after(0);
    let id = world.imports.start(&asked(&world), token()).await.unwrap();
    world.account.asked().await;
    world.imports.pause(None, id).await.unwrap();
    world.moved(id, Status::Paused).await;
    world.account.open();
    world.imports.resume(None, id, Some(token())).await.unwrap();
    let report = world.rest(id).await;
    assert_eq!(report.imported, 1);
    world.stop().await;
    let lines = of_job(lines, &id.to_string());
    let told = messages(&lines);
    for line in ["paused", "resumed", "completed"] {
        let line = format!("import: parcels {line}");
        assert_eq!(told.iter().filter(|told| **told == line).count(), 1, "{line}: {told:?}");
    }
});

import_test!(an_import_that_nobody_runs_is_cancelled_with_a_line_too, world, {
    let lines = listen();
    world.account.close_after(0);
    let first = world.imports.start(&asked(&world), token()).await.unwrap();
    world.account.asked().await;
    // It queues behind the first.
    let second = world.imports.start(&asked(&world), token()).await.unwrap();
    world.imports.cancel(None, second).await.unwrap();
    world.imports.cancel(None, first).await.unwrap();
    world.moved(first, Status::Cancelled).await;
    world.stop().await;
    for id in [first, second] {
        let lines = of_job(lines, &id.to_string());
        let told = messages(&lines);
        assert_eq!(told.iter().filter(|told| **told == "import: parcels cancelled").count(), 1, "{told:?}");
        assert!(lines.iter().all(|line| line["request"] == "req-7"), "{lines:?}");
    }
});

import_test!(a_failed_import_says_why, world, {
    let lines = listen();
    world.make("a", "https://example.com/mine").await;
    world.account.set(&[record("a", "old.example.com/a", "https://example.com/")]);
    let report = world.import_by(imports::Conflict::Fail).await;
    world.stop().await;
    let lines = of_job(lines, &report.id.to_string());
    let failed = lines.iter().find(|line| line["message"] == "import: parcels failed").expect("it says so");
    assert_eq!(failed["level"], "WARN");
    assert!(failed["reason"].as_str().unwrap().contains("go.example.com/a"), "{failed}");
});
