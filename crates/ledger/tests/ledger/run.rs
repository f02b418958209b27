//! The rules of a run: dry runs, limits, and folders that change under an unfinished job.

use crossdock_ledger::service::Error;
use crossdock_ledger::{Change, Folder, LedgerKind, Rules, Unfinished, Variables};
use engine::{Job, JobId, Kind as _, Limits, Mode, RejectLimit, Status, Store};

use crate::bank::{Bank, MAP, PIPELINE, PROOF, folder, record};

fn declared(pipeline: &str, map: &str) -> Folder {
    Folder::of([("pipeline.toml", pipeline), ("map.sql", map), ("proof.sql", PROOF)])
}

/// The bank's migration in small chunks.
fn in_chunks(of: i32) -> Folder {
    declared(&format!("{PIPELINE}\n[stage]\nchunk_records = {of}\n"), MAP)
}

fn rejects(limit: &str) -> Rules {
    Rules { stop_on_rejects: Some(limit.parse().unwrap()), ..Rules::default() }
}

async fn run_with(bank: &Bank, folder: Folder, file: &str, mode: Mode, rules: Rules) -> Job {
    let id = bank.ledgers.start_with(folder, Variables::of([("FILE", file)]), mode, rules).await.unwrap();
    bank.rest(id).await
}

/// A job that somebody has paused; nobody here has its file.
async fn resting(bank: &Bank, folder: Folder, values: &Variables) -> JobId {
    let id = bank.ledgers.start(folder, values.clone(), Mode::Stream).await.unwrap();
    assert!(Store::new(bank.database().clone()).move_job(id, Status::Paused, None, None).await.unwrap());
    id
}

fn with_no(id: i64, no: i64) -> String {
    record(id, "w1", "credit", "1").replace("\"memo\"", &format!("\"metadata\":{{\"no\":\"{no}\"}},\"memo\""))
}

/// Codes of what did not simply arrive, in order.
async fn codes(bank: &Bank, id: JobId) -> Vec<String> {
    let mut codes: Vec<String> = bank.notes(id).await.into_iter().map(|note| note.1).collect();
    codes.sort();
    codes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_foretells_what_the_real_one_does_and_writes_nothing() {
    let bank = Bank::open().await;
    bank.execute(
        "INSERT INTO bank.transactions (reference, external_no, account_id, kind, amount, metadata, booked_at) VALUES
            ('WL-5', NULL, 1, 'credit', 99, '{}', '2024-03-31T01:30:00Z'), ('WL-6', NULL, 1, 'credit', 6, '{}', '2024-03-31T01:30:00Z')",
    )
    .await;
    let mut lines: Vec<String> = (1..=700).map(|id| record(id, "w1", "credit", &id.to_string())).collect();
    lines[9] = record(10, "w9", "credit", "1");
    lines[10] = record(11, "w1", "fee", "1");
    lines[11] = record(12, "w1", "refund", "1");
    lines[12] = "{\"id\":".to_owned();
    // Another unique index refuses the second one of a chunk.
    (lines[20], lines[21]) = (with_no(21, 7), with_no(22, 7));
    // These come again in a later chunk: one like the first, one not, and one that was there before this job.
    lines.push(lines[0].replace(",\"memo\"", ", \"memo\""));
    lines.push(record(2, "w1", "credit", "2.5"));
    lines.push(lines[5].replace(",\"memo\"", ", \"memo\""));
    let file = bank.file(&lines);
    let rows = "SELECT count(*) || ' ' || sum(amount) FROM bank.transactions";
    let before = bank.texts(rows).await;

    let dry = run_with(&bank, in_chunks(100), &file, Mode::DryRun, Rules::default()).await;
    assert_eq!((dry.status, dry.outcome()), (Status::Completed, Some("partial")), "{:?}", dry.reason);
    assert_eq!(bank.texts(rows).await, before, "nothing is written");
    for kept in ["staged_pages", "ledger_rehearsed", "ledger_proofs"] {
        let left = bank.texts(&format!("SELECT count(*)::text FROM crossdock.{kept}")).await;
        assert_eq!(left, ["0"], "left in {kept}");
    }
    assert!(bank.ledgers.certificate(dry.id).await.unwrap().is_none(), "nothing is certified");
    let Err(Error::State(why)) = bank.ledgers.verify(dry.id).await else {
        panic!("there is nothing to verify")
    };
    assert!(why.contains("is a dry run"), "{why}");

    let real = run_with(&bank, in_chunks(100), &file, Mode::Stream, Rules::default()).await;
    assert_eq!(real.status, Status::Completed, "{:?}", real.reason);
    assert_eq!(dry.counts, real.counts, "{:?} {:?}", codes(&bank, dry.id).await, codes(&bank, real.id).await);
    assert_eq!(codes(&bank, dry.id).await, codes(&bank, real.id).await);
    assert_eq!(
        codes(&bank, dry.id).await,
        [
            "came_before",
            "conflict",
            "conflicting_duplicate",
            "fees",
            "not_json",
            "unique_violation",
            "unknown_value",
            "unknown_wallet"
        ]
    );
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_remembers_nothing_of_an_earlier_one() {
    let bank = Bank::open().await;
    let lines: Vec<String> = (1..=300).map(|id| record(id, "w1", "credit", "1")).collect();
    let file = bank.file(&lines);
    // What a dry run left that was ended by a crash, and its job by a person.
    bank.execute(
        "INSERT INTO crossdock.ledger_rehearsed VALUES (1, 'WL-1', 1, '\\x00'), (1, 'WL-2', 1, '\\x00')",
    )
    .await;
    for _ in 0..2 {
        let dry = run_with(&bank, in_chunks(100), &file, Mode::DryRun, Rules::default()).await;
        assert_eq!((dry.status, dry.counts.imported), (Status::Completed, 300), "{:?}", dry.counts);
    }
    assert_eq!(bank.texts("SELECT reference FROM crossdock.ledger_rehearsed").await, [""; 0]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g90_a_source_of_bad_records_stops_the_job_early_and_a_higher_limit_lets_it_end() {
    const RECORDS: i64 = 60_000;
    let bank = Bank::open().await;
    let lines: Vec<String> = (1..=RECORDS).map(|id| format!(r#"{{"id":{id},"wallet":"w1"}}"#)).collect();
    let file = bank.file(&lines);
    let job = run_with(&bank, in_chunks(500), &file, Mode::Stream, Rules::default()).await;
    assert_eq!(job.status, Status::Failed);
    let reason = job.reason.unwrap();
    assert!(reason.contains("the limit on rejects is 5%"), "{reason}");
    assert!(reason.contains("the commonest reasons: missing_field ("), "{reason}");
    assert!((10_000..RECORDS).contains(&job.counts.failed), "{:?}", job.counts);
    assert_eq!(bank.notes(job.id).await.len(), 1_000, "the error log is bounded; the quarantine has all");

    // The limit is kept with the job: it stops again at once, whoever runs it.
    let again = bank.resume(job.id).await;
    assert_eq!(again.status, Status::Failed);
    bank.ledgers.set_rules(job.id, rejects("100%")).await.unwrap();
    let ended = bank.resume(job.id).await;
    assert_eq!((ended.status, ended.counts.failed), (Status::Completed, RECORDS), "{:?}", ended.reason);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_of_rejects_is_judged_from_the_first_record() {
    let bank = Bank::open().await;
    let lines: Vec<String> =
        (1..=30).map(|id| record(id, if id % 3 == 0 { "w9" } else { "w1" }, "credit", "1")).collect();
    let file = bank.file(&lines);
    let stopped = run_with(&bank, folder(), &file, Mode::Stream, rejects("9")).await;
    assert_eq!(stopped.status, Status::Failed);
    let reason = stopped.reason.unwrap();
    assert!(
        reason.starts_with("10 of 30 records failed (33.3 %), and the limit on rejects is 9"),
        "{reason}"
    );
    assert!(reason.contains("unknown_wallet (10)"), "{reason}");
    let goes_on = run_with(&bank, folder(), &file, Mode::Stream, rejects("10")).await;
    assert_eq!(
        (goes_on.status, goes_on.outcome()),
        (Status::Completed, Some("partial")),
        "{:?}",
        goes_on.reason
    );
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_process_of_a_job_obeys_the_limits_that_are_kept_with_it() {
    let bank = Bank::open().await;
    let file = bank.file(&[record(1, "w1", "credit", "1")]);
    let rules = Rules { rows_per_second: Some("250".parse().unwrap()), ..rejects("7%") };
    let job = run_with(&bank, in_chunks(4_000), &file, Mode::Stream, rules).await;
    // Another process knows the job's row and nothing else.
    let limits = |job: &Job| LedgerKind::new(bank.database().clone()).limits(job, &Limits::default());
    assert_eq!(limits(&job).rows_per_second.map(u32::from), Some(250));
    assert_eq!(limits(&job).rejects.limit, RejectLimit::Share(70_000));
    assert_eq!(limits(&job).chunk_records, 250, "a chunk is no more than a second's rows");

    let off = Rules { rows_per_second: Some("off".parse().unwrap()), ..Rules::default() };
    bank.ledgers.set_rules(job.id, off).await.unwrap();
    let job = Store::new(bank.database().clone()).job(job.id).await.unwrap().unwrap();
    assert_eq!((limits(&job).rows_per_second, limits(&job).chunk_records), (None, 4_000));
    assert_eq!(limits(&job).rejects.limit, RejectLimit::Share(70_000), "what is not said stays");

    let plain = bank.run_file(folder(), &file).await;
    assert_eq!(
        limits(&plain).rejects.limit,
        RejectLimit::Share(50_000),
        "five in a hundred if nothing is said"
    );
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unfinished_job_is_found_though_its_folder_has_changed() {
    let bank = Bank::open().await;
    let values = Variables::of([("FILE", "/nowhere/a")]);
    let find = async |folder: &Folder, values: &Variables, mode: Mode| {
        bank.ledgers.unfinished(folder, values, mode).await.unwrap()
    };
    assert_eq!(find(&folder(), &values, Mode::Stream).await, Unfinished::None);
    let id = resting(&bank, folder(), &values).await;
    assert_eq!(find(&folder(), &values, Mode::Stream).await, Unfinished::Same(id));
    assert_eq!(find(&folder(), &values, Mode::DryRun).await, Unfinished::None);

    let changed = declared(&format!("{PIPELINE}\n"), &MAP.replace("s.memo,", "s.memo || '!' AS memo,"));
    let Unfinished::Changed(found) = find(&changed, &values, Mode::Stream).await else {
        panic!("the change is noticed")
    };
    assert_eq!((found.job, found.status), (id, Status::Paused));
    let what: Vec<String> = found.what.iter().map(ToString::to_string).collect();
    assert_eq!(what.len(), 2, "{what:?}");
    assert!(
        what[0] == "map.sql (from line 2)" && what[1].starts_with("pipeline.toml (from line "),
        "{what:?}"
    );

    // Other values are another source, or another way to the same one.
    let others = Variables::of([("FILE", "/nowhere/b")]);
    let names = vec!["FILE".to_owned()];
    assert_eq!(find(&folder(), &others, Mode::Stream).await, Unfinished::OtherValues { job: id, names });
    let Unfinished::Changed(found) = find(&changed, &others, Mode::Stream).await else {
        panic!("the change is noticed")
    };
    assert_eq!(found.what.last(), Some(&Change::Value("FILE".to_owned())));
    let renamed = declared(&PIPELINE.replace("name = \"wallet-logs\"", "name = \"other\""), MAP);
    assert_eq!(find(&renamed, &values, Mode::Stream).await, Unfinished::None);

    // One that is just like the command goes first, though another is newer.
    let newer = resting(&bank, changed.clone(), &values).await;
    assert_eq!(find(&folder(), &values, Mode::Stream).await, Unfinished::Same(id));
    assert_eq!(find(&changed, &values, Mode::Stream).await, Unfinished::Same(newer));
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_goes_on_with_a_changed_folder_that_was_accepted() {
    const RECORDS: i64 = 20_000;
    let bank = Bank::open().await;
    let wrong = MAP.replace("a.wallet_id = s.wallet", "a.wallet_id = 'x' || s.wallet");
    let pipeline = format!("{PIPELINE}\n[stage]\nchunk_records = 100\n");
    let lines: Vec<String> = (1..=RECORDS).map(|id| record(id, "w1", "credit", "1")).collect();
    let values = Variables::of([("FILE", bank.file(&lines).as_str())]);
    let wrong = declared(&pipeline, &wrong);
    let id =
        bank.ledgers.start_with(wrong.clone(), values.clone(), Mode::Stream, rejects("0")).await.unwrap();
    let stopped = bank.rest(id).await;
    let failed = stopped.counts.failed;
    assert!(stopped.status == Status::Failed && (1..RECORDS).contains(&failed), "{:?}", stopped.counts);

    let right = declared(&pipeline, MAP);
    let changes = bank.ledgers.accept_changes(id, right.clone(), values.clone()).await.unwrap();
    assert_eq!(changes, [Change::Text { file: "map.sql".to_owned(), line: 5 }]);
    assert_eq!(bank.ledgers.unfinished(&right, &values, Mode::Stream).await.unwrap(), Unfinished::Same(id));
    // What failed before does not stop it again: the limit of none is kept by what comes now.
    let job = bank.resume(id).await;
    assert_eq!(job.status, Status::Completed, "{:?}", job.reason);
    assert_eq!((job.counts.failed, job.counts.imported), (failed, RECORDS - failed));

    let log = bank.ledgers.accepted(id).await.unwrap();
    assert_eq!(log.len(), 1);
    assert_eq!((&log[0].folder_hash, &log[0].new_folder_hash), (&wrong.hash(), &right.hash()));
    assert_eq!((log[0].settled, log[0].failed), (failed, failed));
    assert_eq!(bank.ledgers.declared(id).await.unwrap().unwrap().folder_hash, right.hash());
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_is_changed_only_where_that_can_be_right() {
    let bank = Bank::open().await;
    let values = Variables::of([("FILE", "/nowhere")]);
    let id = resting(&bank, folder(), &values).await;
    let accept = async |folder: Folder| bank.ledgers.accept_changes(id, folder, values.clone()).await;
    let renamed = declared(&PIPELINE.replace("name = \"wallet-logs\"", "name = \"other\""), MAP);
    let Err(Error::State(why)) = accept(renamed).await else { panic!("another migration is refused") };
    assert!(why.contains("wallet-logs") && why.contains("other"), "{why}");
    let broken = declared(PIPELINE, &MAP.replace("s.amount", "s.amounts"));
    assert!(matches!(accept(broken).await, Err(Error::Declaration(_))));

    let changed = declared(&format!("{PIPELINE}\n"), MAP);
    bank.execute("UPDATE crossdock.jobs SET status = 'waiting', waiting_until = now() + interval '1 hour'")
        .await;
    let Err(Error::State(why)) = accept(changed.clone()).await else { panic!("it may run any moment") };
    assert!(why.contains("is waiting") && why.contains(&format!("crossdock ledger pause {id}")), "{why}");
    bank.execute("UPDATE crossdock.jobs SET status = 'paused', waiting_until = NULL").await;
    accept(changed).await.unwrap();
    assert_eq!(bank.ledgers.accepted(id).await.unwrap().len(), 1, "what was refused is not in the log");
    bank.close().await;
}
