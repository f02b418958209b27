//! Stage one: what `engine::runner::fetch` keeps in memory, and what it does next.

use crate::database::{Commit, Database, Partition, len};
use crate::source::{Position, Source};

/// A fetcher's memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fetcher {
    /// Holds no lease, or knows of none since it was started again.
    Idle,
    /// Has the lease, and has not read yet what the open segment holds.
    Taken(Partition),
    /// Follows the cursor.
    Following {
        /// The checkpoint as of its last commit.
        at: Checkpoint,
        /// It has the page at its position.
        page: bool,
    },
    /// It sent a COMMIT and got no answer.
    Doubt {
        /// The checkpoint as of its last known commit.
        at: Checkpoint,
        /// What it sent.
        what: What,
    },
    /// With [`Fault::CursorFirst`](crate::Fault::CursorFirst): the cursor is committed, the page is not.
    Behind {
        /// The checkpoint as of its last commit.
        at: Checkpoint,
    },
}

/// What a fetcher believes of its partition: the next commit must find it so.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checkpoint {
    /// As stored after its last commit.
    pub partition: Partition,
    /// Pages of the open segment.
    pub segment_pages: u8,
}

/// What a page transaction carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// The page at the position.
    Page,
    /// No page: the tail becomes a chunk before it is full.
    Tail,
    /// No page: the segment ends before it is full, because the run does.
    RunEnd,
}

impl Checkpoint {
    /// `Fetch::prepare`, `Fetch::flush_tail` and `Fetch::end_run`. `None`: there is nothing to commit.
    pub fn commit(&self, source: &Source, what: What) -> Option<Commit> {
        let Partition { epoch, segment, staged, position, .. } = self.partition;
        let Position::At(page) = position else { return None };
        let (records, to, close) = match what {
            What::Page => {
                let (records, next) = source.page(page);
                let close = next == Position::End || self.segment_pages + 1 >= source.pages_per_segment;
                (records, next, close)
            }
            What::Tail if staged > self.partition.chunked => (Vec::new(), position, false),
            What::RunEnd if self.segment_pages > 0 => (Vec::new(), position, true),
            What::Tail | What::RunEnd => return None,
        };
        Some(Commit {
            epoch,
            segment,
            from: position,
            to,
            pages: u8::from(what == What::Page),
            staged_before: staged,
            chunks: self.chunks_if(source, close || what == What::Tail, staged + len(&records)),
            records,
            close,
        })
    }

    /// `Fetch::chunks_if`.
    fn chunks_if(&self, source: &Source, close: bool, staged: u8) -> Vec<(u8, u8)> {
        let (first, records) = (self.partition.chunked, staged - self.partition.chunked);
        if records == 0 || !(close || records >= source.chunk_records) {
            return Vec::new();
        }
        let count = (records / source.chunk_records).max(1);
        let end = |index: u8| first + records * index / count;
        (0..count).map(|index| (end(index), end(index + 1) - end(index))).collect()
    }

    /// `Fetch::committed`: memory follows the database. `None`: the partition has ended.
    pub fn committed(&self, commit: &Commit) -> Option<Self> {
        if commit.to == Position::End {
            return None;
        }
        let mut next = self.clone();
        let partition = &mut next.partition;
        partition.position = commit.to;
        partition.pages += commit.pages;
        partition.records += len(&commit.records);
        next.segment_pages += commit.pages;
        if commit.close {
            partition.segment += 1;
            (partition.staged, partition.chunked, next.segment_pages) = (0, 0, 0);
        } else {
            partition.staged += len(&commit.records);
            partition.chunked = commit.chunked().unwrap_or(partition.chunked);
        }
        Some(next)
    }

    /// `Fetch::was_committed`; `None`: another fetcher has taken over.
    pub fn was_committed(&self, commit: &Commit, database: &Database) -> Option<bool> {
        let found = &database.partition;
        let chunked = if commit.close { 0 } else { commit.chunked().unwrap_or(self.partition.chunked) };
        (found.epoch == self.partition.epoch).then_some(
            found.pages == self.partition.pages + commit.pages
                && found.segment == commit.segment + u8::from(commit.close)
                && found.chunked == chunked,
        )
    }
}

impl Fetcher {
    /// The fetcher after it learnt that `commit` is durable. A run ends with the next run's first page in hand.
    pub fn after(at: &Checkpoint, commit: &Commit, what: What) -> Self {
        match at.committed(commit) {
            Some(at) => Self::Following { at, page: what == What::RunEnd },
            None => Self::Idle,
        }
    }

    /// Its epoch, if it has one.
    pub fn epoch_mut(&mut self) -> Option<&mut u8> {
        match self {
            Self::Idle => None,
            Self::Taken(partition) => Some(&mut partition.epoch),
            Self::Following { at, .. } | Self::Doubt { at, .. } | Self::Behind { at } => {
                Some(&mut at.partition.epoch)
            }
        }
    }
}
