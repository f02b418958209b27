//! The mixture called `rough`: what an export does on a bad day, and a right migration survives without loss.
//!
//! About twenty faults strike the first sixty or so list requests, never two in a row, so that a retry with a small
//! budget always gets through; limits carry a `Retry-After` of a second. Nothing in the mixture may end a right
//! migration. Of the records, one in a thousand comes twice at once and one in a thousand comes again 1,500 records
//! later, and of each kind that [`bad`] lists there is one, and one more for every 100,000 records: these must fail.

use std::time::Duration;

use super::{
    faults::{Choice, CursorFault, Fault, Planting, Rule},
    listing::ExtraKind,
    oddity::{Oddity, TextOddity, TimeOddity},
};
use crate::{
    chance::{Chance, draw},
    plan::RetryAfter,
    reply::Delivery,
};

const REQUESTS: u64 = 0x60;
const RECORDS: u64 = 0x61;
/// More than a page of the usual size.
const FAR: u64 = 1_500;
/// Every so many records there is one more bad record of each kind.
const ONE_MORE: u64 = 100_000;

/// The kinds of bad records, by the names of their faults.
fn bad() -> Vec<(&'static str, Oddity)> {
    vec![
        ("missing-id", Oddity::MissingId),
        ("null-id", Oddity::NullId),
        ("numeric-id", Oddity::NumericId),
        ("amount", Oddity::Amount("36583610105684000000".to_owned())),
        ("nul", Oddity::Text(TextOddity::Nul)),
        ("lone-surrogate", Oddity::Text(TextOddity::LoneSurrogate)),
        ("invalid-utf8", Oddity::Text(TextOddity::InvalidUtf8)),
        ("null-created-at", Oddity::Time(TimeOddity::Null)),
        ("local-time", Oddity::Time(TimeOddity::Local)),
        ("unknown-type", Oddity::UnknownType("cashback".to_owned())),
        ("unknown-wallet", Oddity::UnknownWallet),
        ("currency-mismatch", Oddity::OtherCurrency),
    ]
}

/// The plantings of the mixture among `count` records.
pub(super) fn rules(seed: u64, count: u64) -> Vec<Rule> {
    let bad = bad();
    let each = 1 + count / ONE_MORE;
    let slots = bad.len() as u64 * each;
    let step = count / slots;
    let mut rules = Vec::new();
    if step > 0 {
        for (slot, (name, oddity)) in (0..slots).zip(bad.into_iter().cycle()) {
            let first = slot * step + draw(seed, RECORDS, slot) % step;
            let planting = Planting::Oddity(oddity);
            rules.push(Rule { name: name.to_owned(), planting, choice: Choice::Range { first, count: 1 } });
        }
    }
    for distance in [0, FAR] {
        let planting = Planting::Extra { kind: ExtraKind::Copy, distance };
        rules.push(Rule { name: "duplicate".to_owned(), planting, choice: Choice::OneIn(1_000) });
    }
    rules
}

/// The faults of the mixture with the list request they strike and the name they go by.
pub(super) fn requests(seed: u64) -> Vec<(u64, String, Fault)> {
    let mut chance = Chance::new(seed, REQUESTS, 0);
    let mut faults = faults();
    chance.shuffle(&mut faults);
    let mut planned = Vec::with_capacity(faults.len());
    for (slot, (name, fault)) in (0_u64..).zip(faults) {
        planned.push((3 * slot + 1 + chance.below(2), name.to_owned(), fault));
    }
    planned
}

fn faults() -> Vec<(&'static str, Fault)> {
    let error = |status, retry_after| Fault::Error { status, retry_after };
    let one_second = || RetryAfter::Text("1".to_owned());
    let expired = || "EXPIRED".to_owned();
    vec![
        ("429", error(429, one_second())),
        ("429", error(429, RetryAfter::DateIn(1))),
        ("500", error(500, RetryAfter::Absent)),
        ("502", error(502, RetryAfter::Absent)),
        ("503", error(503, one_second())),
        ("throttled200", Fault::Throttled200),
        ("401", error(401, RetryAfter::Absent)),
        ("cut", Fault::Delivered(Delivery::Cut)),
        ("cut-chunked", Fault::Delivered(Delivery::CutChunked)),
        ("drop", Fault::Delivered(Delivery::Drop)),
        ("truncated-json", Fault::Delivered(Delivery::TruncatedJson)),
        ("truncated-gzip", Fault::Delivered(Delivery::TruncatedGzip(8))),
        ("gzip", Fault::Delivered(Delivery::Gzip)),
        ("html200", Fault::Html(200)),
        ("html502", Fault::Html(502)),
        ("empty-body", Fault::Body("")),
        ("empty-object", Fault::Body("{}")),
        ("slow", Fault::Slow(Duration::from_millis(300))),
        ("expired-once", Fault::ExpiredOnce(expired())),
        ("expired", Fault::Expired(expired())),
        ("no-meta", Fault::Cursor(CursorFault::NoMeta)),
        ("empty-page", Fault::EmptyPage),
        ("short-page", Fault::ShortPage),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_twenty_faults_strike_and_never_two_in_a_row() {
        for seed in 0..50 {
            let planned: Vec<u64> = requests(seed).iter().map(|(request, _, _)| *request).collect();
            assert_eq!(planned.len(), 23);
            assert!(planned.iter().all(|request| (1..=69).contains(request)), "seed {seed}: {planned:?}");
            assert!(planned.windows(2).all(|pair| pair[1] - pair[0] >= 2), "seed {seed}: {planned:?}");
        }
    }

    #[test]
    fn there_is_one_bad_record_of_each_kind_and_one_more_for_every_hundred_thousand() {
        for (count, expected) in [(11, 0), (1_000, 12), (99_999, 12), (100_000, 24), (3_000_000, 372)] {
            let rules = rules(4, count);
            let bad = rules.iter().filter(|rule| matches!(rule.planting, Planting::Oddity(_))).count();
            assert_eq!(bad, expected, "of {count}");
        }
    }
}
