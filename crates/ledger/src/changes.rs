//! Going on with a job that is not over: with the folder it began with, or with a changed one that somebody accepts.

use std::collections::BTreeSet;
use std::fmt;

use db::{Conn, Id, Timestamp};
use engine::store::jobs;
use engine::{JobId, Mode, Status, Store};
use serde::{Deserialize, Serialize};

use crate::declaration::{Declaration, Folder, Variables};
use crate::kind::{Words, lane};
use crate::service::{Error, Ledgers};
use crate::sql;
use crate::store::LedgerJob;

/// Unfinished jobs of one migration that are looked at, the newest first.
const JOBS_MAX: i64 = 100;

/// What a command that starts a migration finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfinished {
    /// Nothing that it could go on with.
    None,
    /// A job of the same folder and values.
    Same(JobId),
    /// A job of the same name and target, of a folder that has changed since.
    Changed(Changed),
    /// A job of the same folder, with other values: another source, or another address of the same one.
    OtherValues {
        /// The job.
        job: JobId,
        /// The names whose values differ.
        names: Vec<String>,
    },
}

/// A job that is not over, and how its folder has changed since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The job.
    pub job: JobId,
    /// Where it stands.
    pub status: Status,
    /// What has changed.
    pub what: Vec<Change>,
}

/// One thing that has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A file's text; the first line that differs.
    Text {
        /// The file within the folder.
        file: String,
        /// From 1.
        line: usize,
    },
    /// A file that was not there.
    New(String),
    /// A file that is gone.
    Gone(String),
    /// The value of a name.
    Value(String),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { file, line } => write!(f, "{file} (from line {line})"),
            Self::New(file) => write!(f, "{file} (new)"),
            Self::Gone(file) => write!(f, "{file} (gone)"),
            Self::Value(name) => write!(f, "the value of {name}"),
        }
    }
}

/// A change that was accepted, from the log that is kept with the job.
#[derive(Debug, Clone, Serialize)]
pub struct Accepted {
    /// When.
    pub changed_at: Timestamp,
    /// The hash of the folder until then.
    pub folder_hash: String,
    /// The hash of the one that took its place.
    pub new_folder_hash: String,
    /// What changed.
    pub changes: Vec<Change>,
    /// Records that had an outcome by then.
    pub settled: i64,
    /// Those of them that had failed.
    pub failed: i64,
}

/// How the second folder differs from the first.
pub fn changes(was: &Folder, is: &Folder) -> Vec<Change> {
    let names: BTreeSet<&str> = was.names().chain(is.names()).collect();
    let change = |name: &str| {
        let file = name.to_owned();
        match (was.has(name), is.has(name)) {
            (true, false) => Some(Change::Gone(file)),
            (false, _) => Some(Change::New(file)),
            (true, true) if was.text(name) == is.text(name) => None,
            (true, true) => {
                Some(Change::Text { line: first_difference(was.text(name), is.text(name)), file })
            }
        }
    };
    names.into_iter().filter_map(change).collect()
}

fn first_difference(was: &str, is: &str) -> usize {
    1 + was.split('\n').zip(is.split('\n')).take_while(|(was, is)| was == is).count()
}

fn values(was: &Variables, is: &Variables) -> Vec<String> {
    let names: BTreeSet<&str> = was.names().chain(is.names()).collect();
    names.into_iter().filter(|name| was.get(name) != is.get(name)).map(str::to_owned).collect()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts are JSON")
}

impl Ledgers {
    /// Looks for a job that a command with this folder and these values could go on with.
    ///
    /// # Errors
    /// [`Error::Declaration`]; those of the database.
    pub async fn unfinished(
        &self,
        folder: &Folder,
        variables: &Variables,
        mode: Mode,
    ) -> Result<Unfinished, Error> {
        let declaration = Declaration::read(folder, variables).map_err(Error::Declaration)?;
        let mut reader = self.database.read().await?;
        let Conn::Postgres(pg) = reader.conn() else { return Err(Error::NotPostgres) };
        let rows: Vec<(Id, String, String, String)> = sqlx::query_as(
            "SELECT l.job_id, j.status, l.folder::text, l.variables::text
            FROM crossdock.ledger_jobs l JOIN crossdock.jobs j ON j.id = l.job_id
            WHERE l.name = $1 AND j.lane = $2 AND j.mode = $3 AND j.status NOT IN ('completed', 'cancelled')
            ORDER BY l.job_id DESC LIMIT $4",
        )
        .persistent(false)
        .bind(&declaration.name)
        .bind(lane(&sql::target_name(&declaration)))
        .bind(mode.as_str())
        .bind(JOBS_MAX)
        .fetch_all(pg.conn)
        .await?;
        let damaged = |error: serde_json::Error| db::Error::Other(sqlx::Error::Decode(Box::new(error)));
        let mut found = Unfinished::None;
        for (id, status, was, values_were) in rows {
            let job = JobId(id);
            let was: Folder = serde_json::from_str(&was).map_err(damaged)?;
            let names = values(&serde_json::from_str(&values_were).map_err(damaged)?, variables);
            let mut what = changes(&was, folder);
            match (&found, what.is_empty(), names.is_empty()) {
                (_, true, true) => return Ok(Unfinished::Same(job)),
                (Unfinished::None | Unfinished::OtherValues { .. }, false, _) => {
                    what.extend(names.into_iter().map(Change::Value));
                    let status = Status::parse(&status).expect("the schema checks the status");
                    found = Unfinished::Changed(Changed { job, status, what });
                }
                (Unfinished::None, true, false) => found = Unfinished::OtherValues { job, names },
                _ => {}
            }
        }
        Ok(found)
    }

    /// Gives a resting job a changed folder. The old one and its hash are kept in the job's log of changes, and records that
    /// failed until now no longer count against its limit on rejects. What was settled stays as it is: the quarantine can be
    /// tried again.
    ///
    /// # Errors
    /// [`Error::Declaration`] if the folder does not fit; [`Error::State`] if the job does not rest, or if the folder is of
    /// another migration.
    pub async fn accept_changes(
        &self,
        id: JobId,
        folder: Folder,
        variables: Variables,
    ) -> Result<Vec<Change>, Error> {
        let (declaration, _) = self.shape(&folder, &variables).await?;
        let was: LedgerJob = self.declared(id).await?.ok_or(Error::NoSuchJob(id))?;
        let job = Store::new(self.database.clone()).job(id).await?.ok_or(Error::NoSuchJob(id))?;
        let target = sql::target_name(&declaration);
        let mut words: Words = serde_json::from_str(&job.params).unwrap_or_default();
        if (&declaration.name, &target) != (&words.name, &words.target) {
            return Err(Error::State(format!(
                "job {id} is the migration {} into {}; the folder declares {} into {target}, which is another job",
                words.name, words.target, declaration.name
            )));
        }
        let mut what = changes(&was.folder, &folder);
        what.extend(values(&was.variables, &variables).into_iter().map(Change::Value));
        let (settled, failed) = (job.counts.records(), job.counts.failed);
        words.segment_pages = declaration.segment_pages;
        words.chunk_records = declaration.chunk_records;
        words.forgiven = (settled, failed);
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        // Held until the commit: whoever starts the job finds the new folder.
        let resting: Option<Id> = sqlx::query_scalar(
            "SELECT id FROM crossdock.jobs WHERE id = $1 AND status IN ('paused', 'failed', 'awaiting_token')
            FOR UPDATE",
        )
        .persistent(false)
        .bind(id.0)
        .fetch_optional(&mut *pg.conn)
        .await?;
        if resting.is_none() {
            tx.rollback().await?;
            return Err(Error::State(format!(
                "job {id} is {}, and its folder is changed while it rests: `crossdock ledger pause {id}`, then the same command \
                 again",
                job.status
            )));
        }
        sqlx::query(
            "INSERT INTO crossdock.ledger_changes
                (job_id, folder, folder_hash, variables, new_folder_hash, told, settled, failed)
            VALUES ($1, $2::jsonb, $3, $4::jsonb, $5, $6::jsonb, $7, $8)",
        )
        .persistent(false)
        .bind(id.0)
        .bind(json(&was.folder))
        .bind(&was.folder_hash)
        .bind(json(&was.variables))
        .bind(folder.hash())
        .bind(json(&what))
        .bind(settled)
        .bind(failed)
        .execute(&mut *pg.conn)
        .await?;
        sqlx::query(
            "UPDATE crossdock.ledger_jobs SET folder = $2::jsonb, folder_hash = $3, variables = $4::jsonb
            WHERE job_id = $1",
        )
        .persistent(false)
        .bind(id.0)
        .bind(json(&folder))
        .bind(folder.hash())
        .bind(json(&variables))
        .execute(&mut *pg.conn)
        .await?;
        jobs::set_params(tx.conn(), id, &words.text()).await?;
        tx.commit().await?;
        Ok(what)
    }

    /// The changes of a job's folder that were accepted, in order.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn accepted(&self, id: JobId) -> Result<Vec<Accepted>, Error> {
        let mut reader = self.database.read().await?;
        let Conn::Postgres(pg) = reader.conn() else { return Err(Error::NotPostgres) };
        let rows: Vec<(Timestamp, String, String, String, i64, i64)> = sqlx::query_as(
            "SELECT changed_at, folder_hash, new_folder_hash, told::text, settled, failed
            FROM crossdock.ledger_changes WHERE job_id = $1 ORDER BY changed_at",
        )
        .persistent(false)
        .bind(id.0)
        .fetch_all(pg.conn)
        .await?;
        let damaged = |error: serde_json::Error| db::Error::Other(sqlx::Error::Decode(Box::new(error)));
        rows.into_iter()
            .map(|(changed_at, folder_hash, new_folder_hash, told, settled, failed)| {
                let changes = serde_json::from_str(&told).map_err(damaged)?;
                Ok(Accepted { changed_at, folder_hash, new_folder_hash, changes, settled, failed })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_changed_in_a_folder_is_told_file_by_file() {
        let was = Folder::of([
            ("pipeline.toml", "a\nb\nc"),
            ("map.sql", "m"),
            ("proof.sql", "p"),
            ("checks/a.sql", "x"),
        ]);
        let is = Folder::of([
            ("pipeline.toml", "a\nb\nd"),
            ("map.sql", "m"),
            ("proof.sql", "p\n"),
            ("checks/b.sql", "y"),
        ]);
        let told: Vec<String> = changes(&was, &is).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "checks/a.sql (gone)",
                "checks/b.sql (new)",
                "pipeline.toml (from line 3)",
                "proof.sql (from line 2)"
            ]
        );
        assert!(changes(&was, &was).is_empty());
    }

    #[test]
    fn values_that_differ_are_named_and_not_shown() {
        let was = Variables::of([("CORE_URL", "a"), ("SHARD", "1"), ("OLD", "x")]);
        let is = Variables::of([("CORE_URL", "b"), ("SHARD", "1")]);
        assert_eq!(values(&was, &is), ["CORE_URL", "OLD"]);
    }
}
