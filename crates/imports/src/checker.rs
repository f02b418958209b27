//! Dry runs, and the rule `fail`: the same decisions as the sink's, without writing.

use async_trait::async_trait;
use db::Reader;
use engine::{Checker, ChunkContext, SinkError, StagedRecord, Written};

use crate::decide::{self, Action, Claimed, Decider, Knowledge, Rules};
use crate::prepare::{Prepared, Preparer};
use crate::sink::{candidates, sink_error};

/// Collisions named in the sentence with which the job fails.
const COLLISIONS_NAMED: usize = 20;

/// Foretells outcomes; remembers which slugs earlier records would have taken.
pub(crate) struct LinkChecker {
    preparer: Preparer,
    rules: Rules,
    claimed: Claimed,
    collisions: usize,
    named: Vec<String>,
}

impl LinkChecker {
    pub(crate) fn new(preparer: Preparer, rules: Rules) -> Self {
        Self { preparer, rules, claimed: Claimed::default(), collisions: 0, named: Vec::new() }
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
        let prepared: Vec<Prepared> =
            records.iter().map(|record| self.preparer.prepare(record, context.now)).collect();
        let candidates = candidates(&prepared);
        let mut knowledge = Knowledge::default();
        if !candidates.is_empty() {
            knowledge.learn_origins(reader.conn(), &self.rules, &candidates).await.map_err(sink_error)?;
            let wanted = decide::wanted(&candidates);
            for part in Knowledge::parts(&wanted) {
                knowledge.learn_places(reader.conn(), &self.rules, part).await.map_err(sink_error)?;
            }
            let alternatives = decide::alternatives(&self.rules, &knowledge, &self.claimed, &candidates);
            for part in Knowledge::parts(&alternatives) {
                knowledge.learn_places(reader.conn(), &self.rules, part).await.map_err(sink_error)?;
            }
        }
        let mut decider = Decider { rules: &self.rules, knowledge: &knowledge, claimed: &mut self.claimed };
        let (actions, collisions) = decider.decide(prepared);
        self.collisions += collisions.len();
        let room = COLLISIONS_NAMED.saturating_sub(self.named.len());
        self.named.extend(collisions.into_iter().take(room).map(|collision| collision.0));
        Ok(actions
            .into_iter()
            .map(|action| match action {
                Action::Nothing(written) => written,
                // Nothing stands there: the outcome is foretold only.
                Action::Insert(_, written) | Action::Update(_, written) => {
                    Written { digest: [0; 16], ..written }
                }
            })
            .collect())
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
