//! Source against target, slug by slug.
//!
//! The source side is what the simulator says is true of its account, the target side is read with SQL of its own (see
//! `target`): neither goes through the code that imports.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::differences::Differences;

/// Every imported link carries it.
const IMPORT_TAG: &str = "imported:bitly";

/// One slug of the account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct TruthRow {
    pub(crate) source_id: String,
    pub(crate) host: String,
    pub(crate) slug: String,
    pub(crate) destination: Option<String>,
    pub(crate) archived: bool,
    pub(crate) created_at: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) tags: Vec<String>,
}

/// One slug of the target with its link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TargetRow {
    pub(crate) link: i64,
    pub(crate) host: String,
    pub(crate) slug: String,
    pub(crate) source_id: Option<String>,
    pub(crate) destination: String,
    pub(crate) title: Option<String>,
    pub(crate) archived: bool,
    pub(crate) enabled: bool,
    /// Unix microseconds.
    pub(crate) created_at: i64,
    /// Unix microseconds.
    pub(crate) expires_at: Option<i64>,
    pub(crate) tags: BTreeSet<String>,
}

/// Compares an account without faults with what stands in the target. `links` is how many links the target has,
/// whether or not a slug leads to them.
pub(crate) fn compare(truth: &[TruthRow], target: &[TargetRow], links: u64) -> Differences {
    let mut differences = Differences::default();
    let mut by_slug: HashMap<(&str, &str), Vec<&TargetRow>> = HashMap::with_capacity(target.len());
    for row in target {
        by_slug.entry((&row.host, &row.slug)).or_default().push(row);
    }
    let mut link_of: HashMap<&str, i64> = HashMap::new();
    for row in truth {
        let found = by_slug.remove(&(row.host.as_str(), row.slug.as_str())).unwrap_or_default();
        let Some(first) = found.first() else {
            differences.lost += 1;
            differences.find(|| format!("lost: {}/{} of {}", row.host, row.slug, row.source_id));
            continue;
        };
        differences.doubled += found.len() as u64 - 1;
        let link = *link_of.entry(&row.source_id).or_insert(first.link);
        if let Some(what) = difference(row, first, link) {
            differences.altered += 1;
            differences.find(|| format!("altered: {}/{}: {what}", row.host, row.slug));
        }
    }
    for ((host, slug), rows) in by_slug {
        differences.doubled += rows.len() as u64;
        differences.find(|| format!("foreign: {host}/{slug} is not in the source"));
    }
    let expected = truth.iter().map(|row| row.source_id.as_str()).collect::<HashSet<_>>().len() as u64;
    if links > expected {
        differences.doubled += links - expected;
        differences.find(|| format!("{links} links stand in the target, {expected} in the source"));
    }
    differences
}

/// What differs, if something does. The slugs of one source link must lead to the one `link`.
fn difference(truth: &TruthRow, target: &TargetRow, link: i64) -> Option<String> {
    let mut tags: BTreeSet<&str> = truth.tags.iter().map(String::as_str).collect();
    tags.insert(IMPORT_TAG);
    let differs = |what: &str, truth: &dyn fmt::Debug, target: &dyn fmt::Debug| {
        Some(format!("{what} is {target:?}, in the source {truth:?}"))
    };
    if target.link != link {
        return differs("link", &link, &target.link);
    }
    if target.source_id.as_deref() != Some(&truth.source_id) {
        return differs("source id", &truth.source_id, &target.source_id);
    }
    if Some(&target.destination) != truth.destination.as_ref() {
        return differs("destination", &truth.destination, &target.destination);
    }
    // An empty title is no title.
    let title = truth.title.as_deref().filter(|title| !title.is_empty());
    if target.title.as_deref().filter(|title| !title.is_empty()) != title {
        return differs("title", &title, &target.title);
    }
    if target.archived != truth.archived {
        return differs("archived", &truth.archived, &target.archived);
    }
    if !target.enabled {
        return differs("enabled", &true, &target.enabled);
    }
    if Some(target.created_at) != micros(&truth.created_at) {
        return differs("date of creation", &truth.created_at, &target.created_at);
    }
    if target.expires_at != truth.expires_at.as_deref().and_then(micros) {
        return differs("date of expiry", &truth.expires_at, &target.expires_at);
    }
    if !target.tags.iter().map(String::as_str).eq(tags.iter().copied()) {
        return differs("list of tags", &tags, &target.tags);
    }
    None
}

fn micros(date: &str) -> Option<i64> {
    let date = OffsetDateTime::parse(date, &Rfc3339).ok()?;
    i64::try_from(date.unix_timestamp_nanos() / 1_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(source_id: &str, slug: &str) -> TruthRow {
        TruthRow {
            source_id: source_id.into(),
            host: "go.example.com".into(),
            slug: slug.into(),
            destination: Some("https://example.com/".into()),
            archived: false,
            created_at: "2025-01-01T00:00:00Z".into(),
            expires_at: Some("2025-01-01T00:00:01Z".into()),
            title: Some("a title".into()),
            tags: vec!["b".into(), "a".into()],
        }
    }

    fn target(link: i64, source_id: &str, slug: &str) -> TargetRow {
        TargetRow {
            link,
            host: "go.example.com".into(),
            slug: slug.into(),
            source_id: Some(source_id.into()),
            destination: "https://example.com/".into(),
            title: Some("a title".into()),
            archived: false,
            enabled: true,
            created_at: 1_735_689_600_000_000,
            expires_at: Some(1_735_689_601_000_000),
            tags: ["a", "b", IMPORT_TAG].map(str::to_owned).into(),
        }
    }

    fn check(change: impl FnOnce(&mut Vec<TargetRow>), links: u64, expected: (u64, u64, u64)) {
        let source = [truth("x", "x"), truth("x", "sale"), truth("y", "y")];
        let mut rows = vec![target(1, "x", "x"), target(1, "x", "sale"), target(2, "y", "y")];
        change(&mut rows);
        let found = compare(&source, &rows, links);
        assert_eq!((found.lost, found.doubled, found.altered), expected, "{:?}", found.findings);
        assert_eq!(found.is_none(), expected == (0, 0, 0));
        assert_eq!(found.findings.is_empty(), found.is_none());
    }

    #[test]
    fn equal_sides_differ_in_nothing() {
        check(|_| (), 2, (0, 0, 0));
    }

    #[test]
    fn every_kind_of_damage_is_counted() {
        check(|rows| drop(rows.remove(1)), 2, (1, 0, 0));
        check(|rows| rows.push(target(3, "x", "x-2")), 2, (0, 1, 0));
        check(|_| (), 3, (0, 1, 0));
        check(|rows| rows[1].link = 2, 2, (0, 0, 1));
        check(|rows| rows[0].destination.push('x'), 2, (0, 0, 1));
        check(|rows| rows[0].title = None, 2, (0, 0, 1));
        check(|rows| rows[0].archived = true, 2, (0, 0, 1));
        check(|rows| rows[0].enabled = false, 2, (0, 0, 1));
        check(|rows| rows[0].created_at += 1, 2, (0, 0, 1));
        check(|rows| rows[0].expires_at = None, 2, (0, 0, 1));
        check(|rows| rows[0].source_id = Some("y".into()), 2, (0, 0, 1));
        check(|rows| assert!(rows[2].tags.remove("a")), 2, (0, 0, 1));
        check(|rows| assert!(rows[2].tags.insert("c".into())), 2, (0, 0, 1));
        check(|rows| rows[2].slug = "y-2".into(), 2, (1, 1, 0));
    }
}
