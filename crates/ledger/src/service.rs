//! Making and finding ledger jobs.

use db::{Conn, Database, Id, Timestamp};
use engine::store::jobs;
use engine::{Certified, JobId, Mode, NewJob};
use sqlx::postgres::PgConnection;

use crate::certificate::{self, Certificate};
use crate::declaration::{Declaration, Folder, Problem, Variables};
use crate::kind::{KIND, Words, told};
use crate::preview::Plan;
use crate::sql;
use crate::store::{self, LedgerJob};

/// Why a job cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The declaration does not fit, here or at the target.
    #[error("the declaration has {} problems: {}", .0.len(), told(.0))]
    Declaration(Vec<Problem>),
    /// A ledger needs Postgres.
    #[error("a ledger lives on Postgres; give --database postgres://… of the target's database")]
    NotPostgres,
    /// There is no such ledger job.
    #[error("there is no ledger job {0}")]
    NoSuchJob(JobId),
    /// The source cannot be asked.
    #[error(transparent)]
    Source(#[from] engine::SourceError),
    /// The sink cannot write.
    #[error("the first page cannot be mapped: {0}")]
    Sink(String),
    /// The database failed.
    #[error(transparent)]
    Db(#[from] db::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Db(error.into())
    }
}

/// Makes ledger jobs and finds them.
#[derive(Clone)]
pub struct Ledgers {
    database: Database,
}

impl Ledgers {
    /// Over the target's database, whose engine and ledger tables are migrated.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Checks a folder here and at the target, and makes its job.
    ///
    /// # Errors
    /// [`Error::Declaration`] names every problem with file and line.
    pub async fn start(&self, folder: Folder, variables: Variables, mode: Mode) -> Result<JobId, Error> {
        let declaration = Declaration::read(&folder, &variables).map_err(Error::Declaration)?;
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        let shape = crate::plan::shape(pg.conn, &declaration, &folder).await?;
        tx.rollback().await?;
        shape.map_err(Error::Declaration)?;
        let id = JobId(Id::new());
        let words = Words {
            name: declaration.name.clone(),
            target: sql::target_name(&declaration),
            segment_pages: declaration.segment_pages,
            chunk_records: declaration.chunk_records,
        };
        let mut tx = self.database.begin().await?;
        let job = NewJob {
            kind: KIND.to_owned(),
            lane: format!("ledger:{}", words.target),
            mode,
            params: serde_json::to_string(&words).expect("texts are JSON"),
            request_id: None,
        };
        jobs::insert(tx.conn(), id, &job).await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        let begun = begun(pg.conn).await?;
        let folder_hash = folder.hash();
        let declared = LedgerJob { name: declaration.name, folder, folder_hash, variables, begun };
        store::insert_job(pg.conn, id, &declared).await?;
        tx.commit().await?;
        Ok(id)
    }

    /// A job's declaration.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn declared(&self, id: JobId) -> Result<Option<LedgerJob>, Error> {
        let mut reader = self.database.read().await?;
        let Conn::Postgres(pg) = reader.conn() else { return Err(Error::NotPostgres) };
        Ok(store::job(pg.conn, id).await?)
    }
}

impl Ledgers {
    /// The latest job of the same folder and values that is not over, so that starting again goes on instead.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn unfinished(&self, folder: &Folder, variables: &Variables) -> Result<Option<JobId>, Error> {
        let mut reader = self.database.read().await?;
        let Conn::Postgres(pg) = reader.conn() else { return Err(Error::NotPostgres) };
        let id: Option<Id> = sqlx::query_scalar(
            "SELECT l.job_id FROM crossdock.ledger_jobs l JOIN crossdock.jobs j ON j.id = l.job_id
            WHERE l.folder_hash = $1 AND l.variables = $2::jsonb AND j.status NOT IN ('completed', 'cancelled')
            ORDER BY l.job_id DESC LIMIT 1",
        )
        .persistent(false)
        .bind(folder.hash())
        .bind(serde_json::to_string(variables).expect("texts are JSON"))
        .fetch_optional(pg.conn)
        .await?;
        Ok(id.map(JobId))
    }

    /// What a run would do: maps the first page and shows ten rows; writes nothing.
    ///
    /// # Errors
    /// [`Error::Declaration`]; [`Error::Source`].
    pub async fn plan(&self, folder: &Folder, variables: &Variables) -> Result<Plan, Error> {
        let declaration = Declaration::read(folder, variables).map_err(Error::Declaration)?;
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        let shape = crate::plan::shape(pg.conn, &declaration, folder).await?.map_err(Error::Declaration)?;
        let begun = begun(pg.conn).await?;
        tx.rollback().await?;
        crate::preview::preview(&self.database, declaration, &shape, begun).await
    }

    /// When the job's latest chunk was settled.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn settled_at(&self, id: JobId) -> Result<Option<Timestamp>, Error> {
        let mut reader = self.database.read().await?;
        let Conn::Postgres(pg) = reader.conn() else { return Err(Error::NotPostgres) };
        let latest = sqlx::query_scalar("SELECT max(settled_at) FROM crossdock.chunks WHERE job_id = $1");
        Ok(latest.persistent(false).bind(id.0).fetch_one(pg.conn).await?)
    }

    /// The certificate with which the job completed, or that kept it from it.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn certificate(&self, id: JobId) -> Result<Option<Certificate>, Error> {
        let mut reader = self.database.read().await?;
        let Conn::Postgres(pg) = reader.conn() else { return Err(Error::NotPostgres) };
        let text: Option<Option<String>> =
            sqlx::query_scalar("SELECT certificate::text FROM crossdock.ledger_jobs WHERE job_id = $1")
                .persistent(false)
                .bind(id.0)
                .fetch_optional(pg.conn)
                .await?;
        let damaged = |error: serde_json::Error| db::Error::Other(sqlx::Error::Decode(Box::new(error)));
        Ok(text.flatten().map(|text| serde_json::from_str(&text)).transpose().map_err(damaged)?)
    }

    /// The certificate as it is now.
    ///
    /// # Errors
    /// [`Error::NoSuchJob`]; those of the database.
    pub async fn verify(&self, id: JobId) -> Result<Certificate, Error> {
        let job = certificate::job(&self.database, id).await?.ok_or(Error::NoSuchJob(id))?;
        let declared = self.declared(id).await?.ok_or(Error::NoSuchJob(id))?;
        let declaration =
            Declaration::read(&declared.folder, &declared.variables).map_err(Error::Declaration)?;
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        let shape = crate::plan::shape(pg.conn, &declaration, &declared.folder).await?;
        tx.rollback().await?;
        let shape = shape.map_err(Error::Declaration)?;
        certificate::certify(&self.database, &job, &declared, &declaration, &shape).await
    }

    /// Computes and keeps the certificate of a job whose records all have an outcome. One process does it.
    pub(crate) async fn settle(&self, id: JobId) -> Result<Certified, Error> {
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        // The certificate takes long; nothing else is done in this transaction meanwhile.
        sqlx::raw_sql("SET LOCAL idle_in_transaction_session_timeout = 0").execute(&mut *pg.conn).await?;
        let mine: Option<Id> = sqlx::query_scalar(
            "SELECT job_id FROM crossdock.ledger_jobs WHERE job_id = $1 FOR NO KEY UPDATE SKIP LOCKED",
        )
        .persistent(false)
        .bind(id.0)
        .fetch_optional(&mut *pg.conn)
        .await?;
        if mine.is_none() {
            tx.rollback().await?;
            return Ok(Certified::NotNow);
        }
        let certificate = self.verify(id).await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        sqlx::query("UPDATE crossdock.ledger_jobs SET certificate = $2::jsonb WHERE job_id = $1")
            .persistent(false)
            .bind(id.0)
            .bind(serde_json::to_string(&certificate).expect("a certificate is JSON"))
            .execute(&mut *pg.conn)
            .await?;
        tx.commit().await?;
        Ok(if certificate.holds {
            Certified::Holds
        } else {
            Certified::Fails(format!("the certificate does not hold: {}", certificate.failings.join("; ")))
        })
    }
}

/// The transaction id from which on rows may be the job's.
async fn begun(conn: &mut PgConnection) -> db::Result<String> {
    let current = sqlx::query_scalar("SELECT pg_current_xact_id()::text");
    Ok(current.persistent(false).fetch_one(conn).await?)
}
