//! Dry runs, and the rule `fail`: the same decisions as the sink's, without writing.

use async_trait::async_trait;
use db::{Database, Reader};
use engine::{Checker, ChunkContext, Outcome, SinkError, StagedRecord, Written};

use crate::IncomingAddress;
use crate::decide::{Action, Claimed, Decider, Knowledge, Rules};
use crate::hosts::HostCounts;
use crate::prepare::{Prepared, Preparer};
use crate::sink::{candidates, sink_error};
use crate::store::{postgres, sqlite};

/// Collisions named in the sentence with which the job fails.
const COLLISIONS_NAMED: usize = 20;

/// Foretells outcomes; remembers which slugs earlier records would have taken.
pub(crate) struct LinkChecker {
    preparer: Preparer,
    rules: Rules,
    claimed: Claimed,
    collisions: usize,
    named: Vec<String>,
    database: Database,
    hosts: HostCounts,
    /// Records looked at so far.
    records: u64,
}

impl LinkChecker {
    pub(crate) fn new(preparer: Preparer, rules: Rules, database: Database) -> Self {
        Self {
            preparer,
            rules,
            claimed: Claimed::default(),
            collisions: 0,
            named: Vec::new(),
            database,
            hosts: HostCounts::default(),
            records: 0,
        }
    }

    /// Keeps what was met so far with the job. Done for every chunk, because nobody says which one is the last.
    async fn keep_hosts(&mut self, records: usize) -> Result<(), SinkError> {
        let is_first = self.records == 0;
        self.records += records as u64;
        let hosts = serde_json::to_string(&self.hosts.met(&self.rules.routes)).expect("texts are JSON");
        let looked_at = i64::try_from(self.records).unwrap_or(i64::MAX);
        let job = self.rules.job_id;
        let mut tx = self.database.begin().await?;
        db::dispatch!(tx.conn(), keep_hosts(job, looked_at, &hosts, is_first))?;
        tx.commit().await?;
        Ok(())
    }
}

#[async_trait]
impl Checker for LinkChecker {
    async fn check(
        &mut self,
        reader: &mut Reader,
        context: &ChunkContext,
        records: &[StagedRecord],
    ) -> Result<Vec<Written>, SinkError> {
        let mut addresses: Vec<(usize, String)> = Vec::with_capacity(records.len());
        let prepared: Vec<Prepared> = records
            .iter()
            .enumerate()
            .map(|(index, record)| {
                let met = |address: &IncomingAddress| addresses.push((index, address.host.clone()));
                self.preparer.prepare_noting(record, context.now, met)
            })
            .collect();
        let candidates = candidates(&prepared);
        let knowledge =
            Knowledge::learn(reader, &self.rules, &self.claimed, &candidates).await.map_err(sink_error)?;
        let mut decider = Decider { rules: &self.rules, knowledge: &knowledge, claimed: &mut self.claimed };
        let (actions, collisions) = decider.decide(prepared);
        self.collisions += collisions.len();
        let room = COLLISIONS_NAMED.saturating_sub(self.named.len());
        self.named.extend(collisions.into_iter().take(room).map(|collision| collision.0));
        let foretold: Vec<Written> = actions
            .into_iter()
            .map(|action| match action {
                Action::Nothing(written) => written,
                // Nothing stands there: the outcome is foretold only.
                Action::Insert(_, _, written) | Action::Update(_, written) => {
                    Written { digest: [0; 16], ..written }
                }
            })
            .collect();
        for (index, host) in &addresses {
            if foretold[*index].outcome != Outcome::DuplicateInSource {
                self.hosts.count(host);
            }
        }
        self.keep_hosts(records.len()).await?;
        Ok(foretold)
    }

    fn verdict(&self) -> Result<(), String> {
        if self.collisions == 0 {
            return Ok(());
        }
        let more = self.collisions - self.named.len();
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        Err(format!(
            "nothing was written, because {} slugs are taken: {}{more}",
            self.collisions,
            self.named.join(", ")
        ))
    }
}
