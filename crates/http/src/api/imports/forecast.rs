//! `POST /v1/imports/forecast`

use axum::extract::State;
use imports::Forecast;
use serde::Serialize;

use super::create::{Body, checked};
use crate::api::Shared;
use crate::api::auth::{Allowed, Imports};
use crate::api::body::Json;
use crate::problem::Problem;
use crate::request_id::RequestId;

/// What the import would need, and what does not come over.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    /// `null` for a source that tells nothing beforehand.
    forecast: Option<Forecast>,
    /// It in a sentence.
    needs: Option<String>,
    /// What does not come over from this vendor, in sentences.
    left_behind: &'static [&'static str],
}

/// Takes the body that starts an import, asks the source what that would need, and starts nothing.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<Imports>,
    request_id: RequestId,
    Json(body): Json<Body>,
) -> Result<axum::Json<Answer>, Problem> {
    let (new, token) = checked(body, &caller, &request_id).map_err(Problem::validation)?;
    let forecast = api.imports.forecast(&new, &token).await?;
    let needs = forecast.as_ref().map(Forecast::to_string);
    Ok(axum::Json(Answer { forecast, needs, left_behind: api.imports.left_behind(&new.vendor)? }))
}
