//! What becomes of records.

use crossdock_ledger::Folder;
use engine::Status;

use crate::bank::{Bank, MAP, PIPELINE, PROOF, folder, record};

const ROWS: &str = "SELECT reference || ' ' || account_id || ' ' || kind || ' ' || amount || ' ' || coalesce(memo, '-') || ' '
    || metadata || ' ' || extract(epoch FROM booked_at)::bigint FROM bank.transactions ORDER BY reference COLLATE \"C\"";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_arrive_exact_to_the_last_digit() {
    let bank = Bank::open().await;
    let job = bank
        .run(
            folder(),
            &[
                record(9_007_199_254_740_993, "w1", "credit", "9999999999999999.01"),
                record(2, "w2", "debit", "\"0.1000\""),
                record(3, "w1", "debit", "1e-4"),
                r#"{"id":4,"wallet":"w1","type":"credit","amount":-0,"memo":"a\u00e9;1:x","metadata":{"b":1.50,"a":[1,{"z":null}]},"at":"2024-03-31T01:30:00Z"}"#.to_owned(),
            ],
        )
        .await;
    assert_eq!(
        (job.status, job.counts.imported, job.counts.targets),
        (Status::Completed, 4, 4),
        "{:?}",
        bank.notes(job.id).await
    );
    assert_eq!(
        bank.texts(ROWS).await,
        [
            "WL-2 2 debit 0.1000 - {} 1711848600",
            "WL-3 1 debit 0.0001 - {} 1711848600",
            r#"WL-4 1 credit 0.0000 aé;1:x {"a": [1, {"z": null}], "b": 1.50} 1711848600"#,
            "WL-9007199254740993 1 credit 9999999999999999.0100 - {} 1711848600",
        ]
    );
    let sums = bank.texts("SELECT sums::text FROM crossdock.ledger_proofs").await;
    assert_eq!(sums, [r#"[[0, ["credit"], "9999999999999999.01"], [0, ["debit"], "0.1001"]]"#]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bad_record_stands_alone_in_quarantine_with_its_reason() {
    let bank = Bank::open().await;
    let mut lines: Vec<Vec<u8>> = (1..=3).map(|id| record(id, "w1", "credit", "1").into_bytes()).collect();
    let bad: [(&[u8], &str); 14] = [
        (b"{\"id\":10,\"wallet\":\"w1\"", "not_json"),
        (b"{\"id\":11,\"wallet\":\"w1\",\"type\":\"credit\",\"amount\":1,\"memo\":\"\xff\",\"at\":\"2024-03-31T01:30:00Z\"}", "invalid_utf8"),
        (br#"{"wallet":"w1","type":"credit","amount":1,"at":"2024-03-31T01:30:00Z"}"#, "missing_id"),
        (br#"{"id":13,"wallet":"w1","type":"credit","amount":1,"memo":"\ud835","at":"2024-03-31T01:30:00Z"}"#, "lone_surrogate"),
        (br#"{"id":14,"wallet":"w1","type":"credit","amount":1,"memo":"a\u0000b","at":"2024-03-31T01:30:00Z"}"#, "nul_in_text"),
        (br#"{"id":15,"wallet":"w1","type":"credit","amount":36583610105684000000,"at":"2024-03-31T01:30:00Z"}"#, "numeric_overflow"),
        (br#"{"id":16,"wallet":"w1","type":"credit","amount":0.00001,"at":"2024-03-31T01:30:00Z"}"#, "numeric_inexact"),
        (br#"{"id":17,"wallet":"w1","type":"credit","amount":1,"at":"2024-03-31T02:30:00"}"#, "ambiguous_time"),
        (br#"{"id":18,"wallet":"w1","type":"credit","amount":1,"at":null}"#, "null_field"),
        (br#"{"id":19,"wallet":"w1","type":"refund","amount":1,"at":"2024-03-31T01:30:00Z"}"#, "unknown_value"),
        (br#"{"id":20,"wallet":"w9","type":"credit","amount":1,"at":"2024-03-31T01:30:00Z"}"#, "unknown_wallet"),
        (br#"{"id":21,"wallet":"w1","type":"credit","at":"2024-03-31T01:30:00Z"}"#, "missing_field"),
        (br#"{"id":22,"id":23,"wallet":"w1","type":"credit","amount":1,"at":"2024-03-31T01:30:00Z"}"#, "name_twice"),
        (br#"{"id":24,"wallet":7,"type":"credit","amount":true,"at":"2024-03-31T01:30:00Z"}"#, "wrong_type"),
    ];
    lines.extend(bad.iter().map(|(line, _)| line.to_vec()));
    lines.push(record(4, "w2", "fee", "1").into_bytes());
    let job = bank.run(folder(), &lines).await;
    let codes: Vec<String> = bank.notes(job.id).await.into_iter().map(|note| note.1).collect();
    let mut expected: Vec<&str> = bad.iter().map(|(_, code)| *code).collect();
    expected.push("fees");
    assert_eq!(codes, expected);
    assert_eq!((job.counts.imported, job.counts.failed, job.counts.filtered), (3, 14, 1));
    assert_eq!(job.outcome(), Some("partial"));
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_run_writes_nothing_and_a_changed_record_is_a_named_conflict() {
    let bank = Bank::open().await;
    let lines: Vec<String> = (1..=300).map(|id| record(id, "w1", "credit", &id.to_string())).collect();
    let first = bank.run(folder(), &lines).await;
    assert_eq!(first.counts.imported, 300);
    let before = bank.texts("SELECT reference || xmin || ctid FROM bank.transactions ORDER BY 1").await;
    let again = bank.run(folder(), &lines).await;
    assert_eq!(
        (again.counts.unchanged, again.counts.records()),
        (300, 300),
        "{:?}",
        bank.notes(again.id).await
    );
    assert_eq!(
        bank.texts("SELECT reference || xmin || ctid FROM bank.transactions ORDER BY 1").await,
        before
    );

    let mut changed = lines.clone();
    changed[6] = record(7, "w2", "credit", "7.5");
    changed.push(record(301, "w1", "debit", "1"));
    let third = bank.run(folder(), &changed).await;
    assert_eq!((third.counts.unchanged, third.counts.failed, third.counts.imported), (299, 1, 1));
    let notes = bank.notes(third.id).await;
    assert_eq!((notes[0].0.as_str(), notes[0].1.as_str()), ("WL-7", "conflict"));
    assert!(notes[0].2.contains(r#""amount": ["7.0000", "7.5"]"#), "{}", notes[0].2);
    assert!(notes[0].2.contains(r#""account_id": ["1", "2"]"#), "{}", notes[0].2);

    let update = PIPELINE.replace("key = [\"reference\"]", "key = [\"reference\"]\non_conflict = \"update\"");
    let update = Folder::of([("pipeline.toml", update.as_str()), ("map.sql", MAP), ("proof.sql", PROOF)]);
    let fourth = bank.run(update, &changed).await;
    assert_eq!(
        (fourth.counts.unchanged, fourth.counts.updated),
        (300, 1),
        "{:?}",
        bank.notes(fourth.id).await
    );
    assert_eq!(
        bank.texts("SELECT amount::text FROM bank.transactions WHERE reference = 'WL-7'").await,
        ["7.5000"]
    );
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicates_of_the_source_are_told_from_conflicting_ones() {
    let bank = Bank::open().await;
    let one = record(1, "w1", "credit", "1");
    let spaced =
        one.replace(":", ": ").replace(": 00", ":00").replace("02: 30", "02:30").replace("+01: ", "+01:");
    let lines = [
        one.clone(),
        one.clone(),
        spaced,
        record(2, "w1", "credit", "1"),
        record(3, "w1", "credit", "3"),
        record(3, "w1", "credit", "4"),
        record(3, "w1", "credit", "3.0"),
        record(4, "w1", "credit", "4"),
    ];
    let job = bank.run(folder(), &lines).await;
    assert_eq!(
        (job.counts.imported, job.counts.duplicate_in_source, job.counts.failed),
        (3, 2, 3),
        "{:?}",
        bank.notes(job.id).await
    );
    assert_eq!(
        bank.texts("SELECT reference FROM bank.transactions ORDER BY 1").await,
        ["WL-1", "WL-2", "WL-4"]
    );
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clash_on_another_unique_index_names_it_and_costs_one_record() {
    let bank = Bank::open().await;
    let with_no = |id: i64, no: &str| {
        record(id, "w1", "credit", "1")
            .replace("\"memo\"", &format!("\"metadata\":{{\"no\":\"{no}\"}},\"memo\""))
    };
    let lines: Vec<String> =
        (1..=40).map(|id| with_no(id, &if id == 31 { 7 } else { id }.to_string())).collect();
    let job = bank.run(folder(), &lines).await;
    assert_eq!((job.counts.imported, job.counts.failed), (39, 1), "{:?}", bank.notes(job.id).await);
    let notes = bank.notes(job.id).await;
    assert_eq!(notes[0].1, "unique_violation", "{notes:?}");
    assert!(notes[0].2.contains("external_no"), "{notes:?}");
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_map_bends_does_not_stay_in_the_target() {
    let bank = Bank::open().await;
    let bent = MAP.replace(
        "s.amount,",
        "CASE WHEN s._reference = 'WL-2' THEN s.amount * 100 ELSE s.amount END AS amount,",
    );
    let folder = Folder::of([("pipeline.toml", PIPELINE), ("map.sql", bent.as_str()), ("proof.sql", PROOF)]);
    let lines: Vec<String> = (1..=3).map(|id| record(id, "w1", "credit", "1.5")).collect();
    let job = bank.run(folder, &lines).await;
    assert_eq!((job.counts.imported, job.counts.failed), (2, 1));
    let notes = bank.notes(job.id).await;
    assert_eq!((notes[0].0.as_str(), notes[0].1.as_str()), ("WL-2", "differs_from_source"), "{notes:?}");
    assert!(notes[0].2.contains(r#""amount": "150""#), "{}", notes[0].2);
    assert_eq!(bank.texts("SELECT reference FROM bank.transactions ORDER BY 1").await, ["WL-1", "WL-3"]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_legs_of_a_record_arrive_or_none() {
    let bank = Bank::open().await;
    let map = "SELECT s._record, s._reference || l.leg AS reference, l.account AS account_id, l.kind, s.amount, s.at AS booked_at,
            CASE WHEN l.account IS NULL THEN 'unknown_wallet: ' || s.wallet END AS _reject
        FROM staged s CROSS JOIN LATERAL (VALUES
            (':C', (SELECT id FROM bank.accounts a WHERE a.wallet_id = s.wallet), 'credit'), (':D', 2, 'debit')) AS l (leg, account, kind)";
    let proof = "SELECT replace(c.reference, ':C', '') AS _reference, c.amount
        FROM target c JOIN target d ON d.reference = replace(c.reference, ':C', ':D') AND d.amount = c.amount WHERE c.kind = 'credit'";
    let folder = || Folder::of([("pipeline.toml", PIPELINE), ("map.sql", map), ("proof.sql", proof)]);
    bank.execute("INSERT INTO bank.transactions (reference, account_id, kind, amount, booked_at) VALUES ('WL-3:D', 2, 'debit', 99, now())").await;
    let lines =
        [record(1, "w1", "credit", "1"), record(2, "w9", "credit", "2"), record(3, "w1", "credit", "3")];
    let job = bank.run(folder(), &lines).await;
    let notes = bank.notes(job.id).await;
    assert_eq!((job.counts.imported, job.counts.failed, job.counts.targets), (1, 2, 2), "{notes:?}");
    let codes: Vec<&str> = notes.iter().map(|note| note.1.as_str()).collect();
    assert_eq!(codes, ["unknown_wallet", "conflict"]);
    let rows = bank.texts("SELECT reference || ' ' || amount FROM bank.transactions ORDER BY 1").await;
    assert_eq!(rows, ["WL-1:C 1.0000", "WL-1:D 1.0000", "WL-3:D 99.0000"]);
    let again = bank.run(folder(), &lines).await;
    assert_eq!((again.counts.unchanged, again.counts.failed), (1, 2), "{:?}", bank.notes(again.id).await);
    bank.close().await;
}
