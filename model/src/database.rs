//! The tables as far as the protocol needs them, and the transactions on them. Each function is one statement or
//! transaction of `engine::store` and keeps its name and its conditions.

use crate::Fault;
use crate::source::Position;

/// The rows of one job with one partition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Database {
    /// The job's row.
    pub job: Status,
    /// The only partition.
    pub partition: Partition,
    /// A page transaction whose COMMIT the server has and whose answer nobody has. It holds the partition's row lock.
    pub in_flight: Option<Commit>,
    /// The lines of history, by number; each holds what is staged until it is cleaned.
    pub segments: Vec<Segment>,
    /// By segment and first ordinal.
    pub chunks: Vec<Chunk>,
    /// How often each record of the source was written to the target.
    pub target: Vec<u8>,
    /// A commit went through although its epoch was over. Kept for the property alone.
    pub stale_commit: bool,
}

/// The job's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Chunks may be claimed.
    Running,
    /// Everything came over.
    Completed,
    /// A host found what cannot be.
    Failed,
}

/// Checkpoint and lease.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// Raised by whoever takes over.
    pub epoch: u8,
    /// Where the next page begins.
    pub position: Position,
    /// Number of the open segment.
    pub segment: u8,
    /// Records staged in it.
    pub staged: u8,
    /// Of these, how many are in chunks.
    pub chunked: u8,
    /// Pages committed so far.
    pub pages: u8,
    /// Records committed so far.
    pub records: u8,
}

/// A segment's line of history, with its pages and its staged records.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    /// How far it is.
    pub status: SegmentStatus,
    /// Rows of the visited set.
    pub pages: u8,
    /// Records of the source by ordinal. What was cleaned stays here, for the properties; no statement reads it.
    pub records: Vec<u8>,
}

/// How far a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentStatus {
    /// Pages are added.
    Open,
    /// All its pages are there.
    Closed,
    /// What was staged is gone.
    Cleaned,
}

/// The staged records that one worker takes in one transaction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chunk {
    /// Its segment.
    pub segment: u8,
    /// The ordinal of its first record.
    pub first: u8,
    /// How many records it holds.
    pub records: u8,
    /// The sum of its outcomes; `None` while it is ready.
    pub settled: Option<u8>,
    /// Who holds the row.
    pub lock: Lock,
}

/// A chunk's row lock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lock {
    /// Free.
    Free,
    /// In the open transaction of this worker.
    Worker(u8),
    /// In a transaction whose COMMIT the server has and whose answer nobody has; it wrote these records.
    InFlight(Vec<u8>),
}

/// A page transaction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Commit {
    /// The fetcher's epoch.
    pub epoch: u8,
    /// The open segment.
    pub segment: u8,
    /// Where the page began.
    pub from: Position,
    /// Where the next one begins.
    pub to: Position,
    /// None or one.
    pub pages: u8,
    /// The records of the page.
    pub records: Vec<u8>,
    /// Records staged in the segment before.
    pub staged_before: u8,
    /// First ordinal and length of each new chunk.
    pub chunks: Vec<(u8, u8)>,
    /// Whether the segment ends here.
    pub close: bool,
}

impl Commit {
    /// Where the last of the new chunks ends.
    pub fn chunked(&self) -> Option<u8> {
        self.chunks.last().map(|(first, records)| first + records)
    }
}

/// A chunk as a worker picked it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pick {
    /// Its segment.
    pub segment: u8,
    /// The ordinal of its first record.
    pub first: u8,
    /// How many records it held then.
    pub records: u8,
}

impl Database {
    /// A job that has asked a source of so many records for its partition.
    pub fn new(records: usize) -> Self {
        Self {
            job: Status::Running,
            partition: Partition {
                epoch: 0,
                position: Position::At(0),
                segment: 0,
                staged: 0,
                chunked: 0,
                pages: 0,
                records: 0,
            },
            in_flight: None,
            segments: Vec::new(),
            chunks: Vec::new(),
            target: vec![0; records],
            stale_commit: false,
        }
    }

    /// Whether `partitions::take` would find the partition. The lease may have run out at any time, so it is no
    /// condition; `SKIP LOCKED` passes over a row that a commit in flight holds.
    pub fn free(&self) -> bool {
        self.in_flight.is_none() && self.partition.position != Position::End
    }

    /// `partitions::take`, and the `flush_chunk` of the same transaction.
    pub fn take(&mut self) -> Partition {
        self.partition.epoch += 1;
        self.flush_chunk(self.partition.epoch);
        self.partition.clone()
    }

    /// Whether `partitions::fence` would find the partition.
    pub fn has_tail(&self) -> bool {
        self.in_flight.is_none()
            && self.partition.position != Position::End
            && self.partition.staged > self.partition.chunked
    }

    /// `partitions::fence`, and the `flush_chunk` after it.
    pub fn fence(&mut self) {
        self.partition.epoch += 1;
        self.flush_chunk(self.partition.epoch);
    }

    /// `pages::flush_chunk`.
    pub fn flush_chunk(&mut self, epoch: u8) {
        let Partition { segment, staged, chunked, .. } = self.partition;
        if self.partition.epoch == epoch && staged > chunked {
            self.insert_chunk(segment, chunked, staged - chunked);
            self.partition.chunked = staged;
        }
    }

    /// Whether the conditional update of `pages::commit` finds its row.
    pub fn accepts(&self, commit: &Commit, fault: Option<Fault>) -> bool {
        let partition = &self.partition;
        (partition.epoch == commit.epoch || fault == Some(Fault::NoEpochCheck))
            && partition.position == commit.from
            && partition.segment == commit.segment
            && partition.staged == commit.staged_before
            && partition.position != Position::End
    }

    /// The conditional update of `pages::commit`, whose conditions hold.
    pub fn advance(&mut self, commit: &Commit) {
        self.stale_commit |= commit.epoch != self.partition.epoch;
        let partition = &mut self.partition;
        let count = len(&commit.records);
        partition.position = commit.to;
        partition.pages += commit.pages;
        partition.records += count;
        if commit.close {
            partition.segment += 1;
            partition.staged = 0;
            partition.chunked = 0;
        } else {
            partition.staged += count;
            partition.chunked = commit.chunked().unwrap_or(partition.chunked);
        }
    }

    /// The rest of `pages::commit`: segment, page, records and chunks.
    pub fn stage(&mut self, commit: &Commit) {
        let at = usize::from(commit.segment);
        if self.segments.len() <= at {
            self.segments
                .resize(at + 1, Segment { status: SegmentStatus::Open, pages: 0, records: Vec::new() });
        }
        let segment = &mut self.segments[at];
        segment.status = if commit.close { SegmentStatus::Closed } else { SegmentStatus::Open };
        segment.pages += commit.pages;
        segment.records.extend(&commit.records);
        for (first, records) in &commit.chunks {
            self.insert_chunk(commit.segment, *first, *records);
        }
    }

    /// `pages::resume`: how many pages the segment holds.
    pub fn resume(&self, segment: u8) -> u8 {
        match self.segments.get(usize::from(segment)) {
            Some(segment) if segment.status != SegmentStatus::Cleaned => segment.pages,
            _ => 0,
        }
    }

    /// `pages::records`: the staged records of a chunk.
    pub fn records(&self, pick: Pick) -> Vec<u8> {
        let range = usize::from(pick.first)..usize::from(pick.first + pick.records);
        match self.segments.get(usize::from(pick.segment)) {
            Some(segment) if segment.status != SegmentStatus::Cleaned => {
                segment.records.get(range).map(<[u8]>::to_vec).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// What `chunks::attempt` may find: the lowest ready chunk that nobody holds and that is not `busy` in this process.
    pub fn due(&self, busy: Option<Pick>) -> Option<Pick> {
        self.chunks
            .iter()
            .filter(|chunk| chunk.settled.is_none() && chunk.lock == Lock::Free)
            .map(Chunk::pick)
            .find(|pick| busy.is_none_or(|busy| (busy.segment, busy.first) != (pick.segment, pick.first)))
    }

    /// `chunks::claim`: takes the row lock, if the chunk is as it was picked. `false`: not this worker's.
    pub fn claim(&mut self, pick: Pick, lock: Lock, fault: Option<Fault>) -> bool {
        let running = self.job == Status::Running;
        let any_state = fault == Some(Fault::UnconditionalSettle);
        let row = self.chunks.iter_mut().find(|chunk| {
            chunk.pick() == pick && chunk.lock == Lock::Free && (any_state || chunk.settled.is_none())
        });
        match row {
            Some(chunk) if running => {
                chunk.lock = lock;
                true
            }
            _ => false,
        }
    }

    /// The end of a chunk transaction that holds its row as `lock`: `chunks::settle`, and what the sink wrote.
    pub fn settle(&mut self, lock: &Lock, records: &[u8]) {
        let Some(chunk) = self.chunks.iter_mut().find(|chunk| chunk.lock == *lock) else { return };
        chunk.lock = Lock::Free;
        chunk.settled = Some(len(records));
        for record in records {
            let written = &mut self.target[usize::from(*record)];
            *written = (*written + 1).min(2);
        }
    }

    /// The row that is held as `lock` is held as `to`.
    pub fn unlock(&mut self, lock: &Lock, to: Lock) {
        if let Some(chunk) = self.chunks.iter_mut().find(|chunk| chunk.lock == *lock) {
            chunk.lock = to;
        }
    }

    /// A chunk's commit in flight is applied.
    pub fn chunk_lands(&mut self, pick: Pick) {
        if let Some(lock) = self.in_flight_at(pick)
            && let Lock::InFlight(records) = &lock
        {
            self.settle(&lock, records);
        }
    }

    /// A chunk's commit in flight is rolled back.
    pub fn chunk_vanishes(&mut self, pick: Pick) {
        if let Some(lock) = self.in_flight_at(pick) {
            self.unlock(&lock, Lock::Free);
        }
    }

    fn in_flight_at(&self, pick: Pick) -> Option<Lock> {
        let mut in_flight = self.chunks.iter().filter(|chunk| matches!(chunk.lock, Lock::InFlight(_)));
        in_flight.find(|chunk| chunk.pick() == pick).map(|chunk| chunk.lock.clone())
    }

    /// `chunks::settled_after_doubt`; `None` while a transaction still holds the row.
    pub fn settled_after_doubt(&self, pick: Pick) -> Option<bool> {
        let row =
            self.chunks.iter().find(|chunk| (chunk.segment, chunk.first) == (pick.segment, pick.first))?;
        (row.lock == Lock::Free).then_some(row.settled.is_some())
    }

    /// Whether `chunks::split` would change something.
    pub fn may_split(&self, pick: Pick) -> bool {
        self.chunks.iter().any(|chunk| chunk.splits(pick))
    }

    /// `chunks::split`: nothing, if the chunk changed meanwhile.
    pub fn split(&mut self, pick: Pick) {
        let row = self.chunks.iter_mut().find(|chunk| chunk.splits(pick));
        let Some(chunk) = row else { return };
        let half = chunk.records / 2;
        chunk.records = half;
        self.insert_chunk(pick.segment, pick.first + half, pick.records - half);
    }

    /// `pages::any_cleanable`.
    pub fn any_cleanable(&self, fault: Option<Fault>) -> bool {
        (0u8..).zip(&self.segments).any(|(number, segment)| self.cleanable(number, segment, fault))
    }

    /// `pages::clean`.
    pub fn clean(&mut self, fault: Option<Fault>) {
        let done: Vec<bool> = (0u8..)
            .zip(&self.segments)
            .map(|(number, segment)| self.cleanable(number, segment, fault))
            .collect();
        for (segment, done) in self.segments.iter_mut().zip(done) {
            if done {
                segment.status = SegmentStatus::Cleaned;
            }
        }
    }

    fn cleanable(&self, number: u8, segment: &Segment, fault: Option<Fault>) -> bool {
        let chunks = self.chunks.iter().filter(|chunk| chunk.segment == number && chunk.settled.is_some());
        segment.status == SegmentStatus::Closed
            && (fault == Some(Fault::EarlyClean)
                || len(&segment.records) == chunks.map(|chunk| chunk.records).sum::<u8>())
    }

    /// `host::finish`: `jobs::complete`, and the job's failure if nothing is left and the numbers do not add up.
    pub fn finish(&mut self, fault: Option<Fault>) {
        let settled: u8 = self.chunks.iter().filter_map(|chunk| chunk.settled).sum();
        if self.segments.iter().all(|segment| segment.status == SegmentStatus::Cleaned)
            && self.partition.records == settled
        {
            self.job = Status::Completed;
        } else if !self.any_cleanable(fault) {
            self.job = Status::Failed;
        }
    }

    /// Whether `host::coordinate` calls `finish`: no partition is left and no chunk.
    pub fn nothing_left(&self) -> bool {
        self.job == Status::Running
            && self.partition.position == Position::End
            && self.in_flight.is_none()
            && self.chunks.iter().all(|chunk| chunk.settled.is_some())
    }

    fn insert_chunk(&mut self, segment: u8, first: u8, records: u8) {
        let key = (segment, first);
        let at = self.chunks.partition_point(|chunk| (chunk.segment, chunk.first) <= key);
        self.chunks.insert(at, Chunk { segment, first, records, settled: None, lock: Lock::Free });
    }
}

impl Chunk {
    /// The chunk as a worker sees it now.
    pub fn pick(&self) -> Pick {
        Pick { segment: self.segment, first: self.first, records: self.records }
    }

    fn splits(&self, pick: Pick) -> bool {
        self.records > 1 && self.settled.is_none() && self.lock == Lock::Free && self.pick() == pick
    }
}

/// The length of a short list.
pub fn len(records: &[u8]) -> u8 {
    u8::try_from(records.len()).expect("a handful of records")
}
