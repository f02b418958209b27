//! All wallet logs of one export.

use std::{collections::BTreeMap, ops::Range};

use super::{
    Amount,
    faults::{Choice, FaultPlan, Planting, Rule},
    id::{Place, Uuid},
    listing::{Change, Extra, ExtraKind, Listing},
    log::{Generator, Log, other_currency},
    oddity::{self, Oddity, TimeOddity},
    rough,
};
use crate::chance::draw;

const CHOICE: u64 = 0x70;

/// All wallet logs of one export: a function of a number and a seed, computed record by record and never held.
#[derive(Debug, Clone)]
pub struct Logs {
    generator: Generator,
    /// Stretches of odd records by their first index; where two overlap, the later one begins anew.
    odd: BTreeMap<u64, Odd>,
    /// The list before anybody has asked.
    listing: Listing,
    bad_pages: Vec<Range<u64>>,
    /// Logs of which a conflicting copy is served; whether at once.
    contested: BTreeMap<u64, bool>,
}

#[derive(Debug, Clone)]
struct Odd {
    end: u64,
    name: String,
    oddity: Oddity,
}

impl Logs {
    /// `count` movements made from a seed.
    ///
    /// There are as many wallets as give each about twenty movements, and at most 50,000; they take turns. The same
    /// count and seed give the same bytes, on every machine.
    #[must_use]
    pub fn generate(count: u64, seed: u64) -> Self {
        Self {
            generator: Generator::new(count, seed),
            odd: BTreeMap::new(),
            listing: Listing::default(),
            bad_pages: Vec::new(),
            contested: BTreeMap::new(),
        }
    }

    /// The same logs with the odd records of a plan.
    #[must_use]
    pub fn with_faults(mut self, plan: &FaultPlan) -> Self {
        let rules = plan.rules.iter().cloned();
        let rough = plan.rough.then(|| rough::rules(self.seed(), self.count()));
        for (number, rule) in (0_u64..).zip(rules.chain(rough.into_iter().flatten())) {
            self.plant(number, &rule);
        }
        self
    }

    /// How many movements there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.generator.count
    }

    /// What they are made from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.generator.seed
    }

    /// How many wallets take turns.
    #[must_use]
    pub fn wallets(&self) -> u64 {
        self.generator.wallets
    }

    /// How many customers own them.
    #[must_use]
    pub fn customers(&self) -> u64 {
        self.generator.customers
    }

    /// The movement at a place (from 0, oldest first), with the values that are served.
    ///
    /// # Panics
    /// If there is no such movement.
    #[must_use]
    pub fn log(&self, index: u64) -> Log {
        assert!(index < self.count(), "there are {} movements", self.count());
        let mut log = self.generator.log(index);
        if let Some(oddity) = self.oddity(index) {
            self.apply(&mut log, oddity);
        }
        log
    }

    pub(super) fn generator(&self) -> &Generator {
        &self.generator
    }

    pub(super) fn listing(&self) -> &Listing {
        &self.listing
    }

    pub(super) fn has_bad_page(&self, range: &Range<u64>) -> bool {
        self.bad_pages.iter().any(|bad| bad.start < range.end && range.start < bad.end)
    }

    pub(super) fn has_oddity(&self, range: Range<u64>) -> bool {
        self.oddity(range.start).is_some() || self.odd.range(range).next().is_some()
    }

    pub(super) fn oddity(&self, index: u64) -> Option<&Oddity> {
        self.odd(index).map(|odd| &odd.oddity)
    }

    pub(super) fn oddity_name(&self, index: u64) -> Option<&str> {
        self.odd(index).map(|odd| odd.name.as_str())
    }

    fn odd(&self, index: u64) -> Option<&Odd> {
        self.odd.range(..=index).next_back().map(|(_, odd)| odd).filter(|odd| index < odd.end)
    }

    /// Whether a conflicting copy of a log is served, and whether at once.
    pub(super) fn contested(&self, index: u64) -> Option<bool> {
        self.contested.get(&index).copied()
    }

    /// What stands behind a log, with the values that are served.
    pub(super) fn extra(&self, place: Place, extra: Extra) -> Log {
        let mut log = self.log(extra.of);
        if let Some(time) = extra.created_at_ms {
            log.created_at_ms = time;
        }
        match extra.kind {
            ExtraKind::Copy | ExtraKind::Moved => {}
            ExtraKind::Conflict => log.amount = log.amount + Amount::of_units(10_000),
            ExtraKind::Twin => log.id = self.generator.id(place),
            ExtraKind::ToItself => {
                log.id = self.generator.id(place);
                log.reference = self.generator.reference(place);
                log.seq += self.count();
                log.kind = super::Kind::Credit;
                log.balance_before = log.balance_after;
            }
        }
        log
    }

    /// The log that has moved behind another place.
    pub(super) fn moved(&self, from: u64, to: u64) -> Extra {
        Extra { of: from, kind: ExtraKind::Moved, created_at_ms: Some(self.generator.time(to) + 1) }
    }

    /// The place of the record with this id.
    pub(super) fn place(&self, id: Uuid) -> Option<Place> {
        self.generator.place(id)
    }

    fn apply(&self, log: &mut Log, oddity: &Oddity) {
        match oddity {
            Oddity::Time(TimeOddity::Text(text)) => {
                log.created_at_ms = oddity::read_millis(text).unwrap_or(log.created_at_ms);
            }
            Oddity::BigSeq => log.seq += 1 << 53,
            Oddity::UnknownWallet => log.wallet_id = self.generator.unknown_wallet_id(log.index),
            Oddity::OtherCurrency => log.currency = other_currency(log.currency),
            Oddity::BrokenBalance => {
                log.balance_before = log.balance_before + Amount::of_units(100);
                log.balance_after = log.balance_after + Amount::of_units(100);
            }
            Oddity::WrongBalance => log.balance_after = log.balance_after + Amount::of_units(100),
            Oddity::SameReference => {
                let neighbour = log.index.checked_sub(1).unwrap_or(log.index + 1);
                log.reference = self.generator.reference(Place::at(neighbour));
            }
            _ => {}
        }
    }

    fn plant(&mut self, number: u64, rule: &Rule) {
        let (first, count) = match rule.choice {
            Choice::Range { first, count } => (first, count.min(self.count().saturating_sub(first))),
            Choice::OneIn(of) => return self.plant_share(number, rule, of),
        };
        let end = first + count;
        match &rule.planting {
            Planting::BadPage => self.bad_pages.push(first..end),
            Planting::Tied if count > 0 => self.generator.tie(first, count),
            Planting::Oddity(oddity) if count > 0 => {
                if let Some(amount) = oddity.sound_amount() {
                    (first..end).for_each(|index| self.generator.fix_amount(index, amount));
                }
                let odd = Odd { end, name: rule.name.clone(), oddity: oddity.clone() };
                self.odd.insert(first, odd);
            }
            planting => (first..end).for_each(|index| self.plant_one(index, planting)),
        }
    }

    /// One record of so many, and not one that is odd already.
    fn plant_share(&mut self, number: u64, rule: &Rule, of: u64) {
        for slot in 0..self.count().div_ceil(of) {
            let first = slot * of + draw(self.seed(), CHOICE + number, slot) % of;
            if first < self.count() && self.odd(first).is_none() {
                self.plant(number, &Rule { choice: Choice::Range { first, count: 1 }, ..rule.clone() });
            }
        }
    }

    fn plant_one(&mut self, index: u64, planting: &Planting) {
        let last = self.count() - 1;
        match planting {
            Planting::Extra { kind, distance } => {
                let mut extra = Extra { of: index, kind: *kind, created_at_ms: None };
                let mut to = index.saturating_add(*distance).min(last);
                if to > index && *kind == ExtraKind::Twin {
                    to = self.generator.last_of_instant(to);
                    extra.created_at_ms = Some(self.generator.time(to) + 1);
                }
                if *kind == ExtraKind::Conflict {
                    self.contested.insert(index, to == index);
                }
                self.listing.add_extra(to, extra);
            }
            Planting::Late => self.listing.plan(index, Change::Appear(index)),
            Planting::Edit => self.listing.plan(index, Change::Edit(index)),
            Planting::Delete => self.listing.plan(index, Change::Delete(index)),
            Planting::MoveBack(distance) => {
                let to = self.generator.last_of_instant(index.saturating_sub(*distance));
                self.listing.plan(to, Change::Move { from: index, to });
            }
            Planting::MoveAhead(distance) => {
                let to = self.generator.last_of_instant(index.saturating_add(*distance).min(last));
                self.listing.plan(index, Change::Move { from: index, to });
            }
            Planting::Oddity(_) | Planting::BadPage | Planting::Tied => {}
        }
    }
}
