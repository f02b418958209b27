//! What records and targets do to migrations, each as small as it can be. The numbers are those of docs/guarantees.md.

use std::fmt::Write as _;
use std::time::Duration;

use crossdock_ledger::{Folder, Variables};
use engine::{Mode, Status};

use crate::bank::{Bank, MAP, PIPELINE, PROOF, folder, record};

fn codes(notes: &[(String, String, String)]) -> Vec<&str> {
    notes.iter().map(|note| note.1.as_str()).collect()
}

fn numbered(ids: std::ops::RangeInclusive<i64>) -> Vec<String> {
    ids.map(|id| record(id, "w1", "credit", &id.to_string())).collect()
}

/// The migration with chunks of so many records.
fn in_chunks(records: usize) -> Folder {
    let pipeline = format!("{PIPELINE}\n[stage]\nchunk_records = {records}\n");
    Folder::of([("pipeline.toml", pipeline.as_str()), ("map.sql", MAP), ("proof.sql", PROOF)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a5_a6_a_chunk_that_the_target_cannot_take_leaves_no_trace_and_is_done_again() {
    let bank = Bank::open().await;
    // No fault of the data: nothing that could be put aside.
    bank.execute(
        "CREATE FUNCTION bank.out_of_space() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN IF new.reference = 'WL-150' THEN RAISE 'the disk is full' USING ERRCODE = '53100'; END IF; RETURN new; END $$;
        CREATE TRIGGER out_of_space BEFORE INSERT ON bank.transactions FOR EACH ROW EXECUTE FUNCTION bank.out_of_space()",
    )
    .await;
    let job = bank.run(in_chunks(100), &numbered(1..=200)).await;
    assert_eq!(
        (job.status, job.counts.imported, job.counts.failed),
        (Status::Failed, 100, 0),
        "{:?}",
        job.reason
    );
    assert!(job.reason.as_deref().unwrap().contains("disk is full"), "{:?}", job.reason);
    assert_eq!(bank.texts("SELECT count(*)::text FROM bank.transactions").await, ["100"]);
    bank.execute("DROP TRIGGER out_of_space ON bank.transactions").await;
    let job = bank.resume(job.id).await;
    assert_eq!(
        (job.status, job.counts.imported, job.counts.unchanged),
        (Status::Completed, 200, 0),
        "{:?}",
        job.reason
    );
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a12_without_any_memory_of_the_first_run_nothing_is_written_twice() {
    let bank = Bank::open().await;
    let lines = numbered(1..=300);
    bank.run(folder(), &lines).await;
    let rows = "SELECT reference || xmin || ctid FROM bank.transactions ORDER BY 1";
    let before = bank.texts(rows).await;
    bank.execute("DELETE FROM crossdock.jobs").await;
    let job = bank.run(folder(), &lines).await;
    assert_eq!((job.counts.unchanged, job.counts.records(), job.outcome()), (300, 300, Some("clean")));
    assert_eq!(bank.texts(rows).await, before);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c31_two_of_one_id_in_one_chunk_are_one_row_or_none() {
    let bank = Bank::open().await;
    let lines = [
        record(1, "w1", "credit", "1"),
        record(1, "w1", "credit", "1"),
        record(2, "w1", "credit", "2"),
        record(2, "w1", "credit", "3"),
    ];
    let job = bank.run(folder(), &lines).await;
    let notes = bank.notes(job.id).await;
    let twice = notes.iter().filter(|note| note.1 == "conflicting_duplicate").count();
    assert_eq!((job.counts.imported, job.counts.duplicate_in_source, twice), (1, 1, 2), "{notes:?}");
    assert_eq!(bank.texts("SELECT sum(retries)::text FROM crossdock.chunks").await, ["0"]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c33_a_record_that_appears_in_front_moves_no_reference() {
    let bank = Bank::open().await;
    let mut lines = numbered(10..=59);
    bank.run(folder(), &lines).await;
    lines.insert(0, record(3, "w2", "debit", "3"));
    let job = bank.run(folder(), &lines).await;
    assert_eq!((job.counts.imported, job.counts.unchanged, job.counts.failed), (1, 50, 0));
    assert_eq!(bank.texts("SELECT count(*)::text FROM bank.transactions").await, ["51"]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c36_records_without_an_id_are_each_told() {
    let bank = Bank::open().await;
    let nameless = r#"{"wallet":"w1","type":"credit","amount":1,"at":"2024-03-31T01:30:00Z"}"#;
    let job = bank.run(folder(), &[nameless, nameless]).await;
    assert_eq!(codes(&bank.notes(job.id).await), ["missing_id", "missing_id"]);
    assert_eq!((job.counts.failed, job.counts.duplicate_in_source), (2, 0));
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c37_c38_a_clash_on_another_unique_index_names_it_and_leaves_the_first_row() {
    let with_no = |id: i64, no: &str| {
        record(id, "w1", "credit", "1")
            .replace("\"memo\"", &format!("\"metadata\":{{\"no\":\"{no}\"}},\"memo\""))
    };
    for rule in ["compare", "update"] {
        let bank = Bank::open().await;
        bank.execute("CREATE UNIQUE INDEX transactions_no_folded ON bank.transactions (lower(external_no))")
            .await;
        let pipeline = PIPELINE
            .replace("key = [\"reference\"]", &format!("key = [\"reference\"]\non_conflict = \"{rule}\""));
        let folder =
            Folder::of([("pipeline.toml", pipeline.as_str()), ("map.sql", MAP), ("proof.sql", PROOF)]);
        let lines = [with_no(1, "google"), with_no(2, "google"), with_no(3, "Google"), with_no(4, "bing")];
        let job = bank.run(folder, &lines).await;
        let notes = bank.notes(job.id).await;
        assert_eq!(codes(&notes), ["unique_violation", "unique_violation"], "{rule}: {notes:?}");
        assert!(notes[0].2.contains("transactions_external_no_key"), "{notes:?}");
        assert!(notes[1].2.contains("transactions_no_folded"), "{notes:?}");
        let rows =
            bank.texts("SELECT reference || ' ' || external_no FROM bank.transactions ORDER BY 1").await;
        assert_eq!(rows, ["WL-1 google", "WL-4 bing"], "{rule}");
        bank.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c42_of_two_records_the_one_that_breaks_a_rule_of_the_table_stands_alone() {
    let bank = Bank::open().await;
    bank.execute("ALTER TABLE bank.transactions ADD CONSTRAINT small CHECK (amount < 1000)").await;
    let job = bank.run(folder(), &[record(1, "w1", "credit", "1"), record(2, "w1", "credit", "1000")]).await;
    let notes = bank.notes(job.id).await;
    assert_eq!((job.counts.imported, job.counts.failed), (1, 1), "{notes:?}");
    assert_eq!(codes(&notes), ["refused_by_database"]);
    assert_eq!(notes[0].0, "WL-2");
    assert!(notes[0].2.contains("\"small\"") && !notes[0].2.contains(" at line "), "{notes:?}");
    assert_eq!(bank.texts("SELECT reference FROM bank.transactions").await, ["WL-1"]);
    let kept = bank.texts("SELECT convert_from(raw, 'UTF8') FROM crossdock.quarantine").await;
    assert_eq!(kept, [record(2, "w1", "credit", "1000")]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d44_d45_two_jobs_over_the_same_references_in_opposite_order_both_come_through() {
    let bank = Bank::open().await;
    let lines = numbered(1..=4_000);
    let backwards: Vec<&String> = lines.iter().rev().collect();
    let files = [bank.file(&lines), bank.file(&backwards)];
    let mut jobs = Vec::new();
    for file in &files {
        let folder = in_chunks(500);
        let pipeline = folder
            .text("pipeline.toml")
            .replace("name = \"wallet-logs\"", &format!("name = \"logs-{}\"", jobs.len()));
        let folder =
            Folder::of([("pipeline.toml", pipeline.as_str()), ("map.sql", MAP), ("proof.sql", PROOF)]);
        jobs.push(
            bank.ledgers.start(folder, Variables::of([("FILE", file.as_str())]), Mode::Stream).await.unwrap(),
        );
    }
    let mut written = 0;
    for id in jobs {
        let job = bank.rest(id).await;
        assert_eq!(
            (job.status, job.counts.failed),
            (Status::Completed, 0),
            "{:?} {:?}",
            job.reason,
            bank.notes(id).await
        );
        written += job.counts.imported;
    }
    assert_eq!(written, 4_000, "each row by one of them");
    assert_eq!(bank.texts("SELECT count(*)::text FROM bank.transactions").await, ["4000"]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e59_e61_e62_e63_one_bad_text_among_a_thousand_costs_itself() {
    for (memo, code) in [
        (&b"a\\u0000b"[..], "nul_in_text"),
        (&b"\\ud835"[..], "lone_surrogate"),
        (&b"\xff"[..], "invalid_utf8"),
    ] {
        let bank = Bank::open().await;
        let mut lines: Vec<Vec<u8>> = numbered(1..=1_000).into_iter().map(String::into_bytes).collect();
        lines[499] = [
            &br#"{"id":500,"wallet":"w1","type":"credit","amount":1,"memo":""#[..],
            memo,
            br#"","at":"2024-03-31T01:30:00Z"}"#,
        ]
        .concat();
        let job = bank.run(folder(), &lines).await;
        assert_eq!((job.counts.imported, job.counts.failed), (999, 1), "{code}");
        assert_eq!(codes(&bank.notes(job.id).await), [code]);
        let kept = bank.texts("SELECT encode(raw, 'base64') FROM crossdock.quarantine").await;
        let sent = bank.texts(&format!("SELECT encode('\\x{}'::bytea, 'base64')", hex(&lines[499]))).await;
        assert_eq!(kept, sent, "{code}: the bytes as they came");
        bank.close().await;
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e65_e67_e68_e69_amounts_and_ids_are_their_digits() {
    let bank = Bank::open().await;
    let amounts = ["0.1", "9999999999999999.01", "-0", "1.0E+2", "1e-7", "36583610105684000000"];
    let mut lines: Vec<String> =
        (1..).zip(amounts).map(|(id, amount)| record(id, "w1", "credit", amount)).collect();
    lines.push(record(9_007_199_254_740_993, "w1", "credit", "1"));
    lines.push(record(9_007_199_254_740_992, "w1", "credit", "1"));
    let job = bank.run(folder(), &lines).await;
    let notes = bank.notes(job.id).await;
    assert_eq!(codes(&notes), ["numeric_inexact", "numeric_overflow"], "{notes:?}");
    let rows = bank.texts("SELECT reference || ' ' || amount FROM bank.transactions ORDER BY id").await;
    let mut rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    rows.sort_unstable();
    assert_eq!(
        rows,
        [
            "WL-1 0.1000",
            "WL-2 9999999999999999.0100",
            "WL-3 0.0000",
            "WL-4 100.0000",
            "WL-9007199254740992 1.0000",
            "WL-9007199254740993 1.0000",
        ]
    );
    // The same number in other digits is the same record; its bytes are not.
    let other = bank.run(folder(), &[record(4, "w1", "credit", "100")]).await;
    assert_eq!((other.counts.unchanged, other.counts.failed), (1, 0));
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e71_a_time_without_an_offset_is_refused_and_its_text_is_kept() {
    let bank = Bank::open().await;
    let at = |id: i64, time: &str| record(id, "w1", "credit", "1").replace("2024-03-31T02:30:00+01:00", time);
    let job = bank.run(folder(), &[at(1, "2024-03-31T02:30:00"), at(2, "2024-03-31T02:30:00+01:00")]).await;
    let notes = bank.notes(job.id).await;
    assert_eq!(codes(&notes), ["ambiguous_time"]);
    assert!(notes[0].2.contains("2024-03-31T02:30:00"), "{notes:?}");
    let kept =
        bank.texts("SELECT (convert_from(raw, 'UTF8')::json) ->> 'at' FROM crossdock.quarantine").await;
    assert_eq!(kept, ["2024-03-31T02:30:00"]);
    let booked =
        bank.texts("SELECT to_char(booked_at AT TIME ZONE 'UTC', 'HH24:MI') FROM bank.transactions").await;
    assert_eq!(booked, ["01:30"]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e73_a_neighbour_without_a_field_takes_nothing_from_the_one_that_has_it() {
    let bank = Bank::open().await;
    let map = MAP.replace("s.memo, s.metadata", "s.memo, jsonb_build_object('memo', s.memo_is) AS metadata");
    let proof = PROOF.replace("    t.metadata, ", "    ");
    let folder =
        Folder::of([("pipeline.toml", PIPELINE), ("map.sql", map.as_str()), ("proof.sql", proof.as_str())]);
    let with = |id: i64, memo: &str| record(id, "w1", "credit", "1").replace("\"memo\":null,", memo);
    let job = bank.run(folder, &[with(1, "\"memo\":\"x\","), with(2, ""), with(3, "\"memo\":null,")]).await;
    assert_eq!(job.counts.imported, 3, "{:?}", bank.notes(job.id).await);
    let rows = bank
        .texts("SELECT reference || ' ' || coalesce(memo, '-') || ' ' || (metadata ->> 'memo') FROM bank.transactions ORDER BY 1")
        .await;
    assert_eq!(rows, ["WL-1 x present", "WL-2 - missing", "WL-3 - null"]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g88_a_chunk_of_five_thousand_rows_of_fourteen_columns_is_one_statement() {
    let bank = Bank::open().await;
    let extra: Vec<String> = (1..=6).map(|number| format!("ADD COLUMN c{number} bigint")).collect();
    bank.execute(&format!("ALTER TABLE bank.transactions {}", extra.join(", "))).await;
    let columns: Vec<String> = (1..=6).map(|number| format!("s.id + {number} AS c{number}")).collect();
    let map = MAP.replace("s.at AS booked_at,", &format!("s.at AS booked_at, {},", columns.join(", ")));
    let folder = Folder::of([("pipeline.toml", PIPELINE), ("map.sql", map.as_str()), ("proof.sql", PROOF)]);
    let job = bank.run(folder, &numbered(1..=5_000)).await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, 5_000), "{:?}", job.reason);
    assert_eq!(bank.texts("SELECT max(records)::text FROM crossdock.chunks").await, ["5000"]);
    assert_eq!(bank.texts("SELECT count(DISTINCT xmin::text)::text FROM bank.transactions").await, ["1"]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g93_three_bad_of_a_thousand_are_counted_and_the_job_is_not_simply_well() {
    let bank = Bank::open().await;
    let mut lines = numbered(1..=1_000);
    for bad in [10, 500, 999] {
        lines[bad] = record(i64::try_from(bad).unwrap() + 1, "w9", "credit", "1");
    }
    let job = bank.run(folder(), &lines).await;
    assert_eq!((job.fetched, job.counts.imported, job.counts.failed), (1_000, 997, 3));
    assert_eq!((job.status, job.outcome()), (Status::Completed, Some("partial")));
    let certificate = bank.ledgers.certificate(job.id).await.unwrap().unwrap();
    assert!(certificate.holds, "{certificate}");
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g94_what_the_map_leaves_out_is_counted_with_its_rule() {
    let bank = Bank::open().await;
    let lines: Vec<String> =
        (1..=10).map(|id| record(id, "w1", if id > 6 { "fee" } else { "credit" }, "1")).collect();
    let job = bank.run(folder(), &lines).await;
    assert_eq!((job.counts.imported, job.counts.filtered, job.counts.failed), (6, 4, 0));
    let notes = bank.notes(job.id).await;
    assert_eq!(codes(&notes), ["fees"; 4]);
    assert_eq!(notes[0].2, "booked elsewhere");
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g96_g98_a_row_that_is_gone_and_a_row_that_somebody_changed_are_named() {
    let bank = Bank::open().await;
    let job = bank.run(folder(), &numbered(1..=5)).await;
    assert!(bank.ledgers.verify(job.id).await.unwrap().holds);
    bank.execute("DELETE FROM bank.transactions WHERE reference = 'WL-3'; UPDATE bank.transactions SET memo = 'mine' WHERE reference = 'WL-5'").await;
    let found = bank.ledgers.verify(job.id).await.unwrap();
    assert!(!found.holds);
    assert_eq!(
        (found.lost.references, found.altered.references),
        (vec!["WL-3".to_owned()], vec!["WL-5".to_owned()])
    );
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g91_a_target_that_ends_every_connection_in_the_middle_is_never_complete_before_its_time() {
    let bank = Bank::open().await;
    let file = bank.file(&numbered(1..=20_000));
    let id = bank
        .ledgers
        .start(in_chunks(500), Variables::of([("FILE", file.as_str())]), Mode::Stream)
        .await
        .unwrap();
    let own = "SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%mapped%'";
    let mut ended = 0;
    let resting = tokio::time::timeout(Duration::from_secs(60), async {
        while ended < 3 {
            ended += bank.texts(own).await[0].parse::<i64>().unwrap();
            let settled =
                bank.texts("SELECT count(*)::text FROM crossdock.chunks WHERE status = 'settled'").await;
            if settled == ["40"] {
                break;
            }
        }
    });
    resting.await.expect("connections are there to be ended");
    let job = bank.rest(id).await;
    assert!(ended >= 1, "no connection was ended");
    assert_eq!(
        (job.status, job.counts.imported, job.fetched),
        (Status::Completed, 20_000, 20_000),
        "{:?}",
        job.reason
    );
    assert_eq!(bank.texts("SELECT count(*)::text FROM bank.transactions").await, ["20000"]);
    bank.close().await;
}
