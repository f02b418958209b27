//! A progress bar for an import.

use std::time::Duration;

use engine::{JobId, Status};
use imports::{ImportReport, Imports};
use indicatif::{ProgressBar, ProgressStyle};

/// How often the bar is redrawn from what is stored.
const EVERY: Duration = Duration::from_millis(200);
/// After how many failures in a row to read the job the watching gives up.
const ERRORS_MAX: u32 = 600;

/// Draws an import until it rests, and returns it as it then is. Draws nothing where standard error is no terminal.
pub(crate) async fn watch(imports: &Imports, id: JobId) -> imports::Result<ImportReport> {
    let bar = ProgressBar::new_spinner();
    let style = |template: &str| {
        ProgressStyle::with_template(template).expect("the template is correct").progress_chars("█▉▊▋▌▍▎▏ ")
    };
    let (counting, open) = (
        style("{spinner} [{elapsed_precise}] {bar:30} {pos}/{len} links, {msg}, {per_sec}, {eta} left"),
        style("{spinner} [{elapsed_precise}] {pos} links, {msg}, {per_sec}"),
    );
    bar.set_style(open.clone());
    bar.enable_steady_tick(EVERY);
    let mut errors = 0;
    loop {
        let (report, undoing) = match look(imports, id).await {
            Ok(known) => known,
            // The runner tries again as well; it tells in the log why.
            Err(imports::Error::Db(error)) if error.is_transient() && errors < ERRORS_MAX => {
                errors += 1;
                tokio::time::sleep(EVERY).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        errors = 0;
        match report.expected.and_then(|expected| u64::try_from(expected).ok()) {
            Some(expected) => {
                bar.set_style(counting.clone());
                bar.set_length(expected.max(report.source_links.unsigned_abs()));
            }
            None => bar.set_style(open.clone()),
        }
        bar.set_position(report.settled().unsigned_abs());
        bar.set_message(message(&report));
        if !undoing && !matches!(report.status, Status::Queued | Status::Running | Status::Waiting) {
            bar.finish_and_clear();
            return Ok(report);
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// The import, and whether this process still has to take back what it wrote.
async fn look(imports: &Imports, id: JobId) -> imports::Result<(ImportReport, bool)> {
    // In this order: an import that has failed is marked in the same moment.
    let report = imports.get(None, id).await?;
    let undoing = report.status == Status::Failed && imports.is_undoing(id).await?;
    if report.status == Status::Failed && !undoing {
        // Undoing may have ended in between, and with it what the counters speak of.
        return Ok((imports.get(None, id).await?, false));
    }
    Ok((report, undoing))
}

fn message(report: &ImportReport) -> String {
    match report.status {
        Status::Failed => "taking back what was written".to_owned(),
        Status::Queued => "queued behind another import of the domain".to_owned(),
        Status::Waiting => {
            let until = report.waiting_until.map_or_else(|| "later".to_owned(), |until| until.to_string());
            format!("waiting until {until}: {}", report.reason.as_deref().unwrap_or(""))
        }
        _ => format!("{} fetched, {} failed", report.source_links, report.failed),
    }
}
