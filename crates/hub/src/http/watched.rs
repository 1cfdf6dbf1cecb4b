//! Bodies that tell the place of their connection how far they are: whether a request is whole, and when its answer is.

use crate::http::crowd::{Seat, Wait};
use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The body of a request; its connection works when all of it is there.
pub struct Arriving {
    body: Incoming,
    seat: Arc<Seat>,
}

impl Arriving {
    pub fn new(body: Incoming, seat: Arc<Seat>) -> Self {
        Self { body, seat }
    }
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.seat.works();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer; its connection rests when nothing of it is left.
pub struct Answer {
    body: Body,
    seat: Arc<Seat>,
}

impl Answer {
    pub fn new(body: Body, seat: Arc<Seat>) -> Self {
        // Answers are given to requests that nobody read to their end, too.
        seat.works();
        Self { body, seat }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.seat.waits(Wait::Request);
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // It is asked for when there is room for it: what was given before has been taken.
        self.seat.works();
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_some() {
            self.seat.waits(Wait::Answer);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
