//! Stage two: what `engine::runner::work` keeps in memory.

use crate::database::Pick;

/// A worker's memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Worker {
    /// Has no chunk.
    Idle,
    /// Picked a chunk, which holds it for nobody.
    Picked(Pick),
    /// Has read the chunk's records and no transaction.
    Loaded(Load),
    /// Claimed the chunk: its transaction is open and holds the row lock.
    Holding(Load),
    /// Believes it holds the chunk; the server has ended its session meanwhile, and the lock is gone.
    Frozen(Load),
    /// It sent a COMMIT and got no answer.
    Doubt(Load),
}

/// A chunk and what was read of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load {
    /// The chunk as it was picked.
    pub pick: Pick,
    /// Its records.
    pub records: Vec<u8>,
}

impl Worker {
    /// The chunk that this worker keeps from the others of its process.
    pub fn busy(&self) -> Option<Pick> {
        match self {
            Self::Idle => None,
            Self::Picked(pick) => Some(*pick),
            Self::Loaded(load) | Self::Holding(load) | Self::Frozen(load) | Self::Doubt(load) => {
                Some(load.pick)
            }
        }
    }

    /// Whether it believes that it holds its chunk's row lock.
    pub fn believes(&self) -> bool {
        matches!(self, Self::Holding(_) | Self::Frozen(_))
    }

    /// The chunk it has read.
    pub fn load(&self) -> Option<&Load> {
        match self {
            Self::Idle | Self::Picked(_) => None,
            Self::Loaded(load) | Self::Holding(load) | Self::Frozen(load) | Self::Doubt(load) => Some(load),
        }
    }
}
