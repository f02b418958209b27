//! The private Postgres server: databases on it, and its violent end.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, bail};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};
use tokio::process::Command;
use tokio::sync::RwLock;
use url::Url;

/// Names the server's URL, and the folder by which `scripts/pg` finds it.
const URL_VARIABLE: &str = "CROSSDOCK_TEST_POSTGRES";
const FOLDER_VARIABLE: &str = "CROSSDOCK_PG_DIR";

/// The server of `scripts/pg run`.
pub(crate) struct Server {
    url: Url,
    folder: Option<PathBuf>,
    /// Read by whoever uses the server, written by whoever stops it.
    pub(crate) gate: RwLock<()>,
}

impl Server {
    pub(crate) fn from_environment() -> anyhow::Result<Self> {
        let url = std::env::var(URL_VARIABLE)
            .with_context(|| format!("{URL_VARIABLE} is not set; run `scripts/pg run crash …`"))?;
        let url = Url::parse(&url).with_context(|| format!("{URL_VARIABLE} is no URL"))?;
        let folder = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
        Ok(Self { url, folder, gate: RwLock::new(()) })
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> anyhow::Result<String> {
        let host = self.url.host_str().context("the server's URL names a host")?;
        Ok(format!("{host}:{}", self.url.port().unwrap_or(5432)))
    }

    /// The URL of a database on this server; through `address` (`HOST:PORT`, unencrypted) if one is given.
    pub(crate) fn database_url(&self, name: &str, address: Option<&str>) -> anyhow::Result<String> {
        let mut url = self.url.clone();
        url.set_path(name);
        if let Some(address) = address {
            let (host, port) = address.rsplit_once(':').context("an address is HOST:PORT")?;
            url.set_host(Some(host))?;
            url.set_port(Some(port.parse()?)).map_err(|()| anyhow::anyhow!("the URL takes no port"))?;
            url.set_query(Some("sslmode=disable"));
        }
        Ok(url.to_string())
    }

    pub(crate) async fn create(&self, name: &str, template: &str) -> anyhow::Result<()> {
        self.admin(format!("CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8'")).await
    }

    pub(crate) async fn drop_database(&self, name: &str) -> anyhow::Result<()> {
        self.admin(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await
    }

    /// A database's name cannot be bound; ours are made of letters and digits.
    async fn admin(&self, statement: String) -> anyhow::Result<()> {
        let options: PgConnectOptions = self.url.as_str().parse()?;
        let mut conn = options.connect().await.context("the Postgres server does not answer")?;
        conn.execute(AssertSqlSafe(statement)).await?;
        conn.close().await?;
        Ok(())
    }

    /// Stops the server without a checkpoint, as a crash would.
    pub(crate) async fn stop_immediate(&self) -> anyhow::Result<()> {
        self.script("stop-immediate").await
    }

    /// Starts what was stopped: same data, same port.
    pub(crate) async fn restart(&self) -> anyhow::Result<()> {
        self.script("restart").await
    }

    async fn script(&self, verb: &str) -> anyhow::Result<()> {
        if self.folder.is_none() {
            bail!(
                "{FOLDER_VARIABLE} is not set, so the server cannot be stopped; run `scripts/pg run crash …`"
            );
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/pg");
        let done = Command::new(script).arg(verb).stdin(Stdio::null()).output().await?;
        if !done.status.success() {
            bail!("scripts/pg {verb}: {}", String::from_utf8_lossy(&done.stderr));
        }
        Ok(())
    }

    /// Copies a database into a file, because the server is gone when the run ends.
    pub(crate) async fn dump(&self, name: &str, file: &Path) -> anyhow::Result<()> {
        let status = Command::new(self.beside_server("pg_dump"))
            .args(["--format=custom", "--file"])
            .arg(file)
            .arg(self.database_url(name, None)?)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .await?;
        if !status.success() {
            bail!("pg_dump failed");
        }
        Ok(())
    }

    /// A program from the folder of the server's own, which need not be in the path.
    fn beside_server(&self, program: &str) -> PathBuf {
        let beside = || {
            let pid = std::fs::read_to_string(self.folder.as_ref()?.join("data/postmaster.pid")).ok()?;
            let server = std::fs::read_link(format!("/proc/{}/exe", pid.lines().next()?)).ok()?;
            Some(server.parent()?.join(program))
        };
        beside().filter(|path| path.exists()).unwrap_or_else(|| program.into())
    }
}
