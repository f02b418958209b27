//! `GET /`: for somebody who opens the server in a browser.

use maud::html;

use super::layout::{Html, page};

pub(crate) async fn handle() -> Html {
    let content = html! {
        h1 { "Crossdock" }
        p { "This server answers for short links and brings them over from other services." }
        div.card {
            table {
                tr { th { code { "/v1" } } td.text { "The REST API, with a bearer token. " code { "crossdock token create" } " makes one." } }
                tr { th { code { "/migrate-from/bitly" } } td.text { a href="/migrate-from/bitly" { "What comes over from Bitly, and what does not" } } }
                tr { th { code { "/metrics" } } td.text { "Counters for Prometheus; " code { "/healthz" } " and " code { "/readyz" } " for whoever watches the server." } }
            }
        }
    };
    Html(page("Short links", None, &content))
}
