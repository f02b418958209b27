//! `GET /v1/domains`

use axum::extract::State;
use serde::Deserialize;

use super::view::DomainView;
use crate::api::Shared;
use crate::api::auth::{Allowed, Domains};
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

/// A page of the workspace's domains, oldest first.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<Domains>,
    Query(parameters): Query<Parameters>,
) -> Result<axum::Json<Page<DomainView>>, Problem> {
    let after = listing::after(parameters.cursor.as_deref())?;
    let size = usize::try_from(listing::size(parameters.limit)?).unwrap_or(1);
    let mut reader = api.database.read().await?;
    let default = links::workspace(reader.conn(), caller.workspace).await?.default_domain_id;
    let mut domains = links::domains(reader.conn(), caller.workspace).await?;
    domains.sort_unstable_by_key(|domain| domain.id);
    domains.retain(|domain| after.is_none_or(|after| domain.id > after));
    let more = domains.len() > size;
    domains.truncate(size);
    let next_cursor = domains.last().filter(|_| more).map(|last| listing::cursor(last.id));
    let data = domains.into_iter().map(|domain| DomainView::new(domain, default)).collect();
    Ok(axum::Json(Page { data, next_cursor }))
}
