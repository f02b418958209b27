//! What is in quarantine is tried again, or discarded, and nothing of it is unaccounted for.

use crossdock_ledger::quarantine::{Look, Which};
use crossdock_ledger::retry::{RETRIES, Retried, Retry};
use crossdock_ledger::service::Error;
use crossdock_ledger::{Certificate, Folder};
use engine::store::history::{self, SegmentLine};
use engine::{Job, JobId, Status, Store};

use crate::bank::{Bank, MAP, PIPELINE, PROOF, folder, record};

async fn job(bank: &Bank, id: JobId) -> Job {
    let job = Store::new(bank.database().clone()).job(id).await.unwrap().unwrap();
    assert_eq!(job.fetched, job.counts.records(), "conservation of the job");
    for line in lines(bank, id).await {
        let told = line.imported
            + line.updated
            + line.unchanged
            + line.skipped
            + line.filtered
            + line.duplicate_in_source
            + line.failed;
        assert_eq!(i64::from(line.records), told, "conservation of {}/{}", line.part, line.segment);
    }
    job
}

async fn lines(bank: &Bank, id: JobId) -> Vec<SegmentLine> {
    let mut reader = bank.database().read().await.unwrap();
    history::segments(reader.conn(), id).await.unwrap()
}

async fn retry(bank: &Bank, id: JobId, with: Retry) -> Retried {
    bank.ledgers.retry(id, with).await.unwrap()
}

async fn open(bank: &Bank, id: JobId) -> Vec<(String, String)> {
    let look = Look { limit: 10_000, ..Look::default() };
    let held = bank.ledgers.quarantined(id, look).await.unwrap();
    held.into_iter().map(|held| (held.name(), held.code)).collect()
}

async fn verified(bank: &Bank, id: JobId) -> Certificate {
    let certificate = bank.ledgers.verify(id).await.unwrap();
    assert!(certificate.holds, "{certificate}");
    certificate
}

fn texts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_takes_the_kept_bytes_and_is_a_line_of_history() {
    let bank = Bank::open().await;
    let mut lines_in: Vec<String> = (1..=20).map(|id| record(id, "w1", "credit", "1.5")).collect();
    lines_in.extend((21..=2_520).map(|id| record(id, "w9", "debit", "2")));
    lines_in.push(record(2_521, "w8", "debit", "2"));
    lines_in.push("{\"id\":2522".to_owned());
    let file = bank.file(&lines_in);
    let first = bank.run_file(folder(), &file).await;
    assert_eq!((first.counts.imported, first.counts.failed), (20, 2_502));
    let before = lines(&bank, first.id).await;
    // The source is not asked again.
    std::fs::remove_file(&file).unwrap();

    bank.execute("INSERT INTO bank.accounts VALUES (9, 'w9', 'EUR')").await;
    let done = retry(&bank, first.id, Retry::default()).await;
    assert_eq!((done.number, done.taken, done.moved.imported, done.moved.failed), (1, 2_502, 2_500, 0));
    assert_eq!(
        done.failing.iter().collect::<Vec<_>>(),
        [(&"not_json".to_owned(), &1), (&"unknown_wallet".to_owned(), &1)]
    );
    assert_eq!(done.holds, Some(true), "{:?}", done.failings);

    let now = job(&bank, first.id).await;
    assert_eq!((now.fetched, now.counts.imported, now.counts.failed), (2_522, 2_520, 2));
    assert_eq!(
        (now.pages, now.expected, now.short_partitions),
        (first.pages, first.expected, first.short_partitions)
    );
    assert_eq!(now.status, Status::Completed);
    assert_eq!(
        open(&bank, first.id).await,
        texts(&[("WL-2521", "unknown_wallet"), ("0/0/2521", "not_json")])
    );
    assert_eq!(bank.notes(first.id).await.iter().filter(|note| note.0 == "WL-21").count(), 0);
    let after = lines(&bank, first.id).await;
    let same = |line: &SegmentLine| (line.part, line.segment, line.records, line.imported, line.failed);
    assert_eq!(
        after[..before.len()].iter().map(same).collect::<Vec<_>>(),
        before.iter().map(same).collect::<Vec<_>>()
    );
    let line = &after[before.len()];
    assert_eq!((line.records, line.pages, line.imported, line.failed), (0, 0, 2_500, -2_500));
    assert_eq!(
        bank.texts(&format!(
            "SELECT records || ' ' || status FROM crossdock.partitions WHERE key = '{RETRIES}'"
        ))
        .await,
        ["0 ended"]
    );
    let certificate = verified(&bank, first.id).await;
    assert_eq!((certificate.records, certificate.standing), (2_522, 2_520));
    assert_eq!(
        certificate.sums.iter().map(|sum| sum.target.as_deref()).collect::<Vec<_>>(),
        [Some("30"), Some("5000")]
    );
    assert_eq!((certificate.retries.len(), certificate.retries[0].moved), (1, 2_500));
    let kept = bank.ledgers.certificate(first.id).await.unwrap().unwrap();
    assert_eq!(kept, certificate);

    // What came by a retry is watched like everything else.
    bank.execute("DELETE FROM bank.transactions WHERE reference = 'WL-100'").await;
    let found = bank.ledgers.verify(first.id).await.unwrap();
    assert_eq!((found.holds, &found.lost.references[..]), (false, &["WL-100".to_owned()][..]));
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mended_map_is_recorded_and_another_migration_is_refused() {
    let bank = Bank::open().await;
    let map = |kind: &str| MAP.replace("s.kind, s.amount", kind);
    let bent = map("CASE s.kind WHEN 'debit' THEN 'out' ELSE s.kind END AS kind, s.amount");
    let with = |pipeline: &str, map: &str, proof: &str| {
        Folder::of([("pipeline.toml", pipeline), ("map.sql", map), ("proof.sql", proof)])
    };
    let before = with(PIPELINE, &bent, PROOF);
    let lines_in: Vec<String> =
        (1..=40).map(|id| record(id, "w1", if id % 4 == 0 { "debit" } else { "credit" }, "1")).collect();
    let first = bank.run(before.clone(), &lines_in).await;
    assert_eq!((first.counts.imported, first.counts.failed), (30, 10), "{:?}", bank.notes(first.id).await);

    for (other, expected) in [
        (with(&PIPELINE.replace("WL-{id}", "XL-{id}"), MAP, PROOF), "how references are made"),
        (
            with(PIPELINE, MAP, &PROOF.replace("t.amount, t.memo", "t.memo")),
            "the fields that the proof gives back",
        ),
        (with(&PIPELINE.replace("by = [\"kind\"]", "by = []"), MAP, PROOF), "the certificate's sums"),
        (
            with(
                &PIPELINE.replace("key = [\"reference\"]", "key = [\"id\"]"),
                &MAP.replace("AS reference", "AS reference, 1 AS id"),
                PROOF,
            ),
            "",
        ),
    ] {
        match bank.ledgers.retry(first.id, Retry { folder: Some(other), ..Retry::default() }).await {
            Err(Error::State(text)) => assert!(text.contains(expected), "{text}"),
            Err(Error::Declaration(_)) => assert_eq!(expected, ""),
            other => panic!("{expected}: {other:?}"),
        }
    }
    assert_eq!(bank.texts("SELECT count(*)::text FROM crossdock.ledger_retries").await, ["0"]);

    // A reason that nothing has makes no line; a map that mends nothing is not made the job's.
    let none = retry(&bank, first.id, Retry { code: Some("no_such".to_owned()), ..Retry::default() }).await;
    assert_eq!(none, Retried::default());
    let vain = with(PIPELINE, &bent.replace("'out'", "'away'"), PROOF);
    let failed = retry(&bank, first.id, Retry { folder: Some(vain.clone()), ..Retry::default() }).await;
    assert_eq!((failed.taken, failed.moved.records(), failed.failing.values().sum::<i64>()), (10, 0, 10));
    assert_eq!(bank.ledgers.declared(first.id).await.unwrap().unwrap().folder, before);

    let done = retry(&bank, first.id, Retry { folder: Some(folder()), ..Retry::default() }).await;
    assert_eq!((done.number, done.moved.imported, done.holds), (2, 10, Some(true)), "{done:?}");
    assert_eq!(job(&bank, first.id).await.outcome(), Some("clean"));
    assert_eq!(bank.ledgers.declared(first.id).await.unwrap().unwrap().folder_hash, folder().hash());
    let certificate = verified(&bank, first.id).await;
    let hashes: Vec<_> = certificate
        .retries
        .iter()
        .map(|line| (line.folder_hash.clone(), line.folder_hash_before.clone(), line.moved))
        .collect();
    assert_eq!(hashes, [(vain.hash(), before.hash(), 0), (folder().hash(), before.hash(), 10)]);
    let kept = bank.texts("SELECT (folder ->> 'map.sql') || told FROM crossdock.ledger_changes").await;
    assert_eq!(kept, [format!(r#"{bent}[{{"text": {{"file": "map.sql", "line": 1}}}}]"#)]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_finds_filters_twins_and_refusals_as_a_run_does() {
    let bank = Bank::open().await;
    let numbered = |id: i64, no: &str| {
        record(id, "w9", "credit", "1")
            .replace("\"memo\"", &format!("\"metadata\":{{\"no\":\"{no}\"}},\"memo\""))
    };
    let lines_in = [
        record(1, "w9", "fee", "1"),
        numbered(2, "7"),
        numbered(3, "7"),
        record(4, "w9", "credit", "4"),
        record(5, "w1", "credit", "5"),
        record(5, "w1", "credit", "6"),
    ];
    let first = bank.run(folder(), &lines_in).await;
    assert_eq!(first.counts.failed, 6);
    bank.execute(
        "INSERT INTO bank.accounts VALUES (9, 'w9', 'EUR');
        INSERT INTO bank.transactions (reference, account_id, kind, amount, booked_at)
            VALUES ('WL-4', 9, 'credit', 4.5, now())",
    )
    .await;
    let done = retry(&bank, first.id, Retry::default()).await;
    assert_eq!((done.taken, done.moved.imported, done.moved.filtered), (6, 1, 1), "{done:?}");
    assert_eq!(
        open(&bank, first.id).await,
        texts(&[
            ("0/0/2", "unique_violation"),
            ("WL-4", "conflicting_duplicate"),
            ("WL-5", "conflicting_duplicate"),
            ("WL-5", "conflicting_duplicate")
        ])
        .into_iter()
        .map(|(name, code)| (name.replace("0/0/2", "WL-3"), code))
        .collect::<Vec<_>>()
    );
    assert_eq!(done.holds, Some(true), "{:?}", done.failings);

    // Whoever discards one of two that contradict each other has decided for the other.
    let which = Which::Named(vec!["0/0/5".to_owned()]);
    assert_eq!(
        bank.ledgers.discard(first.id, &which, Some("ada"), "the later one is a typing error").await.unwrap(),
        1
    );
    let done =
        retry(&bank, first.id, Retry { code: Some("conflicting_duplicate".to_owned()), ..Retry::default() })
            .await;
    assert_eq!((done.taken, done.moved.imported), (2, 1), "{done:?}");
    assert_eq!(
        bank.texts("SELECT amount::text FROM bank.transactions WHERE reference = 'WL-5'").await,
        ["5.0000"]
    );
    let certificate = verified(&bank, first.id).await;
    assert_eq!(certificate.discarded.values().sum::<i64>(), 1);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_discarded_is_explained_and_stays_accounted_for() {
    let bank = Bank::open().await;
    let mut lines_in: Vec<String> = (1..=5).map(|id| record(id, "w9", "credit", "1")).collect();
    lines_in.push("{\"wallet\":\"w1\"}".to_owned());
    let first = bank.run(folder(), &lines_in).await;
    assert_eq!(first.counts.failed, 6);
    let named = |names: &[&str]| Which::Named(names.iter().map(|name| (*name).to_owned()).collect());
    let refused = bank.ledgers.discard(first.id, &named(&["WL-1", "WL-77"]), None, "").await;
    assert!(
        matches!(&refused, Err(Error::State(text)) if text.contains("WL-77") && !text.contains("WL-1,")),
        "{refused:?}"
    );
    assert_eq!(open(&bank, first.id).await.len(), 6);

    assert_eq!(
        bank.ledgers.discard(first.id, &named(&["WL-1", "2"]), Some("ada"), "closed wallets").await.unwrap(),
        2
    );
    assert_eq!(
        bank.ledgers.discard(first.id, &Which::Code("missing_id".to_owned()), None, "noise").await.unwrap(),
        1
    );
    assert_eq!(open(&bank, first.id).await.len(), 3);
    let (still, gone) = bank.ledgers.quarantine_counts(first.id).await.unwrap();
    assert_eq!((still["unknown_wallet"], gone["unknown_wallet"], gone["missing_id"]), (3, 2, 1));
    assert!(!still.contains_key("missing_id"));
    let who = bank.texts("SELECT ordinal || ' ' || (discarded_by = session_user OR discarded_by = 'ada') || ' ' || why FROM crossdock.ledger_discarded ORDER BY 1").await;
    assert_eq!(who, ["0 true closed wallets", "1 true closed wallets", "5 true noise"]);

    bank.execute("INSERT INTO bank.accounts VALUES (9, 'w9', 'EUR')").await;
    let done = retry(&bank, first.id, Retry::default()).await;
    assert_eq!((done.taken, done.moved.imported), (3, 3));
    assert_eq!(bank.ledgers.discard(first.id, &Which::All, None, "").await.unwrap(), 0);
    let now = job(&bank, first.id).await;
    assert_eq!((now.counts.failed, now.outcome()), (3, Some("partial")));
    let certificate = verified(&bank, first.id).await;
    assert_eq!((certificate.quarantined.len(), certificate.discarded["unknown_wallet"]), (0, 2));
    assert!(certificate.markdown().contains("discarded: `unknown_wallet` | 2"), "{certificate}");
    // A failed record that is in no quarantine is seen.
    bank.execute("DELETE FROM crossdock.quarantine WHERE ordinal = 5").await;
    assert!(!bank.ledgers.verify(first.id).await.unwrap().holds);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_waits_for_nobody_and_leaves_a_running_job_alone() {
    let bank = Bank::open().await;
    let first = bank.run(folder(), &[record(1, "w9", "credit", "1"), record(2, "w1", "credit", "1")]).await;
    bank.execute("INSERT INTO bank.accounts VALUES (9, 'w9', 'EUR')").await;
    for (status, expected) in [("running", "when it is over"), ("cancelled", "is cancelled")] {
        bank.execute(&format!("UPDATE crossdock.jobs SET kind = 'elsewhere', status = '{status}'")).await;
        let refused = bank.ledgers.retry(first.id, Retry::default()).await;
        assert!(matches!(&refused, Err(Error::State(text)) if text.contains(expected)), "{refused:?}");
    }
    bank.execute("UPDATE crossdock.jobs SET kind = 'ledger', status = 'failed'").await;
    let done = retry(&bank, first.id, Retry::default()).await;
    // It has not completed: it is certified when it is resumed.
    assert_eq!((done.moved.imported, done.holds), (1, None));
    let resumed = bank.resume(first.id).await;
    assert_eq!(
        (resumed.status, resumed.outcome()),
        (Status::Completed, Some("clean")),
        "{:?}",
        resumed.reason
    );
    verified(&bank, first.id).await;
    let held = bank.ledgers.quarantined_as(first.id, "WL-1").await.unwrap();
    assert!(held.is_empty());
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_contradict_each_other_stay_both_wherever_a_batch_ends() {
    let bank = Bank::open().await;
    // A retry takes a thousand records at once: its first batch ends between the two.
    let mut lines_in: Vec<String> = (1..=999).map(|id| record(id, "w9", "credit", "1")).collect();
    lines_in.extend([record(1_000, "w1", "credit", "1"), record(1_000, "w1", "credit", "2")]);
    let first = bank.run(folder(), &lines_in).await;
    assert_eq!(first.counts.failed, 1_001);
    let done = retry(&bank, first.id, Retry::default()).await;
    assert_eq!((done.taken, done.moved.records()), (1_001, 0));
    assert_eq!(done.failing["conflicting_duplicate"], 2);
    assert_eq!(bank.texts("SELECT count(*)::text FROM bank.transactions").await, ["0"]);
    bank.close().await;
}
