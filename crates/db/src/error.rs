//! What can go wrong with a database, by what the caller can do about it.

use sqlx::error::ErrorKind;

/// A failure of the database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL does not name a database. Fix the input.
    #[error("{0}")]
    Address(String),
    /// A deadlock (40P01), a serialisation failure (40001), a lock that was not had in time (55P03) or a busy
    /// SQLite file: nothing was written; running the whole transaction again may succeed.
    #[error("the database asks for another try: {0}")]
    Retry(#[source] sqlx::Error),
    /// A unique or exclusion constraint refused a row.
    #[error("constraint {constraint} refused a row: {source}")]
    Unique {
        /// The constraint's name on Postgres, `table.column` on SQLite.
        constraint: String,
        /// The database's own error.
        source: sqlx::Error,
    },
    /// Another constraint or a type refused the data (SQLSTATE classes 22 and 23): the same data will be
    /// refused again.
    #[error("the database refuses the data: {0}")]
    Data(#[source] sqlx::Error),
    /// The connection broke before `COMMIT` was sent: nothing was written.
    #[error("the connection to the database broke: {0}")]
    Connection(#[source] sqlx::Error),
    /// The connection broke while `COMMIT` was under way: it may or may not have happened. Look it up; never
    /// send it again.
    #[error("the connection broke at COMMIT, so its outcome is unknown: {0}")]
    CommitUnknown(#[source] sqlx::Error),
    /// A migration that was applied has been edited since, or cannot be applied.
    #[error("migration {room} {version}: {reason}")]
    Migration {
        /// The room whose migrations these are.
        room: &'static str,
        /// The migration's number.
        version: i64,
        /// What is wrong.
        reason: String,
    },
    /// Anything else; give up and report it.
    #[error("database: {0}")]
    Other(#[source] sqlx::Error),
}

impl Error {
    /// Whether running the whole transaction again, on a new connection if need be, is right.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Retry(_) | Self::Connection(_))
    }

    /// Whether the data itself was refused, so that the same data will be refused again.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Unique { .. } | Self::Data(_))
    }

    /// What the database says of a refusal, in its words alone.
    pub fn message(&self) -> String {
        match self {
            Self::Data(sqlx::Error::Database(error)) => error.message().to_owned(),
            other => other.to_string(),
        }
    }

    /// Whether this is a deadlock that the server broke (SQLSTATE 40P01).
    pub fn is_deadlock(&self) -> bool {
        matches!(self, Self::Retry(sqlx::Error::Database(error)) if error.code().as_deref() == Some("40P01"))
    }

    /// The same failure, seen while `COMMIT` was under way.
    pub(crate) fn at_commit(self) -> Self {
        match self {
            Self::Connection(source) | Self::Other(source) => Self::CommitUnknown(source),
            other => other,
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(inner) => {
                match classify(inner.code().as_deref().unwrap_or(""), inner.kind()) {
                    Class::Retry => Self::Retry(error),
                    Class::Unique => {
                        let constraint = inner
                            .constraint()
                            .map_or_else(|| sqlite_constraint(inner.message()), str::to_owned);
                        Self::Unique { constraint, source: error }
                    }
                    Class::Data => Self::Data(error),
                    Class::Connection => Self::Connection(error),
                    Class::Other => Self::Other(error),
                }
            }
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::WorkerCrashed => Self::Connection(error),
            // A server that goes away in the middle of a message is reported as a protocol error.
            sqlx::Error::Protocol(_) | sqlx::Error::BeginFailed => Self::Connection(error),
            _ => Self::Other(error),
        }
    }
}

enum Class {
    Retry,
    Unique,
    Data,
    Connection,
    Other,
}

/// SQLSTATE codes are listed in the PostgreSQL manual, appendix A; SQLite's result codes at
/// <https://www.sqlite.org/rescode.html> (the extended code's low byte is the primary one).
fn classify(code: &str, kind: ErrorKind) -> Class {
    match code {
        "40001" | "40P01" | "55P03" => return Class::Retry,
        // Server shutting down, crashing or starting; a session ended by a timeout or an administrator.
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "53300" => return Class::Connection,
        _ => {}
    }
    if code.len() == 5 && code.starts_with("08") {
        return Class::Connection;
    }
    // SQLite's codes are plain decimal numbers; five-letter SQLSTATEs with letters never parse below 5 digits.
    if code.len() < 5
        && let Ok(number) = code.parse::<u32>()
        && matches!(number & 0xff, 5 | 6)
    {
        return Class::Retry;
    }
    match kind {
        ErrorKind::UniqueViolation | ErrorKind::ExclusionViolation => Class::Unique,
        ErrorKind::ForeignKeyViolation | ErrorKind::NotNullViolation | ErrorKind::CheckViolation => {
            Class::Data
        }
        _ if code.len() == 5 && (code.starts_with("22") || code.starts_with("23")) => Class::Data,
        _ => Class::Other,
    }
}

/// `UNIQUE constraint failed: slugs.domain_id, slugs.slug` names the columns, not the constraint.
fn sqlite_constraint(message: &str) -> String {
    message.rsplit_once("failed: ").map_or(message, |(_, columns)| columns).to_owned()
}
