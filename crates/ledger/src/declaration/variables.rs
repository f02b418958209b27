//! `${NAME}` in the texts of `pipeline.toml`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Values for `${NAME}`: `--set` first, then the environment of whoever made the job. They are stored with it, so that
/// every worker reads the same; secrets do not belong here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Those of `--set name=value`.
    pub fn of<'a>(values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(values.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Adds those that a text names and only the environment knows.
    #[must_use]
    pub fn with_environment(mut self, text: &str) -> Self {
        for name in names(text) {
            if !self.0.contains_key(name)
                && let Ok(value) = std::env::var(name)
            {
                self.0.insert(name.to_owned(), value);
            }
        }
        self
    }

    /// The names that have a value, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Fills the texts of a table; returns where a variable without a value stands.
    pub(super) fn fill(&self, table: &mut DeTable<'_>) -> Vec<(Range<usize>, String)> {
        let mut unknown = Vec::new();
        for (_, value) in table.iter_mut() {
            self.fill_value(value, &mut unknown);
        }
        unknown
    }

    fn fill_value(&self, value: &mut Spanned<DeValue<'_>>, unknown: &mut Vec<(Range<usize>, String)>) {
        let span = value.span();
        match value.get_mut() {
            DeValue::String(text) => {
                if let Some(filled) = self.filled(text, &span, unknown) {
                    *text = Cow::Owned(filled);
                }
            }
            DeValue::Array(array) => {
                for value in array.iter_mut() {
                    self.fill_value(value, unknown);
                }
            }
            DeValue::Table(table) => {
                for (_, value) in table.iter_mut() {
                    self.fill_value(value, unknown);
                }
            }
            _ => {}
        }
    }

    fn filled(
        &self,
        text: &str,
        span: &Range<usize>,
        unknown: &mut Vec<(Range<usize>, String)>,
    ) -> Option<String> {
        let mut out = String::new();
        let mut rest = text;
        let mut changed = false;
        while let Some((before, name, after)) = next_name(rest) {
            out.push_str(before);
            match self.0.get(name) {
                Some(value) => out.push_str(value),
                None => unknown.push((span.clone(), name.to_owned())),
            }
            changed = true;
            rest = after;
        }
        out.push_str(rest);
        changed.then_some(out)
    }
}

/// What stands before the first `${NAME}`, the name, and what stands behind it.
fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find("${")?;
        let behind = &text[start + 2..];
        let end = behind.find('}')?;
        let name = &behind[..end];
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Some((&text[..start], name, &behind[end + 1..]));
        }
        from = start + 2;
    }
}

fn names(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, name, after)) = next_name(rest) {
        found.push(name);
        rest = after;
    }
    found
}
