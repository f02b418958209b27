//! The room's table.

pub(crate) mod postgres;
pub(crate) mod sqlite;

use db::Id;

/// A row of `import_parameters`.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct ParametersRow {
    pub(crate) workspace_id: Id,
    pub(crate) source_vendor: String,
    pub(crate) target_domain_id: Id,
    pub(crate) conflict_strategy: String,
    pub(crate) source_filter: String,
}
