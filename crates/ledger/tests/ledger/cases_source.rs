//! What export APIs do to migrations, each as small as it can be. The numbers are those of docs/guarantees.md.

use crossdock_ledger::Folder;
use engine::{Job, Status};

use crate::export::Export;

/// As often as a request is repeated, and more.
const FOR_GOOD: &str = "x20";

/// The example's folder with another text.
fn changed(folder: &Folder, from: &str, to: &str) -> Folder {
    let pipeline = folder.text("pipeline.toml");
    assert!(pipeline.contains(from), "{from}");
    let pipeline = pipeline.replace(from, to);
    let names =
        ["map.sql", "proof.sql", "checks/accounts.sql", "checks/continuity.sql", "checks/movements.sql"];
    let mut files = vec![("pipeline.toml", pipeline.as_str())];
    files.extend(names.iter().map(|name| (*name, folder.text(name))));
    Folder::of(files)
}

/// With the count that the source tells.
fn counted(folder: &Folder) -> Folder {
    changed(folder, "param = \"cursor\"", "param = \"cursor\"\ntotal = \"/meta/total\"")
}

fn codes(notes: &[(String, String, String)]) -> Vec<&str> {
    notes.iter().map(|note| note.1.as_str()).collect()
}

/// A run in which every record arrives, whatever the source does on the way.
async fn arrives_whole(count: u64, faults: &str, folder: impl Fn(&Export) -> Folder) -> (Export, Job) {
    let export = Export::open(count, faults, 1).await;
    let job = export.run(folder(&export)).await;
    assert_eq!(
        (job.status, job.outcome(), u64::try_from(job.counts.imported).unwrap()),
        (Status::Completed, Some("clean"), count),
        "{faults}: {:?}",
        job.reason
    );
    export.compare().await;
    (export, job)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a1_a4_a_page_that_answers_500_fails_the_job_there_and_the_next_try_begins_with_it() {
    let export = Export::open(1_000, &format!("500@3{FOR_GOOD}"), 1).await;
    let job = export.run(export.folder("")).await;
    assert_eq!(
        (job.status, job.fetched, job.counts.imported),
        (Status::Failed, 200, 200),
        "{:?}",
        job.reason
    );
    let failed = export.core.stats();
    let job = export.bank.resume(job.id).await;
    let mut stats = export.core.stats();
    // The rest of the twenty refusals may outlast a second try as well.
    let mut last = job;
    while last.status == Status::Failed {
        assert!(stats.list_requests > failed.list_requests && last.fetched == 200);
        last = export.bank.resume(last.id).await;
        stats = export.core.stats();
    }
    assert_eq!((last.status, last.counts.imported), (Status::Completed, 1_000), "{:?}", last.reason);
    let again: Vec<_> = stats.pages.iter().filter(|page| page.served > 1).collect();
    assert!(again.is_empty(), "{again:?}");
    export.compare().await;
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a2_a_quota_that_ends_each_run_never_takes_progress_back() {
    // The date it names is too far ahead to be waited for in place: the job rests with it, and goes on when it is over,
    // which by the clock of these tests it is at once.
    let (export, job) =
        arrives_whole(1_800, "429@6:far-date,429@12:far-date,429@18:far-date", |export| export.folder(""))
            .await;
    let stats = export.core.stats();
    assert_eq!((stats.list_requests, job.pages), (18 + 3, 18));
    assert!(stats.pages.iter().all(|page| page.served == 1), "{:?}", stats.pages);
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_f76_a_connection_that_drops_once_costs_one_request() {
    let (export, job) = arrives_whole(1_000, "drop@5", |export| export.folder("")).await;
    assert_eq!((export.core.stats().list_requests, job.pages), (11, 10));
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a8_a11_cursors_that_died_while_the_job_rested_are_replaced_and_nothing_is_doubled() {
    // The job rests in the middle of its first segment, and every cursor given so far is dead when it goes on.
    let export = Export::open(1_500, "token-expires@3,expired-all@3", 1).await;
    let job = export.run(export.folder("")).await;
    assert_eq!((job.status, job.fetched), (Status::AwaitingToken, 200), "{:?}", job.reason);
    std::fs::write(&export.token, export.core.renew_token()).unwrap();
    let job = export.bank.resume(job.id).await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, 1_500), "{:?}", job.reason);
    assert_eq!((job.fetched, job.counts.duplicate_in_source), (1_500, 0));
    export.compare().await;
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a8_where_the_first_cursor_of_a_segment_is_dead_too_the_job_says_so_at_once_and_the_next_finds_its_rows()
 {
    let export = Export::open(1_500, "expired-all@7", 1).await;
    let job = export.run(export.folder("")).await;
    let reason = job.reason.clone().unwrap();
    assert_eq!((job.status, job.fetched), (Status::Failed, 600), "{reason}");
    assert!(reason.contains("no longer accepts"), "{reason}");
    assert!(export.core.stats().list_requests <= 9, "{}", export.core.stats().list_requests);
    let next = export.run(export.folder("")).await;
    assert_eq!(
        (next.status, next.counts.unchanged, next.counts.imported),
        (Status::Completed, 600, 900),
        "{:?}",
        next.reason
    );
    export.compare().await;
    export.close().await;
}

/// The example with a way to go on by key.
fn by_key(export: &Export) -> Folder {
    let by_key = "param = \"cursor\"\nreanchor = { param = \"after_id\", last = \"/id\" }";
    changed(&export.folder(""), "param = \"cursor\"", by_key)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a8_where_every_cursor_is_dead_the_segment_is_fetched_again_behind_the_last_key_before_it() {
    // Request 8 asks for the fourth page of the second segment, which begins at a cursor as well.
    let export = Export::open(1_500, "expired-all@8", 1).await;
    let job = export.run(by_key(&export)).await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, 1_500), "{:?}", job.reason);
    assert_eq!((job.fetched, job.counts.duplicate_in_source), (1_500, 0));
    // The refused one, the anchor's, and the three pages of the segment once more.
    assert!(export.core.stats().list_requests <= 15 + 2 + 3, "{}", export.core.stats().list_requests);
    export.compare().await;
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_a_cursor_that_stands_still_is_seen_beside_keys_that_move() {
    let export = Export::open(1_500, "repeat-cursor@3", 1).await;
    let job = export.run(by_key(&export)).await;
    let reason = job.reason.as_deref().unwrap_or_default();
    assert_eq!(job.status, Status::Failed, "{reason}");
    assert!(reason.contains("leads to itself"), "{reason}");
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a9_both_codes_of_a_stale_cursor_are_known_and_another_400_stops_the_job() {
    let faults = "expired-once@5:EXPIRED_PAGE_TOKEN,expired-once@9:INVALID_PAGE_TOKEN";
    let (export, _) = arrives_whole(1_200, faults, |export| export.folder("")).await;
    export.close().await;
    let export = Export::open(1_200, "expired@5:CURSOR_UNLOVED", 1).await;
    let job = export.run(export.folder("")).await;
    let reason = job.reason.unwrap();
    assert_eq!((job.status, job.fetched), (Status::Failed, 400), "{reason}");
    assert!(reason.contains("400") && reason.contains("CURSOR_UNLOVED"), "{reason}");
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b16_a_last_page_that_repeats_its_cursor_is_the_end_only_where_the_declaration_says_so() {
    let silent = |export: &Export| changed(&export.folder(""), "has_more = \"/meta/has_more\"\n", "");
    let (export, _) = arrives_whole(500, "stalled-end", |export| {
        changed(&silent(export), "param = \"cursor\"", "param = \"cursor\"\nstalled_is_end = true")
    })
    .await;
    export.close().await;
    let export = Export::open(500, "stalled-end", 1).await;
    let job = export.run(silent(&export)).await;
    assert_eq!((job.status, job.fetched), (Status::Failed, 500), "{:?}", job.reason);
    assert!(job.reason.unwrap().contains("leads to itself"));
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_a_cursor_that_never_changes_is_an_error_unless_it_is_declared() {
    let (export, _) = arrives_whole(500, "stateful-cursor", |export| {
        changed(&export.folder(""), "param = \"cursor\"", "param = \"cursor\"\nstateful = true")
    })
    .await;
    export.close().await;
    let export = Export::open(500, "stateful-cursor", 1).await;
    let job = export.run(export.folder("")).await;
    assert_eq!(job.status, Status::Failed, "{:?}", job.reason);
    assert!(
        job.fetched < 500 && job.reason.as_deref().unwrap().contains("leads to itself"),
        "{:?}",
        job.reason
    );
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b19_an_empty_text_is_a_cursor_and_never_quietly_the_end() {
    let export = Export::open(500, "empty-cursor@3", 1).await;
    let job = export.run(export.folder("")).await;
    // Asked for again, it leads to the first page: a ring.
    assert_eq!(job.status, Status::Failed, "{:?}", job.reason);
    assert!(job.fetched >= 200, "{}", job.fetched);
    export.close().await;
    let export = Export::open(500, &format!("empty-cursor@3{FOR_GOOD}"), 1).await;
    let folder =
        changed(&export.folder(""), "param = \"cursor\"", "param = \"cursor\"\nempty_text_is_end = true");
    let job = export.run(folder).await;
    let reason = job.reason.unwrap();
    assert_eq!((job.status, job.fetched), (Status::Failed, 200), "{reason}");
    assert!(reason.contains("says that there is more"), "{reason}");
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_an_empty_or_a_short_page_with_a_cursor_is_not_the_end() {
    let faults = "empty-page@2,short-page@4,trailing-empty-page";
    let (export, _) = arrives_whole(605, faults, |export| export.folder("")).await;
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b22_b23_records_of_one_instant_across_a_cut_arrive_once() {
    // Ten in one instant over the end of a page, and over that of the first segment, where the job rests too.
    let export = Export::open(900, "tied@95x10,tied@395x10,token-expires@5", 1).await;
    let job = export.run(export.folder("")).await;
    assert_eq!((job.status, job.fetched), (Status::AwaitingToken, 400), "{:?}", job.reason);
    std::fs::write(&export.token, export.core.renew_token()).unwrap();
    let job = export.bank.resume(job.id).await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, 900), "{:?}", job.reason);
    export.compare().await;
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b25_b26_what_moves_or_goes_during_the_walk_shifts_no_neighbour() {
    // A record of the second page moves ahead of the walk and is met again there, at another time; one of the first page is
    // deleted.
    let export = Export::open(600, "move-ahead@150:300,delete@20", 1).await;
    let job = export.run(counted(&export.folder(""))).await;
    let notes = export.bank.notes(job.id).await;
    assert_eq!((job.counts.imported, job.counts.failed), (600, 1), "{notes:?}");
    assert_eq!(codes(&notes), ["conflicting_duplicate"]);
    assert!(notes[0].2.contains("created_at"), "{notes:?}");
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b25_b27_a_record_that_the_walk_never_meets_is_missed_by_the_count() {
    for faults in ["late@150", "move-back@250:200"] {
        let export = Export::open(600, faults, 1).await;
        // Without the checks, which miss its movement as well.
        let folder = counted(&export.folder(""));
        let files = ["pipeline.toml", "map.sql", "proof.sql"].map(|name| (name, folder.text(name)));
        let job = export.run(Folder::of(files)).await;
        let notes = export.bank.notes(job.id).await;
        assert_eq!(
            (job.status, job.outcome(), job.counts.imported),
            (Status::Completed, Some("partial"), 599),
            "{faults}"
        );
        assert_eq!(codes(&notes), ["fewer_than_the_source_counts"], "{faults}: {notes:?}");
        assert!(notes[0].2.contains("600") && notes[0].2.contains("599"), "{notes:?}");
        export.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b28_many_records_of_one_instant_leave_a_checkpoint_of_one_size() {
    let mut sizes = Vec::new();
    for faults in ["none", "tied@0x3000"] {
        let (export, _) = arrives_whole(3_000, faults, |export| export.folder("")).await;
        let rows = "SELECT (SELECT count(*) FROM crossdock.partitions) || ' ' || (SELECT count(*) FROM crossdock.segments)
            || ' ' || (SELECT count(*) FROM crossdock.pages)";
        sizes.push(export.bank.texts(rows).await);
        let longest = "SELECT max(octet_length(anchor))::text FROM crossdock.segments";
        assert!(export.bank.texts(longest).await[0].parse::<i64>().unwrap() < 200);
        export.close().await;
    }
    assert_eq!(sizes[0], sizes[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b29_c36_e71_g102_what_a_record_lacks_or_says_oddly_is_told_and_its_neighbours_arrive() {
    let faults = "null-created-at@10,missing-created-at@20,missing-id@30,missing-id@31,local-time@40,offset-time@50,\
        unknown-type@60,numeric-id@70,big-seq@80,null-narration@90,missing-narration@91";
    let export = Export::open(300, faults, 1).await;
    let job = export.run(export.folder("")).await;
    let notes = export.bank.notes(job.id).await;
    let expected = [
        "null_field",
        "missing_field",
        "missing_id",
        "missing_id",
        "ambiguous_time",
        "unknown_type",
        "bad_uuid",
    ];
    assert_eq!(codes(&notes), expected, "{notes:?}");
    assert_eq!((job.counts.imported, job.counts.failed, job.outcome()), (293, 7, Some("partial")));
    export.compare().await;
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c31_c32_a_record_that_comes_again_on_another_page_is_one_row_and_a_changed_one_is_named() {
    let export = Export::open(900, "duplicate@10,duplicate@20:600,conflict@30,conflict@40:600", 1).await;
    let job = export.run(export.folder("")).await;
    let notes = export.bank.notes(job.id).await;
    assert_eq!(job.counts.duplicate_in_source, 2, "{notes:?}");
    // Within a chunk both of two that differ are refused; of those far apart the first stands.
    let refused: Vec<_> = notes.iter().filter(|note| note.1 == "conflicting_duplicate").collect();
    assert_eq!(refused.len(), 3, "{notes:?}");
    assert!(refused[2].2.contains("amount"), "{notes:?}");
    assert_eq!((job.counts.imported, job.counts.failed), (899, 3), "{notes:?}");
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c34_equal_content_under_another_id_is_another_record() {
    let export = Export::open(600, "twin@10,twin@20:400", 1).await;
    let job = export.run(export.folder("")).await;
    assert_eq!(job.counts.imported, 602, "{:?} {:?}", job.reason, export.bank.notes(job.id).await);
    assert_eq!((job.counts.duplicate_in_source, job.counts.failed), (0, 0));
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f74_f77_f78_f79_f81_f84_f85_what_an_answer_may_be_is_no_page_and_costs_no_record() {
    let faults = "truncated-gzip@2,throttled200@4,empty-body@6,html200@8,429@10:date+2,429@12:99999999999999999999,\
        429@14:none,401@16,gzip-chunked@18,cut-chunked@20";
    let (export, job) = arrives_whole(1_200, faults, |export| export.folder("")).await;
    assert_eq!(export.core.stats().struck.len(), 10, "{:?}", export.core.stats().struck);
    assert_eq!(job.counts.duplicate_in_source, 0);
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f87_a_page_that_is_refused_for_good_ends_its_partition_and_the_others_go_on() {
    let export = Export::open(800, "bad-page@500", 4).await;
    let shards = "[source.partitions]\nparam = \"shard\"\nvalues = [\"0\", \"1\", \"2\", \"3\"]\n";
    let job = export.run(export.folder(shards)).await;
    assert_eq!((job.status, job.counts.imported), (Status::Failed, 700), "{:?}", job.reason);
    assert!(job.reason.as_deref().unwrap().contains("UNPROCESSABLE"), "{:?}", job.reason);
    let refused = export.core.stats().pages.iter().map(|page| page.asked - page.served).max();
    assert_eq!(refused, Some(1), "a refusal for good is asked for once");
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g97_a_record_edited_at_the_source_afterwards_is_no_damage_of_the_target() {
    let (export, job) = arrives_whole(600, "edit@50,edit@450", |export| export.folder("")).await;
    let found = export.bank.ledgers.verify(job.id).await.unwrap();
    assert!(found.holds && found.altered.count == 0, "{found}");
    // A second walk brings the edits, and says so record by record.
    let again = export.run(export.folder("")).await;
    let notes = export.bank.notes(again.id).await;
    assert_eq!((again.counts.unchanged, codes(&notes)), (598, vec!["conflict", "conflict"]), "{notes:?}");
    assert!(notes[0].2.contains("status"), "{notes:?}");
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g99_a_transfer_within_one_wallet_makes_its_balance_wrong_and_the_check_says_which() {
    for (fault, check) in [
        ("self-transfer@100", "movements"),
        ("broken-balance@100", "continuity"),
        ("wrong-balance@100", "continuity"),
    ] {
        let export = Export::open(600, fault, 1).await;
        let job = export.run(export.folder("")).await;
        let reason = job.reason.unwrap_or_default();
        assert_eq!(job.status, Status::Failed, "{fault}: {reason}");
        assert!(reason.contains(check), "{fault}: {reason}");
        export.close().await;
    }
}
