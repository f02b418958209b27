//! What was just staged need not be read back: chunks pass through memory while there is room.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::StagedRecord;

/// A chunk's place: partition, segment, first ordinal.
type Key = (i32, i32, i32);

/// Staged chunks on their way to a worker of the same process. What does not fit is read from the database, and so is
/// everything after a crash.
pub(super) struct Handoff {
    bytes_max: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    bytes: usize,
    chunks: BTreeMap<Key, Vec<StagedRecord>>,
    unsettled: usize,
}

/// Workers of this process may be that many chunks behind the foremost one.
const BEHIND_MAX: usize = 16;

impl Held {
    /// Chunks come in order: those far behind were taken by another process, and their place is wanted.
    fn forget_before(&mut self, key: Key) {
        let behind = self.chunks.range(..key).count();
        for _ in BEHIND_MAX..behind {
            if let Some((_, records)) = self.chunks.pop_first() {
                self.bytes -= bytes_of(&records);
                self.unsettled = self.unsettled.saturating_sub(1);
            }
        }
    }
}

fn bytes_of(records: &[StagedRecord]) -> usize {
    records.iter().map(|record| record.raw.len() + size_of::<StagedRecord>()).sum()
}

impl Handoff {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, held: Mutex::default() }
    }

    /// Offers a committed chunk.
    pub(super) fn put(&self, key: Key, records: Vec<StagedRecord>) {
        let bytes = bytes_of(&records);
        let mut held = self.held.lock();
        held.unsettled += 1;
        if held.bytes + bytes <= self.bytes_max {
            held.bytes += bytes;
            held.chunks.insert(key, records);
        }
    }

    /// Takes a chunk, if it is here and still has that many records.
    pub(super) fn take(&self, key: Key, count: i32) -> Option<Vec<StagedRecord>> {
        let mut held = self.held.lock();
        let records = held.chunks.remove(&key);
        held.forget_before(key);
        let records = records?;
        held.bytes -= bytes_of(&records);
        (i32::try_from(records.len()) == Ok(count)).then_some(records)
    }

    /// Notes that a worker of this process settled a chunk.
    pub(super) fn settled(&self) {
        let mut held = self.held.lock();
        held.unsettled = held.unsettled.saturating_sub(1);
    }

    /// Whether the workers of this process have nothing left of what was put here.
    pub(super) fn is_idle(&self) -> bool {
        self.held.lock().unsettled == 0
    }
}
