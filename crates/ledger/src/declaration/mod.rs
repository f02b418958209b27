//! A declared migration: a folder with `pipeline.toml`, `map.sql`, `proof.sql` and `checks/*.sql`.
//!
//! [`Declaration::read`] finds everything that can be found without a database, all at once, each with its file and line;
//! what needs the target is found by [`crate::plan`].

mod file;
mod folder;
mod reader;
mod source;
mod variables;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use folder::{CHECKS, Folder, MAP, PIPELINE, PROOF};
pub use variables::Variables;

use crate::field::FieldType;
use crate::pointer::Pointer;
use reader::Reader;

/// What is wrong with a declaration: where, what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file within the folder.
    pub file: String,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong, and what to do about it.
    pub text: String,
}

impl Problem {
    pub(crate) fn of(file: &str, line: Option<usize>, text: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.text),
            None => write!(f, "{}: {}", self.file, self.text),
        }
    }
}

/// A migration as declared, checked as far as that is possible without the target.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// Its name, for jobs and reports.
    pub name: String,
    /// Where records come from.
    pub source: Source,
    /// The field that holds the source's immutable id.
    pub id: String,
    /// How references are made from the id.
    pub reference: Reference,
    /// The typed fields, by name.
    pub fields: BTreeMap<String, Field>,
    /// Where rows go.
    pub target: Target,
    /// Sums that the certificate compares.
    pub sums: Vec<Sum>,
    /// Pages of a segment, if declared.
    pub segment_pages: Option<i32>,
    /// Records of a chunk, if declared.
    pub chunk_records: Option<i32>,
    /// The SQL text of the map, without a semicolon at its end.
    pub map: String,
    /// The SQL text of the proof, likewise.
    pub proof: String,
    /// The checks.
    pub checks: Vec<Check>,
}

/// Where records come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A paginated API.
    Http(Box<HttpSource>),
    /// A file of JSON lines, plain or gzip.
    File {
        /// Its path.
        path: String,
    },
}

/// A paginated API.
#[derive(Debug, Clone)]
pub struct HttpSource {
    /// What pages are asked of.
    pub url: String,
    /// Where a page keeps its list of records.
    pub records: Pointer,
    /// Parameters of every request.
    pub params: Vec<(String, String)>,
    /// Headers of every request, none of them secret.
    pub headers: Vec<(String, String)>,
    /// The parameter for the size of a page, and the size.
    pub page_size: Option<(String, u32)>,
    /// How a page leads to the next.
    pub paging: Paging,
    /// How to show who asks.
    pub auth: Option<Auth>,
    /// How fast to ask.
    pub pace: Option<Pace>,
    /// Which parts can be fetched on their own.
    pub partitions: Partitions,
    /// Partitions fetched side by side.
    pub side_by_side: usize,
    /// How old a record must be to be taken.
    pub until: Option<Until>,
    /// What is looked at once more when all is fetched.
    pub sweep: Option<Sweep>,
    /// What answers mean beyond their status.
    pub errors: Vec<ErrorRule>,
}

/// How a page leads to the next.
#[derive(Debug, Clone)]
pub struct Paging {
    /// The parameter that takes the position.
    pub param: String,
    /// Where the position is found.
    pub from: Next,
    /// Where a page says whether there is more.
    pub has_more: Option<Pointer>,
    /// Where a page says how many records there are in all.
    pub total: Option<Pointer>,
    /// Whether an empty text for a cursor is the end; otherwise it is a cursor like any other.
    pub empty_text_is_end: bool,
    /// The last page names a cursor beside its `has_more: false`.
    pub cursor_at_end: bool,
    /// Whether an empty page that repeats its own cursor is the end.
    pub stalled_is_end: bool,
    /// Whether the cursor may stay while the rows move on.
    pub stateful: bool,
    /// How to go on where every cursor has expired.
    pub reanchor: Option<Reanchor>,
}

/// Going on behind a record instead of at a cursor: the parameter that takes a record's key.
#[derive(Debug, Clone)]
pub struct Reanchor {
    /// The parameter.
    pub param: String,
    /// Where the key stands in a record.
    pub key: Pointer,
}

/// Where the next position is found.
#[derive(Debug, Clone)]
pub enum Next {
    /// In the page, as a cursor; `null` is the end.
    Cursor(Pointer),
    /// In the last record of the page (keyset).
    Last(Pointer),
}

/// How to show who asks. The secret itself is read afresh for every attempt and kept nowhere.
#[derive(Debug, Clone)]
pub struct Auth {
    /// How it is sent.
    pub kind: AuthKind,
    /// Where it comes from.
    pub secret: SecretFrom,
}

/// How a credential is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthKind {
    /// `Authorization: Bearer …`
    Bearer,
    /// A header of this name.
    Header(String),
    /// `Authorization: Basic …` for this user.
    Basic(String),
}

/// Where a credential comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretFrom {
    /// A variable of the environment.
    Env(String),
    /// The first line of a file.
    File(String),
    /// The first line that a command prints.
    Command(Vec<String>),
}

/// How fast to ask.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Requests in a window.
    pub requests: u32,
    /// The window.
    pub per: Duration,
    /// Requests at once.
    pub concurrent: u32,
}

/// Parts of the source that can be fetched on their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partitions {
    /// The source as a whole.
    One,
    /// One for each value of a parameter.
    Values {
        /// The parameter.
        param: String,
        /// Its values.
        values: Vec<String>,
    },
    /// Half-open ranges between two parameters.
    Ranges {
        /// The parameter of the first value of a range.
        from_param: String,
        /// The parameter of the first value behind it.
        to_param: String,
        /// Ranges of what.
        kind: RangeKind,
        /// The ranges.
        ranges: Vec<(String, String)>,
    },
}

/// What ranges are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeKind {
    /// Times.
    Time,
    /// Whole numbers.
    Id,
}

/// How old a record must be to be taken: records that are younger may not all be there yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Until {
    /// The parameter that takes the time before which records are asked for; none where ranges of times have one.
    pub param: Option<String>,
    /// How long before the job's beginning that is.
    pub lag: Duration,
}

/// What is looked at once more when all is fetched, for records that came late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sweep {
    /// The last stretch of time.
    Time {
        /// The parameter that takes its beginning; none where ranges of times have one.
        param: Option<String>,
        /// How long it is.
        back: Duration,
    },
    /// The last ids of ranges of ids.
    Ids {
        /// How many.
        back: i64,
    },
}

/// What an answer means beyond its status.
#[derive(Debug, Clone)]
pub struct ErrorRule {
    /// The status, or any.
    pub status: Option<u16>,
    /// Where the body says it, and the texts that say so; any body if none.
    pub body: Option<(Pointer, Vec<String>)>,
    /// What it means.
    pub means: Meaning,
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The cursor is no longer accepted.
    CursorExpired,
    /// Too many requests: all wait, this long if the answer says nothing.
    RateLimited(Option<Duration>),
    /// A passing failure.
    Retry,
    /// The credential is refused.
    Unauthorized,
    /// Nothing will cure it.
    Fatal,
}

/// How references are made: a text around the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    before: String,
    after: String,
}

impl Reference {
    /// The reference of the record with this id (its canonical text).
    pub fn of(&self, id: &str) -> String {
        format!("{}{id}{}", self.before, self.after)
    }

    /// What stands before the id and what behind it.
    pub(crate) fn around(&self) -> (&str, &str) {
        (&self.before, &self.after)
    }
}

/// A typed field.
#[derive(Debug, Clone)]
pub struct Field {
    /// Where in the record it stands.
    pub pointer: Pointer,
    /// Its type.
    pub kind: FieldType,
    /// What becomes of a missing one.
    pub missing: Absent,
    /// What becomes of `null`.
    pub null: Absent,
    /// A further column that says which of the three cases it was.
    pub presence: Option<String>,
    /// The only texts it may have.
    pub values: Option<Vec<String>>,
}

/// What becomes of a field that is missing or null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absent {
    /// The record goes into quarantine.
    Reject,
    /// The column is NULL.
    Null,
    /// This JSON value takes its place.
    Default(String),
}

/// Where rows go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Schema, or none for the search path's first.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
    /// The columns of the key.
    pub key: Vec<String>,
    /// What happens to a row that is there already with other content.
    pub on_conflict: OnConflict,
    /// Lines in the file, for messages: of the table and of the key.
    pub lines: (usize, usize),
}

/// What happens to a row that is there already with other content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// The record goes into quarantine with the differences.
    Compare,
    /// The row becomes what the source says.
    Update,
}

/// A sum that the certificate compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// The numeric field.
    pub field: String,
    /// The fields by which it is told apart.
    pub by: Vec<String>,
}

/// A query that must return no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its file.
    pub file: String,
    /// The text.
    pub sql: String,
    /// Whether a row blocks the job's completion, or is only told.
    pub blocks: bool,
}

impl Declaration {
    /// Reads a folder.
    ///
    /// # Errors
    /// Every problem that was found, in the order of the file.
    pub fn read(folder: &Folder, variables: &Variables) -> Result<Self, Vec<Problem>> {
        let text = folder.text(PIPELINE);
        let mut reader = Reader { text, problems: Vec::new() };
        let Some(file) = reader.parse(variables) else { return Err(reader.problems) };
        let declaration = reader.declaration(file, folder);
        if reader.problems.is_empty() {
            Ok(declaration)
        } else {
            reader.problems.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
            Err(reader.problems)
        }
    }
}

#[cfg(test)]
mod tests;
