//! What a migration would do, shown on its first page.

use std::fmt;

use db::{Conn, Database, Timestamp};
use engine::{ChunkContext, Counts, Fingerprint, JobId, Place, Position, Sink as _, StagedRecord, Written};
use serde::Serialize;
use sqlx::AssertSqlSafe;

use crate::declaration::{self, Declaration};
use crate::service::Error;
use crate::sink::LedgerSink;
use crate::source::{FileSource, HttpPages};
use crate::sql::{self, Shape, quoted};

/// Rows shown.
const ROWS: i64 = 10;
/// Records named that would not arrive.
const NAMED: usize = 10;

/// What a run would do, as far as one page tells.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// The migration's name.
    pub name: String,
    /// The target's table.
    pub target: String,
    /// The columns that the map fills.
    pub columns: Vec<String>,
    /// The fields that the proof gives back.
    pub proved: Vec<String>,
    /// Partitions of the source.
    pub partitions: usize,
    /// Records of the first page, and what would become of them.
    pub records: i64,
    /// See `records`.
    pub outcomes: Counts,
    /// Ten rows as they would stand in the target, as JSON.
    pub rows: Vec<String>,
    /// Records that would not arrive: reference, code and detail.
    pub refused: Vec<(String, String, String)>,
}

impl Plan {
    /// Whether every record of the first page would arrive or is left out by rule.
    pub fn is_sound(&self) -> bool {
        self.outcomes.failed == 0
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: into {} ({})", self.name, self.target, self.columns.join(", "))?;
        writeln!(f, "proved fields: {}", self.proved.join(", "))?;
        writeln!(
            f,
            "the source has {} partition(s); its first page has {} records:",
            self.partitions, self.records
        )?;
        let counts = &self.outcomes;
        writeln!(
            f,
            "  imported {}, updated {}, unchanged {}, filtered {}, given twice {}, failed {}",
            counts.imported,
            counts.updated,
            counts.unchanged,
            counts.filtered,
            counts.duplicate_in_source,
            counts.failed
        )?;
        for (reference, code, detail) in &self.refused {
            writeln!(f, "  {reference}: {code}: {detail}")?;
        }
        write!(f, "rows as they would stand there:")?;
        self.rows.iter().try_for_each(|row| write!(f, "\n  {row}"))
    }
}

/// Maps the first page into the target, in a transaction that is rolled back.
pub(crate) async fn preview(
    database: &Database,
    declaration: Declaration,
    shape: &Shape,
    begun: String,
) -> Result<Plan, Error> {
    let source: Box<dyn engine::Source> = match &declaration.source {
        declaration::Source::Http(http) => Box::new(HttpPages::new((**http).clone(), &|builder| builder)?),
        declaration::Source::File { path } => Box::new(FileSource::new(path)),
    };
    let partitions = source.partitions().await?;
    let first = partitions.first().ok_or_else(|| Error::Sink("the source has no partition".to_owned()))?;
    let page = source.page(first, &Position::Beginning).await?;
    let records: Vec<StagedRecord> = page
        .records
        .into_iter()
        .enumerate()
        .map(|(index, raw)| StagedRecord {
            place: Place { partition: 0, segment: 0, ordinal: i32::try_from(index).unwrap_or(i32::MAX) },
            fingerprint: Fingerprint::of(&raw),
            raw,
            duplicate_of: None,
        })
        .collect();
    let (name, target) = (declaration.name.clone(), sql::target_name(&declaration));
    let key: Vec<String> = declaration.target.key.iter().map(|name| quoted(name)).collect();
    let sink = LedgerSink::new(declaration, shape, begun.clone());
    let chunk = ChunkContext { job: JobId(db::Id::new()), now: Timestamp::here(), isolating: false };
    let mut tx = database.begin().await?;
    let prepared = sink.prepare(&chunk, &records);
    let written =
        sink.preview(&mut tx, &records, prepared).await.map_err(|error| Error::Sink(error.to_string()))?;
    let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
    let columns: Vec<String> = shape.columns.iter().map(|column| quoted(&column.name)).collect();
    let query = format!(
        "SELECT to_jsonb(r)::text FROM (SELECT {} FROM {target} t WHERE age(t.xmin) < age($1::text::xid8::xid) ORDER BY {} LIMIT {ROWS}) r",
        columns.join(", "),
        key.join(", ")
    );
    let rows = sqlx::query_scalar(AssertSqlSafe(query))
        .persistent(false)
        .bind(&begun)
        .fetch_all(pg.conn)
        .await
        .map_err(db::Error::from)?;
    tx.rollback().await?;
    let mut outcomes = Counts::default();
    let mut refused = Vec::new();
    for Written { outcome, targets, label, reason, .. } in written {
        outcomes.add(outcome, targets);
        if let (engine::Outcome::Failed, Some(reason)) = (outcome, reason)
            && refused.len() < NAMED
        {
            refused.push((label.unwrap_or_default(), reason.code.into_owned(), reason.detail));
        }
    }
    Ok(Plan {
        name,
        target,
        columns: shape.columns.iter().map(|column| column.name.clone()).collect(),
        proved: shape.proved.iter().map(|(name, _)| name.clone()).collect(),
        partitions: partitions.len(),
        records: outcomes.records(),
        outcomes,
        rows,
        refused,
    })
}
