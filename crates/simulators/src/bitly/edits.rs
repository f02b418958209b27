//! What changed in an account after it was generated.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
};

use serde::Deserialize;

use super::link::Link;

/// A link's place in the list, newest first. Generated links stand at `(index, 0)`; links added on top have
/// negative indexes, links that appeared between two others have a number behind the first one's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Position {
    pub(super) index: i64,
    pub(super) behind: u32,
}

impl Position {
    /// Before every link.
    pub(super) const BEGINNING: Self = Self { index: i64::MIN, behind: 0 };

    pub(super) fn generated(index: u64) -> Self {
        Self { index: index as i64, behind: 0 }
    }

    /// The index of a generated link; nothing for one that was added.
    pub(super) fn generated_index(self) -> Option<u64> {
        (self.behind == 0).then(|| u64::try_from(self.index).ok()).flatten()
    }
}

/// A change to a running account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Mutation {
    /// Changes the named fields of a link; a destination also mends a link that was planted without one.
    Edit {
        /// The vendor's id: `go.example.com/3AbCdEf`.
        id: String,
        /// The new destination.
        #[serde(default)]
        destination: Option<String>,
        /// The new title.
        #[serde(default)]
        title: Option<String>,
        /// The new tags.
        #[serde(default)]
        tags: Option<Vec<String>>,
        /// Whether the link is archived.
        #[serde(default)]
        archived: Option<bool>,
    },
    /// Deletes a link: it is listed no longer, and asking for it gives 410.
    Delete {
        /// The vendor's id.
        id: String,
    },
    /// Adds a link to the first group.
    Add {
        /// Where it leads.
        destination: String,
        /// Its slug; made up if absent. Any text that no other link has, `/` included.
        #[serde(default)]
        slug: Option<String>,
        /// Its title.
        #[serde(default)]
        title: Option<String>,
        /// Its tags.
        #[serde(default)]
        tags: Vec<String>,
        /// The id of a generated link that it is to stand behind; on top of the list if absent.
        #[serde(default)]
        behind: Option<String>,
    },
}

/// Why a mutation was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MutationError {
    /// The account has no such link, or has it no longer.
    #[error("no link {0:?}")]
    NoSuchLink(String),
    /// Another link has or had this slug.
    #[error("slug {0:?} is taken")]
    SlugTaken(String),
}

/// Fields of a generated link that were changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Change {
    pub(super) destination: Option<String>,
    pub(super) title: Option<String>,
    pub(super) tags: Option<Vec<String>>,
    pub(super) archived: Option<bool>,
}

/// All changes of an account; everything not mentioned here is as it was generated.
#[derive(Debug, Default)]
pub(super) struct Edits {
    pub(super) changed: HashMap<u64, Change>,
    pub(super) deleted: BTreeSet<Position>,
    pub(super) added: BTreeMap<Position, Link>,
    pub(super) added_slugs: HashMap<String, Position>,
}

impl Edits {
    /// The first place after `position`, among `count` generated links and what was added.
    pub(super) fn after(&self, position: Position, count: u64) -> Option<Position> {
        let mut position = position;
        loop {
            let index = if position.index < 0 { 0 } else { position.index.saturating_add(1) };
            let generated = u64::try_from(index).ok().filter(|index| *index < count).map(Position::generated);
            let rest = (Bound::Excluded(position), Bound::Unbounded);
            let added = self.added.range(rest).next().map(|(position, _)| *position);
            position = generated.into_iter().chain(added).min()?;
            if !self.deleted.contains(&position) {
                return Some(position);
            }
        }
    }

    /// The last place before `position`.
    pub(super) fn before(&self, position: Position, count: u64) -> Option<Position> {
        let mut position = position;
        loop {
            let index = if position.behind > 0 { position.index } else { position.index.saturating_sub(1) };
            let index = index.min(count as i64 - 1);
            let generated = u64::try_from(index).ok().map(Position::generated);
            let added = self.added.range(..position).next_back().map(|(position, _)| *position);
            position = generated.into_iter().chain(added).max()?;
            if !self.deleted.contains(&position) {
                return Some(position);
            }
        }
    }

    /// A free place on top of the list.
    pub(super) fn top(&self) -> Position {
        let first = self.added.keys().next().map_or(0, |position| position.index.min(0));
        Position { index: first - 1, behind: 0 }
    }

    /// A free place behind the generated link at `index`.
    pub(super) fn behind(&self, index: u64) -> Position {
        let index = index as i64;
        let taken = Position { index, behind: 0 }..=Position { index, behind: u32::MAX };
        let last = self.added.range(taken).next_back().map_or(0, |(position, _)| position.behind);
        Position { index, behind: last + 1 }
    }
}
