//! A file of JSON lines, plain or gzip, resumable by position.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use engine::{Cursor, Page, PartitionSpec, Position, Profile, Source, SourceError};
use flate2::bufread::MultiGzDecoder;
use tokio::sync::Mutex;

/// Lines of a page.
const PAGE_LINES: usize = 1_000;
/// A page ends behind the line that passes this.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// A longer line is no record.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Pages of a file.
pub struct FileSource {
    path: PathBuf,
    profile: Profile,
    /// A reader that stands where the next page begins, so that a compressed file is not read again for each page.
    open: Arc<Mutex<Option<Lines>>>,
}

struct Lines {
    reader: Box<dyn BufRead + Send>,
    /// Bytes of the text before the next line.
    at: u64,
    /// The file's size when it was opened.
    size: u64,
}

/// A position: bytes of the text before it, and the size that the file must still have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At {
    offset: u64,
    size: u64,
}

impl At {
    fn cursor(self) -> Cursor {
        Cursor::new(format!("{}/{}", self.offset, self.size)).expect("two numbers are short")
    }

    fn read(cursor: &Cursor) -> Option<Self> {
        let (offset, size) = cursor.as_str().split_once('/')?;
        Some(Self { offset: offset.parse().ok()?, size: size.parse().ok()? })
    }
}

impl FileSource {
    /// Whether this machine has the file.
    pub fn is_here(path: &str) -> bool {
        File::open(path).is_ok()
    }

    /// Over a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let profile = Profile {
            name: "file",
            parallel_partitions: 1,
            stalled_is_end: false,
            prefetch: true,
            stateful_cursor: false,
        };
        Self { path: path.into(), profile, open: Arc::default() }
    }
}

impl Lines {
    /// Opens the file at a position; gzip is known by its first bytes (RFC 1952).
    fn open(path: &Path, at: Option<At>) -> Result<Self, SourceError> {
        let fault = |error: std::io::Error| SourceError::Unavailable(format!("{}: {error}", path.display()));
        let mut file = File::open(path).map_err(fault)?;
        let size = file.metadata().map_err(fault)?.len();
        if let Some(at) = at
            && at.size != size
        {
            return Err(SourceError::Refused(format!(
                "{} has {size} bytes, and had {} when the job began; put the file of that time back, or start a new job",
                path.display(),
                at.size
            )));
        }
        let mut magic = Vec::with_capacity(2);
        file.by_ref().take(2).read_to_end(&mut magic).map_err(fault)?;
        let offset = at.map_or(0, |at| at.offset);
        let mut reader: Box<dyn BufRead + Send> = if magic == [0x1f, 0x8b] {
            file.seek(SeekFrom::Start(0)).map_err(fault)?;
            Box::new(BufReader::new(MultiGzDecoder::new(BufReader::new(file))))
        } else {
            file.seek(SeekFrom::Start(offset)).map_err(fault)?;
            Box::new(BufReader::new(file))
        };
        if magic == [0x1f, 0x8b] {
            let skipped =
                std::io::copy(&mut reader.by_ref().take(offset), &mut std::io::sink()).map_err(fault)?;
            if skipped < offset {
                return Err(SourceError::Malformed(format!(
                    "{} ends before byte {offset} of its text",
                    path.display()
                )));
            }
        }
        Ok(Self { reader, at: offset, size })
    }

    fn page(&mut self, path: &Path) -> Result<Page, SourceError> {
        let mut records = Vec::new();
        let mut bytes = 0;
        while records.len() < PAGE_LINES && bytes < PAGE_BYTES {
            let mut line = Vec::new();
            let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX) + 1;
            let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut line).map_err(|error| {
                let at = self.at;
                SourceError::Malformed(format!("{} behind byte {at} of its text: {error}", path.display()))
            })?;
            if read == 0 {
                return Ok(Page { records, next: Position::End, total: None, retries: 0 });
            }
            if read > LINE_BYTES_MAX {
                return Err(SourceError::Malformed(format!(
                    "{}: the line at byte {} of its text is longer than {LINE_BYTES_MAX} bytes",
                    path.display(),
                    self.at
                )));
            }
            self.at += u64::try_from(read).unwrap_or(u64::MAX);
            bytes += read;
            let text = line.trim_ascii();
            if !text.is_empty() {
                records.push(Bytes::copy_from_slice(text));
            }
        }
        let next = Position::At(At { offset: self.at, size: self.size }.cursor());
        Ok(Page { records, next, total: None, retries: 0 })
    }
}

#[async_trait]
impl Source for FileSource {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    async fn partitions(&self) -> Result<Vec<PartitionSpec>, SourceError> {
        Ok(vec![PartitionSpec {
            key: self.path.display().to_string(),
            expected: None,
            left_out: None,
            closing: false,
        }])
    }

    async fn page(&self, _partition: &PartitionSpec, at: &Position) -> Result<Page, SourceError> {
        let wanted = match at {
            Position::Beginning => None,
            Position::At(cursor) => Some(At::read(cursor).ok_or_else(|| {
                SourceError::Malformed(format!("'{}' is no position in a file", cursor.as_str()))
            })?),
            Position::End => {
                return Err(SourceError::Malformed("asked for a page behind the end".to_owned()));
            }
        };
        let (path, open) = (self.path.clone(), self.open.clone().lock_owned().await);
        let reading = tokio::task::spawn_blocking(move || {
            let mut open = open;
            let mut lines = match open.take() {
                Some(lines) if wanted == Some(At { offset: lines.at, size: lines.size }) => lines,
                _ => Lines::open(&path, wanted)?,
            };
            let page = lines.page(&path)?;
            *open = Some(lines);
            Ok(page)
        });
        reading.await.map_err(|error| SourceError::Unavailable(error.to_string()))?
    }
}
