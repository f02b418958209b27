//! The simulator as a server on the current tokio runtime.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use tokio::net::TcpStream;

use super::{
    account::Account,
    edits::{Mutation, MutationError},
    faults::FaultPlan,
    routes,
    stats::{Counters, Stats},
};
pub use crate::listen::StartError;
use crate::listen::{self, Listening};

/// Bitly allows this many connections of one address at once.
const CONNECTIONS_MAX: u64 = 5;

/// How a simulator behaves apart from its faults.
#[derive(Debug, Clone)]
pub struct Options {
    /// Every answer of the API comes this much later.
    pub latency: Duration,
    /// More open connections than this are closed without an answer; requests under `/__simulator/` are exempt.
    pub connections_max: u64,
    /// What answers say instead of `http://HOST` of the request, when something stands in front.
    pub public_origin: Option<String>,
    /// API calls a month that `plan_limits` tells of; nothing counts them but that answer.
    pub monthly_calls: u64,
    /// The clock for `Retry-After` dates.
    pub clock: fn() -> SystemTime,
}

impl Default for Options {
    /// No latency, five connections, 50,000 calls a month.
    fn default() -> Self {
        Self {
            latency: Duration::ZERO,
            connections_max: CONNECTIONS_MAX,
            public_origin: None,
            monthly_calls: 50_000,
            clock: SystemTime::now,
        }
    }
}

/// What all requests share.
pub(super) struct State {
    pub(super) account: Arc<Account>,
    pub(super) faults: FaultPlan,
    pub(super) options: Options,
    pub(super) counters: Counters,
    pub(super) addr: SocketAddr,
    pub(super) token: Token,
}

/// The token that is valid now.
#[derive(Debug, Default)]
pub(super) struct Token {
    renewals: AtomicU64,
    expired: AtomicBool,
}

impl Token {
    pub(super) fn accepts(&self, account: &Account, given: &str) -> bool {
        let renewals = self.renewals.load(Ordering::SeqCst);
        !self.expired.load(Ordering::SeqCst) && account.renewed_token(renewals) == given
    }

    pub(super) fn expire(&self) {
        self.expired.store(true, Ordering::SeqCst);
    }

    /// Makes a new token valid, and the old one worthless.
    pub(super) fn renew(&self, account: &Account) -> String {
        let renewals = self.renewals.fetch_add(1, Ordering::SeqCst) + 1;
        self.expired.store(false, Ordering::SeqCst);
        account.renewed_token(renewals)
    }
}

/// Starts simulators of Bitly.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Serves an account on `listen` (port 0: any free one) until the answer is dropped or shut down.
    ///
    /// # Errors
    /// [`StartError::Listen`] if the address cannot be listened on.
    pub async fn start(
        listen: SocketAddr,
        account: Account,
        faults: FaultPlan,
        options: Options,
    ) -> Result<Running, StartError> {
        let (listener, addr) = listen::bind(listen).await?;
        let account = Arc::new(account.with_faults(&faults));
        let faults = faults.settled(account.seed());
        let (counters, token) = (Counters::default(), Token::default());
        let state = Arc::new(State { account, faults, options, counters, addr, token });
        let shared = Arc::clone(&state);
        let listening = Listening::start(listener, move |stream| serve(stream, Arc::clone(&shared)));
        Ok(Running { state, listening })
    }
}

/// A simulator that listens; dropping it ends it.
pub struct Running {
    state: Arc<State>,
    listening: Listening,
}

impl Running {
    /// The address it listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.state.addr
    }

    /// The API's base URL, `/v4` included and without a slash at its end.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("{}/v4", listen::origin(self.state.addr))
    }

    /// The token the account starts with; it opens `/__simulator/` for ever.
    #[must_use]
    pub fn token(&self) -> String {
        self.state.account.token()
    }

    /// The account it serves, with what was planted in it.
    #[must_use]
    pub fn account(&self) -> &Arc<Account> {
        &self.state.account
    }

    /// What it tells whoever started it.
    #[must_use]
    pub fn ready(&self) -> Ready {
        let account = &self.state.account;
        Ready {
            url: self.base_url(),
            token: self.token(),
            group: account.default_group().guid.clone(),
            domain: account.domain().to_owned(),
            links: account.links(),
            slugs: account.slug_count(),
        }
    }

    /// What it has been asked so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.state.counters.read()
    }

    /// Changes the account and gives the id of the link it was about.
    ///
    /// # Errors
    /// [`MutationError`] if there is no such link, or the slug is taken.
    pub fn mutate(&self, mutation: Mutation) -> Result<String, MutationError> {
        self.state.account.mutate(mutation)
    }

    /// Refuses the token from now on, until it is renewed.
    pub fn expire_token(&self) {
        self.state.token.expire();
    }

    /// Makes a new token valid, and the old one worthless.
    #[must_use]
    pub fn renew_token(&self) -> String {
        self.state.token.renew(&self.state.account)
    }

    /// Stops listening, closes every connection, and comes back when all is done.
    pub async fn shutdown(self) {
        self.listening.shutdown().await;
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Running").field("addr", &self.state.addr).finish_non_exhaustive()
    }
}

/// The line a simulator prints when it listens.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// The API's base URL, `/v4` included.
    pub url: String,
    /// The access token.
    pub token: String,
    /// The guid of the owner's group.
    pub group: String,
    /// The custom domain of the links.
    pub domain: String,
    /// How many links a complete walk over all groups meets.
    pub links: u64,
    /// How many slugs they have.
    pub slugs: u64,
}

impl fmt::Debug for Ready {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Ready")
            .field("url", &self.url)
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}

/// Takes back what [`Counters::connection_opened`] counted, however the connection ends.
struct Open(Arc<State>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.counters.connection_closed();
    }
}

async fn serve(stream: TcpStream, state: Arc<State>) {
    let too_many = state.counters.connection_opened() > state.options.connections_max;
    let open = Open(Arc::clone(&state));
    let service = service_fn(move |request| routes::answer(Arc::clone(&state), too_many, request));
    // A connection that is cut on purpose ends in an error here, as does one whose client went away.
    let _ =
        http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
    drop(open);
}
