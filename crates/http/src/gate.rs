//! The first thing that looks at a request: its host decides between a redirect and the API.
//!
//! A host that is a link domain serves redirects and nothing else, so that no slug is shadowed by a path of ours.
//! API, pages and metrics answer on the admin host, the public URL's host and loopback names. Any other host gets
//! 404: never another domain's link.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use tower::ServiceExt;

use crate::client_address::TrustedProxies;
use crate::connection::Activity;
use crate::redirect::host::{Named, named};
use crate::redirect::{Handled, Redirects, Short, invalid_host, unknown_host};

pub(crate) type Answered = Response<Either<Full<Bytes>, Body>>;

/// The hosts that API, pages and metrics answer on.
#[derive(Debug, Clone)]
pub(crate) struct AdminHosts {
    /// If set, loopback names lead there for callers on this machine only.
    pub(crate) admin: Option<String>,
    pub(crate) public: Option<String>,
}

impl AdminHosts {
    pub(crate) fn serve(&self, host: &str, client: IpAddr) -> bool {
        let is =
            |known: &Option<String>| known.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(host));
        is(&self.admin)
            || is(&self.public)
            || (is_loopback(host) && (self.admin.is_none() || client.is_loopback()))
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Shared by all connections.
pub(crate) struct Gate {
    pub(crate) redirects: Arc<Redirects>,
    pub(crate) admin: Router,
    pub(crate) admin_hosts: AdminHosts,
    pub(crate) proxies: TrustedProxies,
}

/// The gate as one connection sees it.
pub(crate) struct Door {
    pub(crate) gate: Arc<Gate>,
    pub(crate) peer: IpAddr,
    pub(crate) activity: Arc<Activity>,
}

impl hyper::service::Service<Request<Incoming>> for Door {
    type Response = Answered;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Answering {
        self.activity.request_began();
        let host = match named(&request) {
            Named::Host(host) => host,
            Named::Invalid => return self.now(invalid_host()),
        };
        if let Some(domain) = self.gate.redirects.domain(host) {
            return match self.gate.redirects.handle(domain, &request) {
                Handled::Now(response) => self.now(response),
                Handled::Later(response) => self.later(Box::pin(async move { short(response.await) })),
            };
        }
        let client = self.gate.proxies.client(self.peer, request.headers());
        if !self.gate.admin_hosts.serve(host, client.0) {
            return self.now(unknown_host());
        }
        let (admin, mut request) = (self.gate.admin.clone(), request.map(Body::new));
        request.extensions_mut().insert(client);
        self.later(Box::pin(async move {
            let response = admin.oneshot(request).await.unwrap_or_else(|never| match never {});
            response.map(Either::Right)
        }))
    }
}

impl Door {
    fn now(&self, response: Short) -> Answering {
        self.activity.request_ended();
        Answering::Now(Some(short(response)))
    }

    fn later(&self, response: Pin<Box<dyn Future<Output = Answered> + Send>>) -> Answering {
        Answering::Later { response, activity: self.activity.clone() }
    }
}

fn short(response: Short) -> Answered {
    response.map(Either::Left)
}

/// A redirect from memory costs no allocation for its future.
pub(crate) enum Answering {
    Now(Option<Answered>),
    Later { response: Pin<Box<dyn Future<Output = Answered> + Send>>, activity: Arc<Activity> },
}

impl Future for Answering {
    type Output = Result<Answered, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Now(response) => {
                Poll::Ready(Ok(response.take().expect("a future is not polled after its end")))
            }
            Self::Later { response, activity } => {
                let answered = std::task::ready!(response.as_mut().poll(context));
                activity.request_ended();
                Poll::Ready(Ok(answered))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_answers_on_its_own_hosts_only() {
        let hosts = |admin: Option<&str>| AdminHosts {
            admin: admin.map(str::to_owned),
            public: Some("links.example.com".into()),
        };
        let (outside, inside) = ("192.0.2.1".parse().unwrap(), "127.0.0.1".parse().unwrap());
        for (admin, host, client, served) in [
            (None, "localhost", outside, true),
            (None, "127.0.0.1", outside, true),
            (None, "127.8.8.8", outside, true),
            (None, "[::1]", outside, true),
            (None, "Links.Example.com", outside, true),
            (None, "other.example.com", inside, false),
            (None, "10.0.0.1", inside, false),
            (None, "localhost.example.com", inside, false),
            (Some("admin.example.com"), "ADMIN.example.com", outside, true),
            (Some("admin.example.com"), "links.example.com", outside, true),
            (Some("admin.example.com"), "localhost", outside, false),
            (Some("admin.example.com"), "localhost", inside, true),
            (Some("admin.example.com"), "other.example.com", inside, false),
        ] {
            assert_eq!(hosts(admin).serve(host, client), served, "{admin:?} {host} {client}");
        }
    }
}
