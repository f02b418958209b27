//! What a running simulator has been asked.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;

/// List requests and strikes that are remembered one by one; later ones are only counted.
const CALLS_KEPT: usize = 100_000;

/// What was asked so far, for tests and `GET /__simulator/stats`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Requests by endpoint; refused ones are counted too.
    pub requests: BTreeMap<&'static str, u64>,
    /// List requests with a valid token; a fault's place counts these, from 1.
    pub list_requests: u64,
    /// The list requests in their order (the first 100,000).
    pub lists: Vec<ListCall>,
    /// The faults that struck list requests, in their order (the first 100,000).
    pub struck: Vec<Struck>,
    /// Requests refused for their token.
    pub unauthorized: u64,
    /// Connections that are open now.
    pub connections: u64,
    /// The most connections that were open at once.
    pub connections_max: u64,
    /// Connections closed because too many were open.
    pub connections_refused: u64,
    /// Requests that are being answered now.
    pub in_flight: u64,
    /// The most requests that were being answered at once.
    pub in_flight_max: u64,
}

/// One list request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListCall {
    /// Its number, from 1.
    pub request: u64,
    /// The group that was asked.
    pub group: String,
    /// The cursor that was sent; empty at the beginning.
    pub cursor: String,
    /// The account's index of the link the cursor stands at (0 is the newest); nothing at the beginning. In an
    /// account with one group read with `archived=both` in pages of `n`, page `p` (from 1) has `n * (p - 1) - 1`.
    pub behind: Option<i64>,
}

/// One fault that struck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Struck {
    /// The list request it struck, from 1.
    pub request: u64,
    /// The fault's name.
    pub fault: String,
}

/// The counters of one server.
#[derive(Debug, Default)]
pub(super) struct Counters {
    stats: Mutex<Stats>,
}

impl Counters {
    pub(super) fn read(&self) -> Stats {
        self.lock().clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Stats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection; gives how many are open now.
    pub(super) fn connection_opened(&self) -> u64 {
        let mut stats = self.lock();
        stats.connections += 1;
        stats.connections_max = stats.connections_max.max(stats.connections);
        stats.connections
    }

    pub(super) fn connection_closed(&self) {
        self.lock().connections -= 1;
    }

    pub(super) fn request(&self, endpoint: &'static str) {
        *self.lock().requests.entry(endpoint).or_default() += 1;
    }

    /// Counts a request until the guard is dropped.
    pub(super) fn in_flight(&self) -> InFlight<'_> {
        let mut stats = self.lock();
        stats.in_flight += 1;
        stats.in_flight_max = stats.in_flight_max.max(stats.in_flight);
        InFlight(self)
    }

    /// Counts a list request and gives its number, from 1.
    pub(super) fn list(&self, group: &str, cursor: &str, behind: Option<i64>) -> u64 {
        let mut stats = self.lock();
        stats.list_requests += 1;
        let request = stats.list_requests;
        if stats.lists.len() < CALLS_KEPT {
            stats.lists.push(ListCall {
                request,
                group: group.to_owned(),
                cursor: cursor.to_owned(),
                behind,
            });
        }
        request
    }

    pub(super) fn struck(&self, request: u64, fault: &str) {
        let mut stats = self.lock();
        if stats.struck.len() < CALLS_KEPT {
            stats.struck.push(Struck { request, fault: fault.to_owned() });
        }
    }
}

/// A request that is being answered.
pub(super) struct InFlight<'a>(&'a Counters);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.lock().in_flight -= 1;
    }
}
