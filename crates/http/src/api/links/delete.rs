//! `DELETE /v1/links/{id}`

use axum::extract::{Path, State};
use http::{HeaderMap, StatusCode};

use crate::api::auth::{Allowed, LinksWrite};
use crate::api::{Shared, id, version};
use crate::problem::Problem;

/// Deletes the link; its slugs are free at once, and it can be restored.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<LinksWrite>,
    Path(text): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let id = id(&text)?;
    let expected = version::expected(&headers, None)?;
    let mut tx = api.database.begin().await?;
    links::delete_link(&mut tx, caller.workspace, id, expected, api.clock.now()).await?;
    let committed = tx.commit().await;
    api.redirects.link_changed(id);
    committed?;
    Ok(StatusCode::NO_CONTENT)
}
