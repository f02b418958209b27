//! A proxy in front of Postgres that cuts a connection at a COMMIT.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::case::{Cut, Moment};
use crate::wire::Messages;

const BUFFER: usize = 16 * 1024;

/// A listening proxy; dropping it closes everything.
pub(crate) struct Proxy {
    address: String,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

struct State {
    upstream: String,
    cut: Option<Cut>,
    commits: AtomicU64,
    done: AtomicBool,
    /// Turns to `true` when all connections are to be cut.
    all: watch::Sender<bool>,
}

impl Proxy {
    /// Listens in front of `upstream` (`HOST:PORT`); without a cut it only counts.
    pub(crate) async fn start(upstream: String, cut: Option<Cut>) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let (all, _) = watch::channel(false);
        let state =
            Arc::new(State { upstream, cut, commits: AtomicU64::new(0), done: AtomicBool::new(false), all });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&state)));
        Ok(Self { address, state, _tasks: tasks })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// COMMITs seen so far.
    pub(crate) fn commits(&self) -> u64 {
        self.state.commits.load(Ordering::SeqCst)
    }

    /// Whether the cut was made.
    pub(crate) fn has_cut(&self) -> bool {
        self.state.done.load(Ordering::SeqCst)
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => drop(connections.spawn(serve(client, Arc::clone(&state)))),
                Err(_) => tokio::task::yield_now().await,
            },
        }
    }
}

/// Serves one connection. Errors of either side end it, as a network would.
async fn serve(client: TcpStream, state: Arc<State>) {
    let mut all = state.all.subscribe();
    // A connection made after the cut of all others lives.
    all.mark_unchanged();
    let Ok(server) = TcpStream::connect(&state.upstream).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    tokio::select! {
        _ = pass_on(client, server, &state) => {}
        _ = all.changed() => {}
    }
}

async fn pass_on(mut client: TcpStream, mut server: TcpStream, state: &State) -> std::io::Result<()> {
    let mut messages = Messages::default();
    let (mut from_client, mut from_server) = (vec![0; BUFFER], vec![0; BUFFER]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                messages.push(&from_client[..read]);
                while let Some(message) = messages.next() {
                    if let Some(cut) = message.is_commit().then(|| state.due()).flatten() {
                        return state.cut(cut, client, server, &message.bytes).await;
                    }
                    server.write_all(&message.bytes).await?;
                }
            }
            read = server.read(&mut from_server) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                client.write_all(&from_server[..read]).await?;
            }
        }
    }
}

impl State {
    /// Counts a COMMIT; gives the cut that is due at it.
    fn due(&self) -> Option<Cut> {
        let number = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        self.cut.filter(|cut| cut.commit == number)
    }

    async fn cut(
        &self,
        cut: Cut,
        client: TcpStream,
        mut server: TcpStream,
        commit: &[u8],
    ) -> std::io::Result<()> {
        self.done.store(true, Ordering::SeqCst);
        let cut_all = || {
            if cut.all {
                self.all.send_replace(true);
            }
        };
        match cut.moment {
            Moment::Before => cut_all(),
            Moment::During => {
                server.write_all(commit).await?;
                drop(client);
                // The server's side stays until it has answered: the commit is in flight while the client looks it up.
                answer(&mut server).await?;
                cut_all();
            }
            Moment::After => {
                server.write_all(commit).await?;
                answer(&mut server).await?;
                cut_all();
            }
        }
        Ok(())
    }
}

/// Waits until the server has begun to answer: then the commit has been made.
async fn answer(server: &mut TcpStream) -> std::io::Result<()> {
    server.read(&mut [0; 64]).await.map(drop)
}
