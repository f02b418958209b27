//! Around every request of the admin hosts: its id, its time limit, its panics, its errors, its counting.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue};

use crate::metrics::{Metrics, RequestLabels};
use crate::problem::{Code, Problem, Rendering};
use crate::request_id::{HEADER, RequestId};

/// How long a request may take, its body included.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// How long a verification may take.
const VERIFY_LIMIT: Duration = Duration::from_secs(900);
/// A source that allows two and a half calls a second is asked up to seven times for each of ten groups.
const FORECAST_LIMIT: Duration = Duration::from_secs(120);

/// What is done around a request.
#[derive(Clone)]
pub(crate) struct Around {
    pub(crate) rendering: Rendering,
    pub(crate) metrics: Metrics,
}

pub(crate) async fn around(State(around): State<Around>, mut request: Request, next: Next) -> Response {
    let id = RequestId::new();
    request.extensions_mut().insert(id.clone());
    let method = request.method().clone();
    let route =
        request.extensions().get::<MatchedPath>().map_or_else(String::new, |path| path.as_str().to_owned());
    let limit = match route.as_str() {
        super::VERIFY => VERIFY_LIMIT,
        super::FORECAST => FORECAST_LIMIT,
        _ => TIME_LIMIT,
    };
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
    let mut response = around.rendering.finish(response, &id);
    finish_headers(response.headers_mut(), &id);
    let status = response.status().as_u16();
    around.metrics.requests.get_or_create(&RequestLabels::new(route, &method, status)).inc();
    response
}

fn finish_headers(headers: &mut HeaderMap, id: &RequestId) {
    headers.insert(HEADER, id.header());
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // What the API says is for its caller alone, and may have changed by the next request.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

fn told(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    async fn ask(path: &str) -> (u16, serde_json::Value) {
        let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
        let around_all = Around { rendering: Rendering { public_url: "https://x.example".into() }, metrics };
        async fn panics() {
            panic!("the secret of the handler");
        }
        async fn never_ends() {
            std::future::pending::<()>().await;
        }
        let router = Router::new()
            .route("/panics", get(panics))
            .route("/never-ends", get(never_ends))
            .layer(axum::middleware::from_fn_with_state(around_all, around));
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        assert!(response.headers().contains_key(HEADER));
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_panic_is_an_internal_error_that_tells_nothing() {
        let (status, body) = ask("/panics").await;
        assert_eq!((status, body["code"].as_str()), (500, Some("internal")));
        assert!(!body.to_string().contains("secret"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_that_never_ends_is_ended() {
        let (status, body) = ask("/never-ends").await;
        assert_eq!((status, body["code"].as_str()), (504, Some("timeout")));
    }
}
