//! Plain pages for people: they work without JavaScript and load nothing from elsewhere.

mod errors;
mod home;
mod import;
mod jobs;
mod layout;
mod migrate_from;
mod parts;
mod signature;

use axum::Router;
use axum::routing::get;

use crate::api::Shared;

pub(crate) use errors::error_page;
pub(crate) use jobs::list_url;
pub(crate) use layout::secure;
pub use signature::PageKey;

/// The pages' routes.
pub(crate) fn router() -> Router<Shared> {
    Router::new()
        .route("/", get(home::handle))
        .route("/imports/{id}", get(import::handle))
        .route("/jobs", get(jobs::list))
        .route("/jobs/{id}", get(jobs::one))
        .route("/style.css", get(layout::style))
        .route("/errors/{code}", get(errors::handle))
        .route("/migrate-from/{vendor}", get(migrate_from::handle))
}
