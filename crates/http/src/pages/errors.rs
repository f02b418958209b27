//! `GET /errors/{code}`: what an error means and what to do about it. The `type` of every error leads here.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use maud::html;

use super::layout::{Html, page};
use crate::problem::{Code, Problem};
use crate::request_id::RequestId;

pub(crate) async fn handle(Path(word): Path<String>) -> Response {
    let Some(code) = Code::ALL.into_iter().find(|code| code.word() == word) else {
        return Problem::not_found().for_people().into_response();
    };
    let content = html! {
        p.soft { code { (code.word()) } " · status " (code.status().as_u16()) }
        h1 { (code.title()) }
        p { (code.advice()) }
    };
    Html(page(code.title(), None, &content)).into_response()
}

/// A page in place of the one that was asked for.
pub(crate) fn error_page(code: Code, detail: &str, request_id: &RequestId) -> String {
    let content = html! {
        h1 { (code.title()) }
        p { (detail) }
        p { (code.advice()) }
        p.soft { "Request " code { (request_id) } }
    };
    page(code.title(), None, &content)
}
