//! The keys of `pipeline.toml`, as serde reads them.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// The whole file. Unknown keys are refused everywhere: a misspelt rule must not be ignored.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Spanned<String>,
    pub(super) source: Source,
    pub(super) record: Record,
    pub(super) fields: BTreeMap<String, Spanned<Field>>,
    pub(super) target: Target,
    #[serde(default)]
    pub(super) certificate: Certificate,
    #[serde(default)]
    pub(super) stage: Stage,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    pub(super) url: Option<Spanned<String>>,
    pub(super) file: Option<Spanned<String>>,
    pub(super) records: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) params: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, Spanned<String>>,
    pub(super) page: Option<PageSize>,
    pub(super) paging: Option<Spanned<Paging>>,
    pub(super) auth: Option<Spanned<Auth>>,
    pub(super) pace: Option<Pace>,
    pub(super) partitions: Option<Spanned<Partitions>>,
    pub(super) until: Option<Spanned<Until>>,
    pub(super) sweep: Option<Spanned<Sweep>>,
    #[serde(default)]
    pub(super) errors: Vec<Spanned<ErrorRule>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageSize {
    pub(super) param: String,
    pub(super) size: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paging {
    pub(super) cursor: Option<Spanned<String>>,
    pub(super) last: Option<Spanned<String>>,
    pub(super) param: String,
    pub(super) has_more: Option<Spanned<String>>,
    pub(super) total: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) empty_text_is_end: bool,
    #[serde(default)]
    pub(super) cursor_at_end: bool,
    #[serde(default)]
    pub(super) stalled_is_end: bool,
    #[serde(default)]
    pub(super) stateful: bool,
    pub(super) reanchor: Option<Spanned<Reanchor>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reanchor {
    pub(super) param: String,
    pub(super) last: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Auth {
    pub(super) kind: Spanned<String>,
    pub(super) header: Option<String>,
    pub(super) user: Option<String>,
    pub(super) env: Option<String>,
    pub(super) file: Option<String>,
    pub(super) command: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pace {
    pub(super) requests: u32,
    pub(super) per_seconds: f64,
    pub(super) concurrent: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Partitions {
    pub(super) param: Option<String>,
    pub(super) values: Option<Vec<String>>,
    pub(super) from_param: Option<String>,
    pub(super) to_param: Option<String>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) parts: Option<u32>,
    pub(super) side_by_side: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Until {
    pub(super) param: Option<String>,
    pub(super) lag: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sweep {
    pub(super) param: Option<String>,
    pub(super) back: Spanned<toml::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorRule {
    pub(super) status: Option<u16>,
    pub(super) pointer: Option<Spanned<String>>,
    pub(super) values: Option<Vec<String>>,
    pub(super) means: Spanned<String>,
    pub(super) wait_seconds: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub(super) id: Spanned<String>,
    pub(super) reference: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Field {
    pub(super) pointer: Spanned<String>,
    #[serde(rename = "type")]
    pub(super) kind: Spanned<String>,
    #[serde(default)]
    pub(super) nullable: bool,
    #[serde(default)]
    pub(super) optional: bool,
    pub(super) default: Option<Spanned<toml::Value>>,
    pub(super) presence: Option<Spanned<String>>,
    pub(super) offset: Option<Spanned<String>>,
    pub(super) zone: Option<Spanned<String>>,
    pub(super) format: Option<Spanned<String>>,
    pub(super) values: Option<Spanned<Vec<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    pub(super) table: Spanned<String>,
    pub(super) key: Spanned<Vec<String>>,
    pub(super) on_conflict: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Certificate {
    #[serde(default)]
    pub(super) sums: Vec<Spanned<Sum>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sum {
    pub(super) field: String,
    #[serde(default)]
    pub(super) by: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stage {
    pub(super) segment_pages: Option<i32>,
    pub(super) chunk_records: Option<i32>,
}
