//! `POST /v1/imports/{id}/verify`

use axum::extract::{Path, State};
use imports::Verification;

use super::steer::Nothing;
use crate::api::auth::{Allowed, Imports};
use crate::api::body::OptionalJson;
use crate::api::{Shared, id};
use crate::problem::Problem;

/// Compares what the import says it wrote with what stands here now, and names what differs.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<Imports>,
    Path(text): Path<String>,
    OptionalJson(Nothing {}): OptionalJson<Nothing>,
) -> Result<axum::Json<Verification>, Problem> {
    Ok(axum::Json(api.imports.verify(Some(caller.workspace), engine::JobId(id(&text)?)).await?))
}
