//! Staged records: bytes as received, with their place and fingerprint.

use std::fmt;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_128;

/// A hash over the received bytes of a record (XXH3, 128 bits). Never over a re-serialised form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 16]);

impl Fingerprint {
    /// The fingerprint of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_128(bytes).to_be_bytes())
    }

    /// From what was stored; `None` if it is not 16 bytes.
    pub fn from_stored(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The 16 bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Where in a job a record stands: partition, segment and ordinal within the segment, each from 0.
///
/// Places order records: (partition, segment, ordinal) is the order in which a serial sink sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Index of the partition in the job.
    pub partition: i32,
    /// Number of the segment in the partition.
    pub segment: i32,
    /// Number of the record in the segment.
    pub ordinal: i32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.partition, self.segment, self.ordinal)
    }
}

/// One raw record as received.
#[derive(Debug, Clone)]
pub struct StagedRecord {
    /// Its place in the job.
    pub place: Place,
    /// The bytes as the source sent them.
    pub raw: Bytes,
    /// Hash over `raw`.
    pub fingerprint: Fingerprint,
    /// The ordinal of an earlier record of the segment with the same bytes. Sinks never see such a record: the
    /// engine settles it as `duplicate_in_source`.
    pub duplicate_of: Option<i32>,
}
