//! A Bitly account that exists as a seed: every link is computed when it is asked for.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{
    changes::apply,
    edits::{Edits, Position},
    faults::FaultPlan,
    link::{self, Field, Link},
    records::{RecordFault, RecordFaults},
    shape::{Group, Shape, groups, guid},
    slugs::Slugs,
};
use crate::chance::{Chance, draw};

/// The newest link of every account is a little older than this: 2025-03-01T00:00:00Z. Links that expired did
/// so before, links that will expire do so from 2090 on, so that no clock decides what is true of an account.
pub(super) const NEWEST_AT: i64 = 1_740_787_200;
const FAR_FUTURE: i64 = 3_786_912_000;
/// An account spans about six years, however many links it has.
const SPAN_SECONDS: u64 = 6 * 365 * 86_400;
const STEP_MAX_SECONDS: u64 = 86_400;
/// Links of one block may share their second, as those of a bulk creation do.
const BLOCK: u64 = 16;
const VENDOR_HOST: &str = "bit.ly";

const TOKEN: u64 = 1;
const GROUP: u64 = 3;
const HOST: u64 = 4;
const STATE: u64 = 5;
const TIME: u64 = 6;

/// A record that a right importer must fail, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted {
    /// The vendor's id of the link: `go.example.com/3AbCdEf`.
    pub source_id: String,
    /// How it is broken.
    pub kind: RecordFault,
}

/// A deterministic Bitly account. It stores nothing per link, only what was changed after the beginning.
#[derive(Debug)]
pub struct Account {
    seed: u64,
    count: u64,
    shape: Shape,
    groups: Vec<Group>,
    organization: String,
    slugs: Slugs,
    step_seconds: u64,
    records: RecordFaults,
    edits: RwLock<Edits>,
}

impl Account {
    /// An account of `count` links of the default [`Shape`]; the same seed gives the same account.
    #[must_use]
    pub fn generate(count: u64, seed: u64) -> Self {
        Self::shaped(count, seed, Shape::default())
    }

    /// An account of `count` links of this shape.
    #[must_use]
    pub fn shaped(count: u64, seed: u64, shape: Shape) -> Self {
        Self {
            seed,
            count,
            groups: groups(seed, &shape),
            organization: guid(seed, 'O', 0),
            slugs: Slugs::new(seed),
            step_seconds: (SPAN_SECONDS / count.max(1)).clamp(1, STEP_MAX_SECONDS),
            records: RecordFaults::default(),
            edits: RwLock::default(),
            shape,
        }
    }

    /// The same account with the broken records of a plan; the server does this when it starts.
    #[must_use]
    pub fn with_faults(mut self, plan: &FaultPlan) -> Self {
        self.records = RecordFaults::new(&plan.settled(self.seed), self.seed, self.count);
        self
    }

    /// The seed it was generated from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The custom domain of its links.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.shape.domain
    }

    /// The hosts its links are on, the vendor's own included.
    #[must_use]
    pub fn hosts(&self) -> Vec<&str> {
        let vendor = (self.shape.vendor_domain_percent > 0).then_some(VENDOR_HOST);
        vendor.into_iter().chain([self.domain()]).collect()
    }

    /// Its access token when it starts: forty hexadecimal digits, as Bitly's are.
    #[must_use]
    pub fn token(&self) -> String {
        self.renewed_token(0)
    }

    /// The token after `renewals` renewals.
    pub(super) fn renewed_token(&self, renewals: u64) -> String {
        let mut chance = Chance::new(self.seed, TOKEN, renewals);
        let (first, second, third) = (chance.next(), chance.next(), chance.next() as u32);
        format!("{first:016x}{second:016x}{third:08x}")
    }

    /// All groups, in the order in which the API lists them.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The group of the account's owner; it has links.
    #[must_use]
    pub fn default_group(&self) -> &Group {
        let default = self.groups.iter().find(|group| group.links == Some(0));
        default.expect("every account has a first group with links")
    }

    /// The group whose list is empty, if the account has one.
    #[must_use]
    pub fn empty_group(&self) -> Option<&Group> {
        self.groups.iter().find(|group| group.is_active && group.links.is_none())
    }

    pub(super) fn organization(&self) -> &str {
        &self.organization
    }

    /// How many links a complete walk over all groups meets now, broken ones included.
    #[must_use]
    pub fn links(&self) -> u64 {
        let edits = self.edits();
        self.count + edits.added.len() as u64 - edits.deleted.len() as u64
    }

    /// How many slugs those links have: the generated one and each custom back-half.
    #[must_use]
    pub fn slug_count(&self) -> u64 {
        let edits = self.edits();
        let generated = (0..self.count).filter(|index| !edits.deleted.contains(&Position::generated(*index)));
        let generated: u64 = generated.map(|index| 1 + self.back_half_count(index)).sum();
        let added = edits.added.keys().filter(|position| !edits.deleted.contains(position));
        generated + added.count() as u64
    }

    /// The records that a right importer must fail, newest first.
    #[must_use]
    pub fn planted(&self) -> Vec<Planted> {
        let edits = self.edits();
        let struck = (0..self.count).filter_map(|index| {
            let kind = self.records.of(index).filter(|kind| kind.must_fail())?;
            let mended = edits.changed.get(&index).is_some_and(|change| change.destination.is_some());
            let gone = edits.deleted.contains(&Position::generated(index));
            let whole = mended && kind.spoils_destination();
            (!gone && !whole).then_some((index, kind))
        });
        struck.map(|(index, kind)| Planted { source_id: self.id_of(index), kind }).collect()
    }

    /// The link at this place as it is now.
    pub(super) fn link(&self, edits: &Edits, position: Position) -> Option<Link> {
        match position.generated_index() {
            Some(index) if index < self.count => Some(self.generated_link(edits, index)),
            _ => edits.added.get(&position).cloned(),
        }
    }

    fn generated_link(&self, edits: &Edits, index: u64) -> Link {
        let back_halves = match link::back_half_count(self.seed, index) {
            Field::Absent => Field::Absent,
            Field::Null => Field::Null,
            Field::Value(count) => {
                Field::Value((0..count).map(|number| self.slugs.custom(index, number)).collect())
            }
        };
        let mut link = Link {
            host: self.host(index).to_owned(),
            slug: self.slugs.generated(index),
            back_halves,
            destination: link::destination(self.seed, index),
            title: link::title(self.seed, index),
            tags: link::tags(self.seed, index),
            archived: self.was_archived(index),
            created_at: self.created_at(index),
            expires_at: self.expires_at(index),
            fault: self.records.of(index),
            looks: link::looks(self.seed, index),
        };
        if let Some(change) = edits.changed.get(&index) {
            apply(&mut link, change);
        }
        link
    }

    /// The number of the group this place belongs to.
    pub(super) fn group_at(&self, position: Position) -> u32 {
        match position.generated_index() {
            Some(index) if self.shape.groups > 1 => {
                (draw(self.seed, GROUP, index) % u64::from(self.shape.groups)) as u32
            }
            _ => 0,
        }
    }

    pub(super) fn archived_at(&self, edits: &Edits, position: Position) -> bool {
        match position.generated_index() {
            Some(index) => {
                let changed = edits.changed.get(&index).and_then(|change| change.archived);
                changed.unwrap_or_else(|| self.was_archived(index))
            }
            None => edits.added.get(&position).is_some_and(|link| link.archived),
        }
    }

    pub(super) fn created_at_position(&self, edits: &Edits, position: Position) -> i64 {
        match position.generated_index() {
            Some(index) => self.created_at(index),
            None => edits.added.get(&position).map_or(NEWEST_AT, |link| link.created_at),
        }
    }

    /// The slugs of the account.
    pub(super) fn slugs(&self) -> &Slugs {
        &self.slugs
    }

    /// How many links were generated, and where the walk over them ends.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn edits(&self) -> RwLockReadGuard<'_, Edits> {
        self.edits.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn edits_mut(&self) -> RwLockWriteGuard<'_, Edits> {
        self.edits.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many slugs the link at this place has.
    pub(super) fn slugs_at(&self, position: Position) -> u64 {
        1 + position.generated_index().map_or(0, |index| self.back_half_count(index))
    }

    pub(super) fn id_of(&self, index: u64) -> String {
        format!("{}/{}", self.host(index), self.slugs.generated(index))
    }

    fn back_half_count(&self, index: u64) -> u64 {
        link::back_half_count(self.seed, index).value().copied().unwrap_or(0)
    }

    pub(super) fn host(&self, index: u64) -> &str {
        let vendors = draw(self.seed, HOST, index) % 100 < u64::from(self.shape.vendor_domain_percent);
        if vendors { VENDOR_HOST } else { &self.shape.domain }
    }

    fn was_archived(&self, index: u64) -> bool {
        Chance::new(self.seed, STATE, index).per_mille(60)
    }

    /// Never later than the creation of the link before it in the list.
    pub(super) fn created_at(&self, index: u64) -> i64 {
        let block = index / BLOCK;
        let step = self.step_seconds;
        let age = if draw(self.seed, TIME, block ^ u64::MAX).is_multiple_of(4) {
            block * BLOCK * step
        } else {
            index * step + draw(self.seed, TIME, index) % step
        };
        NEWEST_AT - 1 - age as i64
    }

    fn expires_at(&self, index: u64) -> Option<i64> {
        let mut chance = Chance::new(self.seed, STATE, index ^ u64::MAX);
        let far = chance.below(1_000_000_000) as i64;
        match chance.below(1_000) {
            0..20 => {
                let created = self.created_at(index);
                Some(created + far % (NEWEST_AT - created))
            }
            20..50 => Some(FAR_FUTURE + far % 100_000_000),
            _ => None,
        }
    }
}

/// Whether a link with this end answers "gone"; no clock is asked.
pub(super) fn is_expired(expires_at: i64) -> bool {
    expires_at < FAR_FUTURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_link_comes_first_and_some_share_their_second() {
        for count in [10, 1_000, 200_000] {
            let account = Account::generate(count, 1);
            let times: Vec<i64> = (0..count).map(|index| account.created_at(index)).collect();
            assert!(times.windows(2).all(|pair| pair[0] >= pair[1]), "{count}");
            assert!(count < 1_000 || times.windows(2).any(|pair| pair[0] == pair[1]), "{count}");
        }
    }

    #[test]
    fn a_link_expires_after_its_creation() {
        let account = Account::generate(20_000, 1);
        let ends: Vec<_> =
            (0..20_000).filter_map(|index| Some((index, account.expires_at(index)?))).collect();
        assert!(ends.iter().all(|(index, end)| *end >= account.created_at(*index)));
        assert!(ends.iter().any(|(_, end)| is_expired(*end)));
        assert!(ends.iter().any(|(_, end)| !is_expired(*end)));
    }

    #[test]
    fn a_token_looks_like_the_vendors_and_belongs_to_the_seed() {
        let token = Account::generate(1, 1).token();
        assert_eq!(token.len(), 40);
        assert!(token.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(token, Account::generate(9, 1).token());
        assert_ne!(token, Account::generate(1, 2).token());
    }
}
