//! `POST /v1/imports/{id}/pause`, `…/resume`, `…/cancel`

use axum::extract::{Path, State};
use serde::Deserialize;

use super::token::Pasted;
use super::view::ImportView;
use crate::api::auth::{Allowed, Imports};
use crate::api::body::OptionalJson;
use crate::api::{Shared, id};
use crate::problem::Problem;

/// A body without anything in it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// What resuming may bring.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resume {
    /// The vendor's token, where the server does not have it any more.
    token: Option<Pasted>,
}

/// Stops the import at its next safe point.
pub(crate) async fn pause(
    State(api): State<Shared>,
    caller: Allowed<Imports>,
    Path(text): Path<String>,
    OptionalJson(Nothing {}): OptionalJson<Nothing>,
) -> Result<axum::Json<ImportView>, Problem> {
    let report = api.imports.pause(Some(caller.workspace), engine::JobId(id(&text)?)).await?;
    Ok(axum::Json(ImportView::new(&api, report)))
}

/// Lets it go on at its checkpoint.
pub(crate) async fn resume(
    State(api): State<Shared>,
    caller: Allowed<Imports>,
    Path(text): Path<String>,
    OptionalJson(body): OptionalJson<Resume>,
) -> Result<axum::Json<ImportView>, Problem> {
    let token = body.token.map(|pasted| pasted.0);
    let report = api.imports.resume(Some(caller.workspace), engine::JobId(id(&text)?), token).await?;
    Ok(axum::Json(ImportView::new(&api, report)))
}

/// Ends it for good; what it wrote stays.
pub(crate) async fn cancel(
    State(api): State<Shared>,
    caller: Allowed<Imports>,
    Path(text): Path<String>,
    OptionalJson(Nothing {}): OptionalJson<Nothing>,
) -> Result<axum::Json<ImportView>, Problem> {
    let report = api.imports.cancel(Some(caller.workspace), engine::JobId(id(&text)?)).await?;
    Ok(axum::Json(ImportView::new(&api, report)))
}
