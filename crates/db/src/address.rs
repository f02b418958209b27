//! Where a database is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;
use url::Url;

use crate::Error;

/// Which of the two databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One file, one writer.
    Sqlite,
    /// A server, many processes.
    Postgres,
}

/// A parsed database URL: `sqlite://FILE`, `sqlite:FILE` or `postgres://…`, where `pgbouncer=true` and
/// `idle_in_transaction_seconds=N` may stand among the parameters.
///
/// `Display` and `Debug` leave the password out.
#[derive(Clone)]
pub struct Address(pub(crate) Target);

#[derive(Clone)]
pub(crate) enum Target {
    Sqlite(PathBuf),
    Postgres { options: Box<PgConnectOptions>, pooled: bool, idle_seconds: u16, shown: String },
}

/// A transaction in which its process is silent for so long is ended by the server: the process is frozen or cut off, and
/// others wait for its locks.
const IDLE_SECONDS: u16 = 60;

impl Address {
    /// Which database the address names.
    pub fn kind(&self) -> Kind {
        match self.0 {
            Target::Sqlite(_) => Kind::Sqlite,
            Target::Postgres { .. } => Kind::Postgres,
        }
    }

    /// The file of a SQLite database.
    pub fn file(&self) -> Option<&Path> {
        match &self.0 {
            Target::Sqlite(path) => Some(path),
            Target::Postgres { .. } => None,
        }
    }

    /// The address of a SQLite file.
    pub fn sqlite(path: impl Into<PathBuf>) -> Self {
        Self(Target::Sqlite(path.into()))
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(rest) = text.strip_prefix("sqlite:") {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            if path.is_empty() || path.contains('?') || path.contains(":memory:") {
                return Err(Error::Address(format!(
                    "'{text}' names no file; write sqlite://FILE, for example sqlite://crossdock.db"
                )));
            }
            return Ok(Self(Target::Sqlite(PathBuf::from(path))));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return postgres(text);
        }
        Err(Error::Address("a database is sqlite://FILE or postgres://USER@HOST/NAME".into()))
    }
}

const IDLE_PARAMETER: &str = "idle_in_transaction_seconds";

fn postgres(text: &str) -> Result<Address, Error> {
    // The parser's own message may repeat the URL and with it the password.
    let malformed =
        || Error::Address("the postgres:// URL cannot be read; write postgres://USER@HOST:PORT/NAME".into());
    let mut url = Url::parse(text).map_err(|_| malformed())?;
    let pooled = url.query_pairs().any(|(name, value)| name == "pgbouncer" && value == "true");
    let idle = url.query_pairs().find(|(name, _)| name == IDLE_PARAMETER).map(|(_, value)| value.parse());
    let idle_seconds = match idle {
        None => IDLE_SECONDS,
        Some(Ok(seconds)) if seconds > 0 => seconds,
        Some(_) => {
            return Err(Error::Address(format!("{IDLE_PARAMETER} is a number of seconds, at least 1")));
        }
    };
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| name != "pgbouncer" && name != IDLE_PARAMETER)
        .map(|(n, v)| (n.into_owned(), v.into_owned()))
        .collect();
    url.set_query(None);
    if !kept.is_empty() {
        url.query_pairs_mut().extend_pairs(kept);
    }
    let mut options = PgConnectOptions::from_str(url.as_str()).map_err(|_| malformed())?;
    if pooled {
        // PgBouncer refuses a client that sets what it does not keep track of, and by default that is this one. The
        // server's own value prints floats exactly as well.
        options = options.statement_cache_capacity(0).extra_float_digits(None);
    }
    let _ = url.set_password(None);
    url.set_query(None);
    Ok(Address(Target::Postgres { options: Box::new(options), pooled, idle_seconds, shown: url.to_string() }))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Target::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            Target::Postgres { shown, .. } => f.write_str(shown),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let address: Address = "postgres://u:hunter2@db.example.com:6432/x?pgbouncer=true".parse().unwrap();
        assert_eq!(address.to_string(), "postgres://u@db.example.com:6432/x");
        assert!(!format!("{address:?}").contains("hunter2"));
        let broken = "postgres://u:hunter2@[::1/x".parse::<Address>().unwrap_err();
        assert!(!broken.to_string().contains("hunter2"));
    }

    #[test]
    fn how_long_a_transaction_may_be_idle_is_a_parameter() {
        let seconds = |text: &str| match text.parse::<Address>().unwrap().0 {
            Target::Postgres { idle_seconds, .. } => idle_seconds,
            Target::Sqlite(_) => 0,
        };
        assert_eq!(seconds("postgres://u@h/x"), 60);
        assert_eq!(seconds("postgres://u@h/x?idle_in_transaction_seconds=2&sslmode=disable"), 2);
        for wrong in ["0", "", "-1", "1.5", "70000"] {
            let text = format!("postgres://u@h/x?idle_in_transaction_seconds={wrong}");
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn sqlite_addresses_name_a_file() {
        for (text, path) in
            [("sqlite://a.db", "a.db"), ("sqlite:a.db", "a.db"), ("sqlite:///tmp/a.db", "/tmp/a.db")]
        {
            assert_eq!(text.parse::<Address>().unwrap().file(), Some(Path::new(path)));
        }
        for text in ["sqlite:", "sqlite::memory:", "mysql://x", "crossdock.db"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
