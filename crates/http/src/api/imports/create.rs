//! `POST /v1/imports`

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use engine::JobId;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use imports::{Conflict, Filter, NewImport};
use links::Host;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::token::Pasted;
use super::view::ImportView;
use crate::api::Shared;
use crate::api::auth::{Allowed, Imports};
use crate::api::body::Json;
use crate::problem::{FieldError, Problem};
use crate::request_id::RequestId;

/// What comes over, from where to where.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    /// The vendor's word: `bitly`.
    #[serde(alias = "source_vendor")]
    vendor: String,
    /// The vendor's token. Kept in memory until the import is over, and nowhere else.
    token: Pasted,
    /// The host of the target domain; without it the workspace's default.
    #[serde(alias = "target_domain")]
    domain: Option<String>,
    /// `suffix`, `skip` or `fail`.
    #[serde(alias = "conflict_strategy")]
    conflict: Option<String>,
    /// `group_guid`, `map_domain`, `only_domain`.
    #[serde(default, alias = "source_filter")]
    filter: Filter,
    /// Say what would happen and write nothing.
    #[serde(default)]
    dry_run: bool,
    /// Refused by name: whoever could set it could send this server, and the token, anywhere.
    base_url: Option<IgnoredAny>,
}

/// How long the start of an import waits for what its source foretells.
const FORECAST_WAITED_FOR: Duration = Duration::from_secs(10);

/// Starts an import: 202 with the import, its address in `Location`. It outlives this request. The answer says how many
/// calls the source will be asked, unless the source does not tell in time.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<Imports>,
    request_id: RequestId,
    Json(body): Json<Body>,
) -> Result<Response, Problem> {
    let (new, token) = checked(body, &caller, &request_id).map_err(Problem::validation)?;
    let asked = tokio::time::timeout(FORECAST_WAITED_FOR, api.imports.forecast(&new, &token)).await;
    let forecast = match asked {
        Ok(Ok(forecast)) => forecast,
        // The import meets the same and says so itself.
        Ok(Err(imports::Error::Source(error))) => {
            tracing::info!(%error, "import: the {} account tells nothing beforehand", new.vendor);
            None
        }
        Ok(Err(error)) => return Err(error.into()),
        Err(_) => None,
    };
    let id = api.imports.start_with(&new, token, forecast.as_ref()).await?;
    answer(&api, &caller, id).await
}

pub(super) fn checked(
    body: Body,
    caller: &Allowed<Imports>,
    request_id: &RequestId,
) -> Result<(NewImport, imports::Token), Vec<FieldError>> {
    let mut errors = Vec::new();
    if body.base_url.is_some() {
        let message = "a source's address cannot be set over HTTP; whoever runs the server sets it";
        errors.push(FieldError::new("/base_url", "not_allowed", message));
    }
    let mut host = |pointer: String, text: &str| {
        Host::new(text)
            .map_err(|error| errors.push(FieldError::new(pointer, "invalid_host", error.to_string())))
            .ok()
    };
    let domain = body.domain.as_deref().and_then(|text| host("/domain".into(), text));
    // Hosts of the source are compared in the form in which requests name them.
    let mut filter = Filter { group_guid: body.filter.group_guid, ..Filter::default() };
    for (from, to) in &body.filter.map_domain {
        let pointer = format!("/filter/map_domain/{}", from.replace('~', "~0").replace('/', "~1"));
        if let (Some(from), Some(to)) = (host(pointer.clone(), from), host(pointer, to)) {
            filter.map_domain.insert(from.to_string(), to.to_string());
        }
    }
    for (place, text) in body.filter.only_domain.iter().enumerate() {
        filter
            .only_domain
            .extend(host(format!("/filter/only_domain/{place}"), text).map(|host| host.to_string()));
    }
    let conflict = body.conflict.as_deref().map_or(Ok(Conflict::default()), str::parse);
    match conflict {
        Ok(conflict) if errors.is_empty() => {
            let new = NewImport {
                workspace_id: caller.workspace,
                vendor: body.vendor,
                domain,
                conflict,
                filter,
                dry_run: body.dry_run,
                request_id: Some(request_id.as_str().to_owned()),
            };
            Ok((new, body.token.0))
        }
        Ok(_) => Err(errors),
        Err(message) => {
            errors.push(FieldError::new("/conflict", "invalid_conflict", message));
            Err(errors)
        }
    }
}

async fn answer(api: &crate::api::Api, caller: &Allowed<Imports>, id: JobId) -> Result<Response, Problem> {
    let report = api.imports.get(Some(caller.workspace), id).await?;
    let address = HeaderValue::from_str(&format!("/v1/imports/{id}")).expect("an id is ASCII");
    let view = ImportView::new(api, report);
    Ok((StatusCode::ACCEPTED, [(LOCATION, address)], axum::Json(view)).into_response())
}
