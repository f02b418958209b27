//! The closing proof of a job: what came against what stands in the target.
//!
//! This code shares nothing with the sink but the digest's definition. It starts from the manifest, which was committed with
//! the rows, and from the target through the declaration's proof; one full join of the two names every record that is lost,
//! altered or doubled, and every row that is foreign.

use std::collections::BTreeMap;

use db::{Conn, Database};
use engine::store::{history, jobs};
use engine::{Counts, Job, JobId, Outcome, manifest};
use num_bigint::BigInt;
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::declaration::{Declaration, Sum};
use crate::proof::{Multiset, Total};
use crate::service::Error;
use crate::sql::{self, Shape, quoted};
use crate::store::LedgerJob;

/// Rows named of each kind; the counts go on.
const NAMED_MAX: usize = 1_000;
/// Rows shown of a check.
const CHECK_ROWS: i64 = 10;
/// Manifest blocks read at once.
const BLOCKS: i64 = 20;

/// Whether a job's records are all accounted for and none is altered, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Everything below is as it should be.
    pub holds: bool,
    /// The job.
    pub job: String,
    /// The migration's name, and SHA-256 of its folder.
    pub migration: String,
    /// See `migration`.
    pub folder_sha256: String,
    /// Pages fetched.
    pub pages: i64,
    /// Records fetched.
    pub records: i64,
    /// What became of them.
    pub outcomes: Counts,
    /// Records that stand in the target: imported, updated or unchanged.
    pub standing: i64,
    /// The lowest and the highest reference among them, by bytes.
    pub min_reference: Option<String>,
    /// See `min_reference`.
    pub max_reference: Option<String>,
    /// The order-free hash of the proved fields, from the received bytes.
    pub source_hash: String,
    /// The same, from the target.
    pub target_hash: String,
    /// The fields that are proved.
    pub proved: Vec<String>,
    /// Sums from both sides.
    pub sums: Vec<SumLine>,
    /// Records in the manifest that the target has no row for.
    pub lost: Named,
    /// Records whose proved fields were right when they were settled, and are others now.
    pub altered: Named,
    /// Records for which the proof gives back more than one row, or that stand under a second reference.
    pub doubled: Named,
    /// Records that were wrong when they were settled. They are in quarantine, and nothing of them is in the target.
    pub damaged: i64,
    /// Rows of others that were there before the job began.
    pub foreign_before: i64,
    /// Rows of others that came since.
    pub foreign_since: Named,
    /// The declaration's checks.
    pub checks: Vec<CheckLine>,
    /// What is in quarantine, by reason.
    pub quarantined: BTreeMap<String, i64>,
}

/// How many there are, and the first of them by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// How many.
    pub count: i64,
    /// The references of the first thousand.
    pub references: Vec<String>,
}

impl Named {
    fn add(&mut self, reference: String) {
        self.count += 1;
        if self.references.len() < NAMED_MAX {
            self.references.push(reference);
        }
    }
}

/// One sum from both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SumLine {
    /// The field.
    pub field: String,
    /// The values of the grouping fields.
    pub by: Vec<String>,
    /// From the received bytes.
    pub source: Option<String>,
    /// From the target; none if the proof does not give the fields back.
    pub target: Option<String>,
}

/// How a check went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckLine {
    /// Its file.
    pub check: String,
    /// Whether rows keep the certificate from holding.
    pub blocks: bool,
    /// How many rows it gives; there should be none.
    pub rows: i64,
    /// The first of them, as JSON.
    pub examples: Vec<String>,
}

/// Computes the certificate of a job from what is stored and what stands in the target now.
pub(crate) async fn certify(
    database: &Database,
    job: &Job,
    declared: &LedgerJob,
    declaration: &Declaration,
    shape: &Shape,
) -> Result<Certificate, Error> {
    let mut tx = database.begin().await?;
    let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
    let conn = pg.conn;
    conn.execute(AssertSqlSafe(
        "SET LOCAL idle_in_transaction_session_timeout = 0; \
         CREATE TEMP TABLE expected (reference text NOT NULL, digest bytea NOT NULL) ON COMMIT DROP",
    ))
    .await
    .map_err(db::Error::from)?;
    let manifest = expect(database, conn, job.id).await?;
    let source = from_source(conn, job.id, declaration).await?;
    let mut certificate = Certificate {
        holds: false,
        job: job.id.to_string(),
        migration: declared.name.clone(),
        folder_sha256: declared.folder_hash.clone(),
        pages: job.pages,
        records: job.fetched,
        outcomes: job.counts,
        standing: manifest.standing,
        min_reference: manifest.min.clone(),
        max_reference: manifest.max.clone(),
        source_hash: source.hash.to_string(),
        target_hash: String::new(),
        proved: shape.proved.iter().map(|(name, _)| name.clone()).collect(),
        sums: Vec::new(),
        lost: Named::default(),
        altered: Named::default(),
        doubled: Named::default(),
        damaged: 0,
        foreign_before: 0,
        foreign_since: Named::default(),
        checks: Vec::new(),
        quarantined: quarantined(conn, job.id).await?,
    };
    certificate.damaged = ["differs_from_source", "not_proved"]
        .iter()
        .filter_map(|code| certificate.quarantined.get(*code))
        .sum();
    let target = from_target(conn, declared, declaration, shape, &mut certificate).await?;
    certificate.target_hash = target.hash.to_string();
    certificate.sums = sum_lines(&declaration.sums, source.sums, target.sums);
    certificate.checks = checks(conn, job.id, declaration).await?;
    tx.rollback().await?;
    certificate.holds = certificate.failings(job, source.records).is_empty();
    Ok(certificate)
}

impl Certificate {
    /// What keeps it from holding, in words.
    fn failings(&self, job: &Job, proved: i64) -> Vec<String> {
        let mut found = Vec::new();
        let mut fail = |is_wrong: bool, text: String| {
            if is_wrong {
                found.push(text);
            }
        };
        fail(
            job.fetched != job.counts.records(),
            format!("{} records were fetched, {} have an outcome", job.fetched, job.counts.records()),
        );
        let standing = job.counts.imported + job.counts.updated + job.counts.unchanged;
        fail(
            self.standing != standing,
            format!("the manifest has {} standing records, the counters {standing}", self.standing),
        );
        fail(
            proved != standing,
            format!("{proved} records were proved when they were settled, of {standing}"),
        );
        fail(self.lost.count > 0, format!("{} records are lost", self.lost.count));
        fail(self.altered.count > 0, format!("{} records are altered", self.altered.count));
        fail(self.doubled.count > 0, format!("{} records are doubled", self.doubled.count));
        fail(self.source_hash != self.target_hash, "the hashes of both sides differ".to_owned());
        let unequal = self.sums.iter().filter(|sum| sum.target.is_some() && sum.source != sum.target).count();
        fail(unequal > 0, format!("{unequal} sums differ"));
        for check in self.checks.iter().filter(|check| check.blocks && check.rows > 0) {
            fail(true, format!("{} gives {} rows", check.check, check.rows));
        }
        found
    }

    /// In one sentence, for a job that may not complete.
    pub fn sentence(&self) -> String {
        let named = [("lost", &self.lost), ("altered", &self.altered), ("doubled", &self.doubled)];
        let mut parts: Vec<String> = named
            .iter()
            .filter(|(_, named)| named.count > 0)
            .map(|(what, named)| {
                let first = named.references.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
                format!("{} {what} ({first})", named.count)
            })
            .collect();
        if self.source_hash != self.target_hash {
            parts.push("the hashes of source and target differ".to_owned());
        }
        for sum in self.sums.iter().filter(|sum| sum.target.is_some() && sum.source != sum.target) {
            parts.push(format!(
                "the sum of {} for {} is {} at the source and {} in the target",
                sum.field,
                sum.by.join("/"),
                shown(&sum.source),
                shown(&sum.target)
            ));
        }
        for check in self.checks.iter().filter(|check| check.blocks && check.rows > 0) {
            parts.push(format!("{} gives {} rows", check.check, check.rows));
        }
        if parts.is_empty() { "it holds".to_owned() } else { parts.join("; ") }
    }

    /// For people.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        let verdict = if self.holds { "**holds**" } else { "**does not hold**" };
        let counts = &self.outcomes;
        let mut line = |content: String| {
            text.push_str(&content);
            text.push('\n');
        };
        line(format!("# Certificate of {} (job {}): {verdict}\n", self.migration, self.job));
        line(format!(
            "{} records in {} pages; {} of them stand in the target.\n",
            self.records, self.pages, self.standing
        ));
        line("| outcome | records |\n| --- | ---: |".to_owned());
        for (name, count) in [
            ("imported", counts.imported),
            ("updated", counts.updated),
            ("unchanged", counts.unchanged),
            ("filtered", counts.filtered),
            ("duplicate in source", counts.duplicate_in_source),
            ("failed", counts.failed),
        ] {
            line(format!("| {name} | {count} |"));
        }
        for (code, count) in &self.quarantined {
            line(format!("| … in quarantine: `{code}` | {count} |"));
        }
        line(format!(
            "\n| what | source | target |\n| --- | --- | --- |\n| hash of {} | `{}` | `{}` |",
            self.proved.join(", "),
            self.source_hash,
            self.target_hash
        ));
        for sum in &self.sums {
            line(format!(
                "| sum of {} {} | {} | {} |",
                sum.field,
                sum.by.join("/"),
                shown(&sum.source),
                shown(&sum.target)
            ));
        }
        if let (Some(min), Some(max)) = (&self.min_reference, &self.max_reference) {
            line(format!("\nReferences from `{min}` to `{max}`."));
        }
        line(String::new());
        for (what, named) in [
            ("lost", &self.lost),
            ("altered since they were settled", &self.altered),
            ("doubled", &self.doubled),
            ("rows of others that came since the job began", &self.foreign_since),
        ] {
            let first: Vec<String> =
                named.references.iter().take(10).map(|reference| format!("`{reference}`")).collect();
            let names = if first.is_empty() { String::new() } else { format!(": {}", first.join(", ")) };
            line(format!("- {what}: {}{names}", named.count));
        }
        line(format!("- wrong when they were settled, and therefore in quarantine: {}", self.damaged));
        line(format!("- rows of others that were there before: {}", self.foreign_before));
        for check in &self.checks {
            let rule = if check.blocks { "" } else { " (a warning)" };
            line(format!("- {}{rule}: {} rows", check.check, check.rows));
            for example in &check.examples {
                line(format!("  - `{example}`"));
            }
        }
        text.trim_end().to_owned()
    }
}

fn shown(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("–")
}

/// What the manifest says.
#[derive(Default)]
struct FromManifest {
    standing: i64,
    min: Option<String>,
    max: Option<String>,
}

/// Fills `expected` from the manifest, block by block.
async fn expect(database: &Database, conn: &mut PgConnection, job: JobId) -> Result<FromManifest, Error> {
    let mut found = FromManifest::default();
    let mut after = (-1, -1, -1);
    let mut reader = database.read().await?;
    let mut copy =
        conn.copy_in_raw("COPY expected FROM STDIN (FORMAT binary)").await.map_err(db::Error::from)?;
    let mut rows = crate::copy::CopyRows::new(2, 0);
    loop {
        let blocks = history::blocks(reader.conn(), job, after, BLOCKS).await?;
        let Some(last) = blocks.last() else { break };
        after = (last.part, last.segment, last.first_ordinal);
        for block in &blocks {
            let entries = manifest::unpack(&block.block)
                .map_err(|error| db::Error::Other(sqlx::Error::Decode(Box::new(error))))?;
            for entry in entries {
                let stands =
                    matches!(entry.outcome, Outcome::Imported | Outcome::Updated | Outcome::Unchanged);
                let Some(reference) = entry.reference.filter(|_| stands) else { continue };
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
            }
        }
        copy.send(rows.take()).await.map_err(db::Error::from)?;
    }
    copy.send(rows.finish()).await.map_err(db::Error::from)?;
    copy.finish().await.map_err(db::Error::from)?;
    conn.execute("ANALYZE expected").await.map_err(db::Error::from)?;
    Ok(found)
}

/// What was computed from the received bytes.
struct FromSource {
    records: i64,
    hash: Multiset,
    sums: BTreeMap<(usize, Vec<String>), Total>,
}

async fn from_source(
    conn: &mut PgConnection,
    job: JobId,
    declaration: &Declaration,
) -> Result<FromSource, Error> {
    let rows: Vec<(i64, Vec<u8>, String)> =
        sqlx::query_as("SELECT records, hash, sums::text FROM crossdock.ledger_proofs WHERE job_id = $1")
            .persistent(false)
            .bind(job.0)
            .fetch_all(conn)
            .await
            .map_err(db::Error::from)?;
    let damaged = |what: String| Error::Db(db::Error::Other(sqlx::Error::Protocol(what)));
    let mut found = FromSource { records: 0, hash: Multiset::default(), sums: BTreeMap::new() };
    for (records, hash, sums) in rows {
        found.records += records;
        let hash = hash.try_into().map_err(|_| damaged("a kept hash has not 16 bytes".to_owned()))?;
        found.hash.join(Multiset::from_bytes(hash));
        let sums: Vec<(usize, Vec<String>, String)> =
            serde_json::from_str(&sums).map_err(|error| damaged(format!("kept sums: {error}")))?;
        for (number, by, text) in sums.into_iter().filter(|(number, ..)| *number < declaration.sums.len()) {
            let number_read = crate::field::decimal::Decimal::parse(&text)
                .map_err(|error| damaged(format!("kept sum \"{text}\": {error}")))?;
            found.sums.entry((number, by)).or_default().add(&number_read);
        }
    }
    Ok(found)
}

/// What the target gives back.
struct FromTarget {
    hash: Multiset,
    sums: BTreeMap<(usize, Vec<String>), String>,
}

async fn from_target(
    conn: &mut PgConnection,
    declared: &LedgerJob,
    declaration: &Declaration,
    shape: &Shape,
    certificate: &mut Certificate,
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
    let id = if has(&declaration.id) {
        format!("p.{}::text", quoted(&declaration.id))
    } else {
        "NULL::text".to_owned()
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
    conn.execute(AssertSqlSafe(query)).await.map_err(db::Error::from)?;
    conn.execute("ANALYZE found").await.map_err(db::Error::from)?;
    let unequal: Vec<(String, bool, bool, Option<String>)> = sqlx::query_as(
        "SELECT coalesce(e.reference, f._reference), e.reference IS NOT NULL, f._reference IS NOT NULL, f._id
        FROM expected e FULL JOIN found f ON f._reference = e.reference
        WHERE e.reference IS NULL OR f._reference IS NULL OR f._digest <> e.digest ORDER BY 1",
    )
    .persistent(false)
    .fetch_all(&mut *conn)
    .await
    .map_err(db::Error::from)?;
    let mut foreign = Vec::new();
    for (reference, is_expected, is_found, id) in unequal {
        match (is_expected, is_found) {
            (true, false) => certificate.lost.add(reference),
            (true, true) => certificate.altered.add(reference),
            _ => foreign.push((reference, id)),
        }
    }
    strangers(conn, declared, declaration, foreign, certificate).await?;
    let (high, low, negative, rows): (Option<String>, Option<String>, i64, i64) = sqlx::query_as(
        "SELECT sum(('x' || encode(substring(f._digest FOR 8), 'hex'))::bit(64)::bigint::numeric)::text,
            sum(('x' || encode(substring(f._digest FROM 9), 'hex'))::bit(64)::bigint::numeric)::text,
            count(*) FILTER (WHERE get_byte(f._digest, 8) >= 128), count(*)
        FROM found f JOIN expected e ON e.reference = f._reference",
    )
    .persistent(false)
    .fetch_one(&mut *conn)
    .await
    .map_err(db::Error::from)?;
    let hash = joined(high.as_deref(), low.as_deref(), negative);
    // Only where there are more rows than records are some doubled.
    if rows + certificate.lost.count > certificate.standing {
        doubles(conn, certificate).await?;
    }
    let mut totals = BTreeMap::new();
    for (number, sum) in sums {
        for (by, total) in sum_of(conn, sum).await? {
            totals.insert((number, by), total);
        }
    }
    Ok(FromTarget { hash, sums: totals })
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

/// References that the proof gives back more than once.
async fn doubles(conn: &mut PgConnection, certificate: &mut Certificate) -> Result<(), Error> {
    let rows: Vec<String> = sqlx::query_scalar(
        "SELECT f._reference FROM found f JOIN expected e ON e.reference = f._reference
        GROUP BY 1 HAVING count(*) > 1 ORDER BY 1",
    )
    .persistent(false)
    .fetch_all(conn)
    .await
    .map_err(db::Error::from)?;
    rows.into_iter().for_each(|reference| certificate.doubled.add(reference));
    Ok(())
}

/// Tells rows of others that were there before from those that came since, and these from records that stand twice.
async fn strangers(
    conn: &mut PgConnection,
    declared: &LedgerJob,
    declaration: &Declaration,
    foreign: Vec<(String, Option<String>)>,
    certificate: &mut Certificate,
) -> Result<(), Error> {
    if foreign.is_empty() {
        return Ok(());
    }
    let query = format!(
        "WITH target AS (SELECT t.* FROM {} t WHERE age(t.xmin) > age($1::text::xid8::xid)), proof AS (\n{}\n) \
         SELECT p._reference::text FROM proof p WHERE NOT EXISTS (SELECT 1 FROM expected e WHERE e.reference = p._reference::text)",
        sql::target_name(declaration),
        declaration.proof
    );
    let old: std::collections::HashSet<String> = sqlx::query_scalar(AssertSqlSafe(query))
        .persistent(false)
        .bind(&declared.begun)
        .fetch_all(&mut *conn)
        .await
        .map_err(db::Error::from)?
        .into_iter()
        .collect();
    for (reference, id) in foreign {
        if old.contains(&reference) {
            certificate.foreign_before += 1;
            continue;
        }
        let own = id.map(|id| declaration.reference.of(&id));
        let stands: bool = match &own {
            Some(own) => sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM expected WHERE reference = $1)")
                .persistent(false)
                .bind(own)
                .fetch_one(&mut *conn)
                .await
                .map_err(db::Error::from)?,
            None => false,
        };
        if stands { certificate.doubled.add(reference) } else { certificate.foreign_since.add(reference) }
    }
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
    Ok(sqlx::query_as(AssertSqlSafe(query))
        .persistent(false)
        .fetch_all(conn)
        .await
        .map_err(db::Error::from)?)
}

fn sum_lines(
    declared: &[Sum],
    source: BTreeMap<(usize, Vec<String>), Total>,
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

async fn checks(
    conn: &mut PgConnection,
    job: JobId,
    declaration: &Declaration,
) -> Result<Vec<CheckLine>, Error> {
    let mut lines = Vec::new();
    conn.execute(AssertSqlSafe(sql::quarantined_view(job.0.get()))).await.map_err(db::Error::from)?;
    for check in &declaration.checks {
        let count = format!("SELECT count(*) FROM (\n{}\n) AS c", check.sql);
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(count))
            .persistent(false)
            .fetch_one(&mut *conn)
            .await
            .map_err(db::Error::from)?;
        let examples = if rows == 0 {
            Vec::new()
        } else {
            let query = format!("SELECT to_jsonb(c)::text FROM (\n{}\n) AS c LIMIT {CHECK_ROWS}", check.sql);
            sqlx::query_scalar(AssertSqlSafe(query))
                .persistent(false)
                .fetch_all(&mut *conn)
                .await
                .map_err(db::Error::from)?
        };
        lines.push(CheckLine { check: check.file.clone(), blocks: check.blocks, rows, examples });
    }
    Ok(lines)
}

async fn quarantined(conn: &mut PgConnection, job: JobId) -> Result<BTreeMap<String, i64>, Error> {
    let rows: Vec<(String, i64)> =
        sqlx::query_as("SELECT code, count(*) FROM crossdock.quarantine WHERE job_id = $1 GROUP BY 1")
            .persistent(false)
            .bind(job.0)
            .fetch_all(conn)
            .await
            .map_err(db::Error::from)?;
    Ok(rows.into_iter().collect())
}

/// Reads a job as it stands.
pub(crate) async fn job(database: &Database, id: JobId) -> Result<Option<Job>, Error> {
    let mut reader = database.read().await?;
    Ok(jobs::get(reader.conn(), id).await?)
}

impl std::fmt::Display for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.markdown())
    }
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
