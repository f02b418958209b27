//! From the keys of `pipeline.toml` to a declaration, with every problem on the way.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use toml::Spanned;

use super::file;
use super::{
    Absent, Check, Declaration, Field, Folder, MAP, OnConflict, PIPELINE, PROOF, Problem, Reference, Sum,
    Target, Variables,
};
use crate::field::instant::{self, Local, Zone};
use crate::field::{FieldType, TimeForm};
use crate::pointer::Pointer;

/// Collects problems with their lines.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) problems: Vec<Problem>,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        self.text[..at.min(self.text.len())].matches('\n').count() + 1
    }

    pub(super) fn problem<T>(&mut self, at: &Spanned<T>, text: impl Into<String>) {
        let line = self.line(at.span().start);
        self.problems.push(Problem::of(PIPELINE, Some(line), text));
    }

    pub(super) fn parse(&mut self, variables: &Variables) -> Option<file::File> {
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

    pub(super) fn pointer(&mut self, text: &Spanned<String>) -> Pointer {
        Pointer::parse(text.get_ref()).unwrap_or_else(|why| {
            self.problem(text, format!("\"{}\" is not a JSON pointer: {why}", text.get_ref()));
            Pointer::root()
        })
    }

    pub(super) fn declaration(&mut self, file: file::File, folder: &Folder) -> Declaration {
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
            for rule in [&field.offset, &field.zone, &field.format].into_iter().flatten() {
                self.problem(
                    rule,
                    "`offset`, `zone` and `format` are rules for fields of the type timestamptz",
                );
            }
        }
        kind
    }

    fn time_form(&mut self, field: &file::Field) -> TimeForm {
        let local = self.local(field);
        let form = match field.format.as_ref().map(|format| (format, format.get_ref().as_str())) {
            None | Some((_, "rfc3339")) => TimeForm::Rfc3339 { local },
            Some((_, "epoch_seconds")) => TimeForm::EpochSeconds,
            Some((_, "epoch_millis")) => TimeForm::EpochMillis,
            Some((format, other)) => {
                self.problem(
                    format,
                    format!("\"{other}\" is no format; there are rfc3339, epoch_seconds and epoch_millis"),
                );
                TimeForm::Rfc3339 { local }
            }
        };
        if let (TimeForm::EpochSeconds | TimeForm::EpochMillis, Some(rule)) =
            (form, field.offset.as_ref().or(field.zone.as_ref()))
        {
            self.problem(rule, "a time counted since 1970 has neither `offset` nor `zone`");
        }
        form
    }

    /// The rule for times without an offset.
    fn local(&mut self, field: &file::Field) -> Local {
        match (&field.offset, &field.zone) {
            (None, None) => Local::Unknown,
            (Some(text), None) => match instant::offset_of(text.get_ref()) {
                Ok(east) => Local::Offset(east),
                Err(_) => {
                    self.problem(
                        text,
                        format!("\"{}\" is no offset such as \"+01:00\" or \"Z\"", text.get_ref()),
                    );
                    Local::Unknown
                }
            },
            (None, Some(text)) => match Zone::named(text.get_ref()) {
                Some(zone) => Local::Zone(zone),
                None => {
                    self.problem(
                        text,
                        format!("\"{}\" is no zone such as \"Europe/Zurich\"", text.get_ref()),
                    );
                    Local::Unknown
                }
            },
            (Some(_), Some(text)) => {
                self.problem(text, "times without an offset follow `offset` or `zone`, not both");
                Local::Unknown
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
