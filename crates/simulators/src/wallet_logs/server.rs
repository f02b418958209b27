//! The simulator as a server on the current tokio runtime.

use std::{
    collections::HashMap,
    fmt,
    net::SocketAddr,
    sync::{
        Arc, OnceLock, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use tokio::net::TcpStream;

use super::{FaultPlan, Logs, Stats, Summary, id::Place, listing::Listing, routes, stats::Counters};
pub use crate::listen::StartError;
use crate::{
    chance::draw,
    listen::{self, Listening},
};

const TOKEN: u64 = 0x90;

/// How a simulator behaves apart from its faults.
#[derive(Debug, Clone)]
pub struct Options {
    /// Every answer comes this much later.
    pub latency: Duration,
    /// The bearer token it starts with; made from the seed if none is given.
    pub token: Option<String>,
    /// How many shards there are, unless a request names another number.
    pub partitions: u64,
    /// The clock for `Retry-After` dates.
    pub clock: fn() -> SystemTime,
}

impl Default for Options {
    /// No latency, a token made from the seed, one partition.
    fn default() -> Self {
        Self { latency: Duration::ZERO, token: None, partitions: 1, clock: SystemTime::now }
    }
}

/// What all requests share.
pub(super) struct State {
    pub(super) logs: Arc<Logs>,
    pub(super) faults: FaultPlan,
    pub(super) options: Options,
    pub(super) counters: Counters,
    pub(super) token: Token,
    /// The list as it stands now.
    pub(super) listing: RwLock<Listing>,
    pub(super) cursors: RwLock<Cursors>,
    summary: OnceLock<Summary>,
    addr: SocketAddr,
}

impl State {
    pub(super) fn summary(&self) -> &Summary {
        self.summary.get_or_init(|| self.logs.summary())
    }
}

/// What is known of the cursors that were given.
#[derive(Debug, Default)]
pub(super) struct Cursors {
    /// How often all of them expired, and with which code.
    pub(super) generation: u8,
    pub(super) code: String,
    /// Those that expired alone, with their codes.
    pub(super) dead: HashMap<String, String>,
    /// How far the one cursor of the `stateful-cursor` switch is in each stretch.
    pub(super) sessions: HashMap<(u64, u64), Place>,
}

/// The token that is valid now.
#[derive(Debug)]
pub(super) struct Token {
    initial: String,
    renewals: AtomicU64,
    expired: AtomicBool,
}

impl Token {
    fn new(initial: String) -> Self {
        Self { initial, renewals: AtomicU64::new(0), expired: AtomicBool::new(false) }
    }

    pub(super) fn is_initial(&self, given: &str) -> bool {
        self.initial == given
    }

    pub(super) fn accepts(&self, given: &str) -> bool {
        let renewals = self.renewals.load(Ordering::SeqCst);
        !self.expired.load(Ordering::SeqCst) && self.renewed(renewals) == given
    }

    pub(super) fn expire(&self) {
        self.expired.store(true, Ordering::SeqCst);
    }

    /// Makes a new token valid, and the old one worthless.
    pub(super) fn renew(&self) -> String {
        let renewals = self.renewals.fetch_add(1, Ordering::SeqCst) + 1;
        self.expired.store(false, Ordering::SeqCst);
        self.renewed(renewals)
    }

    fn renewed(&self, renewals: u64) -> String {
        if renewals == 0 { self.initial.clone() } else { format!("{}.{renewals}", self.initial) }
    }
}

/// Starts simulators of an export of wallet logs.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Serves logs on `listen` (port 0: any free one) until the answer is dropped or shut down.
    ///
    /// # Errors
    /// [`StartError::Listen`] if the address cannot be listened on.
    pub async fn start(
        listen: SocketAddr,
        logs: Logs,
        faults: FaultPlan,
        options: Options,
    ) -> Result<Running, StartError> {
        let (listener, addr) = listen::bind(listen).await?;
        let logs = Arc::new(logs.with_faults(&faults));
        let initial = options.token.clone().unwrap_or_else(|| token(logs.seed()));
        let state = Arc::new(State {
            listing: RwLock::new(logs.listing().clone()),
            cursors: RwLock::default(),
            faults: faults.settled(logs.seed()),
            counters: Counters::default(),
            token: Token::new(initial),
            summary: OnceLock::new(),
            logs,
            options,
            addr,
        });
        let shared = Arc::clone(&state);
        let listening = Listening::start(listener, move |stream| serve(stream, Arc::clone(&shared)));
        Ok(Running { state, listening })
    }
}

fn token(seed: u64) -> String {
    format!("wl_{:016x}", draw(seed, TOKEN, 0))
}

async fn serve(stream: TcpStream, state: Arc<State>) {
    let service = service_fn(move |request| routes::answer(Arc::clone(&state), request));
    // A connection that is cut on purpose ends in an error here, as does one whose client went away.
    let _ =
        http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
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

    /// Where a client reaches it, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        listen::origin(self.state.addr)
    }

    /// The token it starts with; it opens `POST /token` for ever.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.state.token.initial
    }

    /// The logs it serves, odd ones included.
    #[must_use]
    pub fn logs(&self) -> &Arc<Logs> {
        &self.state.logs
    }

    /// What it tells whoever started it.
    #[must_use]
    pub fn ready(&self) -> Ready {
        Ready {
            url: self.url(),
            token: self.token().to_owned(),
            count: self.state.logs.count(),
            wallets: self.state.logs.wallets(),
            partitions: self.state.options.partitions,
        }
    }

    /// What it has been asked so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.state.counters.read()
    }

    /// Refuses the token from now on, until it is renewed.
    pub fn expire_token(&self) {
        self.state.token.expire();
    }

    /// Makes a new token valid, and the old one worthless.
    #[must_use]
    pub fn renew_token(&self) -> String {
        self.state.token.renew()
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
    /// Where it listens, without a path.
    pub url: String,
    /// The bearer token.
    pub token: String,
    /// How many movements it serves.
    pub count: u64,
    /// How many wallets they are of.
    pub wallets: u64,
    /// How many shards there are.
    pub partitions: u64,
}

impl fmt::Debug for Ready {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Ready")
            .field("url", &self.url)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}
