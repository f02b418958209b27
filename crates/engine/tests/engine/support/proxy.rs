//! A TCP proxy before Postgres that cuts connections around COMMIT.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Where the connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// COMMIT never reaches the server.
    Before,
    /// COMMIT reaches the server, and both sides lose each other at once.
    During,
    /// The server has answered, and the answer is lost.
    After,
    /// In the middle of some statement of a transaction.
    Anywhere,
}

/// The proxy; it ends with the value.
pub(crate) struct Proxy {
    plan: Arc<Plan>,
    accepting: JoinHandle<()>,
}

struct Plan {
    cut: Mutex<Option<Cut>>,
    /// Every n-th COMMIT (or message) is cut.
    every: AtomicI64,
    seen: AtomicI64,
    cuts: AtomicUsize,
}

impl Proxy {
    /// Forwards to the server of this URL; returns the URL through the proxy.
    pub(crate) async fn before(url: &str) -> (Self, String) {
        let mut through = url::Url::parse(url).unwrap();
        let server = format!("{}:{}", through.host_str().unwrap(), through.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        through.set_host(Some("127.0.0.1")).unwrap();
        through.set_port(Some(address.port())).unwrap();
        let plan = Arc::new(Plan {
            cut: Mutex::new(None),
            every: AtomicI64::new(1),
            seen: AtomicI64::new(0),
            cuts: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn({
            let plan = plan.clone();
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let (plan, server) = (plan.clone(), server.clone());
                    tokio::spawn(async move {
                        let server = TcpStream::connect(server).await.unwrap();
                        forward(client, server, &plan).await;
                    });
                }
            }
        });
        (Self { plan, accepting }, through.to_string())
    }

    /// Cuts at every n-th COMMIT from now on.
    pub(crate) fn cut_every(&self, n: i64, cut: Cut) {
        *self.plan.cut.lock() = Some(cut);
        self.plan.every.store(n, Ordering::SeqCst);
        self.plan.seen.store(0, Ordering::SeqCst);
    }

    pub(crate) fn leave_alone(&self) {
        *self.plan.cut.lock() = None;
    }

    /// How many connections were cut.
    pub(crate) fn cuts(&self) -> usize {
        self.plan.cuts.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Plan {
    /// Whether this message is one to cut at, and how.
    fn judge(&self, message: &[u8]) -> Option<Cut> {
        let cut = (*self.cut.lock())?;
        let commit = message.windows(7).any(|window| window == b"COMMIT\0");
        if cut != Cut::Anywhere && !commit {
            return None;
        }
        let seen = self.seen.fetch_add(1, Ordering::SeqCst) + 1;
        let hit = seen % self.every.load(Ordering::SeqCst) == 0;
        if hit {
            self.cuts.fetch_add(1, Ordering::SeqCst);
        }
        hit.then_some(cut)
    }
}

/// One connection. The client speaks, the server answers; a request is cut where the plan says.
async fn forward(client: TcpStream, server: TcpStream, plan: &Plan) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let mut request = vec![0; 1 << 16];
    let mut answer = vec![0; 1 << 16];
    loop {
        tokio::select! {
            read = from_client.read(&mut request) => {
                let Ok(length @ 1..) = read else { return };
                match plan.judge(&request[..length]) {
                    None => if to_server.write_all(&request[..length]).await.is_err() { return },
                    Some(Cut::Before) => return,
                    Some(Cut::During) => {
                        let _ = to_server.write_all(&request[..length]).await;
                        return;
                    }
                    Some(Cut::After) => {
                        let _ = to_server.write_all(&request[..length]).await;
                        let _ = from_server.read(&mut answer).await;
                        return;
                    }
                    Some(Cut::Anywhere) => {
                        let _ = to_server.write_all(&request[..length / 2]).await;
                        return;
                    }
                }
            }
            read = from_server.read(&mut answer) => {
                let Ok(length @ 1..) = read else { return };
                if to_client.write_all(&answer[..length]).await.is_err() { return }
            }
        }
    }
}
