//! A declared migration: a folder with `pipeline.toml`, `map.sql`, `proof.sql` and `checks/*.sql`.
//!
//! [`Declaration::read`] finds everything that can be found without a database, all at once, each with its file and line;
//! what needs the target is found by [`crate::plan`].

mod file;
mod folder;
mod variables;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;

pub use folder::{CHECKS, Folder, MAP, PIPELINE, PROOF};
pub use variables::Variables;

use crate::field::{FieldType, TimeForm, instant};
use crate::pointer::Pointer;

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
    /// Whether an empty page that repeats its own cursor is the end.
    pub stalled_is_end: bool,
    /// Whether the cursor may stay while the rows move on.
    pub stateful: bool,
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
        /// The ranges.
        ranges: Vec<(String, String)>,
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
        let file = match reader.parse(variables) {
            Some(file) => file,
            None => return Err(reader.problems),
        };
        let declaration = reader.declaration(file, folder);
        if reader.problems.is_empty() {
            Ok(declaration)
        } else {
            reader.problems.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
            Err(reader.problems)
        }
    }
}

/// Collects problems with their lines.
struct Reader<'a> {
    text: &'a str,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        self.text[..at.min(self.text.len())].matches('\n').count() + 1
    }

    fn problem<T>(&mut self, at: &Spanned<T>, text: impl Into<String>) {
        let line = self.line(at.span().start);
        self.problems.push(Problem::of(PIPELINE, Some(line), text));
    }

    fn parse(&mut self, variables: &Variables) -> Option<file::File> {
        let fault = |error: toml::de::Error, reader: &mut Self| {
            let line = error.span().map(|span| reader.line(span.start));
            reader.problems.push(Problem::of(PIPELINE, line, error.message().to_owned()));
        };
        let mut table = match toml::de::DeTable::parse(self.text) {
            Ok(table) => table,
            Err(error) => {
                fault(error, self);
                return None;
            }
        };
        for (span, name) in variables.fill(table.get_mut()) {
            let line = self.line(span.start);
            self.problems.push(Problem::of(
                PIPELINE,
                Some(line),
                format!("${{{name}}} is not set; give it with --set {name}=… or in the environment"),
            ));
        }
        if !self.problems.is_empty() {
            return None;
        }
        match file::File::deserialize(toml::de::Deserializer::from(table)) {
            Ok(file) => Some(file),
            Err(error) => {
                fault(error, self);
                None
            }
        }
    }

    fn pointer(&mut self, text: &Spanned<String>) -> Pointer {
        Pointer::parse(text.get_ref()).unwrap_or_else(|why| {
            self.problem(text, format!("\"{}\" is not a JSON pointer: {why}", text.get_ref()));
            Pointer::root()
        })
    }

    fn declaration(&mut self, file: file::File, folder: &Folder) -> Declaration {
        if !is_name(file.name.get_ref()) {
            self.problem(&file.name, "a name has 1 to 60 letters, digits, `-` and `_`");
        }
        let fields: BTreeMap<String, Field> =
            file.fields.iter().map(|(name, field)| (name.clone(), self.field(name, field))).collect();
        self.presences(&file.fields);
        let id = file.record.id.get_ref().clone();
        match fields.get(&id) {
            None => self.problem(
                &file.record.id,
                format!("there is no field `{id}`; declare it under [fields.{id}]"),
            ),
            Some(field) if field.missing != Absent::Reject || field.null != Absent::Reject => {
                self.problem(
                    &file.record.id,
                    format!(
                        "the id must be there: `{id}` may be neither nullable nor optional nor have a default"
                    ),
                );
            }
            Some(field) if matches!(field.kind, FieldType::Json | FieldType::Boolean) => {
                self.problem(
                    &file.record.id,
                    format!("`{id}` is of the type {}, which makes no id", field.kind.sql()),
                );
            }
            Some(_) => {}
        }
        let reference = self.reference(&file.record.reference, &id);
        let sums = file.certificate.sums.iter().map(|sum| self.sum(sum, &fields)).collect();
        let source = self.source(file.source);
        let target = self.target(&file.target);
        let map = self.query(folder, MAP);
        let proof = self.query(folder, PROOF);
        let checks = folder
            .checks()
            .map(|(name, text)| Check {
                file: name.to_owned(),
                sql: self.query(folder, name),
                blocks: !text.lines().any(|line| line.trim() == "-- severity: warn"),
            })
            .collect();
        for (what, number) in
            [("segment_pages", file.stage.segment_pages), ("chunk_records", file.stage.chunk_records)]
        {
            if number.is_some_and(|number| !(1..=100_000).contains(&number)) {
                self.problems.push(Problem::of(
                    PIPELINE,
                    None,
                    format!("[stage] {what} lies between 1 and 100,000"),
                ));
            }
        }
        Declaration {
            name: file.name.into_inner(),
            source,
            id,
            reference,
            fields,
            target,
            sums,
            segment_pages: file.stage.segment_pages,
            chunk_records: file.stage.chunk_records,
            map,
            proof,
            checks,
        }
    }

    /// A query without the semicolon at its end.
    fn query(&mut self, folder: &Folder, name: &str) -> String {
        let text = folder.text(name).trim_end();
        let text = text.strip_suffix(';').unwrap_or(text).trim_end();
        let has_words = text.lines().any(|line| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with("--")
        });
        if !has_words {
            self.problems.push(Problem::of(name, None, "it holds no query"));
        }
        text.to_owned()
    }

    fn field(&mut self, name: &str, field: &Spanned<file::Field>) -> Field {
        if !is_column(name) {
            self.problem(field, format!("`{name}` is no name of a field: lower-case letters, digits and `_`, not beginning with `_` or a digit"));
        }
        let declared = field.get_ref();
        let kind = self.kind(declared);
        let default = declared.default.as_ref().map(|value| (value, json_of(value.get_ref())));
        let missing = match &default {
            Some((value, text)) => {
                if let Err(reason) = kind.read(text) {
                    self.problem(value, format!("the default does not fit: {}", reason.detail));
                }
                Absent::Default(text.clone())
            }
            None if declared.optional => Absent::Null,
            None => Absent::Reject,
        };
        let null = if declared.nullable { Absent::Null } else { Absent::Reject };
        if let Some(values) = &declared.values
            && (values.get_ref().is_empty() || kind != FieldType::Text)
        {
            self.problem(values, "`values` lists the only texts of a field of the type text");
        }
        Field {
            pointer: self.pointer(&declared.pointer),
            kind,
            missing,
            null,
            presence: declared.presence.as_ref().map(|name| name.get_ref().clone()),
            values: declared.values.as_ref().map(|values| values.get_ref().clone()),
        }
    }

    /// Names of presence columns are names of columns, and no two columns have the same.
    fn presences(&mut self, fields: &BTreeMap<String, Spanned<file::Field>>) {
        let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
        for field in fields.values() {
            let Some(presence) = &field.get_ref().presence else { continue };
            let name = presence.get_ref();
            if !is_column(name) || names.contains(&name.as_str()) {
                self.problem(presence, format!("`{name}` is no free name for a column"));
            }
            names.push(name);
        }
    }

    fn kind(&mut self, field: &file::Field) -> FieldType {
        let text = field.kind.get_ref().trim().to_ascii_lowercase();
        let kind = match text.as_str() {
            "text" => FieldType::Text,
            "bigint" => FieldType::Bigint,
            "numeric" => FieldType::Numeric { digits: None },
            "boolean" => FieldType::Boolean,
            "uuid" => FieldType::Uuid,
            "json" => FieldType::Json,
            "timestamptz" => FieldType::Timestamptz { form: self.time_form(field) },
            other => match digits_of(other) {
                Some(digits) => FieldType::Numeric { digits: Some(digits) },
                None => {
                    self.problem(&field.kind, format!("\"{other}\" is no type; there are text, bigint, numeric, numeric(20,4), boolean, timestamptz, uuid and json"));
                    FieldType::Text
                }
            },
        };
        if !matches!(kind, FieldType::Timestamptz { .. }) {
            for rule in [&field.offset, &field.format].into_iter().flatten() {
                self.problem(rule, "`offset` and `format` are rules for fields of the type timestamptz");
            }
        }
        kind
    }

    fn time_form(&mut self, field: &file::Field) -> TimeForm {
        let offset = field.offset.as_ref().and_then(|text| {
            instant::offset_of(text.get_ref())
                .map_err(|_| {
                    self.problem(
                        text,
                        format!("\"{}\" is no offset such as \"+01:00\" or \"Z\"", text.get_ref()),
                    )
                })
                .ok()
        });
        match field.format.as_ref().map(|format| (format, format.get_ref().as_str())) {
            None | Some((_, "rfc3339")) => TimeForm::Rfc3339 { offset },
            Some((_, "epoch_seconds")) => TimeForm::EpochSeconds,
            Some((_, "epoch_millis")) => TimeForm::EpochMillis,
            Some((format, other)) => {
                self.problem(
                    format,
                    format!("\"{other}\" is no format; there are rfc3339, epoch_seconds and epoch_millis"),
                );
                TimeForm::Rfc3339 { offset }
            }
        }
    }

    fn reference(&mut self, text: &Spanned<String>, id: &str) -> Reference {
        let hole = format!("{{{id}}}");
        let mut parts = text.get_ref().split(hole.as_str());
        let (before, after, more) = (parts.next(), parts.next(), parts.next());
        match (before, after, more) {
            (Some(before), Some(after), None)
                if !before.contains(['{', '}']) && !after.contains(['{', '}']) =>
            {
                Reference { before: before.to_owned(), after: after.to_owned() }
            }
            _ => {
                self.problem(text, format!("a reference is a text around {hole}, once, and nothing else: it depends on the source's id alone"));
                Reference { before: String::new(), after: String::new() }
            }
        }
    }

    fn sum(&mut self, sum: &Spanned<file::Sum>, fields: &BTreeMap<String, Field>) -> Sum {
        let declared = sum.get_ref();
        match fields.get(&declared.field).map(|field| field.kind) {
            Some(FieldType::Numeric { .. } | FieldType::Bigint) => {}
            Some(kind) => self.problem(
                sum,
                format!("`{}` is of the type {}, which has no sum", declared.field, kind.sql()),
            ),
            None => self.problem(sum, format!("there is no field `{}`", declared.field)),
        }
        for name in &declared.by {
            if !fields
                .get(name)
                .is_some_and(|field| matches!(field.kind, FieldType::Text | FieldType::Boolean))
            {
                self.problem(sum, format!("`{name}` is no field of the type text or boolean"));
            }
        }
        Sum { field: declared.field.clone(), by: declared.by.clone() }
    }

    fn target(&mut self, target: &file::Target) -> Target {
        let (schema, table) = match target.table.get_ref().split_once('.') {
            Some((schema, table)) => (Some(schema.to_owned()), table.to_owned()),
            None => (None, target.table.get_ref().clone()),
        };
        if table.is_empty() || table.contains('.') || schema.as_deref() == Some("") {
            self.problem(&target.table, "a table is named \"table\" or \"schema.table\"");
        }
        if target.key.get_ref().is_empty() {
            self.problem(&target.key, "the key names at least one column");
        }
        let on_conflict = match target.on_conflict.as_ref().map(|rule| (rule, rule.get_ref().as_str())) {
            None | Some((_, "compare")) => OnConflict::Compare,
            Some((_, "update")) => OnConflict::Update,
            Some((rule, other)) => {
                self.problem(rule, format!("\"{other}\" is no rule; there are \"compare\" and \"update\""));
                OnConflict::Compare
            }
        };
        let lines = (self.line(target.table.span().start), self.line(target.key.span().start));
        Target { schema, table, key: target.key.get_ref().clone(), on_conflict, lines }
    }

    fn source(&mut self, source: file::Source) -> Source {
        match (&source.url, &source.file) {
            (Some(_), None) => self.http(source),
            (None, Some(path)) => {
                if source.records.is_some()
                    || source.paging.is_some()
                    || source.auth.is_some()
                    || source.partitions.is_some()
                {
                    self.problem(
                        path,
                        "a file has no pages: `records`, `paging`, `auth` and `partitions` belong to a `url`",
                    );
                }
                Source::File { path: path.get_ref().clone() }
            }
            (Some(url), Some(_)) => {
                self.problem(url, "a source is a `url` or a `file`, not both");
                Source::File { path: String::new() }
            }
            (None, None) => {
                self.problems.push(Problem::of(
                    PIPELINE,
                    None,
                    "[source] names neither a `url` nor a `file`",
                ));
                Source::File { path: String::new() }
            }
        }
    }

    fn http(&mut self, source: file::Source) -> Source {
        let url = source.url.expect("the caller has looked");
        match upstream::Url::parse(url.get_ref()) {
            Ok(parsed) if matches!(parsed.scheme(), "http" | "https") && parsed.host().is_some() => {
                if !parsed.username().is_empty() || parsed.password().is_some() {
                    self.problem(&url, "a URL holds no credential; declare [source.auth]");
                }
            }
            _ => self.problem(&url, format!("\"{}\" is not a URL of http or https", url.get_ref())),
        }
        let records = match &source.records {
            Some(text) => self.pointer(text),
            None => {
                self.problem(&url, "[source] lacks `records`: the JSON pointer to a page's list, \"\" if the page is the list");
                Pointer::root()
            }
        };
        let paging = match source.paging {
            Some(paging) => self.paging(paging),
            None => {
                self.problem(&url, "[source.paging] is missing: how does a page lead to the next?");
                Paging {
                    param: String::new(),
                    from: Next::Cursor(Pointer::root()),
                    has_more: None,
                    total: None,
                    empty_text_is_end: false,
                    stalled_is_end: false,
                    stateful: false,
                }
            }
        };
        for (name, value) in &source.headers {
            let is_header = upstream::HeaderName::from_bytes(name.as_bytes()).is_ok()
                && upstream::HeaderValue::from_str(value.get_ref()).is_ok();
            if !is_header {
                self.problem(value, format!("`{name}` and its value make no header"));
            } else if ["authorization", "cookie", "proxy-authorization"]
                .contains(&name.to_ascii_lowercase().as_str())
            {
                self.problem(
                    value,
                    format!("`{name}` is a credential; declare [source.auth], which keeps it out of files"),
                );
            }
        }
        let auth = source.auth.and_then(|auth| self.auth(&auth));
        let (partitions, side_by_side) = match source.partitions {
            Some(partitions) => self.partitions(&partitions),
            None => (Partitions::One, 1),
        };
        let errors = source.errors.iter().filter_map(|rule| self.error_rule(rule)).collect();
        Source::Http(Box::new(HttpSource {
            url: url.into_inner(),
            records,
            params: source.params.into_iter().collect(),
            headers: source.headers.into_iter().map(|(name, value)| (name, value.into_inner())).collect(),
            page_size: source.page.map(|page| (page.param, page.size)),
            paging,
            auth,
            pace: source.pace.map(|pace| Pace {
                requests: pace.requests.max(1),
                per: Duration::try_from_secs_f64(pace.per_seconds).unwrap_or(Duration::from_secs(1)),
                concurrent: pace.concurrent.unwrap_or(4).max(1),
            }),
            partitions,
            side_by_side,
            errors,
        }))
    }

    fn paging(&mut self, paging: Spanned<file::Paging>) -> Paging {
        let from = match (&paging.get_ref().cursor, &paging.get_ref().last) {
            (Some(text), None) => Next::Cursor(self.pointer(text)),
            (None, Some(text)) => Next::Last(self.pointer(text)),
            _ => {
                self.problem(&paging, "[source.paging] names either `cursor`, the pointer to the next cursor in a page, or `last`, the pointer to the key in a page's last record");
                Next::Cursor(Pointer::root())
            }
        };
        let declared = paging.get_ref();
        if matches!(from, Next::Last(_))
            && (declared.empty_text_is_end || declared.stalled_is_end || declared.stateful)
        {
            self.problem(
                &paging,
                "`empty_text_is_end`, `stalled_is_end` and `stateful` speak of cursors, and `last` has none",
            );
        }
        Paging {
            param: declared.param.clone(),
            from,
            has_more: declared.has_more.as_ref().map(|text| self.pointer(text)),
            total: declared.total.as_ref().map(|text| self.pointer(text)),
            empty_text_is_end: declared.empty_text_is_end,
            stalled_is_end: declared.stalled_is_end,
            stateful: declared.stateful,
        }
    }

    fn auth(&mut self, auth: &Spanned<file::Auth>) -> Option<Auth> {
        let declared = auth.get_ref();
        let kind = match (declared.kind.get_ref().as_str(), &declared.header, &declared.user) {
            ("bearer", None, None) => AuthKind::Bearer,
            ("header", Some(name), None) if upstream::HeaderName::from_bytes(name.as_bytes()).is_ok() => {
                AuthKind::Header(name.clone())
            }
            ("basic", None, Some(user)) if !user.contains(':') => AuthKind::Basic(user.clone()),
            _ => {
                self.problem(&declared.kind, "[source.auth] is `kind = \"bearer\"`, `kind = \"header\"` with `header`, or `kind = \"basic\"` with `user`");
                return None;
            }
        };
        let secret = match (&declared.env, &declared.file, &declared.command) {
            (Some(name), None, None) => SecretFrom::Env(name.clone()),
            (None, Some(path), None) => SecretFrom::File(path.clone()),
            (None, None, Some(command)) if !command.is_empty() => SecretFrom::Command(command.clone()),
            _ => {
                self.problem(
                    auth,
                    "[source.auth] says where the secret comes from: one of `env`, `file` and `command`",
                );
                return None;
            }
        };
        Some(Auth { kind, secret })
    }

    fn partitions(&mut self, partitions: &Spanned<file::Partitions>) -> (Partitions, usize) {
        let declared = partitions.get_ref();
        let found = match declared {
            file::Partitions {
                param: Some(param),
                values: Some(values),
                from_param: None,
                to_param: None,
                from: None,
                to: None,
                kind: None,
                parts: None,
                ..
            } if !values.is_empty() => {
                let mut distinct = values.clone();
                distinct.sort();
                distinct.dedup();
                if distinct.len() < values.len() {
                    self.problem(partitions, "`values` names one value twice: its records would come twice");
                }
                Partitions::Values { param: param.clone(), values: values.clone() }
            }
            file::Partitions {
                param: None,
                values: None,
                from_param: Some(from_param),
                to_param: Some(to_param),
                from: Some(from),
                to: Some(to),
                kind: Some(kind),
                parts: Some(parts),
                ..
            } => match ranges(kind, from, to, *parts) {
                Ok(ranges) => {
                    Partitions::Ranges { from_param: from_param.clone(), to_param: to_param.clone(), ranges }
                }
                Err(why) => {
                    self.problem(partitions, why);
                    Partitions::One
                }
            },
            _ => {
                self.problem(partitions, "[source.partitions] is `param` with `values`, or `from_param`, `to_param`, `kind` (\"time\" or \"id\"), `from`, `to` and `parts`");
                Partitions::One
            }
        };
        (found, declared.side_by_side.unwrap_or(4).clamp(1, 64))
    }

    fn error_rule(&mut self, rule: &Spanned<file::ErrorRule>) -> Option<ErrorRule> {
        let declared = rule.get_ref();
        let wait = declared.wait_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let means = match declared.means.get_ref().as_str() {
            "cursor_expired" => Meaning::CursorExpired,
            "rate_limited" => Meaning::RateLimited(wait),
            "retry" => Meaning::Retry,
            "unauthorized" => Meaning::Unauthorized,
            "fatal" => Meaning::Fatal,
            other => {
                self.problem(&declared.means, format!("\"{other}\" means nothing here; there are cursor_expired, rate_limited, retry, unauthorized and fatal"));
                return None;
            }
        };
        let body = match (&declared.pointer, &declared.values) {
            (Some(pointer), Some(values)) if !values.is_empty() => {
                Some((self.pointer(pointer), values.clone()))
            }
            (None, None) => None,
            _ => {
                self.problem(
                    rule,
                    "a rule about the body has a `pointer` and the `values` that it stands for",
                );
                return None;
            }
        };
        if declared.status.is_none() && body.is_none() {
            self.problem(
                rule,
                "a rule says which answers it is about: a `status`, or a `pointer` and `values`, or both",
            );
            return None;
        }
        Some(ErrorRule { status: declared.status, body, means })
    }
}

fn is_name(text: &str) -> bool {
    (1..=60).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn is_column(text: &str) -> bool {
    text.len() <= 60
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// `numeric(20,4)` or `numeric(20)`.
fn digits_of(text: &str) -> Option<(u32, u32)> {
    let inner = text.strip_prefix("numeric(")?.strip_suffix(')')?;
    let (precision, scale) = inner.split_once(',').unwrap_or((inner, "0"));
    let (precision, scale): (u32, u32) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    ((1..=1000).contains(&precision) && scale <= precision).then_some((precision, scale))
}

/// A value of TOML as the JSON that a source would have sent.
fn json_of(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => serde_json::to_string(text).expect("a text is JSON"),
        toml::Value::Datetime(time) => format!("\"{time}\""),
        other => serde_json::to_string(other).unwrap_or_else(|_| "null".to_owned()),
    }
}

/// Half-open ranges of about the same width.
fn ranges(kind: &str, from: &str, to: &str, parts: u32) -> Result<Vec<(String, String)>, String> {
    if !(1..=10_000).contains(&parts) {
        return Err("`parts` lies between 1 and 10,000".to_owned());
    }
    let bad = |text: &str| format!("\"{text}\" is not a value of the kind \"{kind}\"");
    let read = |text: &str| match kind {
        "id" => text.parse::<i64>().map_err(|_| bad(text)),
        "time" => instant::parse(text, None).map_err(|error| format!("{}: {error}", bad(text))),
        _ => Err(format!("`kind` is \"time\" or \"id\", not \"{kind}\"")),
    };
    let (first, end) = (i128::from(read(from)?), i128::from(read(to)?));
    if first >= end {
        return Err(format!("the range from \"{from}\" to \"{to}\" is empty"));
    }
    let parts = i128::from(parts).min(end - first);
    let at = |index: i128| -> String {
        let value = i64::try_from(first + (end - first) * index / parts).unwrap_or(i64::MAX);
        if kind == "id" { value.to_string() } else { rfc3339(value) }
    };
    Ok((0..parts).map(|index| (at(index), at(index + 1))).collect())
}

fn rfc3339(micros: i64) -> String {
    db::Timestamp::from_micros(micros).to_string()
}

#[cfg(test)]
mod tests;
