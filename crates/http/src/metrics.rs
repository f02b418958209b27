//! What this crate counts, for Prometheus.

use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The statuses that link domains answer with.
const STATUSES: [u16; 11] = [301, 302, 307, 308, 400, 403, 404, 405, 410, 500, 503];

/// Counters of redirects, of their cache, and of clicks. Cheap to clone; clones count together.
#[derive(Clone)]
pub struct Metrics {
    /// Made beforehand, so that a redirect takes no lock to count itself.
    statuses: [Counter; STATUSES.len()],
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) absences: Counter,
    pub(crate) turned_away: Counter,
    pub(crate) clicks_human: Counter,
    pub(crate) clicks_bot: Counter,
    pub(crate) clicks_dropped: Counter,
    pub(crate) clicks_written: Counter,
    pub(crate) click_blocks_set_aside: Counter,
    pub(crate) connections: Counter,
    pub(crate) requests: Family<RequestLabels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabel {
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// The route's pattern, never the path: a label's values are bounded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    route: String,
    method: &'static str,
    status: u16,
}

impl RequestLabels {
    pub(crate) fn new(route: String, method: &Method, status: u16) -> Self {
        const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
        let method = METHODS.into_iter().find(|known| *known == method.as_str()).unwrap_or("other");
        Self { route, method, status }
    }
}

impl Metrics {
    /// Makes the counters and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let redirects: Family<StatusLabel, Counter> = Family::default();
        let statuses = STATUSES.map(|status| redirects.get_or_create(&StatusLabel { status }).clone());
        registry.register("crossdock_redirects", "Answers of link domains, by status", redirects);
        let clicks: Family<KindLabel, Counter> = Family::default();
        let of_kind = |kind| clicks.get_or_create(&KindLabel { kind }).clone();
        let (clicks_human, clicks_bot) = (of_kind("human"), of_kind("bot"));
        registry.register("crossdock_clicks", "Clicks counted, by kind of visitor", clicks);
        let requests = Family::default();
        registry.register("crossdock_http_requests", "Requests of API and pages", Family::clone(&requests));
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        Self {
            statuses,
            clicks_human,
            clicks_bot,
            requests,
            hits: counter("crossdock_redirect_cache_hits", "Redirects answered from memory"),
            misses: counter("crossdock_redirect_cache_misses", "Redirects that had to ask the database"),
            absences: counter("crossdock_redirect_absent_hits", "Unknown slugs answered from memory"),
            turned_away: counter(
                "crossdock_redirect_turned_away",
                "Look-ups refused because too many were under way",
            ),
            clicks_dropped: counter(
                "crossdock_clicks_dropped",
                "Clicks lost because the database did not keep up",
            ),
            clicks_written: counter("crossdock_clicks_written", "Clicks written to the database"),
            click_blocks_set_aside: counter(
                "crossdock_click_blocks_set_aside",
                "Blocks of clicks that cannot be read, kept in the database and not counted",
            ),
            connections: counter("crossdock_http_connections", "Connections accepted"),
        }
    }

    pub(crate) fn answered(&self, status: StatusCode) {
        if let Some(place) = STATUSES.iter().position(|known| *known == status.as_u16()) {
            self.statuses[place].inc();
        }
    }
}
