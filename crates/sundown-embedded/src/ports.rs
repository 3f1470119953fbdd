//! What the driver is given by the server beside it: its clock, and a barrier that needs no request.

use std::fmt;
use std::sync::Arc;

use futures::future::{self, BoxFuture};
use jiff::Timestamp;
use sundown_driver::Barrier;
use sundown_engine::Failure;
use sundown_model::{Position, ResourceType};
use sundown_server::{Clock, Shared};

/// The server's clock as the driver's.
#[derive(Debug)]
pub(crate) struct SameClock(pub(crate) Arc<dyn Clock>);

impl sundown_driver::Clock for SameClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        self.0.sleep_until(at)
    }
}

/// Commits are known in this process, so positions are read, not asked for.
pub(crate) struct CommitBarrier(pub(crate) Arc<Shared>);

impl Barrier for CommitBarrier {
    fn positions<'a>(
        &'a self,
        types: &'a [Arc<ResourceType>],
    ) -> BoxFuture<'a, Result<Vec<Position>, Failure>> {
        let snapshot = self.0.snapshot();
        let positions = types.iter().map(|ty| snapshot.position(&ty.resource));
        Box::pin(future::ready(Ok(positions.collect())))
    }
}

impl fmt::Debug for CommitBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CommitBarrier")
    }
}
