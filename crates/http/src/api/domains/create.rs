//! `POST /v1/domains`

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use links::{CaseMode, Destination, DomainSettings, Fallback, Host, RedirectCode};
use serde::Deserialize;

use super::view::DomainView;
use crate::api::auth::{Allowed, Domains};
use crate::api::body::Json;
use crate::api::{Api, Shared};
use crate::problem::{FieldError, Problem};

/// A new domain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    host: String,
    case_mode: Option<String>,
    root_redirect: Option<String>,
    /// May hold `{slug}`.
    fallback_url: Option<String>,
    expired_url: Option<String>,
    default_redirect_code: Option<i64>,
}

/// Adds a domain: 201 with the domain. The workspace's first one becomes its default.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<Domains>,
    Json(body): Json<Body>,
) -> Result<Response, Problem> {
    let (host, settings) = check(&api, body).map_err(Problem::validation)?;
    let mut tx = api.database.begin().await?;
    let domain = links::add_domain(&mut tx, caller.workspace, &host, &settings, api.clock.now()).await?;
    let mut default = links::workspace(tx.conn(), caller.workspace).await?.default_domain_id;
    if default.is_none() {
        default = Some(domain.id);
        links::set_default_domain(&mut tx, caller.workspace, default).await?;
    }
    tx.commit().await?;
    // Should this fail, the change feed brings the domain within two seconds.
    if let Err(error) = api.redirects.domains_changed().await {
        tracing::warn!(%error, "a new domain is not served yet");
    }
    Ok((StatusCode::CREATED, axum::Json(DomainView::new(domain, default))).into_response())
}

fn check(api: &Api, body: Body) -> Result<(Host, DomainSettings), Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut settings = DomainSettings::default();
    let host =
        Host::new(&body.host).map_err(|error| FieldError::new("/host", "invalid_host", error.to_string()));
    let host = host.and_then(|host| {
        let own = api.own_hosts.iter().any(|own| own == host.as_str());
        let message = "this host serves the API, which a link domain cannot";
        if own { Err(FieldError::new("/host", "host_in_use", message)) } else { Ok(host) }
    });
    let mut keep = |pointer: &str, code, result: Result<(), String>| {
        if let Err(message) = result {
            errors.push(FieldError::new(pointer, code, message));
        }
    };
    if let Some(word) = body.case_mode {
        let parsed = word.parse::<CaseMode>();
        keep(
            "/case_mode",
            "invalid_case_mode",
            parsed.map(|mode| settings.case_mode = mode).map_err(|e| e.to_string()),
        );
    }
    if let Some(number) = body.default_redirect_code {
        let parsed = RedirectCode::try_from(number);
        keep(
            "/default_redirect_code",
            "invalid_redirect_code",
            parsed.map(|code| settings.default_redirect_code = code).map_err(|e| e.to_string()),
        );
    }
    if let Some(url) = body.root_redirect {
        let parsed = Destination::new(url);
        keep(
            "/root_redirect",
            "invalid_destination",
            parsed.map(|url| settings.root_redirect = Some(url)).map_err(|e| e.to_string()),
        );
    }
    if let Some(url) = body.expired_url {
        let parsed = Destination::new(url);
        keep(
            "/expired_url",
            "invalid_destination",
            parsed.map(|url| settings.expired_url = Some(url)).map_err(|e| e.to_string()),
        );
    }
    if let Some(url) = body.fallback_url {
        let parsed = Fallback::new(url);
        keep(
            "/fallback_url",
            "invalid_destination",
            parsed.map(|url| settings.fallback_url = Some(url)).map_err(|e| e.to_string()),
        );
    }
    match host {
        Ok(host) if errors.is_empty() => Ok((host, settings)),
        Ok(_) => Err(errors),
        Err(error) => {
            errors.insert(0, error);
            Err(errors)
        }
    }
}
