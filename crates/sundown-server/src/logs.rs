//! What pods write, as far as this server has to know: somebody else keeps it and gives it as a stream.

use std::fmt;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use sundown_api::Log;

/// Whoever runs pods and keeps what they write.
pub trait PodLogs: fmt::Debug + Send + Sync {
    /// Opens a log. The stream ends where the log ends; one that follows, when the run has ended.
    ///
    /// Errors: it cannot be read, in words for the client.
    fn open(&self, log: Log) -> BoxFuture<'_, Result<BoxStream<'static, Bytes>, String>>;
}
