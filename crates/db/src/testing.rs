//! Throw-away databases for tests.
//!
//! SQLite tests get a file in a temporary folder. Postgres tests get a database of their own on the server that
//! `CROSSDOCK_TEST_POSTGRES` names (`make test` starts one); it is dropped when the [`TestDatabase`] is closed.

use std::io::BufRead;
use std::process::{Child, Command, Stdio};

use sqlx::{ConnectOptions, Connection, Executor};

use crate::{Address, Database, Id, Kind, Room};

/// The environment variable that names the server for tests.
pub const POSTGRES_VARIABLE: &str = "CROSSDOCK_TEST_POSTGRES";

/// A database for one test.
pub struct TestDatabase {
    /// The open database.
    pub database: Database,
    /// Its URL, for processes that open it themselves.
    pub url: String,
    name: Option<String>,
    _folder: Option<tempfile::TempDir>,
}

impl TestDatabase {
    /// A fresh, empty database with the given rooms migrated.
    ///
    /// # Panics
    /// Without `CROSSDOCK_TEST_POSTGRES`, or if the database cannot be made: a test must not pass by not running.
    pub async fn open(kind: Kind, rooms: &[&Room]) -> Self {
        let fresh = Self::empty(kind).await;
        for room in rooms {
            fresh.database.migrate(room).await.expect("the room's migrations apply to an empty database");
        }
        fresh
    }

    /// A fresh, empty database.
    pub async fn empty(kind: Kind) -> Self {
        match kind {
            Kind::Sqlite => {
                let folder = tempfile::tempdir().expect("a temporary folder can be made");
                let url = format!("sqlite://{}", folder.path().join("test.db").display());
                let address: Address = url.parse().expect("the URL was made here");
                let database = Database::open(&address).await.expect("the file can be opened");
                Self { database, url, name: None, _folder: Some(folder) }
            }
            Kind::Postgres => {
                let name = format!("test_{}", Id::new());
                admin(&format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")).await;
                let mut url = url::Url::parse(&server()).expect("the variable holds a URL");
                url.set_path(&name);
                let address: Address = url.as_str().parse().expect("the URL was made here");
                let database = Database::open(&address).await.expect("the database was just made");
                Self { database, url: url.to_string(), name: Some(name), _folder: None }
            }
        }
    }

    /// Closes and drops the database.
    pub async fn close(self) {
        self.database.close().await;
        if let Some(name) = &self.name {
            admin(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
        }
    }
}

/// PgBouncer in transaction mode before a Postgres (`scripts/pgbouncer`). Dropping it ends it.
pub struct Pooler {
    /// The URL that leads through it, with `pgbouncer=true`.
    pub url: String,
    /// Ends when its standard input is closed.
    child: Child,
}

impl Pooler {
    /// Before the Postgres at this URL.
    ///
    /// # Panics
    /// If there is no PgBouncer: a test must not pass by not running.
    pub fn before(url: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/pgbouncer");
        let mut child = Command::new(script)
            .args(["before", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("scripts/pgbouncer can be run");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is a pipe");
        std::io::BufReader::new(stdout).read_line(&mut line).expect("scripts/pgbouncer says something");
        let url = line.trim().to_owned();
        assert!(!url.is_empty(), "scripts/pgbouncer did not start; what it said stands above");
        Self { url, child }
    }

    /// Another open database through it, as another process has one.
    pub async fn open(&self) -> Database {
        let address: Address = self.url.parse().expect("the script prints a URL");
        Database::open(&address).await.expect("PgBouncer answers")
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn server() -> String {
    std::env::var(POSTGRES_VARIABLE).unwrap_or_else(|_| {
        panic!("{POSTGRES_VARIABLE} is not set: run the tests with `make test` or `scripts/pg run CMD`")
    })
}

/// Database names cannot be bound; they are made of our own letters and digits only.
async fn admin(statement: &str) {
    let options: sqlx::postgres::PgConnectOptions = server().parse().expect("the variable holds a URL");
    let mut conn = options.connect().await.expect("the test server answers");
    conn.execute(sqlx::AssertSqlSafe(statement.to_owned())).await.expect("the test server makes databases");
    conn.close().await.expect("the connection closes");
}

/// Makes two tests of one, `NAME::sqlite` and `NAME::postgres`, each with a fresh database with the rooms migrated.
///
/// ```text
/// db::on_both!(a_page_is_whole, [&engine::ROOM], |database| async move { … });
/// ```
#[macro_export]
macro_rules! on_both {
    ($(#[$meta:meta])* $name:ident, [$($room:expr),* $(,)?], $body:expr) => {
        $(#[$meta])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            async fn run(kind: $crate::Kind) {
                let test = $crate::testing::TestDatabase::open(kind, &[$($room),*]).await;
                let body = $body;
                body(test.database.clone()).await;
                test.close().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                run($crate::Kind::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                run($crate::Kind::Postgres).await;
            }
        }
    };
}
