//! The source: a few pages of a few records, the same each time they are asked for.

/// Where a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Position {
    /// At this page.
    At(u8),
    /// Behind the last one.
    End,
}

/// Sizes of source, segments and chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// How many records each page holds. They are numbered through.
    pub pages: [u8; 3],
    /// After so many pages a segment is closed.
    pub pages_per_segment: u8,
    /// From so many records on a chunk is made.
    pub chunk_records: u8,
}

impl Source {
    /// How many records the cursor has passed. At the end, how many there are.
    pub fn passed(&self, position: Position) -> usize {
        let pages = match position {
            Position::At(page) => &self.pages[..usize::from(page)],
            Position::End => &self.pages[..],
        };
        pages.iter().copied().map(usize::from).sum()
    }

    /// The page at a position: its records, and where the next one begins.
    pub fn page(&self, at: u8) -> (Vec<u8>, Position) {
        let last = usize::from(at) + 1 == self.pages.len();
        let next = if last { Position::End } else { Position::At(at + 1) };
        let records = (0u8..).take(self.passed(next)).skip(self.passed(Position::At(at)));
        (records.collect(), next)
    }
}
