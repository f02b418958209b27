//! Single wrong rows among a hundred thousand, each named by its kind; and none where nothing is wrong.
//!
//! `LEDGER_MUTATIONS_RECORDS` and `LEDGER_MUTATIONS_EACH` make it a longer run: `make mutations-million`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use crossdock_ledger::{Certificate, Folder, Variables};
use engine::{Mode, Status};

use crate::bank::{Bank, MAP, PIPELINE, PROOF};

/// Rows that the bank had before.
const OF_OTHERS: i64 = 500;
/// A million records of a debug build on a busy machine.
const LONGEST: Duration = Duration::from_secs(30 * 60);

fn setting(name: &str, otherwise: i64) -> i64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// A file of so many records, none like another, in no order of their amounts.
fn write_file(path: &std::path::Path, records: i64) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    for id in 1..=records {
        let (wallet, kind) = (1 + id % 2, if id % 3 == 0 { "debit" } else { "credit" });
        let amount = id.wrapping_mul(7_919) % 1_000_003;
        writeln!(
            file,
            r#"{{"id":{id},"wallet":"w{wallet}","type":"{kind}","amount":"{amount}.{:04}","memo":"m{id}","at":"2024-03-31T01:{:02}:{:02}Z"}}"#,
            id % 10_000,
            id / 60 % 60,
            id % 60
        )
        .unwrap();
    }
    file.flush().unwrap();
}

/// Everything that a certificate names, sorted, as `kind reference`.
fn named(certificate: &Certificate) -> Vec<String> {
    let kinds = [
        ("lost", &certificate.lost),
        ("altered", &certificate.altered),
        ("doubled", &certificate.doubled),
        ("foreign", &certificate.foreign_since),
    ];
    let mut found = Vec::new();
    for (kind, rows) in kinds {
        assert_eq!(rows.count, i64::try_from(rows.references.len()).unwrap(), "{kind}: all are named");
        found.extend(rows.references.iter().map(|reference| format!("{kind} {reference}")));
    }
    found.sort();
    found
}

/// Wrong rows by statement, and what must be said of them.
struct Mutations {
    changes: String,
    doubles: String,
    expected: Vec<String>,
}

impl Mutations {
    fn of(records: i64, each: i64) -> Self {
        let (mut changes, mut doubles, mut expected) = (String::new(), String::new(), Vec::new());
        // Five kinds in turn over the whole range, none at a round place.
        let place = |number: i64, kind: i64| 1 + (number * 5 + kind) * (records - 10) / (each * 5) + kind;
        for number in 0..each {
            let [dropped, doubled, altered, swapped, shifted] =
                [0, 1, 2, 3, 4].map(|kind| place(number, kind));
            let other = swapped + 1;
            write!(
                changes,
                "DELETE FROM bank.transactions WHERE reference = 'WL-{dropped}';
                UPDATE bank.transactions SET amount = amount + 0.0001 WHERE reference = 'WL-{altered}';
                UPDATE bank.transactions t SET amount = o.amount FROM bank.transactions o
                    WHERE (t.reference, o.reference) IN (('WL-{swapped}', 'WL-{other}'), ('WL-{other}', 'WL-{swapped}'));
                UPDATE bank.transactions SET booked_at = booked_at + interval '1 hour' WHERE reference = 'WL-{shifted}';"
            )
            .unwrap();
            write!(
                doubles,
                "INSERT INTO bank.transactions (reference, account_id, kind, amount, memo, metadata, booked_at)
                    SELECT reference, account_id, kind, amount, memo, metadata, booked_at FROM bank.transactions
                    WHERE reference = 'WL-{doubled}';"
            )
            .unwrap();
            expected.push(format!("lost WL-{dropped}"));
            expected.push(format!("doubled WL-{doubled}"));
            expected.extend([altered, swapped, other, shifted].map(|id| format!("altered WL-{id}")));
        }
        expected.sort();
        Self { changes, doubles, expected }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_wrong_row_of_each_kind_among_a_hundred_thousand_is_named_and_no_other() {
    let (records, each) = (setting("LEDGER_MUTATIONS_RECORDS", 100_000), setting("LEDGER_MUTATIONS_EACH", 1));
    let bank = Bank::open().await;
    bank.execute(&format!(
        "INSERT INTO bank.transactions (reference, account_id, kind, amount, booked_at)
        SELECT CASE WHEN i % 2 = 0 THEN 'POS-' ELSE 'WL-9' END || (1000000000 + i), 1, 'debit', i, now()
        FROM generate_series(1, {OF_OTHERS}) AS i"
    ))
    .await;
    let path = bank.files().join("logs.ndjson");
    write_file(&path, records);
    let folder = Folder::of([("pipeline.toml", PIPELINE), ("map.sql", MAP), ("proof.sql", PROOF)]);
    let variables = Variables::of([("FILE", path.to_str().unwrap())]);
    let id = bank.ledgers.start(folder, variables, Mode::Stream).await.unwrap();
    let job = bank.rest_within(id, LONGEST).await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, records), "{:?}", job.reason);

    let clean = bank.ledgers.verify(job.id).await.unwrap();
    assert!(clean.holds, "{clean}");
    assert_eq!((named(&clean), clean.foreign_before), (Vec::new(), OF_OTHERS));
    assert_eq!(clean.source_hash, clean.target_hash);

    let mutations = Mutations::of(records, each);
    bank.execute(&mutations.changes).await;
    // Without the key's index, a row gets in twice.
    bank.execute("ALTER TABLE bank.transactions DROP CONSTRAINT transactions_reference_key").await;
    bank.execute(&mutations.doubles).await;
    let found = bank.ledgers.verify(job.id).await.unwrap();
    assert_eq!(named(&found), mutations.expected);
    assert_eq!(found.foreign_before, OF_OTHERS);
    assert!(!found.holds);
    assert_ne!(found.source_hash, found.target_hash);
    bank.close().await;
}
