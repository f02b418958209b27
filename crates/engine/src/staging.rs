//! Staged records, packed: the raw records of one page commit in one block.
//!
//! A block is a version byte, a checksum of what follows (XXH3, 64 bits, big-endian), the length of the plain form (32 bits, little-endian),
//! and the plain form as an [LZ4 block](https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md). The plain form is the length and the original of each record as [postcard](https://postcard.jamesmunns.com/wire-format), then
//! all their bytes. A row for each record would cost the database more than everything else about fetching.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::{Fingerprint, Place, StagedRecord};

/// A block that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StagingError {
    /// Written by a newer version.
    #[error("staged block of version {0}, which this version cannot read")]
    Version(u8),
    /// Damaged.
    #[error("a staged block is damaged: {0}")]
    Damaged(String),
}

impl From<StagingError> for db::Error {
    fn from(error: StagingError) -> Self {
        Self::Other(sqlx::Error::Decode(Box::new(error)))
    }
}

const VERSION: u8 = 1;
/// Bytes of version, checksum and length.
const HEAD: usize = CHECKED + 4;
/// Where that begins of which the checksum is.
const CHECKED: usize = 1 + 8;
/// No block is larger than this when unpacked; a value of Postgres could not be.
const UNPACKED_BYTES_MAX: usize = 1 << 30;

/// Length and original of a record.
type RecordHead = (u32, Option<i32>);

/// Packs the records of a commit, which follow each other.
pub(crate) fn pack(records: &[StagedRecord]) -> Vec<u8> {
    let heads: Vec<RecordHead> = records
        .iter()
        .map(|record| (u32::try_from(record.raw.len()).expect("a body has fewer bytes"), record.duplicate_of))
        .collect();
    let bytes: usize = records.iter().map(|record| record.raw.len()).sum();
    let mut plain = Vec::with_capacity(bytes + heads.len() * 4 + 8);
    plain = postcard::to_extend(&heads, plain).expect("numbers are nothing that postcard refuses");
    for record in records {
        plain.extend_from_slice(&record.raw);
    }
    let mut block = Vec::with_capacity(HEAD + lz4_flex::block::get_maximum_output_size(plain.len()));
    block.push(VERSION);
    block.extend_from_slice(&[0; 8]);
    block.extend_from_slice(&u32::try_from(plain.len()).expect("a commit has fewer bytes").to_le_bytes());
    block.resize(HEAD + lz4_flex::block::get_maximum_output_size(plain.len()), 0);
    let length =
        lz4_flex::block::compress_into(&plain, &mut block[HEAD..]).expect("there is room for the worst case");
    block.truncate(HEAD + length);
    let checksum = xxh3_64(&block[CHECKED..]).to_be_bytes();
    block[1..CHECKED].copy_from_slice(&checksum);
    block
}

/// Unpacks a block whose first record stands at `first`.
pub(crate) fn unpack(block: &[u8], first: Place) -> Result<Vec<StagedRecord>, StagingError> {
    let damaged = |what: &dyn std::fmt::Display| StagingError::Damaged(format!("{what}, at {first}"));
    let (head, packed) = block.split_at_checked(HEAD).ok_or_else(|| damaged(&"it ends in its head"))?;
    if head[0] != VERSION {
        return Err(StagingError::Version(head[0]));
    }
    let checksum = u64::from_be_bytes(head[1..CHECKED].try_into().expect("eight bytes"));
    if xxh3_64(&block[CHECKED..]) != checksum {
        return Err(damaged(&"its checksum differs"));
    }
    let length = u32::from_le_bytes(head[CHECKED..].try_into().expect("four bytes"));
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > UNPACKED_BYTES_MAX {
        return Err(damaged(&"it would be too large"));
    }
    let plain = lz4_flex::block::decompress(packed, length).map_err(|error| damaged(&error))?;
    let (heads, rest): (Vec<RecordHead>, &[u8]) =
        postcard::take_from_bytes(&plain).map_err(|error| damaged(&error))?;
    let mut start = plain.len() - rest.len();
    let plain = Bytes::from(plain);
    let mut records = Vec::with_capacity(heads.len());
    for (ordinal, (length, duplicate_of)) in (first.ordinal..).zip(heads) {
        let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
        let end =
            end.filter(|end| *end <= plain.len()).ok_or_else(|| damaged(&"a record goes beyond its end"))?;
        let raw = plain.slice(start..end);
        start = end;
        let fingerprint = Fingerprint::of(&raw);
        records.push(StagedRecord { place: Place { ordinal, ..first }, raw, fingerprint, duplicate_of });
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(count: i32, first: i32) -> Vec<StagedRecord> {
        (first..first + count)
            .map(|ordinal| {
                let raw = Bytes::from(format!("{{\"id\":{},\"memo\":\"{}\"}}", ordinal / 2, "x".repeat(50)));
                StagedRecord {
                    place: Place { partition: 3, segment: 5, ordinal },
                    fingerprint: Fingerprint::of(&raw),
                    raw,
                    duplicate_of: (ordinal % 2 == 1).then_some(ordinal - 1),
                }
            })
            .collect()
    }

    #[test]
    fn a_block_comes_back_byte_for_byte() {
        for (count, first) in [(0, 0), (1, 0), (1000, 24_000)] {
            let before = records(count, first);
            let block = pack(&before);
            let after = unpack(&block, Place { partition: 3, segment: 5, ordinal: first }).unwrap();
            assert_eq!(after.len(), before.len());
            for (one, other) in before.iter().zip(&after) {
                assert_eq!((one.place, &one.raw), (other.place, &other.raw));
                assert_eq!((one.fingerprint, one.duplicate_of), (other.fingerprint, other.duplicate_of));
            }
        }
    }

    #[test]
    fn empty_records_and_bytes_that_are_no_text_come_back() {
        let mut before = records(3, 0);
        before[0].raw = Bytes::new();
        before[2].raw = Bytes::from_static(b"\xff\x00\xfe");
        let after = unpack(&pack(&before), before[0].place).unwrap();
        let raws: Vec<&Bytes> = after.iter().map(|record| &record.raw).collect();
        assert_eq!(raws, before.iter().map(|record| &record.raw).collect::<Vec<_>>());
    }

    #[test]
    fn every_damaged_byte_is_seen() {
        let before = records(20, 0);
        let block = pack(&before);
        for place in 0..block.len() {
            let mut damaged = block.clone();
            damaged[place] ^= 1;
            assert!(unpack(&damaged, before[0].place).is_err(), "byte {place}");
        }
        for length in 0..block.len() {
            assert!(unpack(&block[..length], before[0].place).is_err(), "{length} bytes of it");
        }
    }
}
