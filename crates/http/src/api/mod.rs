//! The REST API and what else answers on the admin hosts: health, metrics, pages.
//!
//! Conventions: JSON in and out, `snake_case`; ids are opaque strings; times are RFC 3339 in UTC; lists come as
//! `{"data": […], "next_cursor": …}` and end when `next_cursor` is null; what is unknown in a body is refused, never
//! ignored; errors are problem+json ([`crate::problem`]).

mod auth;
mod body;
mod domains;
mod health;
mod imports;
mod jobs;
mod links;
mod listing;
mod middleware;
mod version;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use db::{Database, Id};
use prometheus_client::registry::Registry;

pub(crate) use body::Query;

use crate::clock::Clock;
use crate::problem::{Code, Problem, Rendering};
use crate::redirect::Redirects;
use crate::{OtherJobs, Parts, ServerOptions, pages};

/// Bytes of a request's body.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// How long the address of a page opens it.
pub(crate) const PAGE_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// The route that reads a whole import again and may take its time.
const VERIFY: &str = "/v1/imports/{id}/verify";

/// The route that asks a source beforehand, at the pace that the source allows.
const FORECAST: &str = "/v1/imports/forecast";

/// What handlers work with.
pub(crate) struct Api {
    pub(crate) database: Database,
    pub(crate) redirects: Arc<Redirects>,
    pub(crate) imports: ::imports::Imports,
    pub(crate) registry: Arc<Registry>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) other_jobs: Vec<Arc<dyn OtherJobs>>,
    pub(crate) rendering: Rendering,
    pub(crate) page_key: pages::PageKey,
    /// Hosts that serve the API and so cannot become link domains.
    pub(crate) own_hosts: Vec<String>,
    /// The scheme of short URLs in answers: the public URL's.
    pub(crate) scheme: String,
    /// The longest destination, in characters.
    pub(crate) destination_length_max: usize,
}

/// What handlers take as their state.
pub(crate) type Shared = Arc<Api>;

/// Everything that answers on the admin hosts.
pub(crate) fn router(options: &ServerOptions, parts: &Parts) -> Router {
    let api = Arc::new(Api {
        database: parts.database.clone(),
        redirects: parts.redirects.clone(),
        imports: parts.imports.clone(),
        registry: parts.registry.clone(),
        clock: parts.clock.clone(),
        other_jobs: parts.other_jobs.clone(),
        rendering: Rendering { public_url: options.public_base() },
        page_key: options.page_key.clone(),
        own_hosts: options.own_hosts(),
        scheme: options.public_url.scheme().to_owned(),
        destination_length_max: options.destination_length_max,
    });
    let around = middleware::Around { rendering: api.rendering.clone(), metrics: parts.metrics.clone() };
    Router::new()
        .route("/v1/links", get(links::list::handle).post(links::create::handle))
        .route(
            "/v1/links/{id}",
            get(links::get::handle).patch(links::update::handle).delete(links::delete::handle),
        )
        .route("/v1/domains", get(domains::list::handle).post(domains::create::handle))
        .route("/v1/imports", get(imports::list::handle).post(imports::create::handle))
        .route("/v1/imports/{id}", get(imports::get::handle))
        .route("/v1/imports/{id}/pause", post(imports::steer::pause))
        .route("/v1/imports/{id}/resume", post(imports::steer::resume))
        .route("/v1/imports/{id}/cancel", post(imports::steer::cancel))
        .route("/v1/jobs", get(jobs::list::handle))
        .route("/v1/jobs/{id}", get(jobs::get::handle))
        .route(FORECAST, post(imports::forecast::handle))
        .route(VERIFY, post(imports::verify::handle))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .merge(pages::router())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(axum::middleware::from_fn_with_state(around, middleware::around))
        .with_state(api)
}

/// The id in a path. What is no id names nothing.
pub(crate) fn id(text: &str) -> Result<Id, Problem> {
    text.parse().map_err(|_| Problem::not_found())
}

async fn not_found() -> Problem {
    Problem::not_found()
}

async fn method_not_allowed() -> Problem {
    Problem::new(Code::MethodNotAllowed, "this address does not know the method")
}
