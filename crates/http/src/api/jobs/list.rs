//! `GET /v1/jobs`

use axum::extract::State;
use engine::JobId;
use serde::{Deserialize, Serialize};

use crate::api::auth::{Allowed, JobsRead};
use crate::api::body::Query;
use crate::api::{PAGE_LIFE, Shared, listing};
use crate::jobs::{self, JobView};
use crate::pages;
use crate::problem::Problem;

/// Which page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    cursor: Option<String>,
    limit: Option<i64>,
}

/// A page of jobs.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    #[serde(flatten)]
    page: listing::Page<JobView>,
    /// The same for people; opens without an account, for a week from now.
    page_url: String,
}

/// A page of the jobs that the caller may see, newest first: the imports of the token's workspace, and the jobs that
/// belong to no workspace.
pub(crate) async fn handle(
    State(api): State<Shared>,
    caller: Allowed<JobsRead>,
    Query(parameters): Query<Parameters>,
) -> Result<axum::Json<Answer>, Problem> {
    let before = listing::after(parameters.cursor.as_deref())?.map(JobId);
    let size = listing::size(parameters.limit)?;
    let mut data = jobs::list(&api, caller.workspace, before, size + 1).await?;
    let room = usize::try_from(size).unwrap_or(1);
    let more = data.len() > room;
    data.truncate(room);
    let next_cursor = data.last().filter(|_| more).map(|last| listing::cursor(last.id.0));
    let expires = api.clock.now().plus(PAGE_LIFE).seconds();
    let page_url = pages::list_url(&api, caller.workspace, expires);
    Ok(axum::Json(Answer { page: listing::Page { data, next_cursor }, page_url }))
}
