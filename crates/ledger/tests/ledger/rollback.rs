//! What a job wrote is taken back, or forgotten; and its source is looked at again.

use crossdock_ledger::rollback::RolledBack;
use crossdock_ledger::service::Error;
use crossdock_ledger::{Folder, LedgerKind};
use engine::{JobId, Kind as _, Status, Store};

use crate::bank::{Bank, MAP, PIPELINE, PROOF, folder, record};

async fn state(bank: &Bank, id: JobId) -> (Status, Option<String>) {
    let job = Store::new(bank.database().clone()).job(id).await.unwrap().unwrap();
    (job.status, job.reason)
}

fn left(told: &RolledBack) -> Vec<(&str, Vec<&str>)> {
    told.left
        .iter()
        .map(|(why, named)| {
            assert_eq!(named.count, i64::try_from(named.references.len()).unwrap());
            (why.as_str(), named.references.iter().map(String::as_str).collect())
        })
        .collect()
}

async fn rows(bank: &Bank) -> Vec<String> {
    bank.texts("SELECT reference FROM bank.transactions ORDER BY reference COLLATE \"C\"").await
}

fn chunks_of(records: usize) -> Folder {
    let pipeline = format!("{PIPELINE}\n[stage]\nchunk_records = {records}\n");
    Folder::of([("pipeline.toml", pipeline.as_str()), ("map.sql", MAP), ("proof.sql", PROOF)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_as_written_go_and_all_others_are_named() {
    let bank = Bank::open().await;
    bank.execute(
        "INSERT INTO bank.transactions (reference, account_id, kind, amount, booked_at)
            VALUES ('POS-1', 1, 'debit', 1, now()), ('WL-3', 1, 'credit', 3, '2024-03-31T02:30:00+01:00');
        CREATE TABLE bank.receipts (transaction TEXT NOT NULL REFERENCES bank.transactions (reference) ON DELETE CASCADE)",
    )
    .await;
    let lines: Vec<String> = (1..=300).map(|id| record(id, "w1", "credit", &id.to_string())).collect();
    let job = bank.run(folder(), &lines).await;
    assert_eq!((job.counts.imported, job.counts.unchanged), (299, 1));
    bank.execute(
        "DELETE FROM bank.transactions WHERE reference = 'WL-10';
        UPDATE bank.transactions SET amount = 12.01 WHERE reference = 'WL-12';
        INSERT INTO bank.receipts VALUES ('WL-14');
        CREATE FUNCTION bank.keep() RETURNS trigger LANGUAGE plpgsql AS
            $$BEGIN IF OLD.reference = 'WL-16' THEN RAISE EXCEPTION 'ledgers are never rewritten'; END IF; RETURN OLD; END$$;
        CREATE TRIGGER keep BEFORE DELETE ON bank.transactions FOR EACH ROW EXECUTE FUNCTION bank.keep()",
    )
    .await;
    let before = rows(&bank).await;
    let foretold = bank.ledgers.rollback(job.id, true).await.unwrap();
    assert_eq!(rows(&bank).await, before);
    assert_eq!(state(&bank, job.id).await, (Status::Completed, None));

    let told = bank.ledgers.rollback(job.id, false).await.unwrap();
    assert_eq!(RolledBack { dry_run: true, ..told.clone() }, foretold);
    assert!(
        foretold.sentence().starts_with("a rollback would remove the 295 rows"),
        "{}",
        foretold.sentence()
    );
    assert_eq!((told.records, told.rows, told.unchanged), (295, 295, 1));
    assert_eq!(
        left(&told),
        [
            ("altered", vec!["WL-12"]),
            ("gone", vec!["WL-10"]),
            ("referenced", vec!["WL-14"]),
            ("refused", vec!["WL-16"])
        ]
    );
    assert_eq!(rows(&bank).await, ["POS-1", "WL-12", "WL-14", "WL-16", "WL-3"]);
    let (status, reason) = state(&bank, job.id).await;
    assert_eq!(status, Status::Completed);
    assert_eq!(
        reason.as_deref(),
        Some(
            "rolled back: the 295 rows of 295 records are removed; left: 1 altered, 1 gone, 1 referenced, 1 refused"
        )
    );
    // Asked again, it tells the same.
    assert_eq!(bank.ledgers.rollback(job.id, false).await.unwrap(), told);
    let now = bank.ledgers.verify(job.id).await.unwrap();
    assert_eq!(
        (now.holds, now.lost.count, &now.altered.references[..]),
        (false, 296, &["WL-12".to_owned()][..])
    );
    assert!(now.failings.iter().any(|text| text == "the rows of 295 records were rolled back"), "{now}");
    let refused = bank.ledgers.retry(job.id, Default::default()).await;
    assert!(matches!(&refused, Err(Error::State(text)) if text.contains("was rolled back")), "{refused:?}");
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_rows_of_a_record_go_together_and_former_contents_are_not_invented() {
    let bank = Bank::open().await;
    let map = "SELECT s._record, s._reference || l.leg AS reference, l.account AS account_id, l.kind, s.amount, s.at AS booked_at
        FROM staged s CROSS JOIN (VALUES (':C', 1, 'credit'), (':D', 2, 'debit')) AS l (leg, account, kind)";
    let proof = "SELECT replace(c.reference, ':C', '') AS _reference, c.amount
        FROM target c JOIN target d ON d.reference = replace(c.reference, ':C', ':D') AND d.amount = c.amount WHERE c.kind = 'credit'";
    let update = PIPELINE.replace("key = [\"reference\"]", "key = [\"reference\"]\non_conflict = \"update\"");
    let folder = Folder::of([("pipeline.toml", update.as_str()), ("map.sql", map), ("proof.sql", proof)]);
    bank.execute(
        "INSERT INTO bank.transactions (reference, account_id, kind, amount, booked_at) VALUES
        ('WL-2:C', 1, 'credit', 1, now()), ('WL-2:D', 2, 'debit', 1, now())",
    )
    .await;
    let lines: Vec<String> = (1..=30).map(|id| record(id, "w1", "credit", &id.to_string())).collect();
    let job = bank.run(folder, &lines).await;
    assert_eq!((job.counts.imported, job.counts.updated), (29, 1), "{:?}", bank.notes(job.id).await);
    // Half of a record is not what was written.
    bank.execute("DELETE FROM bank.transactions WHERE reference = 'WL-7:D'").await;
    let told = bank.ledgers.rollback(job.id, false).await.unwrap();
    assert_eq!((told.records, told.rows), (28, 56));
    assert_eq!(left(&told), [("gone", vec!["WL-7"]), ("updated", vec!["WL-2"])]);
    assert_eq!(rows(&bank).await, ["WL-2:C", "WL-2:D", "WL-7:C"]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_do_not_lead_back_remove_nothing() {
    let bank = Bank::open().await;
    // The key is made of a field that the proof does not give back.
    let map = MAP
        .replace("s._reference AS reference", "'N' || coalesce(s.memo, '') AS reference")
        .replace("s.metadata,", "jsonb_build_object('of', s._reference) AS metadata,");
    let proof = "SELECT t.metadata ->> 'of' AS _reference, t.amount FROM target t";
    let pipeline = PIPELINE.replace("sums = [{ field = \"amount\", by = [\"kind\"] }]", "");
    let folder = || {
        Folder::of([("pipeline.toml", pipeline.as_str()), ("map.sql", map.as_str()), ("proof.sql", proof)])
    };
    let noted =
        |id: i64| record(id, "w1", "credit", "1").replace("\"memo\":null", &format!("\"memo\":\"{id}\""));
    let three = bank.run(folder(), &[noted(1), noted(2), noted(3)]).await;
    assert_eq!(three.counts.imported, 3, "{:?} {:?}", three.reason, bank.notes(three.id).await);
    let one = bank.run(folder(), &[noted(4)]).await;
    assert_eq!(one.counts.imported, 1, "{:?} {:?}", one.reason, bank.notes(one.id).await);
    // A stranger under the key to which all of them seem to lead.
    bank.execute(
        "INSERT INTO bank.transactions (reference, account_id, kind, amount, booked_at, metadata)
        VALUES ('N', 1, 'debit', 1, now(), '{\"of\": \"POS-2\"}')",
    )
    .await;
    let told = bank.ledgers.rollback(three.id, false).await.unwrap();
    assert_eq!((told.records, told.rows), (0, 0));
    assert_eq!(left(&told), [("unrecognised", vec!["WL-1", "WL-2", "WL-3"])]);
    let told = bank.ledgers.rollback(one.id, false).await.unwrap();
    assert_eq!(left(&told), [("unrecognised", vec!["WL-4"])]);
    assert_eq!(rows(&bank).await, ["N", "N1", "N2", "N3", "N4"]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_that_is_broken_off_goes_on_where_it_was() {
    let bank = Bank::open().await;
    let lines: Vec<String> = (1..=400).map(|id| record(id, "w1", "credit", &id.to_string())).collect();
    let job = bank.run(chunks_of(100), &lines).await;
    assert_eq!(job.counts.imported, 400);
    let blocks =
        bank.texts("SELECT first_ordinal::text FROM crossdock.manifest_blocks ORDER BY first_ordinal").await;
    assert_eq!(blocks, ["0", "100", "200", "300"]);
    // As after the transaction that dealt with the last two blocks.
    bank.execute(
        "DELETE FROM bank.transactions WHERE substr(reference, 4)::int > 200;
        INSERT INTO crossdock.ledger_rollbacks (job_id, part, segment, first_ordinal, removed, rows)
            SELECT id, 0, 0, 200, 200, 200 FROM crossdock.jobs",
    )
    .await;
    let forgetting = bank.ledgers.forget(job.id).await;
    assert!(
        matches!(&forgetting, Err(Error::State(text)) if text.contains("goes on with it")),
        "{forgetting:?}"
    );
    let told = bank.ledgers.rollback(job.id, false).await.unwrap();
    assert_eq!((told.records, told.rows, left(&told)), (400, 400, vec![]));
    assert_eq!(rows(&bank).await, Vec::<String>::new());
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_not_over_is_cancelled_before_it_is_rolled_back() {
    let bank = Bank::open().await;
    let job = bank.run(folder(), &[record(1, "w1", "credit", "1")]).await;
    bank.execute("UPDATE crossdock.jobs SET kind = 'elsewhere', status = 'running'").await;
    let refused = bank.ledgers.rollback(job.id, false).await;
    assert!(matches!(&refused, Err(Error::State(text)) if text.contains("ledger cancel")), "{refused:?}");
    let refused = bank.ledgers.forget(job.id).await;
    assert!(matches!(&refused, Err(Error::State(text)) if text.contains("ledger cancel")), "{refused:?}");
    bank.execute("UPDATE crossdock.jobs SET kind = 'ledger', status = 'paused'").await;
    bank.ledgers.rollback(job.id, true).await.unwrap();
    assert_eq!(state(&bank, job.id).await.0, Status::Paused);
    bank.ledgers.rollback(job.id, false).await.unwrap();
    let (status, reason) = state(&bank, job.id).await;
    assert_eq!(status, Status::Cancelled);
    assert_eq!(reason.as_deref(), Some("rolled back: the 1 rows of 1 records are removed; left: nothing"));
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_forgotten_cannot_be_compared_and_its_certificate_stays() {
    let bank = Bank::open().await;
    let job = bank.run(folder(), &[record(1, "w1", "credit", "1"), record(2, "w9", "credit", "1")]).await;
    let certificate = bank.ledgers.certificate(job.id).await.unwrap();
    assert!(certificate.is_some());
    let forgotten = bank.ledgers.forget(job.id).await.unwrap();
    assert_eq!((forgotten.blocks, forgotten.quarantined, forgotten.notes, forgotten.proofs), (1, 1, 1, 1));
    for (table, expected) in [
        ("manifest_blocks", "0"),
        ("quarantine", "0"),
        ("notes", "0"),
        ("ledger_proofs", "0"),
        ("jobs", "1"),
        ("segments", "1"),
    ] {
        assert_eq!(
            bank.texts(&format!("SELECT count(*)::text FROM crossdock.{table}")).await,
            [expected],
            "{table}"
        );
    }
    assert_eq!(bank.ledgers.certificate(job.id).await.unwrap(), certificate);
    let after = Store::new(bank.database().clone()).job(job.id).await.unwrap().unwrap();
    assert_eq!((after.counts, after.fetched), (job.counts, 2));
    let is_forgotten =
        |error: Error| matches!(&error, Error::State(text) if text.contains("was forgotten at"));
    assert!(is_forgotten(bank.ledgers.verify(job.id).await.unwrap_err()));
    assert!(is_forgotten(bank.ledgers.rollback(job.id, true).await.unwrap_err()));
    assert!(is_forgotten(bank.ledgers.retry(job.id, Default::default()).await.unwrap_err()));
    assert!(is_forgotten(bank.ledgers.quarantined(job.id, Default::default()).await.unwrap_err()));
    assert_eq!(bank.ledgers.forget(job.id).await.unwrap(), Default::default());
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a97_a_source_that_changed_afterwards_is_drift_and_no_damage() {
    let bank = Bank::open().await;
    let with_no =
        |id: i64| record(id, "w1", "credit", "1").replace("\"memo\"", "\"metadata\":{\"no\":\"7\"},\"memo\"");
    let mut lines: Vec<String> = (1..=50).map(|id| record(id, "w1", "credit", "1")).collect();
    lines.extend([
        lines[0].clone(),
        record(51, "w9", "credit", "1"),
        with_no(52),
        with_no(53),
        "{\"id\":".to_owned(),
        "{\"wallet\":\"w1\"}".to_owned(),
    ]);
    let file = bank.file(&lines);
    let job = bank.run_file(folder(), &file).await;
    assert_eq!(job.counts.records(), 56);
    let drift = async || {
        let now = Store::new(bank.database().clone()).job(job.id).await.unwrap().unwrap();
        let source = LedgerKind::new(bank.database().clone()).source(&now).await.unwrap().unwrap();
        bank.ledgers.drift(job.id, &*source).await.unwrap()
    };
    let same = drift().await;
    assert!(same.is_none(), "{same:?}");
    assert_eq!(same.records, 56);

    lines[4] = record(5, "w1", "credit", "1.5");
    lines.remove(55);
    lines.remove(9);
    lines.push(record(54, "w2", "credit", "1"));
    std::fs::write(&file, lines.join("\n")).unwrap();
    let drifted = drift().await;
    assert_eq!(
        (drifted.records, &drifted.changed.references[..], &drifted.new.references[..]),
        (55, &["WL-5".to_owned()][..], &["WL-54".to_owned()][..])
    );
    assert_eq!(drifted.gone.count, 2);
    assert_eq!(drifted.gone.references[0], "WL-10");
    assert!(drifted.gone.references[1].starts_with("no id, fingerprint "), "{drifted:?}");
    // None of it is damage or tampering.
    let certificate = bank.ledgers.verify(job.id).await.unwrap();
    assert!(certificate.holds, "{certificate}");
    assert_eq!((certificate.damaged, certificate.altered.count, certificate.lost.count), (0, 0, 0));
    assert_eq!(bank.texts("SELECT count(*)::text FROM crossdock.ledger_looks").await, ["0"]);
    bank.close().await;
}
