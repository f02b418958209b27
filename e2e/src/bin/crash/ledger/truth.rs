//! Source against target, row by row.
//!
//! The source side is what the simulator says is true of its export, the target side is read with SQL of its own (see
//! `bank`): neither goes through the code that migrates.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use anyhow::Context;
use serde::Deserialize;

use super::core::Core;
use crate::differences::Differences;

/// Of exports larger than this only a hash of each row is kept.
const ROWS_KEPT_MAX: u64 = 50_000;

/// What a right migration makes of an export.
pub(super) struct Truth {
    /// By the source's id: the row that must stand in the target.
    rows: HashMap<Box<str>, Expected>,
    pub(super) records: i64,
    pub(super) good: i64,
    pub(super) bad: i64,
    pub(super) repeated: i64,
}

struct Expected {
    hash: u64,
    line: Option<Box<str>>,
}

/// A row of the target, or what it must be, with values written in one way.
#[derive(Clone)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) line: String,
}

/// A record as the simulator tells it.
#[derive(Deserialize)]
struct Told<'a> {
    id: &'a str,
    account_id: i64,
    customer_id: i64,
    #[serde(rename = "type")]
    kind: &'a str,
    amount: &'a str,
    balance_before: &'a str,
    balance_after: &'a str,
    currency: &'a str,
    status: &'a str,
    narration: Option<String>,
    metadata: serde_json::Value,
    created_at_ms: i64,
    verdict: &'a str,
}

/// The values of a row.
pub(super) struct Values<'a> {
    pub(super) reference: &'a str,
    pub(super) account_id: i64,
    pub(super) customer_id: i64,
    pub(super) kind: &'a str,
    pub(super) amount: &'a str,
    pub(super) balance_before: &'a str,
    pub(super) balance_after: &'a str,
    pub(super) currency: &'a str,
    pub(super) status: &'a str,
    pub(super) narration: Option<&'a str>,
    pub(super) metadata: &'a serde_json::Value,
    pub(super) created_at_micros: i64,
}

impl Values<'_> {
    pub(super) fn line(&self) -> String {
        format!(
            "{} account {} customer {} {} {} {} -> {} {} {} narration {:?} metadata {} at {}",
            self.reference,
            self.account_id,
            self.customer_id,
            self.kind,
            self.amount,
            self.balance_before,
            self.balance_after,
            self.currency,
            self.status,
            self.narration,
            sorted(self.metadata),
            self.created_at_micros
        )
    }
}

/// JSON with the keys of its objects in order.
fn sorted(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Object(object) => {
            let mut fields: Vec<_> =
                object.iter().map(|(key, value)| format!("{key:?}:{}", sorted(value))).collect();
            fields.sort_unstable();
            format!("{{{}}}", fields.join(","))
        }
        other => other.to_string(),
    }
}

fn hash(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

impl Truth {
    pub(super) async fn of(core: &Core) -> anyhow::Result<Self> {
        let told = core.told().await?;
        let mut rows = HashMap::new();
        core.rows(|line| {
            let row: Told = serde_json::from_str(line).context("a row of the truth cannot be read")?;
            if !matches!(row.verdict, "lands" | "flagged") {
                return Ok(());
            }
            let reference = format!("WL-{}", row.id);
            let line = Values {
                reference: &reference,
                account_id: row.account_id,
                customer_id: row.customer_id,
                kind: row.kind,
                amount: row.amount,
                balance_before: row.balance_before,
                balance_after: row.balance_after,
                currency: row.currency,
                status: row.status,
                narration: row.narration.as_deref(),
                metadata: &row.metadata,
                created_at_micros: row.created_at_ms * 1_000,
            }
            .line();
            let hash = hash(&line);
            let line = (told.count <= ROWS_KEPT_MAX).then(|| line.into_boxed_str());
            rows.insert(row.id.into(), Expected { hash, line });
            Ok(())
        })
        .await?;
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let (records, good) = (signed(told.count), signed(told.good));
        anyhow::ensure!(rows.len() as u64 == told.good, "the simulator's truth contradicts itself");
        Ok(Self { rows, records, good, bad: signed(told.bad), repeated: signed(told.repeated) })
    }

    #[cfg(test)]
    pub(super) fn numbers(records: i64, good: i64, bad: i64, repeated: i64) -> Self {
        Self { rows: HashMap::new(), records, good, bad, repeated }
    }

    pub(super) fn comparison(&self) -> Comparison<'_> {
        Comparison {
            truth: self,
            seen: HashSet::with_capacity(self.rows.len()),
            differences: Differences::default(),
        }
    }
}

/// Takes the rows of a target, one by one.
pub(super) struct Comparison<'t> {
    truth: &'t Truth,
    seen: HashSet<&'t str>,
    differences: Differences,
}

impl Comparison<'_> {
    pub(super) fn take(&mut self, row: &Row) {
        let differences = &mut self.differences;
        let Some((id, expected)) = self.truth.rows.get_key_value(row.id.as_str()) else {
            differences.doubled += 1;
            differences.find(|| format!("foreign: {}", row.line));
            return;
        };
        if !self.seen.insert(id) {
            differences.doubled += 1;
            differences.find(|| format!("doubled: {}", row.line));
        } else if hash(&row.line) != expected.hash {
            differences.altered += 1;
            let source = expected.line.as_deref().unwrap_or("another row");
            differences.find(|| format!("altered: {}, at the source {source}", row.line));
        }
    }

    pub(super) fn end(mut self) -> Differences {
        for (id, expected) in &self.truth.rows {
            if !self.seen.contains(&**id) {
                self.differences.lost += 1;
                self.differences.find(|| format!("lost: {}", expected.line.as_deref().unwrap_or(id)));
            }
        }
        self.differences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, line: &str) -> Row {
        Row { id: id.into(), line: line.into() }
    }

    fn check(rows: &[Row], expected: (u64, u64, u64)) {
        let rows_of = ["a", "b", "c"].map(|id| (id.into(), Expected { hash: hash(id), line: None }));
        let truth = Truth { rows: rows_of.into(), ..Truth::numbers(3, 3, 0, 0) };
        let mut comparison = truth.comparison();
        rows.iter().for_each(|row| comparison.take(row));
        let found = comparison.end();
        assert_eq!((found.lost, found.doubled, found.altered), expected, "{:?}", found.findings);
    }

    #[test]
    fn every_damage_to_a_target_is_noticed() {
        let whole = || vec![row("a", "a"), row("b", "b"), row("c", "c")];
        check(&whole(), (0, 0, 0));
        check(&whole()[1..], (1, 0, 0));
        check(&[whole(), vec![row("a", "a")]].concat(), (0, 1, 0));
        check(&[whole(), vec![row("x", "x")]].concat(), (0, 1, 0));
        check(&[row("a", "b"), row("b", "a"), row("c", "c")], (0, 0, 2));
    }

    #[test]
    fn json_is_compared_by_its_values() {
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(
            sorted(&parse(r#"{"b":{"y":1,"x":"2"},"a":null}"#)),
            sorted(&parse(r#"{"a":null,"b":{"x":"2","y":1}}"#))
        );
        assert_ne!(sorted(&parse(r#"{"a":1}"#)), sorted(&parse(r#"{"a":"1"}"#)));
    }
}
