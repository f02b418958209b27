//! One movement of a wallet, and how it is computed from the seed.

use std::collections::HashMap;

use super::{
    amount::Amount,
    id::{Ids, Order, Place, Reference, Uuid},
};
use crate::chance::draw;

/// More wallets than this make no migration harder.
const WALLETS_MAX: u64 = 50_000;
/// Every wallet has about this many movements, until there are [`WALLETS_MAX`].
const MOVEMENTS: u64 = 20;

/// 2024-01-01T00:00:00Z.
const BEGINNING_MS: i64 = 1_704_067_200_000;
/// From one instant that has movements to the next, on average.
const STEP_MS: i64 = 30_000;
/// Sixteen movements share eleven instants: which of them each has,
const INSTANT: [u64; 16] = [0, 1, 1, 2, 3, 3, 3, 3, 4, 5, 6, 7, 8, 9, 9, 10];
/// how many of its instant come before it,
const RANK: [u8; 16] = [0, 0, 1, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 1, 0];
/// and how many its instant has.
const TIED: [u8; 16] = [1, 2, 2, 1, 4, 4, 4, 4, 1, 1, 1, 1, 1, 2, 2, 1];
const BLOCK: u64 = INSTANT.len() as u64;
const INSTANTS: u64 = INSTANT[15] + 1;

const CURRENCIES: [&str; 4] = ["NGN", "USD", "KES", "GHS"];

const ROUND: u64 = 0x20;
const BALANCE: u64 = 0x21;
const TIME: u64 = 0x22;
const DETAIL: u64 = 0x23;
const WALLET: u64 = 0x30;
const CUSTOMER: u64 = 0x40;
const NOBODY: u64 = 0x50;

/// Which way money went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Into the wallet.
    Credit,
    /// Out of the wallet.
    Debit,
}

impl Kind {
    /// The word for it in a record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Credit => "credit",
            Self::Debit => "debit",
        }
    }
}

/// One movement of a wallet, as typed values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Its place among all movements, from 0.
    pub index: u64,
    /// The source's id.
    pub id: Uuid,
    /// The source's running number, from 1.
    pub seq: u64,
    /// The bank's key of the account, from 1.
    pub account: u64,
    /// The bank's key of the customer, from 1.
    pub customer: u64,
    /// The source's id of the wallet.
    pub wallet_id: Uuid,
    /// The source's id of the customer.
    pub customer_id: Uuid,
    /// Which way the money went.
    pub kind: Kind,
    /// How much it was; never negative.
    pub amount: Amount,
    /// The wallet's currency.
    pub currency: &'static str,
    /// The wallet's balance before the movement.
    pub balance_before: Amount,
    /// The wallet's balance after it.
    pub balance_after: Amount,
    /// The source's text for people; no two are equal.
    pub reference: Reference,
    /// `completed`, `pending` or `reversed`.
    pub status: &'static str,
    /// When it happened: milliseconds since 1970 in UTC.
    pub created_at_ms: i64,
    /// What narration and metadata are made of.
    pub(super) detail: u64,
}

/// What all movements of one export are computed from.
#[derive(Debug, Clone)]
pub(super) struct Generator {
    pub(super) seed: u64,
    pub(super) count: u64,
    pub(super) wallets: u64,
    pub(super) customers: u64,
    /// How far the rotation moves on from one wallet to the next; it meets each once.
    stride: u64,
    ids: Ids,
    /// Balances that a fault wants; by wallet and number of movements.
    fixed: HashMap<(u64, u64), i128>,
    /// Stretches of movements that happen in one instant: first and end.
    tied: Vec<(u64, u64)>,
}

impl Generator {
    pub(super) fn new(count: u64, seed: u64) -> Self {
        let wallets = (count / MOVEMENTS).clamp(1, WALLETS_MAX);
        let near = wallets * 618 / 1_000;
        let stride = (1..=near).rev().find(|stride| greatest_divisor(*stride, wallets) == 1).unwrap_or(1);
        Self {
            seed,
            count,
            wallets,
            customers: (wallets * 4 / 5).max(1),
            stride,
            ids: Ids::new(seed),
            fixed: HashMap::new(),
            tied: Vec::new(),
        }
    }

    /// Lets `count` movements happen in one instant, from the beginning of the instant of `first`.
    pub(super) fn tie(&mut self, first: u64, count: u64) {
        let begin = first - u64::from(RANK[(first % BLOCK) as usize]).min(first);
        self.tied.push((begin, first.saturating_add(count).min(self.count)));
    }

    /// Lets the movement at `index` be a credit of `amount`, and what comes before and after it agree.
    pub(super) fn fix_amount(&mut self, index: u64, amount: Amount) {
        let (wallet, number) = self.turn(index);
        let mut before = self.balance(wallet, number);
        if before + amount.units() > Amount::MAX.units() && number > 0 {
            before = 1;
            self.fixed.insert((wallet, number), before);
        }
        self.fixed.insert((wallet, number + 1), before + amount.units());
    }

    /// The movement at a place.
    pub(super) fn log(&self, index: u64) -> Log {
        let (wallet, number) = self.turn(index);
        let (before, after) = (self.balance(wallet, number), self.balance(wallet, number + 1));
        let (kind, amount) =
            if after >= before { (Kind::Credit, after - before) } else { (Kind::Debit, before - after) };
        let detail = draw(self.seed, DETAIL, index);
        let customer = wallet % self.customers;
        let place = Place::at(index);
        Log {
            index,
            id: self.id(place),
            seq: index + 1,
            account: wallet + 1,
            customer: customer + 1,
            wallet_id: self.wallet_id(wallet),
            customer_id: self.customer_id(customer),
            kind,
            amount: Amount::of_units(amount),
            currency: self.currency(wallet),
            balance_before: Amount::of_units(before),
            balance_after: Amount::of_units(after),
            reference: self.ids.reference(place),
            status: match detail >> 58 {
                0 => "pending",
                1 => "reversed",
                _ => "completed",
            },
            created_at_ms: self.time(index),
            detail,
        }
    }

    /// The wallet whose turn it is, and how many movements it had before.
    fn turn(&self, index: u64) -> (u64, u64) {
        let (round, step) = (index / self.wallets, index % self.wallets);
        let shift = draw(self.seed, ROUND, round) % self.wallets;
        ((step * self.stride + shift) % self.wallets, round)
    }

    /// The balance of a wallet after `number` movements. It begins with nothing, and neighbours are never equal: an
    /// odd number of hundredths follows an even one.
    fn balance(&self, wallet: u64, number: u64) -> i128 {
        if let Some(balance) = self.fixed.get(&(wallet, number)) {
            return *balance;
        }
        if number == 0 {
            return 0;
        }
        let chance = draw(self.seed, BALANCE, wallet << 32 | number);
        let hundredths = 2 * (chance % 25_000_000) + (number & 1);
        // Some wallets count finer than others.
        let finer = if wallet.is_multiple_of(8) { (chance >> 40) % 100 } else { 0 };
        (hundredths * 100 + finer).into()
    }

    /// When the movement at `index` happened; never before the one ahead of it.
    pub(super) fn time(&self, index: u64) -> i64 {
        match self.tie_of(index) {
            Some((begin, _)) => self.own_time(begin),
            None => self.own_time(index),
        }
    }

    fn own_time(&self, index: u64) -> i64 {
        let instant = index / BLOCK * INSTANTS + INSTANT[(index % BLOCK) as usize];
        // A quarter of every step is free of movements, so that something fits in between.
        let jitter = draw(self.seed, TIME, instant) % (STEP_MS as u64 * 3 / 4);
        BEGINNING_MS + instant as i64 * STEP_MS + jitter as i64
    }

    fn tie_of(&self, index: u64) -> Option<(u64, u64)> {
        self.tied.iter().copied().find(|(begin, end)| (*begin..*end).contains(&index))
    }

    /// The first index at or after `ms`.
    pub(super) fn first_from(&self, ms: i64) -> u64 {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.time(middle) < ms { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The last index of the instant of `index`.
    pub(super) fn last_of_instant(&self, index: u64) -> u64 {
        let time = self.time(index);
        let next = self.first_from(time + 1);
        next.saturating_sub(1).max(index)
    }

    pub(super) fn id(&self, place: Place) -> Uuid {
        self.ids.id(place, self.order(place.index))
    }

    pub(super) fn reference(&self, place: Place) -> Reference {
        self.ids.reference(place)
    }

    /// The place of the record that has this id.
    pub(super) fn place(&self, id: Uuid) -> Option<Place> {
        let place = self.ids.place(id);
        (place.index < self.count && self.id(place) == id).then_some(place)
    }

    fn order(&self, index: u64) -> Order {
        if let Some((begin, _)) = self.tie_of(index) {
            return Order::OfMany((index - begin) as u32);
        }
        match TIED[(index % BLOCK) as usize] {
            1 => Order::Any,
            _ => Order::OfFour(RANK[(index % BLOCK) as usize]),
        }
    }

    pub(super) fn wallet_id(&self, wallet: u64) -> Uuid {
        Uuid::of(self.seed, WALLET, wallet)
    }

    pub(super) fn customer_id(&self, customer: u64) -> Uuid {
        Uuid::of(self.seed, CUSTOMER, customer)
    }

    /// A wallet that nobody knows.
    pub(super) fn unknown_wallet_id(&self, index: u64) -> Uuid {
        Uuid::of(self.seed, NOBODY, index)
    }

    pub(super) fn customer_of(&self, wallet: u64) -> u64 {
        wallet % self.customers
    }

    /// Seven wallets of ten have the first currency, the others share the rest.
    pub(super) fn currency(&self, wallet: u64) -> &'static str {
        CURRENCIES[(wallet % 10).saturating_sub(6) as usize]
    }
}

/// Another currency than this one.
pub(super) fn other_currency(currency: &str) -> &'static str {
    if currency == CURRENCIES[1] { CURRENCIES[0] } else { CURRENCIES[1] }
}

const fn greatest_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn movements_are_ordered_by_instant_and_id() {
        let mut tied = Generator::new(5_000, 3);
        tied.tie(1_005, 400);
        tied.tie(2_001, 1);
        for generator in [Generator::new(5_000, 3), tied] {
            let keys: Vec<_> =
                (0..5_000).map(|index| (generator.time(index), generator.id(Place::at(index)))).collect();
            assert!(keys.is_sorted());
            for index in [0, 17, 1_100, 4_999] {
                let first = generator.first_from(generator.time(index));
                assert!(first <= index && generator.time(first) == generator.time(index));
                assert!(first == 0 || generator.time(first - 1) < generator.time(index));
            }
        }
    }

    #[test]
    fn many_movements_share_an_instant_when_asked() {
        let mut generator = Generator::new(5_000, 3);
        generator.tie(1_000, 400);
        let time = generator.time(1_000);
        assert!((1_000..1_400).all(|index| generator.time(index) == time));
        assert!(generator.time(1_400) > time);
        assert_eq!(generator.last_of_instant(1_100), 1_399);
    }

    #[test]
    fn every_wallet_has_its_turn_in_every_round() {
        for count in [1, 25, 1_000, 20_020] {
            let generator = Generator::new(count, 3);
            for round in 0..3 {
                let first = round * generator.wallets;
                let mut turns: Vec<_> =
                    (first..first + generator.wallets).map(|index| generator.turn(index)).collect();
                turns.sort_unstable();
                let expected: Vec<_> = (0..generator.wallets).map(|wallet| (wallet, round)).collect();
                assert_eq!(turns, expected);
            }
        }
    }

    #[test]
    fn a_fixed_amount_leaves_the_balances_continuous() {
        for text in ["0.1", "9999999999999999.01", "0"] {
            let amount = Amount::read(text).unwrap();
            let mut generator = Generator::new(1_000, 3);
            generator.fix_amount(500, amount);
            let log = generator.log(500);
            assert_eq!((log.kind, log.amount), (Kind::Credit, amount));
            assert!(log.balance_after <= Amount::MAX);
            let others =
                (0..1_000).map(|index| generator.log(index)).filter(|other| other.account == log.account);
            let mut balance = Amount::default();
            for other in others {
                assert_eq!(other.balance_before, balance, "{text} at {}", other.index);
                balance = other.balance_after;
            }
        }
    }
}
