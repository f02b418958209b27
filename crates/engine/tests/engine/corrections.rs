//! What was counted is corrected by lines of their own.

use engine::store::{corrections, history};
use engine::{Counts, Status};

use crate::support::Bench;
use crate::support::source::Script;

db::on_both!(corrections_move_counts_and_change_no_line, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(20, 10)).await;
    let job = bench.run().await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, 20));
    let moved = Counts { imported: -3, failed: 3, targets: -3, ..Counts::default() };
    let mut lines = Vec::new();
    for block in [Some(&b"block"[..]), None] {
        let mut tx = bench.database.begin().await.unwrap();
        let (part, segment) = corrections::begin(tx.conn(), job.id, "corrections").await.unwrap();
        let place = (part, segment, 7);
        assert!(!corrections::has(tx.conn(), job.id, place).await.unwrap());
        corrections::add(tx.conn(), job.id, place, &moved, 5, block).await.unwrap();
        assert!(corrections::has(tx.conn(), job.id, place).await.unwrap());
        tx.commit().await.unwrap();
        lines.push((part, segment));
    }
    assert_eq!(lines, [(1, 0), (1, 1)], "a partition of their own, a segment each");

    let now = bench.job_row(job.id).await;
    assert_eq!((now.counts.imported, now.counts.failed, now.fetched), (14, 6, 20));
    let mut reader = bench.database.read().await.unwrap();
    let history = history::segments(reader.conn(), job.id).await.unwrap();
    for line in &history {
        let sum = line.imported + line.updated + line.unchanged + line.filtered + line.duplicate_in_source;
        assert_eq!(i64::from(line.records), sum + line.skipped + line.failed, "{line:?}");
    }
    let corrected: Vec<i64> =
        history.iter().filter(|line| line.part == 1).map(|line| line.imported).collect();
    assert_eq!(corrected, [-3, -3]);
    let blocks = history::blocks(reader.conn(), job.id, (1, -1, -1), 10).await.unwrap();
    assert_eq!(blocks.iter().map(|block| &block.block[..]).collect::<Vec<_>>(), [b"block"]);
    drop(reader);

    // Counts that do not come to nothing are no correction.
    let mut tx = bench.database.begin().await.unwrap();
    let (part, segment) = corrections::begin(tx.conn(), job.id, "corrections").await.unwrap();
    let more = Counts { imported: 1, ..Counts::default() };
    let refused = corrections::add(tx.conn(), job.id, (part, segment, 0), &more, 0, None).await;
    assert!(refused.is_err_and(|error| error.is_refusal()));
});
