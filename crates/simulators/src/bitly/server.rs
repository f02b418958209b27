//! The simulator as a server on the current tokio runtime.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use super::{
    account::Account,
    edits::{Mutation, MutationError},
    faults::FaultPlan,
    routes,
    stats::{Counters, Stats},
};

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

/// Why a simulator does not listen.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {listen}")]
    Listen {
        /// The address that was asked for.
        listen: SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
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
        let failed = |source| StartError::Listen { listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        let account = Arc::new(account.with_faults(&faults));
        let faults = faults.settled(account.seed());
        let (counters, token) = (Counters::default(), Token::default());
        let state = Arc::new(State { account, faults, options, counters, addr, token });
        let (stop, stopped) = watch::channel(());
        let task = tokio::spawn(accept(listener, Arc::clone(&state), stopped));
        Ok(Running { state, stop, task })
    }
}

/// A simulator that listens; dropping it ends it.
pub struct Running {
    state: Arc<State>,
    stop: watch::Sender<()>,
    task: JoinHandle<()>,
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
        let mut addr = self.state.addr;
        // Nobody can connect to "any address"; whoever listens on all of them listens on this one too.
        match addr.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => addr.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => addr.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        format!("http://{addr}/v4")
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
        drop(self.stop);
        // The task ends by itself; that it was cancelled with its runtime is no news.
        let _ = self.task.await;
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

async fn accept(listener: TcpListener, state: Arc<State>, mut stopped: watch::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = stopped.changed() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(serve(stream, Arc::clone(&state)))),
                // A client that is gone before it is accepted, or no free descriptor for now.
                Err(_) => tokio::task::yield_now().await,
            },
        }
    }
    connections.shutdown().await;
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
    // Without this a page waits for the acknowledgement of the one before; failing to set it only costs time.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| routes::answer(Arc::clone(&state), too_many, request));
    // A connection that is cut on purpose ends in an error here, as does one whose client went away.
    let _ =
        http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
    drop(open);
}
