//! What makes a job an import: where from, where to, and by which rules.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use db::Id;
use serde::{Deserialize, Serialize};

/// What to do with a slug that the target has already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conflict {
    /// Take `mylink-2` … `mylink-50`, then the record fails.
    #[default]
    Suffix,
    /// Leave the existing link alone and list the source's.
    Skip,
    /// Write nothing at all if anything collides.
    Fail,
}

impl Conflict {
    /// The word, as stored and typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Suffix => "suffix",
            Self::Skip => "skip",
            Self::Fail => "fail",
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Conflict {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Suffix, Self::Skip, Self::Fail]
            .into_iter()
            .find(|conflict| conflict.as_str() == text)
            .ok_or_else(|| format!("'{text}' is not a conflict rule; use suffix, skip or fail"))
    }
}

/// What of the source comes over, and where hosts go. Stored as the job's `source_filter`; unknown keys of other
/// vendors' filters are refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Bitly: only this group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_guid: Option<String>,
    /// Hosts whose slugs go to another domain than the target, lower case.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub map_domain: BTreeMap<String, String>,
    /// If not empty: only slugs on these hosts, lower case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only_domain: Vec<String>,
}

/// The stored parameters of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    /// The workspace that imports.
    pub workspace_id: Id,
    /// The vendor's word.
    pub vendor: String,
    /// The domain every slug goes to unless its host is mapped elsewhere.
    pub target_domain_id: Id,
    /// The conflict rule.
    pub conflict: Conflict,
    /// What comes over.
    pub filter: Filter,
}
