//! An answer's body in steps: data, waits, and a break on purpose.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::Future as _,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

/// Gives the next piece of a long answer, or nothing at its end.
pub(crate) type Producer = Box<dyn FnMut() -> Option<Bytes> + Send>;

/// The connection ends here, because a fault wants it.
#[derive(Debug, thiserror::Error)]
#[error("the connection is cut on purpose")]
pub(crate) struct Cut;

impl From<Infallible> for Cut {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

enum Step {
    Data(Bytes),
    Produce(Producer),
    Wait(Pin<Box<Sleep>>),
    /// Lets the server send what it has before the next step; the flag says that it had its turn.
    Flush(bool),
    Cut,
}

/// A body; its length is announced when all of it is at hand.
pub(crate) struct Payload {
    steps: VecDeque<Step>,
    length: Option<u64>,
}

impl Payload {
    /// All at once, with its length.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { length: Some(bytes.len() as u64), steps: VecDeque::from([Step::Data(bytes)]) }
    }

    /// Piece by piece, chunked.
    pub(crate) fn produced(producer: Producer) -> Self {
        Self { steps: VecDeque::from([Step::Produce(producer)]), length: None }
    }

    /// The first half of `bytes`, and then the connection is gone. Chunked, unless the caller announces a length.
    pub(crate) fn cut(bytes: &Bytes) -> Self {
        let half = bytes.slice(..bytes.len() / 2);
        Self { steps: VecDeque::from([Step::Data(half), Step::Flush(false), Step::Cut]), length: None }
    }

    /// The two halves of `bytes` with a pause between them.
    pub(crate) fn stalled(bytes: Bytes, pause: Duration) -> Self {
        let half = bytes.len() / 2;
        let wait = Step::Wait(Box::pin(tokio::time::sleep(pause)));
        let steps =
            [Step::Data(bytes.slice(..half)), Step::Flush(false), wait, Step::Data(bytes.slice(half..))];
        Self { length: Some(bytes.len() as u64), steps: VecDeque::from(steps) }
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        loop {
            match self.steps.front_mut() {
                None => return Poll::Ready(None),
                Some(Step::Cut) => return Poll::Ready(Some(Err(Cut))),
                Some(Step::Flush(had_its_turn)) if !*had_its_turn => {
                    *had_its_turn = true;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Step::Wait(sleep)) => ready!(sleep.as_mut().poll(context)),
                Some(Step::Produce(producer)) => {
                    if let Some(bytes) = producer() {
                        return Poll::Ready(Some(Ok(Frame::data(bytes))));
                    }
                }
                Some(Step::Flush(_) | Step::Data(_)) => {}
            }
            if let Some(Step::Data(bytes)) = self.steps.pop_front()
                && !bytes.is_empty()
            {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty() || self.length == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
