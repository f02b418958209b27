//! The manifest: per chunk one compact block that says of each record what came, what was written and what became
//! of it.
//!
//! A block is a version byte and deflated [postcard](https://postcard.jamesmunns.com/wire-format) of its entries.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};

use crate::Outcome;

/// One record of a manifest block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its ordinal within the segment.
    pub ordinal: i32,
    /// The source's id.
    pub source_id: Option<String>,
    /// Its key in the target.
    pub reference: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// The reason's stable code, where there is one.
    pub reason: Option<String>,
    /// Fingerprint of the bytes that came.
    pub came: [u8; 16],
    /// Digest of what was written, zero if nothing was.
    pub written: [u8; 16],
}

/// A block that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Written by a newer version.
    #[error("manifest block of version {0}, which this version cannot read")]
    Version(u8),
    /// Damaged.
    #[error("manifest block is damaged: {0}")]
    Damaged(String),
}

const VERSION: u8 = 1;
/// No block is larger than this when unpacked: a chunk is bounded, and so are ids.
const UNPACKED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Packs entries into a block.
pub fn pack(entries: &[Entry]) -> Vec<u8> {
    let plain = postcard::to_stdvec(entries).expect("entries hold nothing that postcard refuses");
    let mut encoder = DeflateEncoder::new(vec![VERSION], Compression::fast());
    encoder.write_all(&plain).expect("writing to memory cannot fail");
    encoder.finish().expect("writing to memory cannot fail")
}

/// Unpacks a block.
pub fn unpack(block: &[u8]) -> Result<Vec<Entry>, ManifestError> {
    let damaged = |error: &dyn std::fmt::Display| ManifestError::Damaged(error.to_string());
    let (version, rest) = block.split_first().ok_or_else(|| damaged(&"it is empty"))?;
    if *version != VERSION {
        return Err(ManifestError::Version(*version));
    }
    let mut plain = Vec::new();
    DeflateDecoder::new(rest)
        .take(UNPACKED_BYTES_MAX)
        .read_to_end(&mut plain)
        .map_err(|error| damaged(&error))?;
    postcard::from_bytes(&plain).map_err(|error| damaged(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_comes_back_and_damage_is_seen() {
        let entries: Vec<Entry> = (0..100)
            .map(|ordinal| Entry {
                ordinal,
                source_id: Some(format!("go.example.com/{ordinal}")),
                reference: None,
                outcome: if ordinal % 7 == 0 { Outcome::Failed } else { Outcome::Imported },
                reason: (ordinal % 7 == 0).then(|| "missing_destination".to_owned()),
                came: [1; 16],
                written: [2; 16],
            })
            .collect();
        let block = pack(&entries);
        assert!(block.len() < 100 * 40, "{} bytes", block.len());
        assert_eq!(unpack(&block).unwrap(), entries);
        assert!(matches!(unpack(&[9, 0]), Err(ManifestError::Version(9))));
        assert!(matches!(unpack(&block[..block.len() / 2]), Err(ManifestError::Damaged(_))));
    }
}
