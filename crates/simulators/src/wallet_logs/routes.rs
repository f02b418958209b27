//! The endpoints: which there are, who may ask, and what they say.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use serde::Serialize;

use super::{list, server::State, stats::Stats, truth::Summary};
use crate::{
    encoding,
    listen::{accepts_gzip, bearer},
    payload::{Cut, Payload},
    reply::{Delivery, Reply},
};

/// Rows of the truth are sent in pieces of about this size.
const PIECE: usize = 1 << 16;

/// Answers one request; an error closes the connection without an answer.
pub(super) async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Payload>, Cut> {
    state.counters.request();
    let accepts_gzip = accepts_gzip(request.headers());
    let reply = match (request.method(), request.uri().path()) {
        (&Method::GET, "/wallet-logs") => return wallet_logs(&state, &request).await.send(accepts_gzip),
        (&Method::GET, "/truth") => truth(state).await,
        (&Method::GET, "/truth/rows") => rows(state),
        (&Method::POST, "/token") => token(&state, &request),
        (_, "/wallet-logs" | "/truth" | "/truth/rows" | "/token") => {
            error(405, "method", "METHOD_NOT_ALLOWED")
        }
        _ => error(404, "path", "NOT_FOUND"),
    };
    reply.send(accepts_gzip)
}

/// An error in the form of the API.
pub(super) fn error(status: u16, field: &str, code: &str) -> Reply {
    Reply::json(status, &serde_json::json!({"error": {"field": field, "code": code}}))
}

async fn wallet_logs(state: &State, request: &Request<Incoming>) -> Reply {
    if !state.options.latency.is_zero() {
        tokio::time::sleep(state.options.latency).await;
    }
    if !bearer(request.headers()).is_some_and(|token| state.token.accepts(token)) {
        state.counters.unauthorized();
        return error(401, "authorization", "UNAUTHORIZED");
    }
    let parameters = encoding::query_pairs(request.uri().query().unwrap_or_default());
    let reply = list::reply(state, &parameters).await;
    if state.faults.gzip { reply.delivered_by_default(Delivery::Gzip) } else { reply }
}

/// Gives a new token to whoever knows the first one.
fn token(state: &State, request: &Request<Incoming>) -> Reply {
    match bearer(request.headers()) {
        Some(token) if state.token.is_initial(token) => {
            Reply::json(200, &serde_json::json!({"token": state.token.renew()}))
        }
        _ => error(401, "authorization", "UNAUTHORIZED"),
    }
}

/// The truth in numbers and what was asked so far.
#[derive(Serialize)]
struct Truth<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    asked: Stats,
}

async fn truth(state: Arc<State>) -> Reply {
    // Adding up millions of records takes a while, and pages are served meanwhile.
    let told = tokio::task::spawn_blocking(move || {
        serde_json::to_vec(&Truth { summary: state.summary(), asked: state.counters.read() })
    });
    match told.await {
        Ok(Ok(body)) => Reply::bytes(200, "application/json", body),
        _ => error(500, "truth", "INTERNAL_ERROR"),
    }
}

fn rows(state: Arc<State>) -> Reply {
    let mut index = 0;
    Reply::lines(Box::new(move || {
        let mut piece = String::with_capacity(PIECE + 1_024);
        while piece.len() < PIECE && index < state.logs.count() {
            state.logs.rows(index).for_each(|row| piece.push_str(&row.line()));
            index += 1;
        }
        (!piece.is_empty()).then(|| Bytes::from(piece))
    }))
}
