//! The least a redirect server on the same stack can do: one route, one look-up, one header.
//!
//!     redirect-peer LINKS [ADDRESS]
//!
//! Answers `/s000000` and on, LINKS of them, with 302 to `https://example.com/landing/N?utm=x`. It looks at no Host,
//! no database and no state of a link, and counts nothing: what Crossdock does more is what the comparison prices.
//! It prints `serving on http://ADDRESS` to standard error when it listens.

use std::error::Error;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use moka::sync::Cache;
use tokio::net::TcpListener;

type Targets = Cache<String, HeaderValue>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let links: u64 = arguments.next().ok_or("usage: redirect-peer LINKS [ADDRESS]")?.parse()?;
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let routes = Router::new().route("/{slug}", get(redirect)).with_state(targets(links)?);
    // One thread: the measurement gives each server one core.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(&address).await?;
        eprintln!("serving on http://{}", listener.local_addr()?);
        axum::serve(listener, routes).await?;
        Ok(())
    })
}

async fn redirect(State(targets): State<Targets>, Path(slug): Path<String>) -> Response {
    match targets.get(&slug) {
        Some(target) => (StatusCode::FOUND, [(header::LOCATION, target)]).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Twice the room that is needed, so that nothing is ever evicted.
fn targets(links: u64) -> Result<Targets, Box<dyn Error>> {
    let cache = Cache::new(links * 2);
    for number in 0..links {
        cache.insert(
            format!("s{number:06}"),
            HeaderValue::try_from(format!("https://example.com/landing/{number}?utm=x"))?,
        );
    }
    Ok(cache)
}
