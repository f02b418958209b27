//! `GET /v1/imports`

use axum::extract::State;
use engine::JobId;
use serde::Deserialize;

use super::view::ImportView;
use crate::api::Shared;
use crate::api::auth::{Allowed, Imports};
use crate::api::body::Query;
use crate::api::listing::{self, Page};
use crate::problem::Problem;

/// Which page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    cursor: Option<String>,
    limit: Option<i64>,
}

/// A page of the workspace's imports, newest first.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<Imports>,
    Query(parameters): Query<Parameters>,
) -> Result<axum::Json<Page<ImportView>>, Problem> {
    let before = listing::after(parameters.cursor.as_deref())?.map(JobId);
    let size = listing::size(parameters.limit)?;
    let mut reports = api.imports.list(caller.workspace, before, size + 1).await?;
    let room = usize::try_from(size).unwrap_or(1);
    let more = reports.len() > room;
    reports.truncate(room);
    let next_cursor = reports.last().filter(|_| more).map(|last| listing::cursor(last.id.0));
    let data = reports.into_iter().map(|report| ImportView::new(&api, report)).collect();
    Ok(axum::Json(Page { data, next_cursor }))
}
