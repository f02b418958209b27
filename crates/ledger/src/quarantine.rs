//! The quarantine of a job: failed records, kept whole. They are listed, read one by one, tried again ([`crate::retry`])
//! or discarded.
//!
//! A discarded record stays failed and stays where it is, with who decided it, when and why; it is only not open any more.

use std::collections::BTreeMap;

use base64::Engine as _;
use db::{Conn, Timestamp};
use engine::{JobId, Place};
use serde::Serialize;
use sqlx::postgres::PgConnection;

use crate::certificate::RetryLine;
use crate::reconcile;
use crate::service::{Error, Ledgers};
use crate::store;

/// A record in quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Where it came.
    pub place: Place,
    /// The source's id, where it can be read.
    pub source_id: Option<String>,
    /// Its reference, where it has one.
    pub reference: Option<String>,
    /// The stable reason code.
    pub code: String,
    /// The case, for people.
    pub detail: String,
    /// Its bytes as they came; empty where they were not asked for.
    pub raw: Vec<u8>,
    /// When it came here.
    pub at: Timestamp,
}

impl Held {
    /// What it is called by: its reference, or its place where it has none.
    pub fn name(&self) -> String {
        self.reference.clone().unwrap_or_else(|| self.place.to_string())
    }

    /// As it is given out.
    pub fn exported(&self) -> Exported<'_> {
        let text = std::str::from_utf8(&self.raw).ok();
        Exported {
            reference: self.reference.as_deref(),
            source_id: self.source_id.as_deref(),
            code: &self.code,
            detail: &self.detail,
            partition: self.place.partition,
            segment: self.place.segment,
            ordinal: self.place.ordinal,
            quarantined_at: self.at,
            raw: text.filter(|_| !self.raw.is_empty()),
            raw_base64: text.is_none().then(|| base64::engine::general_purpose::STANDARD.encode(&self.raw)),
        }
    }
}

/// A record as it is given out, one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // As in [`Held`].
pub struct Exported<'a> {
    pub reference: Option<&'a str>,
    pub source_id: Option<&'a str>,
    pub code: &'a str,
    pub detail: &'a str,
    pub partition: i32,
    pub segment: i32,
    pub ordinal: i32,
    pub quarantined_at: Timestamp,
    /// The bytes as they came, if they are text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<&'a str>,
    /// The bytes as they came, if they are no UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_base64: Option<String>,
}

/// Open records, page by page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look<'a> {
    /// Only those with this reason.
    pub code: Option<&'a str>,
    /// Only those behind this place.
    pub after: Option<Place>,
    /// At most so many.
    pub limit: i64,
    /// With their bytes.
    pub bytes: bool,
}

/// Which records a discard is about.
#[derive(Debug, Clone)]
pub enum Which {
    /// These, by reference, source id or place (`partition/segment/ordinal`).
    Named(Vec<String>),
    /// Those with this reason.
    Code(String),
    /// All that are open.
    All,
}

type HeldRow = (i32, i32, i32, Option<String>, Option<String>, String, String, Vec<u8>, Timestamp);

fn held(row: HeldRow) -> Held {
    let (partition, segment, ordinal, source_id, reference, code, detail, raw, at) = row;
    Held { place: Place { partition, segment, ordinal }, source_id, reference, code, detail, raw, at }
}

impl Ledgers {
    /// Open records of a job's quarantine, in order of place.
    ///
    /// # Errors
    /// [`Error::NoSuchJob`]; [`Error::State`] if the job was forgotten; those of the database.
    pub async fn quarantined(&self, id: JobId, look: Look<'_>) -> Result<Vec<Held>, Error> {
        self.remembered(id).await?;
        let mut reader = self.database.read().await?;
        let Conn::Postgres(pg) = reader.conn() else { return Err(Error::NotPostgres) };
        Ok(open(pg.conn, id, look).await?)
    }

    /// How many records of a job's quarantine are open and how many were discarded, by reason.
    ///
    /// # Errors
    /// As [`Ledgers::quarantined`].
    pub async fn quarantine_counts(
        &self,
        id: JobId,
    ) -> Result<(BTreeMap<String, i64>, BTreeMap<String, i64>), Error> {
        self.remembered(id).await?;
        let mut reader = self.database.read().await?;
        let Conn::Postgres(pg) = reader.conn() else { return Err(Error::NotPostgres) };
        reconcile::quarantined(pg.conn, id).await
    }

    /// The retries of a job's quarantine, in order.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn retries(&self, id: JobId) -> Result<Vec<RetryLine>, Error> {
        let mut reader = self.database.read().await?;
        let Conn::Postgres(pg) = reader.conn() else { return Err(Error::NotPostgres) };
        Ok(store::retries(pg.conn, id).await?)
    }

    /// The records, open or not, that a reference, source id or place names.
    ///
    /// # Errors
    /// As [`Ledgers::quarantined`].
    pub async fn quarantined_as(&self, id: JobId, name: &str) -> Result<Vec<Held>, Error> {
        self.remembered(id).await?;
        let mut reader = self.database.read().await?;
        let Conn::Postgres(pg) = reader.conn() else { return Err(Error::NotPostgres) };
        let rows: Vec<HeldRow> = sqlx::query_as(
            "SELECT part, segment, ordinal, source_id, label, code, detail, raw, quarantined_at
            FROM crossdock.quarantine
            WHERE job_id = $1 AND (label = $2 OR source_id = $2 OR part || '/' || segment || '/' || ordinal = $2)
            ORDER BY part, segment, ordinal LIMIT 100",
        )
        .persistent(false)
        .bind(id.0)
        .bind(name)
        .fetch_all(pg.conn)
        .await?;
        Ok(rows.into_iter().map(held).collect())
    }

    /// Takes records from the list of open ones for good; tells how many. `by` is whoever decides it, the database's user
    /// if it is not known.
    ///
    /// # Errors
    /// [`Error::State`] if a name fits no open record, and then nothing is discarded; as [`Ledgers::quarantined`].
    pub async fn discard(&self, id: JobId, which: &Which, by: Option<&str>, why: &str) -> Result<i64, Error> {
        self.remembered(id).await?;
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        lock(pg.conn, id).await?;
        let (names, code) = match which {
            Which::Named(names) => (Some(names), None),
            Which::Code(code) => (None, Some(code)),
            Which::All => (None, None),
        };
        if let Some(names) = names {
            let unknown: Vec<String> = sqlx::query_scalar(
                "SELECT n FROM unnest($2::text[]) AS n WHERE NOT EXISTS (
                    SELECT 1 FROM crossdock.quarantine q
                    WHERE q.job_id = $1 AND n IN (q.label, q.source_id, q.part || '/' || q.segment || '/' || q.ordinal)
                        AND NOT EXISTS (SELECT 1 FROM crossdock.ledger_discarded d
                            WHERE (d.job_id, d.part, d.segment, d.ordinal) = (q.job_id, q.part, q.segment, q.ordinal)))",
            )
            .persistent(false)
            .bind(id.0)
            .bind(names)
            .fetch_all(&mut *pg.conn)
            .await?;
            if !unknown.is_empty() {
                return Err(Error::State(format!(
                    "no open record of job {id} is called {}; `crossdock ledger quarantine list {id}` shows what is open",
                    unknown.join(", ")
                )));
            }
        }
        let done = sqlx::query(
            "INSERT INTO crossdock.ledger_discarded (job_id, part, segment, ordinal, discarded_by, why)
            SELECT q.job_id, q.part, q.segment, q.ordinal, coalesce($4, session_user), $5 FROM crossdock.quarantine q
            WHERE q.job_id = $1 AND ($2::text IS NULL OR q.code = $2)
                AND ($3::text[] IS NULL OR q.label = ANY ($3) OR q.source_id = ANY ($3)
                    OR q.part || '/' || q.segment || '/' || q.ordinal = ANY ($3))
            ON CONFLICT DO NOTHING",
        )
        .persistent(false)
        .bind(id.0)
        .bind(code)
        .bind(names)
        .bind(by)
        .bind(why)
        .execute(&mut *pg.conn)
        .await?;
        tx.commit().await?;
        Ok(i64::try_from(done.rows_affected()).unwrap_or(i64::MAX))
    }
}

/// Makes retries, discards and the certificate of a job wait for each other. The lock ends with the transaction.
pub(crate) async fn lock(conn: &mut PgConnection, job: JobId) -> db::Result<()> {
    sqlx::query("SELECT 1 FROM crossdock.ledger_jobs WHERE job_id = $1 FOR NO KEY UPDATE")
        .persistent(false)
        .bind(job.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// Open records, in order of place.
pub(crate) async fn open(conn: &mut PgConnection, job: JobId, look: Look<'_>) -> db::Result<Vec<Held>> {
    let after = look.after.unwrap_or(Place { partition: -1, segment: -1, ordinal: -1 });
    let rows: Vec<HeldRow> = sqlx::query_as(
        "SELECT q.part, q.segment, q.ordinal, q.source_id, q.label, q.code, q.detail,
            CASE WHEN $7 THEN q.raw ELSE ''::bytea END, q.quarantined_at
        FROM crossdock.quarantine q
        WHERE q.job_id = $1 AND (q.part, q.segment, q.ordinal) > ($2, $3, $4) AND ($5::text IS NULL OR q.code = $5)
            AND NOT EXISTS (SELECT 1 FROM crossdock.ledger_discarded d
                WHERE (d.job_id, d.part, d.segment, d.ordinal) = (q.job_id, q.part, q.segment, q.ordinal))
        ORDER BY q.part, q.segment, q.ordinal LIMIT $6",
    )
    .persistent(false)
    .bind(job.0)
    .bind(after.partition)
    .bind(after.segment)
    .bind(after.ordinal)
    .bind(look.code)
    .bind(look.limit)
    .bind(look.bytes)
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(held).collect())
}
