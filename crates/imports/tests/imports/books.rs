//! Counters, the error log, the view of import jobs, dry runs.

use crossdock_imports as imports;
use db::Conn;
use engine::Status;
use imports::{ERROR_LOG_CAP, Filter};
use sqlx::FromRow;

use crate::world::{Record, World, counters, import_test, record, told};

/// An account with something of every outcome but `updated` and `unchanged`.
fn mixed() -> Vec<Record> {
    let to = "https://example.com/";
    let twice = record("twice", "old.example.com/twice", to);
    let mut records: Vec<Record> =
        (0..30).map(|n| record(&format!("r{n}"), &format!("old.example.com/s{n}"), to)).collect();
    records.extend([
        twice.clone(),
        Record { noise: 1, ..twice },
        record("bad", "old.example.com/bad", ""),
        record("elsewhere", "other.example.com/e", to),
        record("suffixed", "old.example.com/s1", to),
    ]);
    records
}

async fn only_old(world: &World, dry_run: bool) -> imports::ImportReport {
    let filter = Filter { only_domain: vec!["old.example.com".into()], ..Filter::default() };
    world.import_as(&imports::NewImport { filter, dry_run, ..world.plain() }).await
}

import_test!(b11_g93_every_record_has_one_outcome_and_the_numbers_add_up, world, {
    world.account.page_size(10);
    world.account.set(&mixed());
    let first = only_old(&world, false).await;
    assert_eq!((first.source_links, first.expected, first.pages, first.slugs), (35, Some(35), 4, 32));
    assert_eq!(counters(&first), [32, 0, 0, 0, 1, 1, 1]);

    let mut changed = mixed();
    changed[0].to = "https://example.com/now".into();
    changed[1].to = "https://example.com/now".into();
    world.account.set(&changed);
    world.edit(world.link("s1").await.id, "https://example.com/edited").await;
    world.delete(world.link("s2").await.id).await;
    let second = only_old(&world, false).await;
    assert_eq!(counters(&second), [0, 1, 29, 1, 2, 1, 1]);
    let history = world.imports.history(second.id).await.unwrap();
    let records: i32 = history.iter().map(|line| line.records).sum();
    let cleaned: i32 = history.iter().map(|line| line.cleaned).sum();
    assert_eq!((records, cleaned), (35, 35), "the history accounts for every record too");
});

import_test!(the_error_log_keeps_1000_entries_and_the_counts_go_on, world, {
    let records: Vec<Record> =
        (0..1_250).map(|n| record(&format!("r{n:04}"), &format!("old.example.com/s{n}"), "")).collect();
    world.account.set(&records);
    let report = world.import().await;
    assert_eq!((counters(&report), report.outcome), ([0, 0, 0, 0, 0, 0, 1_250], Some("partial")));
    let log = world.log(&report).await;
    assert_eq!((log.len() as i64, ERROR_LOG_CAP), (1_000, 1_000));
    assert_eq!(log[0].source_id.as_deref(), Some("r0000"));
    assert_eq!(world.quarantined(&report).await.len(), 1_250, "quarantine keeps them all");
    let shown: Vec<serde_json::Value> = serde_json::from_str(&view(&world).await[0].error_log).unwrap();
    assert_eq!(shown.len(), 1_000);
});

/// The view's columns, each by its name of the contract.
#[derive(Debug, FromRow)]
struct Row {
    id: i64,
    workspace_id: i64,
    source_vendor: String,
    source_token_id: Option<i64>,
    target_domain_id: i64,
    status: String,
    conflict_strategy: String,
    source_filter: String,
    total_items: i64,
    imported_items: i64,
    updated_items: i64,
    unchanged_items: i64,
    skipped_items: i64,
    filtered_items: i64,
    duplicate_items: i64,
    failed_items: i64,
    slugs: i64,
    error_log: String,
    has_created: bool,
    has_started: bool,
    has_progress: bool,
    has_finished: bool,
    failure_reason: Option<String>,
}

const VIEW_SQLITE: &str = "SELECT id, workspace_id, source_vendor, source_token_id, target_domain_id, status,
        conflict_strategy, source_filter, total_items, imported_items, updated_items, unchanged_items, skipped_items,
        filtered_items, duplicate_items, failed_items, slugs, error_log, created_at IS NOT NULL AS has_created,
        started_at IS NOT NULL AS has_started, last_progress_at IS NOT NULL AS has_progress,
        finished_at IS NOT NULL AS has_finished, failure_reason
    FROM import_jobs ORDER BY id";

const VIEW_POSTGRES: &str = "SELECT id, workspace_id, source_vendor, source_token_id, target_domain_id, status,
        conflict_strategy, source_filter::text, total_items::bigint, imported_items::bigint, updated_items::bigint,
        unchanged_items::bigint, skipped_items::bigint, filtered_items::bigint, duplicate_items::bigint,
        failed_items::bigint, slugs::bigint, error_log::text, created_at IS NOT NULL AS has_created,
        started_at IS NOT NULL AS has_started, last_progress_at IS NOT NULL AS has_progress,
        finished_at IS NOT NULL AS has_finished, failure_reason
    FROM import_jobs ORDER BY id";

async fn view(world: &World) -> Vec<Row> {
    let mut reader = world.database.read().await.unwrap();
    match reader.conn() {
        Conn::Sqlite(conn) => sqlx::query_as(VIEW_SQLITE).fetch_all(conn).await.unwrap(),
        Conn::Postgres(pg) => sqlx::query_as(VIEW_POSTGRES).fetch_all(pg.conn).await.unwrap(),
    }
}

import_test!(the_view_import_jobs_shows_an_import_as_one_row, world, {
    world.account.page_size(10);
    world.account.set(&mixed());
    let report = only_old(&world, false).await;
    world.make("taken", "https://example.com/").await;
    world.account.set(&[record("x", "old.example.com/taken", "https://example.com/")]);
    let failed = world.import_by(imports::Conflict::Fail).await;

    let rows = view(&world).await;
    let [first, second] = rows.as_slice() else { panic!("two imports, {} rows", rows.len()) };
    assert_eq!((first.id, second.id), (report.id.0.get(), failed.id.0.get()));
    assert_eq!((first.workspace_id, first.target_domain_id), (world.workspace.get(), world.domain.id.get()));
    assert_eq!((first.source_vendor.as_str(), first.source_token_id), ("parcels", None));
    assert_eq!((first.status.as_str(), first.conflict_strategy.as_str()), ("completed", "suffix"));
    let filter: serde_json::Value = serde_json::from_str(&first.source_filter).unwrap();
    assert_eq!(filter, serde_json::json!({"only_domain": ["old.example.com"]}));
    assert_eq!((first.total_items, first.slugs), (35, 32));
    assert_eq!(
        [
            first.imported_items,
            first.updated_items,
            first.unchanged_items,
            first.skipped_items,
            first.filtered_items,
            first.duplicate_items,
            first.failed_items,
        ],
        counters(&report)
    );
    let log: Vec<serde_json::Value> = serde_json::from_str(&first.error_log).unwrap();
    let bad = serde_json::json!({"source_id": "bad", "source_slug": "old.example.com/bad", "reason": "missing_destination"});
    assert!(log.contains(&bad), "{log:?}");
    assert!(first.has_created && first.has_started && first.has_progress && first.has_finished);
    assert_eq!(first.failure_reason, None);

    assert_eq!((second.status.as_str(), second.conflict_strategy.as_str()), ("failed", "fail"));
    assert_eq!(second.source_filter, "{}");
    assert!(second.failure_reason.as_ref().is_some_and(|reason| reason.contains("go.example.com/taken")));
});

import_test!(an_import_goes_with_its_domain_and_its_workspace, world, {
    world.account.set(&mixed());
    world.import().await;
    assert_eq!(view(&world).await.len(), 1);
    let domain = world.domain.id.get();
    world.execute(&format!("DELETE FROM domains WHERE id = {domain}")).await;
    assert_eq!(view(&world).await.len(), 0);
});

import_test!(a_dry_run_writes_nothing_and_counts_right, world, {
    world.account.page_size(10);
    world.account.set(&mixed());
    let before = world.target_rows().await;
    let dry = only_old(&world, true).await;
    assert_eq!((dry.status, dry.outcome, dry.dry_run), (Status::Completed, Some("partial"), true));
    assert_eq!(world.target_rows().await, before);
    let foretold = world.reasons(&dry).await;
    assert!(foretold.contains(&told("suffixed", "imported", "slug_suffixed")), "{foretold:?}");
    assert!(foretold.contains(&told("bad", "failed", "missing_destination")), "{foretold:?}");

    let real = only_old(&world, false).await;
    assert_eq!((counters(&dry), dry.slugs), (counters(&real), real.slugs));
    assert_eq!(foretold, world.reasons(&real).await);

    // And beside an import that was: what changed, what was edited, what was deleted.
    let mut changed = mixed();
    changed[0].to = "https://example.com/now".into();
    world.account.set(&changed);
    world.delete(world.link("s2").await.id).await;
    let rows = world.target_rows().await;
    let dry = only_old(&world, true).await;
    assert_eq!(counters(&dry), [0, 1, 30, 0, 2, 1, 1]);
    assert_eq!(world.target_rows().await, rows);
    assert!(world.verify(&dry).await.holds, "nothing should stand there, and nothing does by its doing");
});

import_test!(an_account_without_links_is_a_clean_import, world, {
    let report = world.import().await;
    assert_eq!((report.status, report.outcome, report.source_links), (Status::Completed, Some("clean"), 0));
    assert!(world.verify(&report).await.holds);
});

// The vendor counts seven and gives three: nobody may take that for all of them.
import_test!(c26_an_import_with_fewer_links_than_the_vendor_counts_is_partial, world, {
    let links: Vec<Record> = (0..3)
        .map(|n| record(&format!("r{n}"), &format!("old.example.com/s{n}"), "https://example.com/"))
        .collect();
    world.account.set(&links);
    world.account.count(7);
    let report = world.import().await;
    assert_eq!((report.status, report.outcome), (Status::Completed, Some("partial")));
    assert_eq!((report.failed, report.source_links, report.expected), (0, 3, Some(7)));
    let entry = world.log(&report).await.remove(0);
    assert_eq!((entry.reason.as_str(), entry.outcome.as_str()), ("fewer_than_the_source_counts", "partial"));
    assert_eq!(entry.detail, "all: the source counts 7 records, of which 3 arrived");
    assert_eq!(view(&world).await[0].total_items, 7);

    world.account.count(3);
    let again = world.import().await;
    assert_eq!((again.outcome, again.unchanged, again.expected), (Some("clean"), 3, Some(3)));
});
