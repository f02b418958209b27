//! Imports of links, interrupted.

mod case;
mod compare;
mod importer;
mod judge;
mod plan;
mod play;
mod simulator;
mod target;

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Mutex;

pub(crate) use case::Case;
use compare::TruthRow;
pub(crate) use plan::{NOT_PASSED, observe, plan};
pub(crate) use play::play;
pub(crate) use simulator::Account;
use simulator::Simulator;

/// The point that only an account larger than a run passes, and the points passed once for each segment.
const RUN_POINT: &str = "run.boundary";
const SEGMENT_POINTS: &[&str] = &["segment.closed", "clean.before_commit", "clean.after_commit"];

/// Which account is imported in which case, and what is true of it.
pub(crate) struct Sources {
    accounts: Accounts,
    truths: Mutex<HashMap<Account, Arc<Vec<TruthRow>>>>,
}

/// Which account is imported in which case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accounts {
    pub(crate) plain: Account,
    /// Larger than a segment.
    pub(crate) segments: Account,
    /// Larger than a run.
    pub(crate) runs: Account,
}

impl Sources {
    pub(crate) fn new(accounts: Accounts) -> Self {
        Self { accounts, truths: Mutex::default() }
    }

    async fn truth(&self, simulator: &Simulator, account: Account) -> anyhow::Result<Arc<Vec<TruthRow>>> {
        let mut truths = self.truths.lock().await;
        if let Some(truth) = truths.get(&account) {
            return Ok(Arc::clone(truth));
        }
        let truth = Arc::new(simulator.truth().await?);
        truths.insert(account, Arc::clone(&truth));
        Ok(truth)
    }

    fn account(&self, case: &Case) -> Account {
        match case {
            Case::Abort { point, .. } if point == RUN_POINT => self.accounts.runs,
            Case::Abort { point, .. } if SEGMENT_POINTS.contains(&point.as_str()) => self.accounts.segments,
            _ => self.accounts.plain,
        }
    }
}
