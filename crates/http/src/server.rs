//! The server: accepts connections, hands requests to the gate, and stops when told to, with nothing half done.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::{Activity, Stream, TICK, Watch};
use crate::gate::{AdminHosts, Door, Gate};
use crate::{Metrics, Parts, ServerOptions};

/// Connections open at once; further ones wait in the kernel's queue until one is closed.
const CONNECTIONS_MAX: usize = 8_192;
/// Header lines in a request.
const HEADERS_MAX: usize = 100;
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long requests under way may take to end after the server was told to stop.
const DRAIN_LIMIT: Duration = Duration::from_secs(20);
/// After a failure to accept (usually: no file descriptors left) the loop waits before it tries again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The links or domains cannot be read.
    #[error("cannot read the domains: {0}")]
    Links(#[from] links::Error),
    /// The listener does not say where it listens.
    #[error("cannot listen: {0}")]
    Listen(#[from] std::io::Error),
    /// The redirects were given to a server before.
    #[error("these redirects are served already")]
    Served,
}

/// Serves until `shutdown` completes, then lets requests under way end (for at most 20 seconds), flushes the clicks
/// and returns.
///
/// # Errors
/// [`ServeError`] if the domains cannot be read at the start.
pub async fn serve(
    listener: TcpListener,
    options: ServerOptions,
    parts: Parts,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let address = listener.local_addr()?;
    let redirects = parts.redirects.clone();
    let click_writer = redirects.take_click_writer().ok_or(ServeError::Served)?;
    let mark = redirects.start().await?;
    let stop = CancellationToken::new();
    let tasks = TaskTracker::new();
    tasks.spawn(redirects.clone().follow(mark, stop.clone()));
    let clicks = tokio::spawn(click_writer.run(parts.database.clone(), stop.clone()));

    let gate = Arc::new(Gate {
        redirects,
        admin_hosts: AdminHosts {
            admin: options.admin_host.as_ref().map(|host| host.as_str().to_owned()),
            public: options.public_host(),
        },
        proxies: options.trusted_proxies.clone(),
        admin: crate::api::router(&options, &parts),
    });
    tracing::info!(%address, "listening");
    accept(listener, gate, &parts.metrics, shutdown).await;
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    // After the last connection, so that its clicks are among those flushed.
    if let Err(error) = clicks.await {
        tracing::error!(%error, "the click writer ended in a panic");
    }
    tracing::info!(%address, "stopped");
    Ok(())
}

async fn accept(
    listener: TcpListener,
    gate: Arc<Gate>,
    metrics: &Metrics,
    shutdown: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = next(&listener, &places) => accepted,
        };
        match accepted {
            Ok((socket, peer, place)) => {
                metrics.connections.inc();
                connect(socket, peer.ip(), gate.clone(), place, &graceful);
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_LIMIT, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time and are cut off");
    }
}

async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
    let (socket, peer) = listener.accept().await?;
    Ok((socket, peer, place))
}

fn connect(
    socket: TcpStream,
    peer: IpAddr,
    gate: Arc<Gate>,
    place: OwnedSemaphorePermit,
    graceful: &GracefulShutdown,
) {
    // Answers are small and complete: waiting to fill a packet would only delay them.
    let _ = socket.set_nodelay(true);
    let activity = Arc::new(Activity::default());
    let door = Door { gate, peer, activity: activity.clone() };
    let stream = TokioIo::new(Stream { socket, activity: activity.clone() });
    let connection = http1::Builder::new()
        .pipeline_flush(true)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(stream, door);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        let _place = place;
        let mut connection = std::pin::pin!(connection);
        let mut ticks = tokio::time::interval(TICK);
        ticks.tick().await;
        let mut watch = Watch::default();
        loop {
            tokio::select! {
                biased;
                // Broken connections are the visitor's affair and no news.
                _ = &mut connection => return,
                _ = ticks.tick() => if watch.tick(&activity) { return },
            }
        }
    });
}
