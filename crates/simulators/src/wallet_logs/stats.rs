//! What a running simulator has been asked.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;

use super::id::Place;

/// Faults that struck are remembered one by one up to this many.
const STRUCK_MAX: usize = 100_000;
/// Pages are counted one by one up to this many; a walk over three million records in pages of ten has fewer.
const PAGES_MAX: usize = 500_000;

/// What was asked so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Requests of every kind.
    pub requests: u64,
    /// List requests with a valid token and readable parameters; a fault's place counts these, from 1.
    pub list_requests: u64,
    /// Pages that were served whole.
    pub pages_served: u64,
    /// Requests refused for their token.
    pub unauthorized: u64,
    /// The faults that struck, in their order.
    pub struck: Vec<Struck>,
    /// How often each page was asked and served, by shard and place.
    pub pages: Vec<PageCalls>,
}

/// One fault that struck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Struck {
    /// The list request it struck, from 1.
    pub request: u64,
    /// The fault's name.
    pub fault: String,
}

/// How often one page was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageCalls {
    /// The shard that was asked for.
    pub shard: Option<u64>,
    /// The index of the log at which the page begins.
    pub index: u64,
    /// How many of the records behind that log come before the page.
    pub sub: u16,
    /// How often it was asked.
    pub asked: u64,
    /// How often it was served whole.
    pub served: u64,
}

type Page = (Option<u64>, Place);

/// The counters of one server.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    stats: Stats,
    pages: BTreeMap<Page, (u64, u64)>,
}

impl Counters {
    pub(super) fn read(&self) -> Stats {
        let counted = self.lock();
        let pages = counted.pages.iter().map(|((shard, place), (asked, served))| PageCalls {
            shard: *shard,
            index: place.index,
            sub: place.sub,
            asked: *asked,
            served: *served,
        });
        Stats { pages: pages.collect(), ..counted.stats.clone() }
    }

    pub(super) fn request(&self) {
        self.lock().stats.requests += 1;
    }

    pub(super) fn unauthorized(&self) {
        self.lock().stats.unauthorized += 1;
    }

    /// Counts a list request and gives its number, from 1.
    pub(super) fn list(&self, shard: Option<u64>, place: Place) -> u64 {
        let mut counted = self.lock();
        counted.stats.list_requests += 1;
        counted.page(shard, place, |(asked, _)| *asked += 1);
        counted.stats.list_requests
    }

    pub(super) fn served(&self, shard: Option<u64>, place: Place) {
        let mut counted = self.lock();
        counted.stats.pages_served += 1;
        counted.page(shard, place, |(_, served)| *served += 1);
    }

    pub(super) fn struck(&self, request: u64, fault: String) {
        let struck = &mut self.lock().stats.struck;
        if struck.len() < STRUCK_MAX {
            struck.push(Struck { request, fault });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    fn page(&mut self, shard: Option<u64>, place: Place, count: impl FnOnce(&mut (u64, u64))) {
        let page = (shard, place);
        if self.pages.len() < PAGES_MAX || self.pages.contains_key(&page) {
            count(self.pages.entry(page).or_default());
        }
    }
}
