//! From the bytes of a record to typed values.

use std::fmt;

use engine::Reason;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::declaration::{Absent, Declaration, Field};
use crate::field::{Value, cut};
use crate::pointer::Tree;

/// Reads records as the declaration says.
#[derive(Debug, Clone)]
pub struct RecordReader {
    fields: Vec<(String, Field)>,
    id: usize,
    /// Where the fields stand in a record.
    tree: Tree,
}

/// Which of the three cases a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The record does not have it.
    Missing,
    /// It is `null`.
    Null,
    /// It has a value.
    Present,
}

impl Presence {
    /// Its word, as in presence columns.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Null => "null",
            Self::Present => "present",
        }
    }
}

/// The typed values of a record, in the order of the fields' names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    /// The canonical text of the source's id.
    pub id: String,
    /// The values.
    pub values: Vec<Value<'a>>,
    /// The case of each.
    pub presences: Vec<Presence>,
}

/// A record that cannot be read, with its id if that much is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The canonical text of the source's id.
    pub id: Option<String>,
    /// Why: a stable code, and a detail that names the field and the value.
    pub reason: Reason,
}

impl RecordReader {
    /// For the fields of a declaration.
    pub fn new(declaration: &Declaration) -> Self {
        let fields: Vec<(String, Field)> =
            declaration.fields.iter().map(|(name, field)| (name.clone(), field.clone())).collect();
        let tree = Tree::of(fields.iter().map(|(_, field)| &field.pointer));
        let id = fields.iter().position(|(name, _)| *name == declaration.id).unwrap_or_default();
        Self { fields, id, tree }
    }

    /// The fields, in the order of their names.
    pub fn fields(&self) -> &[(String, Field)] {
        &self.fields
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`Unreadable`], for the first thing that is wrong: the document, the id, then the fields by name.
    pub fn read<'a>(&'a self, raw: &'a [u8]) -> Result<Row<'a>, Unreadable> {
        let whole = |reason| Unreadable { id: None, reason };
        let text = std::str::from_utf8(raw).map_err(|error| {
            let at = error.valid_up_to();
            whole(Reason::new("invalid_utf8", format!("the record is not UTF-8 behind byte {at}")))
        })?;
        let mut tokens: Vec<Option<&'a str>> = vec![None; self.fields.len()];
        scatter(text.trim_ascii(), &self.tree, &mut tokens).map_err(|error| whole(not_json(&error)))?;
        let (name, field) = &self.fields[self.id];
        let id = match tokens[self.id] {
            None | Some("null") => {
                return Err(whole(Reason::new(
                    "missing_id",
                    format!("`{name}` ({}) is missing", field.pointer),
                )));
            }
            Some(token) => field.kind.read(token).map_err(|reason| whole(about(name, field, reason)))?,
        };
        let id = id.canonical().map(std::borrow::Cow::into_owned).unwrap_or_default();
        if id.is_empty() {
            return Err(whole(Reason::new("missing_id", format!("`{name}` ({}) is empty", field.pointer))));
        }
        let mut values = Vec::with_capacity(tokens.len());
        let mut presences = Vec::with_capacity(tokens.len());
        for ((name, field), token) in self.fields.iter().zip(tokens) {
            let (presence, value) = value_of(field, token)
                .map_err(|reason| Unreadable { id: Some(id.clone()), reason: about(name, field, reason) })?;
            values.push(value);
            presences.push(presence);
        }
        Ok(Row { id, values, presences })
    }

    /// The source's id alone, if it can be made out.
    pub fn id_of(&self, raw: &[u8]) -> Option<String> {
        match self.read(raw) {
            Ok(row) => Some(row.id),
            Err(unreadable) => unreadable.id,
        }
    }
}

fn value_of<'a>(field: &'a Field, token: Option<&'a str>) -> Result<(Presence, Value<'a>), Reason> {
    let (presence, rule) = match token {
        Some("null") => (Presence::Null, &field.null),
        None => (Presence::Missing, &field.missing),
        Some(token) => {
            let value = field.kind.read(token)?;
            if let (Some(allowed), Value::Text(text)) = (&field.values, &value)
                && !allowed.iter().any(|one| one == text)
            {
                let detail = format!("{} is none of {}", cut(text), allowed.join(", "));
                return Err(Reason::new("unknown_value", detail));
            }
            return Ok((Presence::Present, value));
        }
    };
    match rule {
        Absent::Null => Ok((presence, Value::Null)),
        Absent::Default(text) => Ok((presence, field.kind.read(text)?)),
        Absent::Reject if presence == Presence::Null => Err(Reason::new("null_field", "it is null")),
        Absent::Reject => Err(Reason::new("missing_field", "it is missing")),
    }
}

fn about(name: &str, field: &Field, reason: Reason) -> Reason {
    Reason { code: reason.code, detail: format!("`{name}` ({}): {}", field.pointer, reason.detail) }
}

fn not_json(error: &serde_json::Error) -> Reason {
    if error.to_string().contains(TWICE) {
        return Reason::new("name_twice", error.to_string());
    }
    Reason::new("not_json", format!("the record is not JSON: {error}"))
}

const TWICE: &str = "stands twice in one object";

/// Puts the tokens of a value where the fields want them.
fn scatter<'a>(text: &'a str, node: &Tree, tokens: &mut [Option<&'a str>]) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_any(Scatter { node, tokens })?;
    deserializer.end()
}

struct Scatter<'n, 't, 'a> {
    node: &'n Tree,
    tokens: &'t mut [Option<&'a str>],
}

impl<'a> Scatter<'_, '_, 'a> {
    fn place<E: serde::de::Error>(&mut self, child: &Tree, raw: &'a RawValue) -> Result<(), E> {
        for leaf in &child.leaves {
            self.tokens[*leaf] = Some(raw.get());
        }
        if !child.children.is_empty() && matches!(raw.get().as_bytes().first(), Some(b'{' | b'[')) {
            scatter(raw.get(), child, self.tokens).map_err(E::custom)?;
        }
        Ok(())
    }
}

impl<'a> Visitor<'a> for Scatter<'_, '_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut seen: Vec<&str> = Vec::new();
        let node = self.node;
        while let Some(name) = map.next_key::<Name<'a>>()? {
            match node.children.get_key_value(name.0.as_ref()) {
                None => drop(map.next_value::<IgnoredAny>()?),
                Some((name, child)) => {
                    if seen.contains(&name.as_str()) {
                        let shown = cut(name);
                        return Err(serde::de::Error::custom(format!("the name {shown} {TWICE}")));
                    }
                    seen.push(name);
                    let raw = map.next_value::<&'a RawValue>()?;
                    self.place(child, raw)?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut seq: A) -> Result<(), A::Error> {
        let node = self.node;
        let mut index = 0_usize;
        while let Some(raw) = seq.next_element::<&'a RawValue>()? {
            if let Some(child) = node.children.get(index.to_string().as_str()) {
                self.place(child, raw)?;
            }
            index += 1;
        }
        Ok(())
    }
}

/// A name of an object, borrowed where it has no escapes.
struct Name<'a>(std::borrow::Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(std::borrow::Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(std::borrow::Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests;
