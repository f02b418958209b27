//! The client: what one API is asked through, and what all requests to it share.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue};
use url::Url;

use crate::call::Call;
use crate::chance::{Chance, ThreadChance};
use crate::classify::Classify;
use crate::clock::{Clock, SystemClock};
use crate::credentials::Credentials;
use crate::error::Error;
use crate::options::{Options, RetryPolicy};
use crate::origin::Origin;
use crate::pacer::{Pacer, Turn};
use crate::pause::{Passage, Pause};
use crate::request::{Answer, Request};
use crate::stats::{Counters, Observe, Stats};
use crate::tls;

/// A client of one API. Cheap to clone; clones share connections, pace, pause and counters.
///
/// Dropping the future of a request gives it up at once, whatever it waits for.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) origin: Origin,
    pub(crate) http: reqwest::Client,
    pub(crate) headers: HeaderMap,
    pub(crate) body_max_bytes: usize,
    pub(crate) retry: RetryPolicy,
    pub(crate) credentials: Option<Arc<dyn Credentials>>,
    pub(crate) classify: Option<Arc<dyn Classify>>,
    pub(crate) observe: Option<Arc<dyn Observe>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Arc<dyn Chance>,
    pub(crate) pause: Pause,
    pub(crate) pacer: Option<Pacer>,
    pub(crate) counters: Counters,
}

impl Client {
    /// What time it is by the clock that its waits follow.
    pub fn now(&self) -> std::time::SystemTime {
        self.shared.clock.now()
    }

    /// Begins a client of the API below `base`; only this origin will ever be asked.
    pub fn builder(base: Url) -> Builder {
        Builder {
            base,
            options: Options::default(),
            credentials: None,
            classify: None,
            observe: None,
            clock: None,
            chance: None,
        }
    }

    /// Asks for `target` (see [`Request::get`]) with `query`.
    ///
    /// # Errors
    /// See [`Client::send`].
    pub async fn get(&self, target: &str, query: &[(&str, &str)]) -> Result<Answer, Error> {
        self.send(Request::get(target).query(query.iter().copied())).await
    }

    /// As [`Client::get`], and takes only a whole JSON document for an answer.
    ///
    /// # Errors
    /// See [`Client::send`].
    pub async fn get_json(&self, target: &str, query: &[(&str, &str)]) -> Result<Answer, Error> {
        self.send(Request::get(target).query(query.iter().copied()).expect_json()).await
    }

    /// Sends a request, again if need be, until there is an answer or a reason to stop.
    ///
    /// # Errors
    /// Every variant of [`Error`] but [`Error::Options`]; [`Error::is_temporary`] tells whether the same
    /// request may succeed later.
    pub async fn send(&self, request: Request) -> Result<Answer, Error> {
        Box::pin(Call::new(&self.shared, &request)?.run()).await
    }

    /// What has been done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.counters.snapshot()
    }

    /// The base URL.
    #[must_use]
    pub fn base(&self) -> &Url {
        self.shared.origin.base()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").field("base", &self.base().as_str()).finish_non_exhaustive()
    }
}

impl Shared {
    /// Waits for the pace and for a pause to end; in this order, so that a pause that begins while the pace is
    /// waited for is kept too.
    pub(crate) async fn enter(&self) -> (Option<Turn<'_>>, Passage<'_>) {
        let began = self.clock.monotonic();
        let turn = match &self.pacer {
            Some(pacer) => Some(pacer.turn(&*self.clock).await),
            None => None,
        };
        let passage = self.pause.pass(&*self.clock, &*self.chance).await;
        self.counters.waited(self.clock.monotonic().saturating_sub(began));
        (turn, passage)
    }
}

/// Collects what a client is made of.
#[must_use]
pub struct Builder {
    base: Url,
    options: Options,
    credentials: Option<Arc<dyn Credentials>>,
    classify: Option<Arc<dyn Classify>>,
    observe: Option<Arc<dyn Observe>>,
    clock: Option<Arc<dyn Clock>>,
    chance: Option<Arc<dyn Chance>>,
}

impl Builder {
    /// Replaces the default options.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Who to ask as; without it, nothing is sent to prove it.
    pub fn credentials(mut self, credentials: impl Credentials) -> Self {
        self.credentials = Some(Arc::new(credentials));
        self
    }

    /// Reads what the answers of this source mean.
    pub fn classify(mut self, classify: impl Classify) -> Self {
        self.classify = Some(Arc::new(classify));
        self
    }

    /// Hears of retries.
    pub fn observe(mut self, observe: impl Observe) -> Self {
        self.observe = Some(Arc::new(observe));
        self
    }

    /// Replaces the machine's clock.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Replaces the thread's generator.
    pub fn chance(mut self, chance: impl Chance) -> Self {
        self.chance = Some(Arc::new(chance));
        self
    }

    /// The client. Opens no connection yet.
    ///
    /// # Errors
    /// [`Error::BadUrl`] for a base that cannot be asked, [`Error::Options`] for options that contradict
    /// themselves.
    pub fn build(self) -> Result<Client, Error> {
        let options = self.options;
        check(&options)?;
        let origin = Origin::new(self.base)?;
        let shared = Shared {
            http: http_client(&origin, &options)?,
            origin,
            headers: options.headers,
            body_max_bytes: options.body_max_bytes,
            retry: options.retry,
            credentials: self.credentials,
            classify: self.classify,
            observe: self.observe,
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock::new())),
            chance: self.chance.unwrap_or_else(|| Arc::new(ThreadChance)),
            pause: Pause::default(),
            pacer: options.pace.map(Pacer::new),
            counters: Counters::default(),
        };
        Ok(Client { shared: Arc::new(shared) })
    }
}

fn check(options: &Options) -> Result<(), Error> {
    let refuse = |reason: &str| Err(Error::Options { reason: reason.to_owned() });
    match options.pace {
        Some(pace) if pace.requests == 0 || pace.concurrent == 0 => {
            refuse("a pace that lets nothing through")
        }
        _ if HeaderValue::from_str(&options.user_agent).is_err() => {
            refuse("a user agent that no header can carry")
        }
        _ => Ok(()),
    }
}

/// The transport alone: redirects, retries and decoding are done by us, where they can be judged.
fn http_client(origin: &Origin, options: &Options) -> Result<reqwest::Client, Error> {
    let with_machine_roots = origin.base().scheme() == "https";
    let tls = tls::config(with_machine_roots, options.extra_roots_pem.as_deref())?;
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .user_agent(&options.user_agent)
        .connect_timeout(options.connect_timeout)
        .read_timeout(options.read_timeout)
        .timeout(options.attempt_timeout);
    if origin.is_loopback() {
        // A proxy named by the environment cannot reach this machine's own address.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| Error::Options { reason: error.without_url().to_string() })
}
