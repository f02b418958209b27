//! How what is cached learns that it is out of date, without being looked for.
//!
//! A process-wide counter counts changes. An answer remembers the counter from *before* its database read; a change
//! writes the counter's new value where the answers it concerns look: at the stripe of its link or of the record the
//! link was imported from, at the mark for added slugs, or at the floor under everything. An answer is valid as long as
//! nothing it looks at is newer than itself.
//!
//! So a read that was overtaken by a change can put its answer into the cache late without harm: its stamp is older
//! than the change. And a change costs the same whether its link is cached or not.

use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use db::Id;

/// Links that share a stripe are read again together; 16,384 stripes take 128 KiB.
const STRIPES: usize = 1 << STRIPE_BITS;
const STRIPE_BITS: u32 = 14;

/// Where changes of a link, or of what an imported record has become, are noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Stripe(u16);

impl Stripe {
    /// Ids count up in their low bits, so that neighbours fall into different stripes.
    pub(crate) fn of_link(link: Id) -> Self {
        Self::of_hash(link.get().cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// `reference` is what an import calls its record by ([`links::SourceKey::reference`]).
    pub(crate) fn of_record(reference: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(reference.as_bytes());
        Self::of_hash(hasher.finish())
    }

    fn of_hash(hash: u64) -> Self {
        Self(u16::try_from(hash >> (u64::BITS - STRIPE_BITS)).expect("14 bits fit"))
    }
}

/// The counter's value before a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp(u64);

pub(crate) struct Stamps {
    counter: AtomicU64,
    added: AtomicU64,
    floor: AtomicU64,
    stripes: Box<[AtomicU64]>,
}

impl Stamps {
    pub(crate) fn new() -> Self {
        Self {
            counter: AtomicU64::new(0),
            added: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            stripes: (0..STRIPES).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// To be taken before the read whose result it goes with.
    pub(crate) fn now(&self) -> Stamp {
        Stamp(self.counter.load(Ordering::SeqCst))
    }

    /// What is noted at the stripe was changed or deleted, and that is committed.
    pub(crate) fn changed(&self, stripe: Stripe) {
        let change = self.next();
        self.stripes[usize::from(stripe.0)].fetch_max(change, Ordering::SeqCst);
    }

    /// Slugs were added that nobody had, and that is committed.
    pub(crate) fn slugs_added(&self) {
        let change = self.next();
        self.added.fetch_max(change, Ordering::SeqCst);
    }

    /// Anything may have changed.
    pub(crate) fn everything_changed(&self) -> Stamp {
        let change = self.next();
        self.floor.fetch_max(change, Ordering::SeqCst);
        Stamp(change)
    }

    /// Whether what was read at `stamp`, and is noted at the stripe, still holds.
    pub(crate) fn holds(&self, stripe: Stripe, stamp: Stamp) -> bool {
        self.stripes[usize::from(stripe.0)].load(Ordering::Acquire) <= stamp.0
            && self.floor.load(Ordering::Acquire) <= stamp.0
    }

    /// Whether that a slug did not exist at `stamp` still holds, as far as this process knows.
    pub(crate) fn absence_holds(&self, stamp: Stamp) -> bool {
        self.added.load(Ordering::Acquire) <= stamp.0 && self.floor.load(Ordering::Acquire) <= stamp.0
    }

    fn next(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::SeqCst) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_outdates_what_was_read_before_it_and_nothing_read_after() {
        let stamps = Stamps::new();
        for stripe in [Stripe::of_link(Id::from_stored(7)), Stripe::of_record("bitly:a")] {
            let before = stamps.now();
            assert!(stamps.holds(stripe, before));
            stamps.changed(stripe);
            assert!(!stamps.holds(stripe, before));
            assert!(stamps.holds(stripe, stamps.now()));
        }
    }

    #[test]
    fn added_slugs_outdate_absences_only() {
        let (stamps, link) = (Stamps::new(), Stripe::of_link(Id::from_stored(7)));
        let before = stamps.now();
        stamps.slugs_added();
        assert!(stamps.holds(link, before));
        assert!(!stamps.absence_holds(before));
        assert!(stamps.absence_holds(stamps.now()));
    }

    #[test]
    fn the_floor_outdates_all() {
        let stamps = Stamps::new();
        let before = stamps.now();
        stamps.everything_changed();
        let link = Stripe::of_link(Id::from_stored(1));
        assert!(!stamps.holds(link, before) && !stamps.absence_holds(before));
    }

    #[test]
    fn links_that_were_made_together_are_spread() {
        let stripes: std::collections::HashSet<Stripe> =
            (0..1000).map(|n| Stripe::of_link(Id::from_stored((5 << 21) | n))).collect();
        assert!(stripes.len() > 900, "{}", stripes.len());
    }
}
