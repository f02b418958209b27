//! Possible re-keys: links whose content an earlier import had brought under another source id.
//!
//! They are imported and listed, never merged: two links of equal content may well be two links. Looked for once, when
//! somebody first asks after the import has completed, because no index knows contents and an import pays for none.

use db::Id;
use engine::{JobId, Mode, Outcome, Status};

use crate::service::load_parameters;
use crate::store::{postgres, sqlite};
use crate::{ERROR_LOG_CAP, Imports, LogEntry, Result};

/// The stable code of the remark.
pub(crate) const POSSIBLE_REKEY: &str = "possible_rekey";

/// The new source id and the earlier one.
type Pair = (String, String);

impl Imports {
    /// What looks re-keyed, at most [`ERROR_LOG_CAP`] links; nothing before the import has completed.
    pub(crate) async fn possible_rekeys(&self, id: JobId) -> Result<Vec<LogEntry>> {
        let mut reader = self.store().database().read().await?;
        let kept: Option<String> = db::dispatch!(reader.conn(), rekeys(id.0))?;
        drop(reader);
        let pairs = match kept.and_then(|text| serde_json::from_str(&text).ok()) {
            Some(pairs) => pairs,
            None => self.look_for_rekeys(id).await?,
        };
        Ok(pairs.into_iter().map(entry).collect())
    }

    async fn look_for_rekeys(&self, id: JobId) -> Result<Vec<Pair>> {
        let Some(job) = self.store().job(id).await? else { return Ok(Vec::new()) };
        if job.status != Status::Completed || job.mode == Mode::DryRun {
            return Ok(Vec::new());
        }
        let database = self.store().database();
        let mut reader = database.read().await?;
        let Some(parameters) = load_parameters(reader.conn(), id).await? else { return Ok(Vec::new()) };
        let (workspace, vendor): (Id, &str) = (parameters.workspace_id, &parameters.vendor);
        let mut pairs: Vec<Pair> = Vec::new();
        if job.counts.imported > 0 && db::dispatch!(reader.conn(), any_earlier(workspace, vendor, id.0))? {
            let domain = parameters.target_domain_id;
            let found =
                links::possible_rekeys(reader.conn(), workspace, vendor, domain, id.0, ERROR_LOG_CAP).await?;
            pairs.extend(found.into_iter().map(|rekey| (rekey.source_id, rekey.earlier_id)));
        }
        drop(reader);
        let text = serde_json::to_string(&pairs).expect("texts are JSON");
        let mut tx = database.begin().await?;
        // Whoever looked at the same time has found the same.
        db::dispatch!(tx.conn(), keep_rekeys(id.0, &text))?;
        tx.commit().await?;
        Ok(pairs)
    }
}

fn entry((source_id, earlier_id): Pair) -> LogEntry {
    LogEntry {
        detail: format!(
            "possible re-key: {source_id} has the destination, the title and the date of {earlier_id}, which an earlier \
             import had brought; both are kept"
        ),
        source_slug: None,
        source_id: Some(source_id),
        outcome: Outcome::Imported.as_str().to_owned(),
        reason: POSSIBLE_REKEY.to_owned(),
    }
}
