//! Around every request of the admin hosts: its id, its time limit, its panics, its errors, its counting.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use super::Shared;
use crate::metrics::RequestLabels;
use crate::problem::{Code, Problem};
use crate::request_id::{HEADER, RequestId};

/// How long a request may take, its body included.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// How long a verification may take.
const VERIFY_LIMIT: Duration = Duration::from_secs(900);

pub(crate) async fn around(State(api): State<Shared>, mut request: Request, next: Next) -> Response {
    let id = RequestId::new();
    request.extensions_mut().insert(id.clone());
    let method = request.method().clone();
    let route =
        request.extensions().get::<MatchedPath>().map_or_else(String::new, |path| path.as_str().to_owned());
    let limit = if route == super::VERIFY { VERIFY_LIMIT } else { TIME_LIMIT };
    // What a handler holds is dropped by its panic, and transactions roll back when dropped.
    let handling = AssertUnwindSafe(tokio::time::timeout(limit, next.run(request))).catch_unwind();
    let response = match handling.await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            Problem::new(Code::Timeout, format!("the request took longer than {} seconds", limit.as_secs()))
                .into_response()
        }
        Err(panic) => Problem::internal(told(&*panic)).into_response(),
    };
    let mut response = api.rendering.finish(response, &id);
    response.headers_mut().insert(HEADER, id.header());
    let status = response.status().as_u16();
    api.metrics.requests.get_or_create(&RequestLabels::new(route, &method, status)).inc();
    response
}

fn told(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}
