//! `/healthz`, `/readyz` and `/metrics`: for those who run the server.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;

use super::Shared;
use crate::problem::Problem;

/// A database that answers later than this is not ready.
const READY_LIMIT: Duration = Duration::from_secs(2);
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The process is alive.
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// The database answers as well.
pub(crate) async fn ready(State(api): State<Shared>) -> Result<&'static str, Problem> {
    let asking = async {
        let mut reader = api.database.read().await?;
        db::now(reader.conn()).await
    };
    match tokio::time::timeout(READY_LIMIT, asking).await {
        Ok(Ok(_)) => Ok("ready\n"),
        Ok(Err(error)) => Err(Problem::unavailable("the database does not answer").caused_by(error)),
        Err(_) => Err(Problem::unavailable("the database does not answer")),
    }
}

/// Everything that is counted, in the OpenMetrics text format.
pub(crate) async fn metrics(State(api): State<Shared>) -> Result<Response, Problem> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &api.registry).map_err(Problem::internal)?;
    Ok(([(CONTENT_TYPE, METRICS_TYPE)], text).into_response())
}
