//! `PATCH /v1/links/{id}`

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use db::{Id, Timestamp, Tx};
use http::HeaderMap;
use http::header::ETAG;
use links::{Link, Place, Slug};

use super::create::{self_reference, target};
use super::fields::Fields;
use super::view::view;
use crate::api::auth::{Allowed, LinksWrite};
use crate::api::body::Json;
use crate::api::{Shared, id, version};
use crate::problem::{Code, Problem};

/// Changes what the body names and leaves the rest. A version (`If-Match` or in the body) that is not current is
/// refused; without one the change applies to what is current.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<LinksWrite>,
    Path(text): Path<String>,
    headers: HeaderMap,
    Json(mut fields): Json<Fields>,
) -> Result<Response, Problem> {
    let id = id(&text)?;
    let expected = version::expected(&headers, fields.version)?;
    let host = fields.domain.take();
    let edit = fields.check(api.destination_length_max).map_err(Problem::validation)?;
    let slug = edit.slug.clone();
    if slug.is_none() && host.is_some() {
        return Err(Problem::field(
            "/domain",
            "not_allowed",
            "a domain can be changed together with the slug only",
        ));
    }
    let now = api.clock.now();
    let mut tx = api.database.begin().await?;
    let edited = links::update_link(&mut tx, caller.workspace, id, expected, now, |content| {
        edit.apply(content);
        Ok(())
    });
    let mut link = edited.await.map_err(|error| match error {
        links::Error::InvalidState(_) => self_reference(),
        other => other.into(),
    })?;
    if let Some(slug) = slug {
        link = rename(&mut tx, caller.workspace, link, host.as_deref(), slug, now).await?;
    }
    let committed = tx.commit().await;
    api.redirects.link_changed(id);
    api.redirects.slugs_added();
    committed?;
    let mut reader = api.database.read().await?;
    let view = view(&api, &mut reader, link).await?;
    Ok(([(ETAG, version::tag(view.version()))], axum::Json(view)).into_response())
}

/// Gives the link another slug in place of its only one.
async fn rename(
    tx: &mut Tx,
    workspace: Id,
    link: Link,
    host: Option<&str>,
    slug: Slug,
    now: Timestamp,
) -> Result<Link, Problem> {
    let [old] = link.slugs.as_slice() else {
        return Err(Problem::new(
            Code::InvalidState,
            "the link has several slugs, so it is not clear which to replace",
        ));
    };
    let domain = match host {
        Some(host) => target(tx, workspace, Some(host)).await?,
        None => links::domain(tx.conn(), workspace, old.domain_id).await?,
    };
    if domain.id == old.domain_id && slug == old.slug {
        return Ok(link);
    }
    let same_key = domain.settings.case_mode.key(&slug) == domain.settings.case_mode.key(&old.slug);
    if domain.id == old.domain_id && same_key {
        return Err(Problem::field("/slug", "invalid_slug", "the slugs are one and the same on this domain"));
    }
    if link.content.destination.is_self_reference(&domain.host, &slug, domain.settings.case_mode) {
        return Err(self_reference());
    }
    let former = Place { domain_id: old.domain_id, slug: old.slug.clone() };
    links::add_slug(tx, &domain, link.id, slug, now).await?;
    Ok(links::remove_slug(tx, workspace, link.id, &former, now).await?)
}
