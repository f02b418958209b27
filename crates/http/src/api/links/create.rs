//! `POST /v1/links`

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use db::{Id, Tx};
use http::header::{ETAG, LOCATION};
use http::{HeaderValue, StatusCode};
use links::{Content, Domain, Host, SlugChoice};
use rand::SeedableRng;

use super::fields::Fields;
use super::view::view;
use crate::api::auth::{Allowed, LinksWrite};
use crate::api::body::Json;
use crate::api::{Shared, version};
use crate::problem::{FieldError, Problem};

/// Creates a link: 201 with the link, its address in `Location` and its version in `ETag`.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<LinksWrite>,
    Json(mut fields): Json<Fields>,
) -> Result<Response, Problem> {
    if fields.version.is_some() {
        return Err(Problem::field(
            "/version",
            "not_allowed",
            "a link that is being created has no version yet",
        ));
    }
    let host = fields.domain.take();
    let edit = complete(fields, api.destination_length_max)?;
    let (Some(destination), slug) = (edit.destination.clone(), edit.slug.clone()) else {
        return Err(Problem::internal("a checked body has no destination"));
    };
    let now = api.clock.now();
    let mut tx = api.database.begin().await?;
    let domain = target(&mut tx, caller.workspace, host.as_deref()).await?;
    if slug
        .as_ref()
        .is_some_and(|slug| destination.is_self_reference(&domain.host, slug, domain.settings.case_mode))
    {
        return Err(self_reference());
    }
    let mut content = Content::to(destination, now);
    edit.apply(&mut content);
    let choice = slug.map_or(SlugChoice::Random, SlugChoice::Given);
    let mut chance = rand::rngs::StdRng::from_os_rng();
    let link = links::create_link(&mut tx, &domain, choice, content, now, &mut chance).await?;
    let committed = tx.commit().await;
    api.redirects.slugs_added();
    committed?;
    let mut reader = api.database.read().await?;
    let view = view(&api, &mut reader, link).await?;
    let address = format!("/v1/links/{}", view.id());
    let headers = [
        (LOCATION, HeaderValue::from_str(&address).expect("an id is ASCII")),
        (ETAG, version::tag(view.version())),
    ];
    Ok((StatusCode::CREATED, headers, axum::Json(view)).into_response())
}

fn complete(fields: Fields, longest: usize) -> Result<super::fields::Edit, Problem> {
    let missing = fields.destination_url.is_none();
    let required = || FieldError::new("/destination_url", "missing_field", "a link needs a destination_url");
    match fields.check(longest) {
        Ok(edit) if !missing => Ok(edit),
        Ok(_) => Err(Problem::validation(vec![required()])),
        Err(mut errors) => {
            errors.extend(missing.then(required));
            Err(Problem::validation(errors))
        }
    }
}

/// The domain of that host, or the workspace's default.
pub(crate) async fn target(tx: &mut Tx, workspace: Id, host: Option<&str>) -> Result<Domain, Problem> {
    let Some(text) = host else {
        let workspace = links::workspace(tx.conn(), workspace).await?;
        let Some(id) = workspace.default_domain_id else {
            return Err(Problem::field(
                "/domain",
                "missing_field",
                "the workspace has no default domain: name one",
            ));
        };
        return Ok(links::domain(tx.conn(), workspace.id, id).await?);
    };
    let host =
        Host::new(text).map_err(|error| Problem::field("/domain", "invalid_host", error.to_string()))?;
    let domain = links::domain_by_host(tx.conn(), &host).await?;
    domain.filter(|domain| domain.workspace_id == workspace).ok_or_else(|| {
        Problem::field(
            "/domain",
            "unknown_domain",
            format!("the workspace has no domain {host}; add it first"),
        )
    })
}

pub(crate) fn self_reference() -> Problem {
    Problem::field("/destination_url", "self_reference", "the destination is the short URL itself")
}
