//! The endpoints: which there are, who may ask, and what they say.

use std::sync::Arc;

use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;

use super::{
    edits::Mutation,
    list,
    reply::{Delivery, Reply},
    server::State,
    shape::Group,
    truth,
    wire::{self, Origin},
    words::TAGS,
};
use crate::{
    encoding,
    listen::{accepts_gzip, bearer},
    payload::{Cut, Payload},
};

const ADMIN: &str = "/__simulator/";
const MUTATION_BYTES_MAX: usize = 64 * 1_024;
/// Calls an hour that the vendor allows for the list (seen in code that runs against it).
const LIST_CALLS_AN_HOUR: u64 = 1_500;

/// Answers one request; an error closes the connection without an answer.
pub(super) async fn answer(
    state: Arc<State>,
    too_many_connections: bool,
    request: Request<Incoming>,
) -> Result<Response<Payload>, Cut> {
    let admin = request.uri().path().starts_with(ADMIN);
    if too_many_connections && !admin {
        state.counters.lock().connections_refused += 1;
        return Err(Cut);
    }
    let _in_flight = state.counters.in_flight();
    let accepts_gzip = accepts_gzip(request.headers());
    if admin {
        return admin_reply(&state, request).await.send(accepts_gzip);
    }
    if !state.options.latency.is_zero() {
        tokio::time::sleep(state.options.latency).await;
    }
    let reply = api_reply(&state, &request).await;
    let reply = if state.faults.always_gzip() { reply.delivered_by_default(Delivery::Gzip) } else { reply };
    reply.send(accepts_gzip)
}

/// A request of the API, taken apart.
pub(super) struct Call<'a> {
    pub(super) state: &'a State,
    pub(super) origin: Origin,
    pub(super) query: Vec<(String, String)>,
}

async fn api_reply(state: &State, request: &Request<Incoming>) -> Reply {
    // Whatever stands before /v4 is somebody's prefix.
    let Some((prefix, path)) = request.uri().path().split_once("/v4/") else {
        state.counters.request("unknown");
        return Reply::error(404, "NOT_FOUND", "unknown");
    };
    let parts: Vec<String> = path.trim_end_matches('/').split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    state.counters.request(endpoint(&parts));
    if !bearer(request.headers()).is_some_and(|token| state.token.accepts(&state.account, token)) {
        state.counters.lock().unauthorized += 1;
        return Reply::error(401, "UNAUTHORIZED", parts[0]);
    }
    if request.method() != Method::GET {
        return Reply::error(405, "METHOD_NOT_ALLOWED", parts[0]);
    }
    let origin = Origin { base_url: format!("{}{prefix}/v4", scheme_and_host(state, request.headers())) };
    let query = encoding::query_pairs(request.uri().query().unwrap_or_default());
    let call = Call { state, origin, query };
    match parts.as_slice() {
        ["groups", guid, "bitlinks"] => list::reply(&call, guid).await,
        parts => call.short_reply(parts),
    }
}

impl Call<'_> {
    fn short_reply(&self, parts: &[&str]) -> Reply {
        match parts {
            ["user"] => Reply::json(200, &wire::user(&self.state.account)),
            ["user", "platform_limits"] => self.platform_limits(),
            ["groups"] => self.groups(),
            ["groups", guid] => self.with_group(guid, |group| self.group_body(group)),
            ["groups", guid, "tags"] => self.with_group(guid, tags),
            ["bsds"] => Reply::json(200, &serde_json::json!({"bsds": [self.state.account.domain()]})),
            // Some clients encode the slash inside an id, most do not.
            ["bitlinks", id @ ..] => self.bitlink(&id.join("/")),
            ["organizations"] => {
                Reply::json(200, &serde_json::json!({"organizations": [self.organization()]}))
            }
            ["organizations", guid, rest @ ..] => self.organization_reply(guid, rest),
            [resource, ..] => Reply::error(404, "NOT_FOUND", resource),
            [] => Reply::error(404, "NOT_FOUND", "unknown"),
        }
    }

    /// The first value of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The group with this guid: 404 if there is none, 403 if it is not active.
    pub(super) fn find_group(&self, guid: &str) -> Result<&Group, Box<Reply>> {
        let group = self.state.account.groups().iter().find(|group| group.guid == guid);
        match group {
            Some(group) if group.is_active => Ok(group),
            Some(_) => Err(Box::new(Reply::error(403, "FORBIDDEN", "groups"))),
            None => Err(Box::new(Reply::error(404, "NOT_FOUND", "groups"))),
        }
    }

    fn with_group(&self, guid: &str, body: impl FnOnce(&Group) -> serde_json::Value) -> Reply {
        match self.find_group(guid) {
            Ok(group) => Reply::json(200, &body(group)),
            Err(reply) => *reply,
        }
    }

    fn group_body(&self, group: &Group) -> serde_json::Value {
        wire::group(&self.state.account, &self.origin, group)
    }

    fn groups(&self) -> Reply {
        let account = &self.state.account;
        let wanted = self.parameter("organization_guid").is_none_or(|guid| guid == account.organization());
        let groups = account.groups().iter().filter(|_| wanted).map(|group| self.group_body(group));
        Reply::json(200, &serde_json::json!({"groups": groups.collect::<Vec<_>>()}))
    }

    fn bitlink(&self, id: &str) -> Reply {
        let account = &self.state.account;
        let Some(position) = account.find(id) else {
            return Reply::error(404, "NOT_FOUND", "bitlinks");
        };
        let edits = account.edits();
        let Some(link) = account.link(&edits, position) else {
            return Reply::error(404, "NOT_FOUND", "bitlinks");
        };
        if edits.deleted.contains(&position) || link.fault == Some(super::RecordFault::Deleted) {
            return Reply::error(410, "GONE", "bitlinks");
        }
        let number = account.group_at(position);
        let group = account.groups().iter().find(|group| group.links == Some(number));
        let mut body = Vec::new();
        wire::write_link(&mut body, &self.origin, group.map_or("", |group| &group.guid), &link);
        Reply::page(body)
    }

    fn platform_limits(&self) -> Reply {
        const ENDPOINT: &str = "/groups/{group_guid}/bitlinks";
        let wanted = self.parameter("path").is_none_or(|path| path == ENDPOINT);
        let count = self.state.counters.lock().list_requests;
        let limit = serde_json::json!({
            "endpoint": ENDPOINT,
            "methods": [{"name": "GET", "limit": LIST_CALLS_AN_HOUR, "count": count}],
        });
        let limits: Vec<_> = wanted.then_some(limit).into_iter().collect();
        Reply::json(200, &serde_json::json!({"platform_limits": limits}))
    }

    fn organization(&self) -> serde_json::Value {
        serde_json::json!({
            "guid": self.state.account.organization(),
            "name": "Example Ltd",
            "is_active": true,
            "tier": "growth",
            "tier_family": "enterprise",
            "tier_display_name": "Growth",
            "role": "org-admin",
            "created": "2018-04-02T09:30:00+0000",
            "modified": "2024-11-05T17:00:12+0000",
            "bsds": [self.state.account.domain()],
            "references": {},
        })
    }

    fn organization_reply(&self, guid: &str, rest: &[&str]) -> Reply {
        if guid != self.state.account.organization() {
            return Reply::error(404, "NOT_FOUND", "organizations");
        }
        match rest {
            [] => Reply::json(200, &self.organization()),
            ["plan_limits"] => self.plan_limits(),
            _ => Reply::error(404, "NOT_FOUND", "organizations"),
        }
    }

    fn plan_limits(&self) -> Reply {
        let used: u64 = self.state.counters.lock().requests.values().sum();
        let links = self.state.account.links();
        Reply::json(
            200,
            &serde_json::json!({"plan_limits": [
                {"name": "encodes", "limit": 1_000_000, "count": links, "description": "Links created this month"},
                {"name": "api_calls", "limit": self.state.options.monthly_calls, "count": used,
                 "description": "API calls made this month"},
            ]}),
        )
    }
}

fn tags(group: &Group) -> serde_json::Value {
    let tags: &[&str] = if group.links.is_some() { TAGS } else { &[] };
    serde_json::json!({ "tags": tags })
}

async fn admin_reply(state: &State, request: Request<Incoming>) -> Reply {
    state.counters.request("simulator");
    let started_with = state.account.token();
    let known = bearer(request.headers())
        .is_some_and(|token| token == started_with || state.token.accepts(&state.account, token));
    if !known {
        return Reply::error(401, "UNAUTHORIZED", "simulator");
    }
    let path = request.uri().path().strip_prefix(ADMIN).unwrap_or_default().to_owned();
    match (request.method(), path.as_str()) {
        (&Method::GET, "stats") => {
            let stats =
                serde_json::to_string(&state.counters.read()).expect("counters are plain numbers and text");
            Reply::bytes(200, "application/json", stats)
        }
        (&Method::GET, "truth") => truth_reply(state, request.uri().query().unwrap_or_default()),
        (&Method::POST, "mutate") => mutate(state, request).await,
        _ => Reply::error(404, "NOT_FOUND", "simulator"),
    }
}

fn truth_reply(state: &State, query: &str) -> Reply {
    let query = encoding::query_pairs(query);
    let number = |name: &str, default: usize| {
        let value = query.iter().find(|(known, _)| known == name);
        value.map_or(Ok(default), |(_, value)| value.parse())
    };
    match (number("offset", 0), number("limit", usize::MAX)) {
        (Ok(offset), Ok(limit)) => Reply::lines(truth::lines(&state.account, offset, limit)),
        _ => Reply::json(400, &wire::field_error("simulator", "offset_or_limit")),
    }
}

async fn mutate(state: &State, request: Request<Incoming>) -> Reply {
    let refused = |status, why: &dyn ToString| {
        Reply::json(status, &wire::error("BAD_REQUEST", &why.to_string(), "simulator"))
    };
    let body = match Limited::new(request.into_body(), MUTATION_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return refused(413, &error),
    };
    let value: serde_json::Value = match serde_json::from_slice(&body) {
        Ok(value) => value,
        Err(error) => return refused(400, &error),
    };
    if value["op"] == "renew_token" {
        return Reply::json(200, &serde_json::json!({"token": state.token.renew(&state.account)}));
    }
    match serde_json::from_value::<Mutation>(value) {
        Ok(mutation) => match state.account.mutate(mutation) {
            Ok(id) => Reply::json(200, &serde_json::json!({ "id": id })),
            Err(error) => refused(409, &error),
        },
        Err(error) => refused(400, &error),
    }
}

fn endpoint(parts: &[&str]) -> &'static str {
    match parts {
        ["user"] => "user",
        ["user", "platform_limits"] => "platform_limits",
        ["groups"] => "groups",
        ["groups", _] => "group",
        ["groups", _, "bitlinks"] => "list",
        ["groups", _, "tags"] => "tags",
        ["bitlinks", ..] => "bitlink",
        ["bsds"] => "bsds",
        ["organizations", _, "plan_limits"] => "plan_limits",
        ["organizations", ..] => "organizations",
        _ => "unknown",
    }
}

fn decoded(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

fn scheme_and_host(state: &State, headers: &HeaderMap) -> String {
    if let Some(origin) = &state.options.public_origin {
        return origin.trim_end_matches('/').to_owned();
    }
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    format!("http://{}", host.map_or_else(|| state.addr.to_string(), str::to_owned))
}
