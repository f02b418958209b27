//! Redirects: from a request on a link domain to the address its slug stands for.
//!
//! The way of a click is one look-up in memory: host → domain ([`domains`]), path → key ([`key`]), key → prepared
//! answer ([`cache`]), and a push into the click buffer ([`crate::clicks`]). Only what is not known is read from the
//! database, through one index, by a bounded number of readers at once ([`misses`]).
//!
//! What a link answers:
//!
//! | the link | answer |
//! |---|---|
//! | is open, or archived | its code or the domain's (302 unless set), `Location` as stored |
//! | is disabled | 404 |
//! | is protected by a password | 403: the password did not come over, so it stays closed |
//! | has expired | 302 to its expired URL, else to the domain's, else 410 |
//! | does not exist, or was deleted | 302 to the domain's fallback, else 404 |
//!
//! 301 and 308 may be kept by a browser for 90 seconds, unless the link expires; nothing else may be kept at all.
//! The visitor's query goes to the destination of links that pass it through and is dropped by the others. `/a/` is
//! the link `a/` if that exists, else `a`, and `/a` the other way round. Only GET and HEAD are answered, and only GET
//! counts.
//!
//! **What is seen when.** A change made through this process is seen by its next request ([`stamps`]). Changes made
//! by others arrive through the change feed, which is asked every 500 ms ([`feed`]): within 2 seconds, including
//! those whose transaction took its number early and committed late. While the database cannot be reached, known
//! links go on as they were.

mod answer;
mod cache;
mod domains;
mod feed;
pub(crate) mod host;
mod key;
mod misses;
mod stamps;

use std::sync::Arc;
use std::time::Duration;

use db::{Database, Id};
use http::{Method, Request, Uri};
use parking_lot::Mutex;

pub(crate) use answer::{Short, invalid_host, unknown_host};
pub(crate) use domains::Domain;

use crate::clicks::{self, Clicks};
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::visitor::Visitor;
use answer::{Answer, Said};
use cache::{Cache, Known};
use domains::Domains;
use key::Asked;
use misses::Misses;
use stamps::{Stamps, Stripe};

/// What the answers in memory may take, unless told otherwise: about half a million links.
pub const CACHE_BYTES: usize = 128 * 1024 * 1024;

/// A database that takes longer than this for one look-up is as good as away.
const READ_LIMIT: Duration = Duration::from_secs(5);

/// The links' redirects of one process. Cheap to share behind an [`Arc`].
pub struct Redirects {
    database: Database,
    clock: Arc<dyn Clock>,
    domains: Domains,
    cache: Cache,
    stamps: Stamps,
    misses: Misses,
    clicks: Clicks,
    /// Waits for the server to start it.
    click_writer: Mutex<Option<clicks::Writer>>,
    metrics: Metrics,
}

/// How a request is answered.
pub(crate) enum Handled {
    /// From memory.
    Now(Short),
    /// After a look into the database.
    Later(std::pin::Pin<Box<dyn Future<Output = Short> + Send>>),
}

/// Who asks, as far as counting goes.
#[derive(Clone, Copy)]
enum Asking {
    /// Counted.
    Click(Visitor),
    /// HEAD is never counted.
    Look,
}

impl Redirects {
    /// Redirects that keep at most `cache_bytes` of answers in memory. They serve once [`serve`](crate::serve) was
    /// given them, and one server only.
    pub fn new(database: Database, cache_bytes: usize, clock: Arc<dyn Clock>, metrics: Metrics) -> Arc<Self> {
        // As many as leave the other users of the pool their connections.
        let readers = match database.kind() {
            db::Kind::Sqlite => 3,
            db::Kind::Postgres => 8,
        };
        let (clicks, click_writer) = clicks::channel(clock.clone(), metrics.clone());
        Arc::new(Self {
            database,
            clock,
            domains: Domains::empty(),
            cache: Cache::new(cache_bytes),
            stamps: Stamps::new(),
            misses: Misses::new(readers),
            clicks,
            click_writer: Mutex::new(Some(click_writer)),
            metrics,
        })
    }

    pub(crate) fn take_click_writer(&self) -> Option<clicks::Writer> {
        self.click_writer.lock().take()
    }

    /// Must be called after a link was changed or deleted in this process, once that is committed.
    pub fn link_changed(&self, link: Id) {
        self.stamps.changed(Stripe::of_link(link));
    }

    /// Must be called after slugs were added in this process, once that is committed.
    pub fn slugs_added(&self) {
        self.stamps.slugs_added();
    }

    /// Must be called after a chunk of an import was committed in this process.
    pub fn imported(&self, written: &[engine::Written]) {
        use engine::Outcome;
        let mut added = false;
        for record in written {
            match record.outcome {
                Outcome::Imported => added = true,
                Outcome::Unchanged | Outcome::DuplicateInSource => {}
                // The outcome may be that of the record's worst slug: what stands there may all the same have been
                // written again, or be new.
                Outcome::Updated | Outcome::Skipped | Outcome::Filtered | Outcome::Failed => {
                    if let Some(reference) = &record.reference {
                        self.stamps.changed(Stripe::of_record(reference));
                        added = true;
                    }
                }
            }
        }
        if added {
            self.slugs_added();
        }
    }

    /// Forgets everything: for changes that cannot be told link by link.
    pub fn everything_changed(&self) {
        self.stamps.everything_changed();
    }

    /// Must be called after domains were added or changed in this process, once that is committed, and before the
    /// first request.
    ///
    /// # Errors
    /// The database's. The domains stay as they were.
    pub async fn domains_changed(&self) -> links::Result<()> {
        self.domains.reload(&self.database, &self.stamps).await
    }

    pub(crate) fn domain(&self, host: &str) -> Option<Arc<Domain>> {
        self.domains.find(host)
    }

    /// Answers a request on a link domain.
    pub(crate) fn handle<B>(self: &Arc<Self>, domain: Arc<Domain>, request: &Request<B>) -> Handled {
        let asking = match *request.method() {
            Method::GET => Asking::Click(Visitor::of(request.headers())),
            Method::HEAD => Asking::Look,
            _ => return Handled::Now(self.counted(answer::method_not_allowed())),
        };
        let path = request.uri().path();
        let bare = path.strip_prefix('/').unwrap_or(path);
        if bare.is_empty() {
            return Handled::Now(self.counted(domain.rules.root()));
        }
        let mut buffer = [0; links::SLUG_LENGTH_MAX];
        let known = if let Some(slug) = key::plain(bare, domain.case, &mut buffer) {
            self.known(&domain, slug)
        } else if let Some((_, compared)) = key::decoded(path, domain.case) {
            self.known(&domain, &compared)
        } else {
            Known::Absent
        };
        match known {
            Known::Link(answer) => {
                self.metrics.hits.inc();
                Handled::Now(self.say(&answer, &domain, request.uri().query(), asking))
            }
            Known::Absent => {
                self.metrics.absences.inc();
                Handled::Now(self.counted(domain.rules.unknown(path)))
            }
            Known::Nothing => {
                self.metrics.misses.inc();
                Handled::Later(Box::pin(self.clone().look_up(domain, request.uri().clone(), asking)))
            }
        }
    }

    fn known(&self, domain: &Domain, slug: &str) -> Known {
        self.cache.get(Asked { domain: domain.id, slug }, &self.stamps, || self.clock.now())
    }

    async fn look_up(self: Arc<Self>, domain: Arc<Domain>, uri: Uri, asking: Asking) -> Short {
        let Some((slug, compared)) = key::decoded(uri.path(), domain.case) else {
            return self.counted(domain.rules.unknown(uri.path()));
        };
        let Some(_turn) = self.misses.enter().await else {
            self.metrics.turned_away.inc();
            return self.counted(answer::busy());
        };
        let asked = Asked { domain: domain.id, slug: &compared };
        // Somebody may have looked it up while this request waited.
        match self.cache.get(asked, &self.stamps, || self.clock.now()) {
            Known::Link(answer) => return self.say(&answer, &domain, uri.query(), asking),
            Known::Absent => return self.counted(domain.rules.unknown(uri.path())),
            Known::Nothing => {}
        }
        let stamp = self.stamps.now();
        match self.read(&domain, &slug).await {
            Ok(Some((resolved, by_other_slash))) => {
                let until = by_other_slash.then(|| self.clock.now().plus(cache::ABSENCE_LIFE));
                let answer = Arc::new(Answer::new(&resolved, until, stamp));
                self.cache.keep(asked, answer.clone());
                self.say(&answer, &domain, uri.query(), asking)
            }
            Ok(None) => {
                self.cache.keep_absence(asked, stamp, self.clock.now());
                self.counted(domain.rules.unknown(uri.path()))
            }
            Err(cause) => {
                tracing::error!(cause, "a slug could not be looked up");
                self.counted(answer::busy())
            }
        }
    }

    /// The link at the slug, and whether it was found only by the other spelling of its trailing slash.
    async fn read(
        &self,
        domain: &Domain,
        slug: &links::Slug,
    ) -> Result<Option<(links::Resolved, bool)>, String> {
        let reading = async {
            let mut reader = self.database.read().await?;
            let key = domain.case.key(slug);
            // The longest slugs have no other spelling.
            let other = slug.other_slash();
            let other = other.as_ref().map_or_else(|| key.clone(), |other| domain.case.key(other));
            links::resolve_either(reader.conn(), domain.id, &key, &other).await
        };
        match tokio::time::timeout(READ_LIMIT, reading).await {
            Ok(found) => found.map_err(|error: links::Error| error.to_string()),
            Err(_) => Err("the database does not answer in time".into()),
        }
    }

    fn say(&self, answer: &Answer, domain: &Domain, query: Option<&str>, asking: Asking) -> Short {
        let now = self.clock.now();
        match answer.say(&domain.rules, query, now) {
            Said::Click(response) => {
                if let Asking::Click(visitor) = asking {
                    self.clicks.count(answer.link, visitor, now);
                }
                self.counted(response)
            }
            Said::Other(response) => self.counted(response),
        }
    }

    fn counted(&self, response: Short) -> Short {
        self.metrics.answered(response.status());
        response
    }
}
