//! What is known about slugs, in bounded memory.

use std::sync::Arc;
use std::time::Duration;

use db::Timestamp;
use quick_cache::sync::Cache as Quick;
use quick_cache::{DefaultHashBuilder, Weighter};

use super::answer::Answer;
use super::key::{Asked, Key};
use super::stamps::{Stamp, Stamps};

/// How long it is believed that a slug does not exist. Slugs that this process adds are seen at once; this bounds
/// the wait for those that others add, also should their change not be announced.
pub(crate) const ABSENCE_LIFE: Duration = Duration::from_secs(1);
/// How many absent slugs are remembered. Enough for a page that links to a dead slug; a flood of random ones goes
/// past it.
const ABSENCES_MAX: usize = 16_384;
/// What an entry takes besides its texts: key, answer, reference counts, the cache's own slot.
const ENTRY_BYTES: usize = size_of::<Key>() + size_of::<Answer>() + 96;
/// A usual entry, for sizing the table.
const USUAL_ENTRY_BYTES: usize = ENTRY_BYTES + 64;

pub(crate) struct Cache {
    answers: Quick<Key, Arc<Answer>, Bytes>,
    absences: Quick<Key, Absence>,
}

#[derive(Clone, Copy)]
struct Absence {
    stamp: Stamp,
    until: Timestamp,
}

/// What the cache knows.
pub(crate) enum Known {
    Link(Arc<Answer>),
    Absent,
    Nothing,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Arc<Answer>> for Bytes {
    fn weight(&self, key: &Key, answer: &Arc<Answer>) -> u64 {
        (ENTRY_BYTES + key.heap_bytes() + answer.heap_bytes()) as u64
    }
}

impl Cache {
    /// At most about this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            answers: Quick::with(
                (bytes / USUAL_ENTRY_BYTES).max(16),
                bytes as u64,
                Bytes,
                DefaultHashBuilder::default(),
                Default::default(),
            ),
            absences: Quick::new(ABSENCES_MAX),
        }
    }

    pub(crate) fn get(&self, asked: Asked<'_>, stamps: &Stamps, now: impl Fn() -> Timestamp) -> Known {
        if let Some(answer) = self.answers.get(&asked)
            && answer.holds(stamps, &now)
        {
            return Known::Link(answer);
        }
        match self.absences.get(&asked) {
            Some(absence) if stamps.absence_holds(absence.stamp) && now() < absence.until => Known::Absent,
            _ => Known::Nothing,
        }
    }

    pub(crate) fn keep(&self, asked: Asked<'_>, answer: Arc<Answer>) {
        self.answers.insert(asked.to_key(), answer);
    }

    pub(crate) fn keep_absence(&self, asked: Asked<'_>, stamp: Stamp, now: Timestamp) {
        self.absences.insert(asked.to_key(), Absence { stamp, until: now.plus(ABSENCE_LIFE) });
    }
}
