//! What must hold after a migration was interrupted and went on.

use super::bank::{self, JobRow};
use super::cast::Cast;
use super::truth::Truth;
use crate::run::Verdict;

/// Pages that may be asked for again each time fetching begins again: the one whose commit was under way, and the one that
/// was being fetched beside it.
const PAGES_AGAIN_MAX: u64 = 2;

/// Compares the target with the export, and looks at the books and at what the source was asked.
pub(super) async fn judge(cast: &Cast<'_>, truth: &Truth, interruptions: usize) -> anyhow::Result<Verdict> {
    let differences = bank::compare(&cast.direct_for_us, truth).await?;
    let jobs = bank::jobs(&cast.direct_for_us).await?;
    let mut complaints = books(&jobs, truth, interruptions);
    for job in &jobs {
        let verification = cast.verify(job).await?;
        if !verification.holds || verification.records != truth.records {
            let failings = verification.failings.join("; ");
            complaints
                .push(format!("`ledger verify` speaks of {} records: {failings}", verification.records));
        }
    }
    let again = cast.core.told().await?.again(jobs.len() as u64);
    let resumed = jobs.iter().map(|job| u64::try_from(job.run - job.partitions).unwrap_or_default()).sum();
    if again > PAGES_AGAIN_MAX * resumed {
        complaints
            .push(format!("{again} pages were asked for again, while fetching began again {resumed} times"));
    }
    Ok(Verdict { differences, complaints, again, resumed })
}

/// One job has imported everything. Where an interruption came after the end, starting again made another one, which found
/// everything unchanged.
fn books(jobs: &[JobRow], truth: &Truth, interruptions: usize) -> Vec<String> {
    let wrong = |job: &JobRow, again: bool| {
        // What was given twice, far apart, meets a row of another job the second time: both are unchanged.
        let came = if again {
            job.imported == 0 && job.unchanged + job.duplicate_in_source == truth.good + truth.repeated
        } else {
            (job.imported, job.unchanged, job.duplicate_in_source) == (truth.good, 0, truth.repeated)
        };
        !came
            || job.status != "completed"
            || job.holds != Some(true)
            || job.source_hash != job.target_hash
            || job.fetched != truth.records
            || (job.failed, job.others) != (truth.bad, 0)
            || job.quarantined != truth.bad
            || (job.ready, job.unclean, job.staged) != (0, 0, 0)
    };
    let mut complaints = Vec::new();
    if !(1..=1 + interruptions).contains(&jobs.len()) {
        complaints.push(format!(
            "{} jobs where one, and at most a repetition for each of {interruptions} interruptions, were expected",
            jobs.len()
        ));
    }
    for (number, job) in jobs.iter().enumerate() {
        if wrong(job, number > 0) {
            complaints.push(format!("the books of job {}: {job:?}", number + 1));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(imported: i64, unchanged: i64) -> JobRow {
        JobRow {
            status: "completed".into(),
            run: 1,
            partitions: 1,
            fetched: 10,
            imported,
            unchanged,
            duplicate_in_source: 1,
            failed: 2,
            others: 0,
            ready: 0,
            unclean: 0,
            staged: 0,
            quarantined: 2,
            id: Some("x".into()),
            holds: Some(true),
            source_hash: Some("h".into()),
            target_hash: Some("h".into()),
        }
    }

    #[test]
    fn books_that_do_not_add_up_are_noticed() {
        let truth = Truth::numbers(10, 7, 2, 1);
        let cases = [
            (vec![job(7, 0)], 0),
            (vec![job(7, 0), job(0, 7)], 0),
            (vec![], 1),
            (vec![job(6, 1)], 1),
            (vec![job(7, 0), job(7, 0)], 1),
            (vec![job(7, 0), job(0, 7), job(0, 7)], 1),
            (vec![JobRow { status: "running".into(), ..job(7, 0) }], 1),
            (vec![JobRow { holds: Some(false), ..job(7, 0) }], 1),
            (vec![JobRow { holds: None, ..job(7, 0) }], 1),
            (vec![JobRow { target_hash: None, ..job(7, 0) }], 1),
            (vec![JobRow { fetched: 11, ..job(7, 0) }], 1),
            (vec![JobRow { duplicate_in_source: 0, ..job(7, 0) }], 1),
            (vec![JobRow { failed: 1, ..job(7, 0) }], 1),
            (vec![JobRow { others: 1, ..job(7, 0) }], 1),
            (vec![JobRow { ready: 1, ..job(7, 0) }], 1),
            (vec![JobRow { unclean: 1, ..job(7, 0) }], 1),
            (vec![JobRow { staged: 1, ..job(7, 0) }], 1),
            (vec![JobRow { quarantined: 3, ..job(7, 0) }], 1),
        ];
        for (jobs, expected) in cases {
            assert_eq!(books(&jobs, &truth, 1).len(), expected, "{jobs:?}");
        }
        assert_eq!(books(&[job(7, 0), job(0, 7), job(0, 7)], &truth, 2), Vec::<String>::new());
        assert_eq!(books(&[job(7, 0), job(0, 7)], &truth, 0).len(), 1);
    }
}
