//! Records that come late: those too young to be all there are left to the next job, and the last stretch is looked at
//! once more.
//!
//! dlt-hub/dlt#2269: a row with an earlier time commits late and is never seen.

use std::time::UNIX_EPOCH;

use crossdock_ledger::Folder;
use engine::{Job, Status};
use upstream::Clock as _;

use crate::export::{Export, hurried};

/// How old the record at this place is when the job begins, in seconds.
fn age(export: &Export, index: u64) -> i64 {
    let now = hurried().now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    i64::try_from(now).unwrap() - export.core.logs().log(index).created_at_ms.div_euclid(1_000)
}

/// The example's folder, with further lines in `[source]`; its pages say how many records there are.
fn counted(export: &Export, more: &str) -> Folder {
    let folder = export.folder(more);
    let has_more = "has_more = \"/meta/has_more\"\n";
    let pipeline =
        folder.text("pipeline.toml").replace(has_more, &format!("{has_more}total = \"/meta/total\"\n"));
    let files = [("map.sql", folder.text("map.sql")), ("proof.sql", folder.text("proof.sql"))];
    Folder::of(files.into_iter().chain(folder.checks()).chain([("pipeline.toml", pipeline.as_str())]))
}

async fn keys(export: &Export, job: &Job) -> Vec<String> {
    let mut reader = export.bank.database().read().await.unwrap();
    let parts = engine::store::partitions::list(reader.conn(), job.id).await.unwrap();
    parts.into_iter().map(|part| format!("{}: {}", part.key, part.records)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b27_records_younger_than_the_lag_are_left_to_the_next_job() {
    let export = Export::open(1_500, "none", 1).await;
    let lag = age(&export, 1_000);
    let job = export.run(export.folder(&format!("[source.until]\nparam = \"to\"\nlag = \"{lag}s\"\n"))).await;
    assert_eq!((job.status, job.outcome()), (Status::Completed, Some("clean")), "{:?}", job.reason);
    let newest =
        "SELECT to_char(max(created_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') FROM bank.transactions";
    let bound = export.core.logs().log(1_000).created_at_ms;
    let older =
        (0..1_500).filter(|index| export.core.logs().log(*index).created_at_ms < bound - bound % 1_000);
    assert_eq!(
        usize::try_from(job.counts.imported).unwrap(),
        older.count(),
        "{:?}",
        export.bank.texts(newest).await
    );
    let rest = export.run(export.folder("")).await;
    assert_eq!((rest.status, rest.counts.imported), (Status::Completed, 1_500 - job.counts.imported));
    export.compare().await;
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b27_what_comes_late_arrives_with_the_last_look() {
    // Without it the record is missing: the count says so, and the example's check of balances finds the gap.
    let export = Export::open(1_500, "late@1350", 1).await;
    let job = export.run(counted(&export, "")).await;
    assert_eq!((job.status, job.counts.imported, job.short_partitions), (Status::Failed, 1_499, 1));
    let notes = export.bank.notes(job.id).await;
    assert!(notes.iter().any(|note| note.1 == "fewer_than_the_source_counts"), "{notes:#?}");
    export.close().await;

    for (partitions, more) in [
        (1, ""),
        (3, "[source.partitions]\nparam = \"shard\"\nvalues = [\"0\", \"1\", \"2\"]\nside_by_side = 3\n"),
    ] {
        let export = Export::open(1_500, "late@1350", partitions).await;
        let sweep = format!("[source.sweep]\nparam = \"from\"\nback = \"{}s\"\n{more}", age(&export, 1_300));
        let job = export.run(counted(&export, &sweep)).await;
        let keys = keys(&export, &job).await;
        assert_eq!(
            (job.status, job.outcome()),
            (Status::Completed, Some("clean")),
            "{:?} {keys:#?}",
            job.reason
        );
        assert_eq!(job.counts.imported, 1_500, "{keys:#?}");
        assert!(job.counts.duplicate_in_source >= 99, "the last look sees what is there already: {keys:#?}");
        assert_eq!(job.counts.records(), 1_500 + job.counts.duplicate_in_source);
        export.compare().await;
        assert!(export.bank.ledgers.verify(job.id).await.unwrap().holds);
        export.close().await;
    }
}
