//! Making and finding ledger jobs.

use db::{Conn, Database, Id};
use engine::store::jobs;
use engine::{JobId, Mode, NewJob};
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use crate::declaration::{Declaration, Folder, Problem, Variables};
use crate::kind::{KIND, Words, told};
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
    /// The database failed.
    #[error(transparent)]
    Db(#[from] db::Error),
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
        let (begun, rows_before) = before(pg.conn, &declaration).await?;
        let folder_hash = folder.hash();
        let declared =
            LedgerJob { name: declaration.name, folder, folder_hash, variables, begun, rows_before };
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

/// The transaction id from which on rows may be the job's, and how many rows there are already.
async fn before(conn: &mut PgConnection, declaration: &Declaration) -> db::Result<(String, i64)> {
    let query = format!(
        "SELECT pg_current_xact_id()::text, (SELECT count(*) FROM {})",
        sql::target_name(declaration)
    );
    Ok(sqlx::query_as(AssertSqlSafe(query)).persistent(false).fetch_one(conn).await?)
}
