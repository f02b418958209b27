//! What all pages share: the frame, the style, the headers.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue};
use maud::{DOCTYPE, Markup, html};

/// Nothing runs, nothing is embedded, nothing is sent anywhere; the style sheet is ours.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
const STYLE: &str = include_str!("style.css");

/// The frame of a page. `refresh_seconds` makes the browser load it again.
pub(crate) fn page(title: &str, refresh_seconds: Option<u32>, content: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                @if let Some(seconds) = refresh_seconds { meta http-equiv="refresh" content=(seconds); }
                title { (title) " · Crossdock" }
                link rel="stylesheet" href="/style.css";
                link rel="icon" href="data:,";
            }
            body {
                header { span.brand { "Crossdock" } }
                main { (content) }
            }
        }
    };
    markup.into_string()
}

/// The headers of every page.
pub(crate) fn secure(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // A signed address must not travel to the sites that a page links to.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// A page as a response.
pub(crate) struct Html(pub(crate) String);

impl axum::response::IntoResponse for Html {
    fn into_response(self) -> axum::response::Response {
        let mut response = axum::response::Response::new(self.0.into());
        secure(response.headers_mut());
        response
    }
}

/// `GET /style.css`
pub(crate) async fn style() -> impl axum::response::IntoResponse {
    ([(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, "public, max-age=3600")], STYLE)
}
