//! One connection: what it may send, and when it is ended.
//!
//! hyper bounds the size and the number of headers. Time is watched here, by a tick every few seconds instead of a
//! timer per request, which would cost the redirects more than their look-up does.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How often a connection is looked at.
pub(crate) const TICK: Duration = Duration::from_secs(5);
/// A request's head must be complete within 10 to 15 seconds of its first byte.
const HEAD_TICKS: u32 = 3;
/// A connection without a request is closed after 75 to 80 seconds: later than proxies close theirs.
const IDLE_TICKS: u32 = 16;

/// What a connection does, told by its stream and its service.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Bytes have arrived that no request has been made of yet.
    bytes: AtomicBool,
    /// Requests being answered.
    requests: AtomicU32,
    /// A request has ended since the last tick.
    ended: AtomicBool,
}

impl Activity {
    pub(crate) fn request_began(&self) {
        self.bytes.store(false, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn request_ended(&self) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Counts ticks in which nothing good has happened.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    head: u32,
    idle: u32,
}

impl Watch {
    /// Whether the connection has had its time.
    pub(crate) fn tick(&mut self, activity: &Activity) -> bool {
        let ended = activity.ended.swap(false, Ordering::Relaxed);
        if ended || activity.requests.load(Ordering::Relaxed) > 0 {
            *self = Self::default();
            return false;
        }
        self.idle += 1;
        self.head = if activity.bytes.load(Ordering::Relaxed) { self.head + 1 } else { 0 };
        self.head >= HEAD_TICKS || self.idle >= IDLE_TICKS
    }
}

/// The socket, with a note of arriving bytes.
pub(crate) struct Stream {
    pub(crate) socket: TcpStream,
    pub(crate) activity: Arc<Activity>,
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.socket).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.bytes.store(true, Ordering::Relaxed);
        }
        polled
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks_until_over(activity: &Activity) -> u32 {
        let mut watch = Watch::default();
        (1..=100).find(|_| watch.tick(activity)).unwrap_or(u32::MAX)
    }

    #[test]
    fn a_head_that_dribbles_is_ended_long_before_an_idle_connection() {
        let activity = Activity::default();
        assert_eq!(ticks_until_over(&activity), IDLE_TICKS);
        activity.bytes.store(true, Ordering::Relaxed);
        assert_eq!(ticks_until_over(&activity), HEAD_TICKS);
    }

    #[test]
    fn a_request_under_way_is_not_ended_and_starts_the_count_again() {
        let activity = Activity::default();
        let mut watch = Watch::default();
        for _ in 1..IDLE_TICKS {
            assert!(!watch.tick(&activity));
        }
        activity.request_began();
        for _ in 0..50 {
            assert!(!watch.tick(&activity));
        }
        activity.request_ended();
        assert!(!watch.tick(&activity));
        assert_eq!((1..=100).find(|_| watch.tick(&activity)), Some(IDLE_TICKS));
    }
}
