//! `GET /v1/links/{id}`

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::header::ETAG;

use super::view::view;
use crate::api::auth::{Allowed, LinksRead};
use crate::api::{Shared, id, version};
use crate::problem::Problem;

/// The link, with its version in `ETag`. A deleted one is gone here.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<LinksRead>,
    Path(text): Path<String>,
) -> Result<Response, Problem> {
    let mut reader = api.database.read().await?;
    let link = links::link_by_id(reader.conn(), caller.workspace, id(&text)?).await?;
    if link.deleted_at.is_some() {
        return Err(Problem::not_found());
    }
    let view = view(&api, &mut reader, link).await?;
    Ok(([(ETAG, version::tag(view.version()))], axum::Json(view)).into_response())
}
