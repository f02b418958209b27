//! What must hold after an import was interrupted and went on.

use crate::case::Database;
use crate::links::compare::{TruthRow, compare};
use crate::links::importer::Importer;
use crate::links::simulator::Account;
use crate::links::target::{self, JobRow};
use crate::run::Verdict;

/// Pages that may be asked for again each time fetching begins again: the one whose commit was under way.
const PAGES_AGAIN_MAX: u64 = 1;
/// A larger account is fetched in more than one run.
const RUN_LINKS: u64 = 50_000;

/// Compares the target with the account, and looks at the books and at what the source was asked.
pub(crate) async fn judge(
    importer: &Importer<'_>,
    account: Account,
    truth: &[TruthRow],
    interruptions: usize,
) -> anyhow::Result<Verdict> {
    let target = target::read(importer.ground).await?;
    let differences = compare(truth, &target.rows, target.links);
    let mut complaints = books(&target.jobs, account.links, interruptions);
    if target.staged != 0 || target.quarantined != 0 {
        complaints.push(format!(
            "{} staged records were not cleaned away, {} are in quarantine",
            target.staged, target.quarantined
        ));
    }
    for job in importer.jobs(target.jobs.len()).await? {
        let verification = importer.verify(&job).await?;
        if !verification.holds || verification.records != account.links {
            complaints.push(format!("`job verify {job}` says {verification:?}"));
        }
    }
    let again = importer.simulator.asked().await?.again(target.jobs.len() as u64);
    let resumed = target.jobs.iter().map(|job| u64::try_from(job.run - 1).unwrap_or_default()).sum();
    if again > PAGES_AGAIN_MAX * resumed {
        complaints
            .push(format!("{again} pages were asked for again, while fetching began again {resumed} times"));
    }
    // On Postgres a short lease can be lost on a busy machine; on SQLite there is nobody to lose it to.
    if importer.ground.database == Database::Sqlite
        && account.links <= RUN_LINKS
        && resumed > interruptions as u64
    {
        complaints.push(format!("fetching began again {resumed} times after {interruptions} interruptions"));
    }
    Ok(Verdict { differences, complaints, again, resumed })
}

/// One job has imported everything. Where an interruption came after the end, starting again made another one, which found
/// everything unchanged.
fn books(jobs: &[JobRow], links: u64, interruptions: usize) -> Vec<String> {
    let links = i64::try_from(links).unwrap_or(i64::MAX);
    let wrong = |job: &JobRow, imported: i64, unchanged: i64| {
        job.status != "completed"
            || job.fetched != links
            || (job.imported, job.unchanged, job.others) != (imported, unchanged, 0)
            || (job.ready, job.unclean) != (0, 0)
    };
    let mut complaints = Vec::new();
    if !(1..=1 + interruptions).contains(&jobs.len()) {
        complaints.push(format!(
            "{} jobs where one, and at most a repetition for each of {interruptions} interruptions, were expected",
            jobs.len()
        ));
    }
    for (number, job) in jobs.iter().enumerate() {
        let (imported, unchanged) = if number == 0 { (links, 0) } else { (0, links) };
        if wrong(job, imported, unchanged) {
            complaints.push(format!("the books of job {}: {job:?}", number + 1));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(imported: i64, unchanged: i64) -> JobRow {
        let fetched = imported + unchanged;
        JobRow {
            status: "completed".into(),
            run: 1,
            fetched,
            imported,
            unchanged,
            others: 0,
            ready: 0,
            unclean: 0,
        }
    }

    #[test]
    fn books_that_do_not_add_up_are_noticed() {
        let cases = [
            (vec![job(7, 0)], 0),
            (vec![job(7, 0), job(0, 7)], 0),
            (vec![], 1),
            (vec![job(6, 1)], 1),
            (vec![job(6, 0)], 1),
            (vec![job(7, 0), job(7, 0)], 1),
            (vec![JobRow { status: "running".into(), ..job(7, 0) }], 1),
            (vec![JobRow { fetched: 8, ..job(7, 0) }], 1),
            (vec![JobRow { others: 1, ..job(7, 0) }], 1),
            (vec![JobRow { ready: 1, ..job(7, 0) }], 1),
            (vec![JobRow { unclean: 1, ..job(7, 0) }], 1),
            (vec![job(7, 0), job(0, 7), job(0, 7)], 1),
        ];
        for (jobs, expected) in cases {
            assert_eq!(books(&jobs, 7, 1).len(), expected, "{jobs:?}");
        }
        assert_eq!(books(&[job(7, 0), job(0, 7), job(0, 7)], 7, 2), Vec::<String>::new());
    }
}
