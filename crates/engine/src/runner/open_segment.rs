//! The segment a fetcher is filling: what has been seen in it, so that duplicates, standing cursors and rings show.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use crate::source::{Page, Profile};
use crate::store::pages::Resumed;
use crate::store::partitions::Checkpoint;
use crate::store::small;
use crate::{Fingerprint, Place, Position, SourceError, StagedRecord};

/// In-memory image of the open segment. Everything in it can be read back from the database.
pub(super) struct OpenSegment {
    partition: i32,
    pub(super) segment: i32,
    pub(super) anchor: String,
    pub(super) pages: i32,
    pub(super) staged: i32,
    pub(super) chunked: i32,
    pub(super) fingerprints: Vec<Fingerprint>,
    first_seen: HashMap<Fingerprint, i32>,
    visited: HashSet<String>,
    landmark: Landmark,
}

/// Finds rings longer than a segment with constant memory: one remembered position, replaced after 1, 2, 4, 8 … pages
/// (R. P. Brent, "An improved Monte Carlo factorization algorithm", 1980).
#[derive(Default)]
struct Landmark {
    position: Option<String>,
    steps: u64,
    power: u64,
}

impl Landmark {
    fn meets(&mut self, next: &str) -> bool {
        if self.position.as_deref() == Some(next) {
            return true;
        }
        self.steps += 1;
        if self.steps >= self.power.max(1) {
            self.position = Some(next.to_owned());
            self.power = self.power.max(1) * 2;
            self.steps = 0;
        }
        false
    }
}

impl OpenSegment {
    pub(super) fn new(checkpoint: &Checkpoint, resumed: Resumed) -> Self {
        let mut first_seen = HashMap::with_capacity(resumed.fingerprints.len());
        for (ordinal, fingerprint) in resumed.fingerprints.iter().enumerate() {
            first_seen.entry(*fingerprint).or_insert(small(ordinal));
        }
        Self {
            partition: checkpoint.part,
            segment: checkpoint.segment,
            anchor: checkpoint.anchor.clone(),
            pages: resumed.pages,
            staged: checkpoint.staged,
            chunked: checkpoint.chunked,
            fingerprints: resumed.fingerprints,
            first_seen,
            visited: resumed.visited,
            landmark: Landmark::default(),
        }
    }

    /// Begins the next segment at `anchor`.
    pub(super) fn roll(&mut self, anchor: &Position) {
        self.segment += 1;
        self.anchor = anchor.to_stored();
        self.pages = 0;
        self.staged = 0;
        self.chunked = 0;
        self.fingerprints.clear();
        self.first_seen.clear();
        self.visited.clear();
    }

    /// Judges where a page says the next one begins; a position that stands still or comes again is an error, unless
    /// the profile declares it.
    pub(super) fn judge(
        &mut self,
        profile: &Profile,
        at: &Position,
        page: &Page,
    ) -> Result<Position, SourceError> {
        let next = match &page.next {
            Position::Beginning => {
                return Err(SourceError::Malformed("the source points back to the beginning".into()));
            }
            Position::End => return Ok(Position::End),
            next @ Position::At(_) => next,
        };
        if profile.stateful_cursor {
            return Ok(next.clone());
        }
        if next == at {
            if profile.stalled_is_end && page.records.is_empty() {
                return Ok(Position::End);
            }
            return Err(SourceError::Malformed(format!("stalled: {next} leads to itself")));
        }
        let stored = next.to_stored();
        if self.visited.contains(&stored) || self.landmark.meets(&stored) {
            return Err(SourceError::Malformed(format!(
                "the cursors form a ring: {next} was visited before"
            )));
        }
        Ok(next.clone())
    }

    /// Turns raw records into staged ones, finding those that are byte-equal to an earlier one of the segment.
    pub(super) fn take(&mut self, at: &Position, raws: Vec<Bytes>) -> Vec<StagedRecord> {
        self.visited.insert(at.to_stored());
        self.pages += 1;
        let records: Vec<StagedRecord> = raws
            .into_iter()
            .map(|raw| {
                let fingerprint = Fingerprint::of(&raw);
                let ordinal = self.staged;
                let original = *self.first_seen.entry(fingerprint).or_insert(ordinal);
                self.staged += 1;
                self.fingerprints.push(fingerprint);
                StagedRecord {
                    place: Place { partition: self.partition, segment: self.segment, ordinal },
                    raw,
                    fingerprint,
                    duplicate_of: (original != ordinal).then_some(original),
                }
            })
            .collect();
        records
    }
}
