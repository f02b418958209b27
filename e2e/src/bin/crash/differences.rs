//! What is wrong in a target, whatever was brought there.

use std::fmt;
use std::ops::AddAssign;

/// Findings that are told one by one.
const FINDINGS_MAX: usize = 20;

/// What is wrong, in numbers and in the first few sentences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// Slugs or records of the source that are not in the target.
    pub(crate) lost: u64,
    /// What the target has more than once, and what it has that the source does not, suffixed slugs among them.
    pub(crate) doubled: u64,
    /// What is there with other values.
    pub(crate) altered: u64,
    pub(crate) findings: Vec<String>,
}

impl Differences {
    pub(crate) fn is_none(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.altered == 0
    }

    pub(crate) fn find(&mut self, what: impl FnOnce() -> String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(what());
        }
    }
}

impl AddAssign for Differences {
    fn add_assign(&mut self, other: Self) {
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.altered += other.altered;
        self.findings.extend(other.findings);
        self.findings.truncate(FINDINGS_MAX);
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lost {}, doubled {}, altered {}", self.lost, self.doubled, self.altered)
    }
}
