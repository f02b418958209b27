//! Migrations of ledger records by several processes, interrupted.

mod bank;
mod case;
mod cast;
mod company;
mod core;
mod judge;
pub(crate) mod million;
mod plan;
mod play;
mod truth;

use std::path::Path;

use tokio::sync::OnceCell;

pub(crate) use case::Case;
pub(crate) use core::Export;
pub(crate) use plan::{NOT_PASSED, observe, plan};
pub(crate) use play::play;

use self::core::Core;
use crate::run::World;
use crate::server::Server;
use truth::Truth;

/// The export that is migrated, and what is true of it. It is made when the first case needs it.
pub(crate) struct Sources {
    export: Export,
    prepared: OnceCell<Prepared>,
}

/// What all cases over one export share.
pub(crate) struct Prepared {
    /// A database with the bank's schema and accounts, for copying.
    pub(crate) template: String,
    truth: Truth,
}

impl Sources {
    pub(crate) fn new(export: Export) -> Self {
        Self { export, prepared: OnceCell::new() }
    }

    pub(crate) async fn prepared(&self, world: &World) -> anyhow::Result<&Prepared> {
        let make = || Prepared::make(&world.binary, &world.server, self.export, &world.folder);
        self.prepared.get_or_try_init(make).await
    }

    /// Two of four processes fetch, so there are two partitions.
    fn export(&self, case: &Case) -> Export {
        match case {
            Case::Kill { processes: case::PROCESSES_MAX, .. } => Export { partitions: 2, ..self.export },
            _ => self.export,
        }
    }
}

impl Prepared {
    async fn make(binary: &Path, server: &Server, export: Export, folder: &Path) -> anyhow::Result<Self> {
        let template = format!("crash{}bank", std::process::id());
        bank::make_template(binary, server, &template, export, folder).await?;
        let truth = Truth::of(&Core::start(binary, export).await?).await?;
        Ok(Self { template, truth })
    }
}
