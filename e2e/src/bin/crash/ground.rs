//! A fresh database for one case, and the folder of what its processes said.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;

use crate::case::Database;
use crate::server::Server;

static NUMBER: AtomicU64 = AtomicU64::new(1);

/// Where one import takes place.
pub(crate) struct Ground<'w> {
    pub(crate) database: Database,
    pub(crate) folder: PathBuf,
    server: &'w Server,
    name: String,
}

impl<'w> Ground<'w> {
    /// A database on Postgres is empty, or a copy of the one that is named as its template.
    pub(crate) async fn make(
        database: Database,
        parent: &Path,
        server: &'w Server,
        template: Option<&str>,
    ) -> anyhow::Result<Self> {
        let name = format!("crash{}x{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = parent.join(&name);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        if database == Database::Postgres {
            server.create(&name, template.unwrap_or("template0")).await?;
        }
        Ok(Self { database, folder, server, name })
    }

    /// The database's URL; on Postgres through a proxy's address if one is given.
    pub(crate) fn url(&self, proxy: Option<&str>) -> anyhow::Result<String> {
        match self.database {
            Database::Sqlite => Ok(format!("sqlite://{}", self.file().display())),
            Database::Postgres => self.server.database_url(&self.name, proxy),
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join("crossdock.db")
    }

    /// The names of the fail points that were passed, in order, by processes of one role.
    pub(crate) fn points_log(&self, role: &str) -> PathBuf {
        self.folder.join(format!("points-{role}"))
    }

    /// How often a fail point was passed so far, by all processes of this role.
    pub(crate) fn passed(&self, role: &str, point: &str) -> u64 {
        let log = std::fs::read_to_string(self.points_log(role)).unwrap_or_default();
        log.lines().filter(|line| *line == point).count() as u64
    }

    pub(crate) async fn remove(self) -> anyhow::Result<()> {
        if self.database == Database::Postgres {
            self.server.drop_database(&self.name).await?;
        }
        std::fs::remove_dir_all(&self.folder)?;
        Ok(())
    }

    /// Leaves everything for somebody to look at, and tells where it is.
    pub(crate) async fn keep(self) -> PathBuf {
        if self.database == Database::Postgres {
            let file = self.folder.join("crossdock.pgdump");
            if let Err(error) = self.server.dump(&self.name, &file).await {
                // The case is reported anyway; its logs are kept.
                let _ = std::fs::write(self.folder.join("no-dump"), format!("{error:#}\n"));
            }
        }
        self.folder
    }
}
