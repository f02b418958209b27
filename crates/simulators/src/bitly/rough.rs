//! The mixture called `rough`: what an API does on a bad day, and an importer survives without help.
//!
//! About twenty faults strike the first sixty list requests, never two in a row, so that a retry with a small
//! budget always gets through. Limits carry a `Retry-After` of one second. Nothing in the mixture may end a
//! right import: no cursor that repeats, no quota that is used up, no token that expires.

use std::time::Duration;

use super::{
    faults::{Fault, RetryAfter},
    records::{RecordFault, RecordRule},
};
use crate::chance::Chance;

const STREAM: u64 = 0x20C4;

/// Broken records per 100,000 links; the last six kinds must fail and make up one half per cent.
const RECORDS: [(RecordFault, u32); 9] = [
    (RecordFault::ControlInTitle, 200),
    (RecordFault::QuotesInTitle, 200),
    (RecordFault::Deleted, 200),
    (RecordFault::MissingLongUrl, 100),
    (RecordFault::NullLongUrl, 60),
    (RecordFault::EmptyLongUrl, 100),
    (RecordFault::JavascriptDestination, 100),
    (RecordFault::SelfDestination, 80),
    (RecordFault::BrokenRecord, 60),
];

/// The broken records of the mixture.
pub(super) fn records() -> impl Iterator<Item = RecordRule> {
    RECORDS.into_iter().map(|(fault, share)| RecordRule::share(fault, share))
}

/// The faults of the mixture with the list request they strike and the name they go by.
pub(super) fn requests(seed: u64) -> Vec<(u64, String, Fault)> {
    let mut chance = Chance::new(seed, STREAM, 0);
    let mut faults = faults();
    chance.shuffle(&mut faults);
    let mut planned = Vec::with_capacity(faults.len());
    for (slot, (name, fault)) in (0_u64..).zip(faults) {
        planned.push((3 * slot + 1 + chance.below(2), name.to_owned(), fault));
    }
    planned
}

fn faults() -> Vec<(&'static str, Fault)> {
    let one_second = || RetryAfter::Text("1".to_owned());
    let error = |status, message, retry_after| Fault::Error { status, message, retry_after };
    vec![
        ("429", error(429, "RATE_LIMIT_EXCEEDED", one_second())),
        ("403-limit", error(403, "RATE_LIMIT_EXCEEDED", one_second())),
        ("500", error(500, "INTERNAL_ERROR", RetryAfter::Absent)),
        ("502", error(502, "BAD_GATEWAY", RetryAfter::Absent)),
        ("503", error(503, "TEMPORARILY_UNAVAILABLE", RetryAfter::Absent)),
        ("cut", Fault::Cut),
        ("cut-chunked", Fault::CutChunked),
        ("drop", Fault::Drop),
        ("html200", Fault::Html(200)),
        ("html502", Fault::Html(502)),
        ("truncated-json", Fault::TruncatedJson),
        ("truncated-gzip", Fault::TruncatedGzip(500)),
        ("empty-object", Fault::EmptyObject),
        ("empty-body", Fault::EmptyBody),
        ("no-pagination", Fault::NoPagination),
        ("gzip", Fault::Gzip),
        ("slow", Fault::Slow(Duration::from_millis(300))),
        ("dup-page-overlap", Fault::Overlap(3)),
        ("link-added-ahead", Fault::LinkAddedAhead),
        ("link-deleted", Fault::LinkDeleted),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_twenty_faults_strike_the_first_sixty_requests_and_never_two_in_a_row() {
        for seed in 0..50 {
            let planned: Vec<u64> = requests(seed).iter().map(|(request, _, _)| *request).collect();
            assert_eq!(planned.len(), 20);
            assert!(planned.iter().all(|request| (1..=60).contains(request)), "seed {seed}: {planned:?}");
            assert!(planned.windows(2).all(|pair| pair[1] - pair[0] >= 2), "seed {seed}: {planned:?}");
        }
    }

    #[test]
    fn the_seed_decides_the_order() {
        assert_eq!(requests(3), requests(3));
        assert_ne!(requests(3), requests(4));
    }

    #[test]
    fn half_a_per_cent_of_the_links_must_fail() {
        let planted: u32 =
            RECORDS.iter().filter(|(fault, _)| fault.must_fail()).map(|(_, share)| share).sum();
        assert_eq!(planted, 500);
    }
}
