//! Listening on an address, for every simulator.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use http::{HeaderMap, header};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

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

/// Listens on an address (port 0: any free one); gives the address it got.
pub(crate) async fn bind(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { listen, source };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let addr = listener.local_addr().map_err(failed)?;
    Ok((listener, addr))
}

/// A loop that takes connections; dropping it ends it.
pub(crate) struct Listening {
    stop: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Listening {
    /// Gives every connection to `serve`, each in a task of its own.
    pub(crate) fn start<S, F>(listener: TcpListener, serve: S) -> Self
    where
        S: Fn(TcpStream) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopped) = watch::channel(());
        Self { stop, task: tokio::spawn(accept(listener, stopped, serve)) }
    }

    /// Stops listening, closes every connection, and comes back when all is done.
    pub(crate) async fn shutdown(self) {
        drop(self.stop);
        // The task ends by itself; that it was cancelled with its runtime is no news.
        let _ = self.task.await;
    }
}

async fn accept<S, F>(listener: TcpListener, mut stopped: watch::Receiver<()>, serve: S)
where
    S: Fn(TcpStream) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = stopped.changed() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // Without this a page waits for the acknowledgement of the one before; failing to set it only
                    // costs time.
                    let _ = stream.set_nodelay(true);
                    connections.spawn(serve(stream));
                }
                // A client that is gone before it is accepted, or no free descriptor for now.
                Err(_) => tokio::task::yield_now().await,
            },
        }
    }
    connections.shutdown().await;
}

/// Where a client reaches `addr`.
pub(crate) fn origin(mut addr: SocketAddr) -> String {
    // Nobody can connect to "any address"; whoever listens on all of them listens on this one too.
    match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => addr.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => addr.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("http://{addr}")
}

/// The token a request shows.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether a client takes a compressed body.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.any(|value| value.split(',').any(|coding| coding.trim().to_ascii_lowercase().starts_with("gzip")))
}
