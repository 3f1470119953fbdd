//! The body of a response: whole, or piece by piece as it comes.

mod lines;

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use http_body::{Frame, SizeHint};
use http_body_util::Full;
use sundown_api::Watch;

use crate::{Shared, Stop};

/// What a response carries.
pub enum Body {
    /// Everything is there.
    Whole(Full<Bytes>),
    /// Lines of a watch or of a log, until it ends.
    Stream(BoxStream<'static, Bytes>),
}

impl Body {
    pub(crate) fn whole(bytes: Vec<u8>) -> Self {
        Self::Whole(Full::new(bytes.into()))
    }

    /// The stream of a watch. It ends with the watch, with the server, or when `stop` is asked.
    pub(crate) fn watch(watch: Box<Watch>, shared: &Shared, stop: Stop) -> Self {
        Self::Stream(lines::stream(watch, shared, stop).boxed())
    }

    /// Keeps something as long as a stream lasts; what is whole is on its way already.
    pub(crate) fn hold<T: Send + 'static>(&mut self, held: T) {
        if let Self::Stream(lines) = self {
            let before = std::mem::replace(lines, futures::stream::empty().boxed());
            let holding = move |it| {
                let _held = &held;
                it
            };
            *lines = before.map(holding).boxed();
        }
    }

    /// The stream of a log. It ends by itself, or when `stop` is asked.
    pub(crate) fn log(text: BoxStream<'static, Bytes>, stop: Stop) -> Self {
        let stopped = async move { stop.asked().await };
        Self::Stream(text.take_until(stopped.boxed()).boxed())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Pin::new(bytes).poll_frame(cx),
            Self::Stream(lines) => lines
                .poll_next_unpin(cx)
                .map(|lines| lines.map(|lines| Ok(Frame::data(lines)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_end_stream(),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => bytes.size_hint(),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(bytes) => f.debug_tuple("Whole").field(bytes).finish(),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}
