//! Records that are broken on purpose: which links, and how.

use super::faults::FaultPlan;
use crate::chance::draw;

const STREAM: u64 = 0x0BAD;
const SHARE_OF: u64 = 100_000;

/// How one record of a list is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordFault {
    /// The title holds raw control characters, which JSON forbids. Repairable: the link must be imported.
    ControlInTitle,
    /// The title holds quotes that are not escaped. Repairable: the link must be imported.
    QuotesInTitle,
    /// `is_deleted` is true: the link must be left out, which is no failure.
    Deleted,
    /// There is no `long_url`.
    MissingLongUrl,
    /// `long_url` is `null`.
    NullLongUrl,
    /// `long_url` is the empty text.
    EmptyLongUrl,
    /// `long_url` is a `javascript:` URL.
    JavascriptDestination,
    /// `long_url` is the link's own short URL.
    SelfDestination,
    /// The record's JSON cannot be repaired; its `id` can still be read, and its neighbours are whole.
    BrokenRecord,
}

impl RecordFault {
    /// All of them, in the order of their names' table.
    pub const ALL: [Self; 9] = [
        Self::ControlInTitle,
        Self::QuotesInTitle,
        Self::Deleted,
        Self::MissingLongUrl,
        Self::NullLongUrl,
        Self::EmptyLongUrl,
        Self::JavascriptDestination,
        Self::SelfDestination,
        Self::BrokenRecord,
    ];

    /// The name it has in a plan and in the account's truth.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ControlInTitle => "control-in-title",
            Self::QuotesInTitle => "quotes-in-title",
            Self::Deleted => "deleted-record",
            Self::MissingLongUrl => "missing-long-url",
            Self::NullLongUrl => "null-long-url",
            Self::EmptyLongUrl => "empty-long-url",
            Self::JavascriptDestination => "javascript-destination",
            Self::SelfDestination => "self-destination",
            Self::BrokenRecord => "broken-record",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Whether a right importer must fail exactly this record: a planted failure.
    #[must_use]
    pub fn must_fail(self) -> bool {
        !matches!(self, Self::ControlInTitle | Self::QuotesInTitle | Self::Deleted)
    }

    /// Whether the link has no usable destination, so that an edit of the destination mends it.
    pub(super) fn spoils_destination(self) -> bool {
        matches!(
            self,
            Self::MissingLongUrl
                | Self::NullLongUrl
                | Self::EmptyLongUrl
                | Self::JavascriptDestination
                | Self::SelfDestination
        )
    }
}

/// Which links a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordRule {
    fault: RecordFault,
    choice: Choice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Range { first: u64, count: u64 },
    Share(u32),
}

impl RecordRule {
    /// `count` links from the place `first` of the account (0 is the newest).
    pub(super) fn from_place(fault: RecordFault, first: u64, count: u64) -> Self {
        Self { fault, choice: Choice::Range { first, count } }
    }

    /// This many of 100,000 links, chosen by the seed.
    pub(super) fn share(fault: RecordFault, of_hundred_thousand: u32) -> Self {
        Self { fault, choice: Choice::Share(of_hundred_thousand) }
    }
}

/// The faults of an account's records, ready to be asked link by link.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordFaults {
    seed: u64,
    ranges: Vec<RecordRule>,
    shares: Vec<RecordRule>,
}

impl RecordFaults {
    /// What `plan` (settled) says about an account of `count` links.
    pub(super) fn new(plan: &FaultPlan, seed: u64, count: u64) -> Self {
        let (mut ranges, shares): (Vec<_>, Vec<_>) =
            plan.records.iter().partition(|rule| matches!(rule.choice, Choice::Range { .. }));
        if plan.plants_every_kind() && count >= 2 * RecordFault::ALL.len() as u64 {
            ranges.extend(one_of_each(seed, count));
        }
        Self { seed, ranges, shares }
    }

    /// How the link at this place is broken, if it is.
    pub(super) fn of(&self, index: u64) -> Option<RecordFault> {
        if self.ranges.is_empty() && self.shares.is_empty() {
            return None;
        }
        let placed = self.ranges.iter().find(|rule| match rule.choice {
            Choice::Range { first, count } => index >= first && index - first < count,
            Choice::Share(_) => false,
        });
        if let Some(rule) = placed {
            return Some(rule.fault);
        }
        let mut ticket = draw(self.seed, STREAM, index) % SHARE_OF;
        for rule in &self.shares {
            let Choice::Share(share) = rule.choice else { continue };
            if ticket < u64::from(share) {
                return Some(rule.fault);
            }
            ticket -= u64::from(share);
        }
        None
    }
}

/// One link of each kind, so that a small account has them too.
fn one_of_each(seed: u64, count: u64) -> impl Iterator<Item = RecordRule> {
    let step = count / RecordFault::ALL.len() as u64;
    (0_u64..).zip(RecordFault::ALL).map(move |(slot, fault)| {
        let first = slot * step + draw(seed, STREAM, u64::MAX - slot) % step;
        RecordRule::from_place(fault, first, 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(plan: &str, count: u64) -> RecordFaults {
        let plan: FaultPlan = plan.parse().unwrap();
        RecordFaults::new(&plan.settled(5), 5, count)
    }

    #[test]
    fn a_placed_fault_strikes_exactly_its_links() {
        let faults = faults("quotes-in-title@5x2,missing-long-url@17", 100);
        let struck: Vec<_> = (0..100).filter_map(|index| Some((index, faults.of(index)?))).collect();
        let expected = [
            (5, RecordFault::QuotesInTitle),
            (6, RecordFault::QuotesInTitle),
            (17, RecordFault::MissingLongUrl),
        ];
        assert_eq!(struck, expected);
    }

    #[test]
    fn a_fault_without_a_place_strikes_one_link_in_a_thousand() {
        let faults = faults("broken-record", 200_000);
        let struck = (0..200_000).filter(|index| faults.of(*index).is_some()).count();
        assert!((150..250).contains(&struck), "{struck} of 200,000");
    }

    #[test]
    fn rough_has_every_kind_even_in_a_small_account() {
        let faults = faults("rough", 18);
        let struck: Vec<_> = (0..18).filter_map(|index| faults.of(index)).collect();
        for fault in RecordFault::ALL {
            assert!(struck.contains(&fault), "{}", fault.name());
        }
    }

    #[test]
    fn nothing_is_broken_without_faults() {
        let faults = faults("none", 10_000);
        assert!((0..10_000).all(|index| faults.of(index).is_none()));
    }
}
