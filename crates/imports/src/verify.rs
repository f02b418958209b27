//! Verification: what the manifest says was written, compared with what stands in the target now.
//!
//! It reads by its own path: from the manifest's blocks to the stored links, computing digests from what is read back.

use std::collections::HashMap;

use engine::store::history;
use engine::{JobId, manifest};
use serde::Serialize;

use crate::service::load_parameters;
use crate::{Error, Imports, Result};

/// What is wrong with one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The manifest says it was written, and there is nothing.
    Lost,
    /// Somebody deleted it here since.
    Deleted,
    /// Somebody edited it here since: its version moved on.
    Edited,
    /// It differs from what was written, although its version did not move.
    Altered,
}

/// One finding.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The vendor's id.
    pub source_id: String,
    /// What was found.
    pub verdict: Verdict,
}

/// The result of a verification.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Verification {
    /// Records in the manifest.
    pub records: i64,
    /// Records fetched, which must be as many.
    pub fetched: i64,
    /// Records of which something stands in the target, and that are exactly as written.
    pub verified: i64,
    /// Records of which nothing should stand there.
    pub absent: i64,
    /// Records that differ.
    pub lost: i64,
    /// Deleted here since.
    pub deleted: i64,
    /// Edited here since.
    pub edited: i64,
    /// Altered without a trace.
    pub altered: i64,
    /// The findings, at most 1,000.
    pub findings: Vec<Finding>,
    /// Whether every record is accounted for and none lost or altered. Edits and deletions by people do not break it.
    pub holds: bool,
}

/// Findings that are listed; the counters go on.
pub(crate) const FINDINGS_MAX: usize = 1_000;
const BLOCKS_AT_ONCE: i64 = 4;
const RECORDS_AT_ONCE: usize = 500;

impl Verification {
    fn find(&mut self, source_id: &str, verdict: Verdict) {
        *match verdict {
            Verdict::Lost => &mut self.lost,
            Verdict::Deleted => &mut self.deleted,
            Verdict::Edited => &mut self.edited,
            Verdict::Altered => &mut self.altered,
        } += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { source_id: source_id.to_owned(), verdict });
        }
    }
}

impl Imports {
    /// Compares an import with what stands in the target now.
    pub async fn verify(&self, workspace: Option<db::Id>, id: JobId) -> Result<Verification> {
        let report = self.get(workspace, id).await?;
        let mut verification = Verification { fetched: report.source_links, ..Verification::default() };
        let mut after = (-1, -1, -1);
        loop {
            let mut reader = self.store().database().read().await?;
            let blocks = history::blocks(reader.conn(), id, after, BLOCKS_AT_ONCE).await?;
            drop(reader);
            let Some(last) = blocks.last() else { break };
            after = (last.part, last.segment, last.first_ordinal);
            for block in &blocks {
                let entries =
                    manifest::unpack(&block.block).map_err(|e| Error::Parameters(id, e.to_string()))?;
                for part in entries.chunks(RECORDS_AT_ONCE) {
                    self.verify_entries(id, part, report.dry_run, &mut verification).await?;
                }
            }
        }
        verification.holds = verification.records == verification.fetched
            && verification.lost == 0
            && verification.altered == 0
            && report.settled() == report.source_links;
        Ok(verification)
    }

    async fn verify_entries(
        &self,
        id: JobId,
        entries: &[manifest::Entry],
        dry_run: bool,
        verification: &mut Verification,
    ) -> Result<()> {
        verification.records += i64::try_from(entries.len()).unwrap_or(i64::MAX);
        let (standing, absent): (Vec<_>, Vec<_>) = entries
            .iter()
            .partition(|entry| !dry_run && entry.written != [0; 16] && entry.source_id.is_some());
        verification.absent += i64::try_from(absent.len()).unwrap_or(i64::MAX);
        if standing.is_empty() {
            return Ok(());
        }
        let mut reader = self.store().database().read().await?;
        let parameters = load_parameters(reader.conn(), id).await?.ok_or(Error::NotFound)?;
        let ids: Vec<&str> = standing.iter().filter_map(|entry| entry.source_id.as_deref()).collect();
        let origins = links::origins_of(
            reader.conn(),
            parameters.workspace_id,
            &parameters.vendor,
            parameters.target_domain_id,
            &ids,
        )
        .await?;
        let link_ids: Vec<db::Id> = origins.iter().map(|origin| origin.link_id).collect();
        let read = links::read_imported(reader.conn(), &link_ids).await?;
        drop(reader);
        let by_source: HashMap<&str, &links::ReadBack> =
            read.iter().map(|read| (read.origin.source_id.as_str(), read)).collect();
        for entry in standing {
            let source_id = entry.source_id.as_deref().unwrap_or_default();
            match judge(entry, by_source.get(source_id).copied()) {
                None => verification.verified += 1,
                Some(verdict) => verification.find(source_id, verdict),
            }
        }
        Ok(())
    }
}

fn judge(entry: &manifest::Entry, read: Option<&links::ReadBack>) -> Option<Verdict> {
    let Some(read) = read else { return Some(Verdict::Lost) };
    let Some(link) = &read.link else {
        return Some(if read.origin.is_deleted() { Verdict::Deleted } else { Verdict::Lost });
    };
    if read.digest().is_some_and(|digest| *digest.as_bytes() == entry.written) {
        return None;
    }
    // A later import may have written it again: then its own note says what it wrote.
    let as_noted = read.digest() == Some(read.origin.imported_digest);
    if as_noted || link.version > read.origin.imported_version {
        return Some(Verdict::Edited);
    }
    Some(Verdict::Altered)
}
