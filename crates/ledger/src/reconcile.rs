//! Reconciliation: the manifest and the received bytes on one side, the target through its proof on the other. All of it
//! happens in the server, in temporary tables of one transaction, so that memory does not grow with the ledger.

use std::collections::BTreeMap;

use db::Database;
use engine::manifest::{self, Entry};
use engine::store::history;
use engine::{JobId, Outcome};
use num_bigint::BigInt;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::certificate::{CheckLine, Named, SumLine};
use crate::copy::CopyRows;
use crate::declaration::{Declaration, Sum};
use crate::field::decimal::Decimal;
use crate::proof::{Multiset, Sums};
use crate::service::Error;
use crate::sql::{self, Shape, quoted};
use crate::store::LedgerJob;

/// Rows named of each kind; the counts go on.
pub(crate) const NAMED_MAX: i64 = 1_000;
/// Rows shown of a check.
const CHECK_ROWS: i64 = 10;
/// Manifest blocks read at once.
const BLOCKS: i64 = 20;

/// What the manifest says.
#[derive(Default)]
pub(crate) struct FromManifest {
    pub(crate) standing: i64,
    pub(crate) min: Option<String>,
    pub(crate) max: Option<String>,
}

/// Fills a temporary table from the manifest, block by block: `row` adds what it wants of each entry.
pub(crate) async fn copy_manifest(
    database: &Database,
    conn: &mut PgConnection,
    job: JobId,
    (statement, columns): (&str, usize),
    mut row: impl FnMut(&mut CopyRows, Entry),
) -> Result<(), Error> {
    let mut after = (-1, -1, -1);
    let mut reader = database.read().await?;
    let mut copy = conn.copy_in_raw(statement).await?;
    let mut rows = CopyRows::new(columns, 0);
    loop {
        let blocks = history::blocks(reader.conn(), job, after, BLOCKS).await?;
        let Some(last) = blocks.last() else { break };
        after = (last.part, last.segment, last.first_ordinal);
        for block in &blocks {
            let entries = manifest::unpack(&block.block)
                .map_err(|error| db::Error::Other(sqlx::Error::Decode(Box::new(error))))?;
            entries.into_iter().for_each(|entry| row(&mut rows, entry));
        }
        copy.send(rows.take()).await?;
    }
    copy.send(rows.finish()).await?;
    copy.finish().await?;
    Ok(())
}

/// Fills `expected` from the manifest.
pub(crate) async fn expect(
    database: &Database,
    conn: &mut PgConnection,
    job: JobId,
) -> Result<FromManifest, Error> {
    let mut found = FromManifest::default();
    let into = ("COPY expected FROM STDIN (FORMAT binary)", 2);
    copy_manifest(database, conn, job, into, |rows, entry| {
        let stands = matches!(entry.outcome, Outcome::Imported | Outcome::Updated | Outcome::Unchanged);
        let Some(reference) = entry.reference.filter(|_| stands) else { return };
        rows.row();
        rows.field(reference.as_bytes());
        rows.field(&entry.written);
        found.standing += 1;
        if found.min.as_ref().is_none_or(|min| reference < *min) {
            found.min = Some(reference.clone());
        }
        if found.max.as_ref().is_none_or(|max| reference > *max) {
            found.max = Some(reference);
        }
    })
    .await?;
    conn.execute("ANALYZE expected").await?;
    Ok(found)
}

/// What was computed from the received bytes.
pub(crate) struct FromSource {
    pub(crate) records: i64,
    pub(crate) hash: Multiset,
    pub(crate) sums: Sums,
}

pub(crate) async fn from_source(
    conn: &mut PgConnection,
    job: JobId,
    declaration: &Declaration,
) -> Result<FromSource, Error> {
    let rows: Vec<(i64, Vec<u8>, String)> =
        sqlx::query_as("SELECT records, hash, sums::text FROM crossdock.ledger_proofs WHERE job_id = $1")
            .persistent(false)
            .bind(job.0)
            .fetch_all(conn)
            .await?;
    let damaged = |what: String| Error::Db(db::Error::Other(sqlx::Error::Protocol(what)));
    let mut found = FromSource { records: 0, hash: Multiset::default(), sums: Sums::new() };
    for (records, hash, sums) in rows {
        found.records += records;
        let hash = hash.try_into().map_err(|_| damaged("a kept hash has not 16 bytes".to_owned()))?;
        found.hash.join(Multiset::from_bytes(hash));
        let sums: Vec<(usize, Vec<String>, String)> =
            serde_json::from_str(&sums).map_err(|error| damaged(format!("kept sums: {error}")))?;
        for (number, by, text) in sums.into_iter().filter(|(number, ..)| *number < declaration.sums.len()) {
            let number_read =
                Decimal::parse(&text).map_err(|error| damaged(format!("kept sum \"{text}\": {error}")))?;
            found.sums.entry((number, by)).or_default().add(&number_read);
        }
    }
    Ok(found)
}

/// What the target gives back.
pub(crate) struct FromTarget {
    pub(crate) hash: Multiset,
    pub(crate) sums: BTreeMap<(usize, Vec<String>), String>,
    pub(crate) lost: Named,
    pub(crate) altered: Named,
    pub(crate) doubled: Named,
    pub(crate) foreign_before: i64,
    pub(crate) foreign_since: Named,
}

pub(crate) async fn from_target(
    conn: &mut PgConnection,
    declared: &LedgerJob,
    declaration: &Declaration,
    shape: &Shape,
    standing: i64,
) -> Result<FromTarget, Error> {
    let target = sql::target_name(declaration);
    let has = |name: &String| shape.proved.iter().any(|(known, _)| known == name);
    let sums: Vec<(usize, &Sum)> = declaration
        .sums
        .iter()
        .enumerate()
        .filter(|(_, sum)| has(&sum.field) && sum.by.iter().all(has))
        .collect();
    let mut kept: Vec<String> = sums
        .iter()
        .flat_map(|(_, sum)| std::iter::once(&sum.field).chain(&sum.by))
        .map(|name| format!("p.{}", quoted(name)))
        .collect();
    kept.sort();
    kept.dedup();
    let id = match shape.proved.iter().find(|(name, _)| *name == declaration.id) {
        Some((name, kind)) => sql::canonical(&format!("p.{}", quoted(name)), *kind),
        None => "NULL::text".to_owned(),
    };
    let mut columns = vec![
        "p._reference::text AS _reference".to_owned(),
        format!("{id} AS _id"),
        format!("{} AS _digest", sql::digest(&shape.proved, "p")),
    ];
    columns.extend(kept);
    let query = format!(
        "CREATE TEMP TABLE found ON COMMIT DROP AS WITH target AS (SELECT * FROM {target}), proof AS (\n{}\n) SELECT {} FROM proof p",
        declaration.proof,
        columns.join(", ")
    );
    conn.execute(AssertSqlSafe(query)).await?;
    conn.execute("ANALYZE found").await?;
    // A table and not a list: a bank may have any number of rows of its own.
    conn.execute(
        "CREATE TEMP TABLE unequal ON COMMIT DROP AS
        SELECT coalesce(e.reference, f._reference) AS reference, f._id AS id,
            CASE WHEN f._reference IS NULL THEN 'lost' WHEN e.reference IS NULL THEN 'foreign' ELSE 'altered' END AS kind
        FROM expected e FULL JOIN found f ON f._reference = e.reference
        WHERE e.reference IS NULL OR f._reference IS NULL OR f._digest <> e.digest",
    )
    .await?;
    strangers(conn, declared, declaration).await?;
    let lost = named(conn, "lost").await?;
    let (high, low, negative, rows): (Option<String>, Option<String>, i64, i64) = sqlx::query_as(
        "SELECT sum(('x' || encode(substring(f._digest FOR 8), 'hex'))::bit(64)::bigint::numeric)::text,
            sum(('x' || encode(substring(f._digest FROM 9), 'hex'))::bit(64)::bigint::numeric)::text,
            count(*) FILTER (WHERE get_byte(f._digest, 8) >= 128), count(*)
        FROM found f JOIN expected e ON e.reference = f._reference",
    )
    .persistent(false)
    .fetch_one(&mut *conn)
    .await?;
    let hash = joined(high.as_deref(), low.as_deref(), negative);
    // Only where there are more rows than records does the proof give some back more than once.
    if rows + lost.count > standing {
        conn.execute(
            "INSERT INTO unequal (reference, kind) SELECT f._reference, 'doubled'
            FROM found f JOIN expected e ON e.reference = f._reference GROUP BY 1 HAVING count(*) > 1",
        )
        .await?;
    }
    let mut totals = BTreeMap::new();
    for (number, sum) in sums {
        for (by, total) in sum_of(conn, sum).await? {
            totals.insert((number, by), total);
        }
    }
    Ok(FromTarget {
        hash,
        sums: totals,
        lost,
        altered: named(conn, "altered").await?,
        doubled: named(conn, "doubled").await?,
        foreign_before: count(conn, "before").await?,
        foreign_since: named(conn, "foreign").await?,
    })
}

/// The sum of 128-bit numbers, from the sums of their halves as signed 64-bit numbers and the count of lower halves that
/// are negative as such.
fn joined(high: Option<&str>, low: Option<&str>, negative: i64) -> Multiset {
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<BigInt>().ok()).unwrap_or_default();
    let word = BigInt::from(1) << 64;
    let low = number(low) + BigInt::from(negative) * &word;
    let sum = number(high) * &word + low;
    let modulus = BigInt::from(1) << 128;
    let rest: BigInt = ((sum % &modulus) + &modulus) % &modulus;
    let (_, bytes) = rest.to_bytes_be();
    let mut out = [0; 16];
    out[16 - bytes.len().min(16)..].copy_from_slice(&bytes[bytes.len().saturating_sub(16)..]);
    Multiset::from_bytes(out)
}

/// How many there are of a kind, and the first of them.
async fn named(conn: &mut PgConnection, kind: &'static str) -> Result<Named, Error> {
    let count = count(conn, kind).await?;
    let references = sqlx::query_scalar("SELECT reference FROM unequal WHERE kind = $1 ORDER BY 1 LIMIT $2")
        .persistent(false)
        .bind(kind)
        .bind(NAMED_MAX)
        .fetch_all(conn)
        .await?;
    Ok(Named { count, references })
}

async fn count(conn: &mut PgConnection, kind: &'static str) -> Result<i64, Error> {
    let count = sqlx::query_scalar("SELECT count(*) FROM unequal WHERE kind = $1");
    Ok(count.persistent(false).bind(kind).fetch_one(conn).await?)
}

/// Tells rows of others that were there before the job began (`before`) from those that came since (`foreign`), and these
/// from rows that prove the id of a record which stands under its own reference (`doubled`).
async fn strangers(
    conn: &mut PgConnection,
    declared: &LedgerJob,
    declaration: &Declaration,
) -> Result<(), Error> {
    if count(conn, "foreign").await? == 0 {
        return Ok(());
    }
    conn.execute("CREATE TEMP TABLE old (reference text) ON COMMIT DROP").await?;
    let query = format!(
        "INSERT INTO old WITH target AS (SELECT t.* FROM {} t WHERE age(t.xmin) > age($1::text::xid8::xid)), \
         proof AS (\n{}\n) SELECT p._reference::text FROM proof p",
        sql::target_name(declaration),
        declaration.proof
    );
    sqlx::query(AssertSqlSafe(query)).persistent(false).bind(&declared.begun).execute(&mut *conn).await?;
    conn.execute("UPDATE unequal SET kind = 'before' WHERE kind = 'foreign' AND reference IN (SELECT reference FROM old)")
        .await?;
    let (before, after) = declaration.reference.around();
    sqlx::query(
        "UPDATE unequal SET kind = 'doubled'
        WHERE kind = 'foreign' AND $1 || id || $2 IN (SELECT reference FROM expected)",
    )
    .persistent(false)
    .bind(before)
    .bind(after)
    .execute(conn)
    .await?;
    Ok(())
}

async fn sum_of(conn: &mut PgConnection, sum: &Sum) -> Result<Vec<(Vec<String>, String)>, Error> {
    let by: Vec<String> =
        sum.by.iter().map(|name| format!("coalesce(f.{}::text, '-')", quoted(name))).collect();
    let query = format!(
        "SELECT ARRAY[{by}]::text[], trim_scale(coalesce(sum(f.{field}::numeric), 0))::text \
         FROM found f JOIN expected e ON e.reference = f._reference WHERE f.{field} IS NOT NULL {group}",
        by = by.join(", "),
        field = quoted(&sum.field),
        group = if by.is_empty() { "HAVING count(*) > 0" } else { "GROUP BY 1" },
    );
    Ok(sqlx::query_as(AssertSqlSafe(query)).persistent(false).fetch_all(conn).await?)
}

pub(crate) fn sum_lines(
    declared: &[Sum],
    source: Sums,
    target: BTreeMap<(usize, Vec<String>), String>,
) -> Vec<SumLine> {
    type Sides = (Option<String>, Option<String>);
    let mut lines: BTreeMap<(usize, Vec<String>), Sides> = BTreeMap::new();
    for (key, total) in source {
        lines.entry(key).or_default().0 = Some(total.canonical());
    }
    for (key, total) in target {
        lines.entry(key).or_default().1 = Some(total);
    }
    lines
        .into_iter()
        .map(|((number, by), (source, target))| SumLine {
            field: declared[number].field.clone(),
            by,
            source,
            target,
        })
        .collect()
}

pub(crate) async fn checks(
    conn: &mut PgConnection,
    job: JobId,
    declaration: &Declaration,
) -> Result<Vec<CheckLine>, Error> {
    let mut lines = Vec::new();
    conn.execute(AssertSqlSafe(sql::quarantined_view(job.0.get()))).await?;
    for check in &declaration.checks {
        let count = format!("SELECT count(*) FROM (\n{}\n) AS c", check.sql);
        let rows: i64 =
            sqlx::query_scalar(AssertSqlSafe(count)).persistent(false).fetch_one(&mut *conn).await?;
        let examples = if rows == 0 {
            Vec::new()
        } else {
            let query = format!("SELECT to_jsonb(c)::text FROM (\n{}\n) AS c LIMIT {CHECK_ROWS}", check.sql);
            sqlx::query_scalar(AssertSqlSafe(query)).persistent(false).fetch_all(&mut *conn).await?
        };
        lines.push(CheckLine { check: check.file.clone(), blocks: check.blocks, rows, examples });
    }
    Ok(lines)
}

/// What is in quarantine by reason: what is open, and what was discarded.
pub(crate) async fn quarantined(
    conn: &mut PgConnection,
    job: JobId,
) -> Result<(BTreeMap<String, i64>, BTreeMap<String, i64>), Error> {
    let rows: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT q.code, count(*) - count(d.job_id), count(d.job_id) FROM crossdock.quarantine q
        LEFT JOIN crossdock.ledger_discarded d USING (job_id, part, segment, ordinal)
        WHERE q.job_id = $1 GROUP BY 1",
    )
    .persistent(false)
    .bind(job.0)
    .fetch_all(conn)
    .await?;
    let told = |of: fn(&(String, i64, i64)) -> i64| {
        rows.iter().filter(|row| of(row) > 0).map(|row| (row.0.clone(), of(row))).collect()
    };
    Ok((told(|row| row.1), told(|row| row.2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_join_to_the_same_sum() {
        let digests: [[u8; 16]; 4] = [[0xff; 16], [1; 16], [0x80; 16], [0; 16]];
        let mut expected = Multiset::default();
        let (mut high, mut low, mut negative) = (BigInt::default(), BigInt::default(), 0);
        for digest in &digests {
            expected.add(digest);
            let half = |bytes: &[u8]| i64::from_be_bytes(bytes.try_into().unwrap());
            high += half(&digest[..8]);
            low += half(&digest[8..]);
            negative += i64::from(digest[8] >= 128);
        }
        assert_eq!(joined(Some(&high.to_string()), Some(&low.to_string()), negative), expected);
        assert_eq!(joined(None, None, 0), Multiset::default());
    }
}
