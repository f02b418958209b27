//! The certificate names each record that is not in the target as it was settled.

use engine::Status;

use crossdock_ledger::{Certificate, Folder};

use crate::bank::{Bank, MAP, PIPELINE, PROOF, folder, record};

const RECORDS: i64 = 5_000;

async fn migrated(bank: &Bank) -> engine::JobId {
    let lines: Vec<String> = (1..=RECORDS)
        .map(|id| {
            record(
                id,
                if id % 3 == 0 { "w2" } else { "w1" },
                if id % 2 == 0 { "debit" } else { "credit" },
                &format!("{id}.25"),
            )
        })
        .collect();
    let job = bank.run(folder(), &lines).await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, RECORDS), "{:?}", job.reason);
    job.id
}

fn findings(certificate: &Certificate) -> [Vec<&str>; 4] {
    [&certificate.lost, &certificate.altered, &certificate.doubled, &certificate.foreign_since].map(|named| {
        assert_eq!(named.count, i64::try_from(named.references.len()).unwrap());
        named.references.iter().map(String::as_str).collect()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mutation_is_named_and_nothing_else_is() {
    let bank = Bank::open().await;
    bank.execute(
        "INSERT INTO bank.transactions (reference, account_id, kind, amount, booked_at)
        SELECT 'POS-' || i, 1, 'debit', i, now() FROM generate_series(1, 25) AS i",
    )
    .await;
    let job = migrated(&bank).await;
    let clean = bank.ledgers.verify(job).await.unwrap();
    assert!(clean.holds, "{clean}");
    assert_eq!((clean.foreign_before, findings(&clean)), (25, [vec![], vec![], vec![], vec![]]));
    assert_eq!(clean.source_hash, clean.target_hash);
    assert_eq!(
        (clean.min_reference.as_deref(), clean.max_reference.as_deref()),
        (Some("WL-1"), Some("WL-999"))
    );
    let sums: Vec<_> =
        clean.sums.iter().map(|sum| (sum.by.join("/"), sum.source.clone(), sum.target.clone())).collect();
    let total = |text: &str| Some(text.to_owned());
    assert_eq!(
        sums,
        [
            ("credit".to_owned(), total("6250625"), total("6250625")),
            ("debit".to_owned(), total("6253125"), total("6253125"))
        ]
    );

    let set =
        |what: &str, id: &str| format!("UPDATE bank.transactions SET {what} WHERE reference = 'WL-{id}'");
    let swap = "WITH two AS (SELECT reference, amount FROM bank.transactions WHERE reference IN ('WL-11', 'WL-13'))
        UPDATE bank.transactions t SET amount = two.amount FROM two
        WHERE t.reference IN ('WL-11', 'WL-13') AND two.reference IN ('WL-11', 'WL-13') AND two.reference <> t.reference";
    let copy = |as_what: &str| {
        format!(
            "INSERT INTO bank.transactions (reference, account_id, kind, amount, memo, metadata, booked_at)
            SELECT '{as_what}', account_id, kind, amount, memo, metadata, booked_at FROM bank.transactions WHERE reference = 'WL-77'"
        )
    };
    let undo = "DELETE FROM bank.transactions WHERE reference IN ('WL-77-2', 'WL-0077', 'POS-99')";
    for (mutation, expected) in [
        ("DELETE FROM bank.transactions WHERE reference = 'WL-4999'".to_owned(), [vec!["WL-4999"], vec![], vec![], vec![]]),
        (set("amount = amount + 0.0001", "7"), [vec![], vec!["WL-7"], vec![], vec![]]),
        (set("memo = ''", "8"), [vec![], vec!["WL-8"], vec![], vec![]]),
        (set("booked_at = booked_at + interval '1 microsecond'", "9"), [vec![], vec!["WL-9"], vec![], vec![]]),
        (set("account_id = 2", "10"), [vec![], vec!["WL-10"], vec![], vec![]]),
        (swap.to_owned(), [vec![], vec!["WL-11", "WL-13"], vec![], vec![]]),
        (set("reference = 'WL-90001'", "12"), [vec!["WL-12"], vec![], vec![], vec!["WL-90001"]]),
        (copy("WL-0077"), [vec![], vec![], vec!["WL-0077"], vec![]]),
        (
            "INSERT INTO bank.transactions (reference, account_id, kind, amount, booked_at) VALUES ('POS-99', 1, 'debit', 1, now())".to_owned(),
            [vec![], vec![], vec![], vec!["POS-99"]],
        ),
    ] {
        bank.execute("CREATE TABLE bank.kept AS SELECT * FROM bank.transactions").await;
        bank.execute(&mutation).await;
        let found = bank.ledgers.verify(job).await.unwrap();
        assert_eq!(findings(&found), expected, "{mutation}");
        assert_eq!(found.foreign_before, 25, "{mutation}");
        let harmless = expected[..3].iter().all(Vec::is_empty);
        assert_eq!(found.holds, harmless, "{mutation}: {}", found.failings.join("; "));
        bank.execute(undo).await;
        bank.execute(
            "DELETE FROM bank.transactions t WHERE reference LIKE 'WL-%' AND NOT EXISTS (SELECT 1 FROM bank.kept k WHERE k.reference = t.reference);
            UPDATE bank.transactions t SET (amount, memo, booked_at, account_id) = (k.amount, k.memo, k.booked_at, k.account_id)
                FROM bank.kept k WHERE k.reference = t.reference AND ROW(t.amount, t.memo, t.booked_at, t.account_id) IS DISTINCT FROM ROW(k.amount, k.memo, k.booked_at, k.account_id);
            INSERT INTO bank.transactions (reference, account_id, kind, amount, memo, metadata, booked_at)
                SELECT reference, account_id, kind, amount, memo, metadata, booked_at FROM bank.kept k
                WHERE NOT EXISTS (SELECT 1 FROM bank.transactions t WHERE t.reference = k.reference);
            DROP TABLE bank.kept",
        )
        .await;
        let mended = bank.ledgers.verify(job).await.unwrap();
        assert!(mended.holds, "{mutation}: {mended}");
    }
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_with_rows_keeps_the_job_from_completing_and_a_warning_does_not() {
    let bank = Bank::open().await;
    let check =
        "SELECT account_id, sum(amount) AS total FROM bank.transactions GROUP BY 1 HAVING sum(amount) > 5";
    let warning = format!("-- severity: warn\n{check}");
    let with = |text: &str| {
        Folder::of([
            ("pipeline.toml", PIPELINE),
            ("map.sql", MAP),
            ("proof.sql", PROOF),
            ("checks/limits.sql", text),
        ])
    };
    let lines = [record(1, "w1", "credit", "3"), record(2, "w1", "credit", "4")];
    let job = bank.run(with(&warning), &lines).await;
    assert_eq!((job.status, job.outcome()), (Status::Completed, Some("clean")), "{:?}", job.reason);
    let certificate = bank.ledgers.verify(job.id).await.unwrap();
    assert!(certificate.holds);
    assert_eq!((certificate.checks[0].rows, certificate.checks[0].blocks), (1, false));
    assert_eq!(certificate.checks[0].examples, [r#"{"total": 7.0000, "account_id": 1}"#]);
    let job = bank.run(with(check), &lines).await;
    assert_eq!(job.status, Status::Failed);
    assert!(job.reason.as_deref().unwrap().contains("checks/limits.sql gives 1 rows"), "{:?}", job.reason);
    bank.close().await;
}
