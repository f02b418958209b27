//! `GET /v1/links`

use axum::extract::State;
use links::{Filter, Host, Name, State as LinkState};
use serde::Deserialize;

use super::view::{LinkView, views};
use crate::api::auth::{Allowed, LinksRead};
use crate::api::body::Query;
use crate::api::listing::{self, Page};
use crate::api::{Api, Shared};
use crate::problem::Problem;

/// Which links, and which page of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// A domain's host.
    domain: Option<String>,
    /// A slug on that domain: at most one link has it.
    slug: Option<String>,
    tag: Option<String>,
    folder: Option<String>,
    /// The id of the import that made them.
    import: Option<String>,
    /// `active`, `archived`, `disabled`, `expired` or `deleted`.
    state: Option<String>,
    cursor: Option<String>,
    limit: Option<i64>,
}

/// A page of the workspace's links, newest first.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<LinksRead>,
    Query(parameters): Query<Parameters>,
) -> Result<axum::Json<Page<LinkView>>, Problem> {
    let before = listing::after(parameters.cursor.as_deref())?;
    let size = listing::size(parameters.limit)?;
    let mut reader = api.database.read().await?;
    let Some(filter) = filter(&mut reader, caller.workspace, &parameters).await? else {
        return Ok(axum::Json(Page { data: Vec::new(), next_cursor: None }));
    };
    if let Some(slug) = &parameters.slug {
        let domain = filter.domain_id.ok_or_else(|| {
            Problem::field("domain", "missing_parameter", "a slug is looked for on a domain: name it as well")
        })?;
        drop(reader);
        return at_slug(&api, caller.workspace, domain, slug).await;
    }
    let size = u32::try_from(size).unwrap_or(1);
    let page =
        links::list_links(reader.conn(), caller.workspace, &filter, before, size, api.clock.now()).await?;
    let next_cursor = page.next.map(listing::cursor);
    Ok(axum::Json(Page { data: views(&api, &mut reader, page.links).await?, next_cursor }))
}

/// `None` if no link can match.
async fn filter(
    reader: &mut db::Reader,
    workspace: db::Id,
    parameters: &Parameters,
) -> Result<Option<Filter>, Problem> {
    let mut filter =
        Filter { state: parameters.state.as_deref().map(state).transpose()?, ..Filter::default() };
    if let Some(text) = &parameters.domain {
        let host =
            Host::new(text).map_err(|error| Problem::field("domain", "invalid_host", error.to_string()))?;
        let domain = links::domain_by_host(reader.conn(), &host).await?;
        let Some(domain) = domain.filter(|domain| domain.workspace_id == workspace) else { return Ok(None) };
        filter.domain_id = Some(domain.id);
    }
    let name = |field: &'static str, text: &Option<String>| match text {
        Some(text) => Name::new(text)
            .map(Some)
            .map_err(|error| Problem::field(field, "invalid_name", error.to_string())),
        None => Ok(None),
    };
    filter.tag = name("tag", &parameters.tag)?;
    filter.folder = name("folder", &parameters.folder)?;
    if let Some(text) = &parameters.import {
        let Ok(job) = text.parse() else { return Ok(None) };
        filter.import_job = Some(job);
    }
    Ok(Some(filter))
}

fn state(word: &str) -> Result<LinkState, Problem> {
    Ok(match word {
        "active" => LinkState::Active,
        "archived" => LinkState::Archived,
        "disabled" => LinkState::Disabled,
        "expired" => LinkState::Expired,
        "deleted" => LinkState::Deleted,
        other => {
            let known = "known are active, archived, disabled, expired, deleted";
            return Err(Problem::field(
                "state",
                "invalid_state",
                format!("'{other:.40}' is no state; {known}"),
            ));
        }
    })
}

/// The slug as people write it; a parameter can hold any, also one with slashes.
async fn at_slug(
    api: &Api,
    workspace: db::Id,
    domain_id: db::Id,
    text: &str,
) -> Result<axum::Json<Page<LinkView>>, Problem> {
    let slug =
        links::Slug::new(text).map_err(|error| Problem::field("slug", "invalid_slug", error.to_string()))?;
    let mut reader = api.database.read().await?;
    let domain = links::domain(reader.conn(), workspace, domain_id).await?;
    let found = links::resolve(reader.conn(), domain_id, &domain.settings.case_mode.key(&slug)).await?;
    let mut data = Vec::new();
    if let Some(resolved) = found {
        let link = links::link_by_id(reader.conn(), workspace, resolved.link_id).await?;
        data = views(api, &mut reader, vec![link]).await?;
    }
    Ok(axum::Json(Page { data, next_cursor: None }))
}
