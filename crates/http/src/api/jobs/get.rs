//! `GET /v1/jobs/{id}`

use axum::extract::{Path, State};
use serde::Serialize;

use crate::api::auth::{Allowed, JobsRead};
use crate::api::{PAGE_LIFE, Shared, id};
use crate::jobs::{self, WholeJob};
use crate::problem::Problem;

/// A job and the address of its page.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    #[serde(flatten)]
    whole: WholeJob,
    /// Opens without an account, for a week from now.
    page_url: String,
}

/// The job with its partitions, its history, its notes and its certificate. One of another workspace is not found.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<JobsRead>,
    Path(text): Path<String>,
) -> Result<axum::Json<Answer>, Problem> {
    let whole = jobs::whole(&api, Some(caller.workspace), engine::JobId(id(&text)?)).await?;
    let path = format!("/jobs/{}", whole.job.id);
    let page_url = api.page_key.link(&api.rendering.public_url, &path, api.clock.now().plus(PAGE_LIFE));
    Ok(axum::Json(Answer { whole, page_url }))
}
