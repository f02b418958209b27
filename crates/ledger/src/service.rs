//! Making and finding ledger jobs.

use std::time::Duration;

use db::{Conn, Database, Id, Timestamp, Tx};
use engine::store::jobs;
use engine::{Certified, Job, JobId, Mode, NewJob, failpoint};
use sqlx::postgres::PgConnection;

use crate::certificate::{self, Certificate};
use crate::declaration::{Declaration, Folder, Problem, Variables};
use crate::kind::{KIND, Words, lane, told};
use crate::preview::Plan;
use crate::rules::Rules;
use crate::sql::{self, Shape};
use crate::store::{self, LedgerJob};

/// How often a process that certifies a job says that it is alive: more often than any limit of idle transactions.
const ALIVE_EVERY: Duration = Duration::from_millis(500);

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
    /// The job's state does not allow it; the text says what to do instead.
    #[error("{0}")]
    State(String),
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
    pub(crate) database: Database,
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
        self.start_with(folder, variables, mode, Rules::default()).await
    }

    /// [`Ledgers::start`], with rules that every process of the job obeys.
    ///
    /// # Errors
    /// As [`Ledgers::start`].
    pub async fn start_with(
        &self,
        folder: Folder,
        variables: Variables,
        mode: Mode,
        rules: Rules,
    ) -> Result<JobId, Error> {
        let declaration = Declaration::read(&folder, &variables).map_err(Error::Declaration)?;
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        let shape = crate::plan::shape(pg.conn, &declaration, &folder).await?;
        tx.rollback().await?;
        shape.map_err(Error::Declaration)?;
        let id = JobId(Id::new());
        let mut words = Words {
            name: declaration.name.clone(),
            target: sql::target_name(&declaration),
            segment_pages: declaration.segment_pages,
            chunk_records: declaration.chunk_records,
            ..Words::default()
        };
        rules.keep(&mut words);
        let mut tx = self.database.begin().await?;
        let job = NewJob {
            kind: KIND.to_owned(),
            lane: lane(&words.target),
            mode,
            params: words.text(),
            request_id: None,
        };
        jobs::insert(tx.conn(), id, &job).await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        let begun = begun(pg.conn).await?;
        let folder_hash = folder.hash();
        let declared =
            LedgerJob { name: declaration.name, folder, folder_hash, variables, begun, forgotten: None };
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
        // Corrections by later retries hold no records.
        let latest = sqlx::query_scalar(
            "SELECT max(settled_at) FROM crossdock.chunks WHERE job_id = $1 AND records > 0",
        );
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
    /// [`Error::NoSuchJob`]; [`Error::State`] if the job was forgotten; those of the database.
    pub async fn verify(&self, id: JobId) -> Result<Certificate, Error> {
        let (job, declared) = self.written(id).await?;
        let (declaration, shape) = self.shape_for(&declared.folder, &declared.variables, false).await?;
        certificate::certify(&self.database, &job, &declared, &declaration, &shape).await
    }

    /// A job that wrote, and of which nothing was forgotten.
    pub(crate) async fn written(&self, id: JobId) -> Result<(Job, LedgerJob), Error> {
        let known = self.remembered(id).await?;
        if known.0.mode == Mode::DryRun {
            return Err(Error::State(format!(
                "job {id} is a dry run: it wrote nothing that this could be done with"
            )));
        }
        Ok(known)
    }

    /// A job of which nothing was forgotten.
    pub(crate) async fn remembered(&self, id: JobId) -> Result<(Job, LedgerJob), Error> {
        let job = certificate::job(&self.database, id).await?.ok_or(Error::NoSuchJob(id))?;
        let declared = self.declared(id).await?.ok_or(Error::NoSuchJob(id))?;
        if let Some(at) = &declared.forgotten {
            return Err(Error::State(format!(
                "job {id} was forgotten at {at}: its manifest, kept bytes and proofs are gone, so nothing of it can be \
                 compared any more; `crossdock ledger status {id}` shows the certificate that it ended with"
            )));
        }
        Ok((job, declared))
    }

    /// A declaration and what the target's server says of its queries.
    pub(crate) async fn shape(
        &self,
        folder: &Folder,
        variables: &Variables,
    ) -> Result<(Declaration, Shape), Error> {
        self.shape_for(folder, variables, true).await
    }

    async fn shape_for(
        &self,
        folder: &Folder,
        variables: &Variables,
        writes: bool,
    ) -> Result<(Declaration, Shape), Error> {
        let declaration = Declaration::read(folder, variables).map_err(Error::Declaration)?;
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        let shape = if writes {
            crate::plan::shape(pg.conn, &declaration, folder).await?
        } else {
            crate::plan::shape_to_read(pg.conn, &declaration, folder).await?
        };
        tx.rollback().await?;
        Ok((declaration, shape.map_err(Error::Declaration)?))
    }

    /// Computes and keeps the certificate of a job whose records all have an outcome. One process does it.
    pub(crate) async fn settle(&self, id: JobId) -> Result<Certified, Error> {
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
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
        let certificate = self.verify_beside(&mut tx, id).await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        sqlx::query("UPDATE crossdock.ledger_jobs SET certificate = $2::jsonb WHERE job_id = $1")
            .persistent(false)
            .bind(id.0)
            .bind(serde_json::to_string(&certificate).expect("a certificate is JSON"))
            .execute(&mut *pg.conn)
            .await?;
        failpoint::pass("certify.before_commit");
        tx.commit().await?;
        failpoint::pass("certify.after_commit");
        Ok(if certificate.holds {
            Certified::Holds
        } else {
            Certified::Fails(format!("the certificate does not hold: {}", certificate.failings.join("; ")))
        })
    }
}

impl Ledgers {
    /// [`Ledgers::verify`], while a transaction waits for it and says now and then that this process is alive: if it
    /// freezes, the server ends the transaction, and another process may certify the job.
    async fn verify_beside(&self, tx: &mut Tx, id: JobId) -> Result<Certificate, Error> {
        let verifying = self.verify(id);
        tokio::pin!(verifying);
        loop {
            tokio::select! {
                certificate = &mut verifying => return certificate,
                () = tokio::time::sleep(ALIVE_EVERY) => {}
            }
            let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
            sqlx::raw_sql("SELECT 1").execute(&mut *pg.conn).await?;
        }
    }
}

/// The transaction id from which on rows may be the job's.
async fn begun(conn: &mut PgConnection) -> db::Result<String> {
    let current = sqlx::query_scalar("SELECT pg_current_xact_id()::text");
    Ok(current.persistent(false).fetch_one(conn).await?)
}
