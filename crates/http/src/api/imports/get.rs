//! `GET /v1/imports/{id}`

use axum::extract::{Path, State};

use super::view::{ImportView, WholeView};
use crate::api::auth::{Allowed, Imports};
use crate::api::{Shared, id};
use crate::problem::Problem;

/// The import with its history and its error log.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<Imports>,
    Path(text): Path<String>,
) -> Result<axum::Json<WholeView>, Problem> {
    let id = engine::JobId(id(&text)?);
    let report = api.imports.get(Some(caller.workspace), id).await?;
    let history = api.imports.history(id).await?;
    let error_log = api.imports.error_log(id).await?;
    let remarks = api.imports.remarks(id).await?;
    Ok(axum::Json(WholeView { view: ImportView::new(&api, report), history, error_log, remarks }))
}
