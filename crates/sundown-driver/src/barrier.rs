//! The port of the read-index barrier: how far have these resources come? How the answer is used
//! is the engine's business.

use std::fmt;
use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use sundown_engine::{Failure, wire};
use sundown_model::{Position, ResourceType};

use crate::counters::Purpose;
use crate::requests::Requests;

/// Finds positions that are at or after the moment of asking.
pub trait Barrier: fmt::Debug + Send + Sync {
    /// The positions of these resources. One that is left out is asked again later.
    fn positions<'a>(
        &'a self,
        types: &'a [Arc<ResourceType>],
    ) -> BoxFuture<'a, Result<Vec<Position>, Failure>>;
}

/// The barrier for any API server: one consistent list per resource, limited to one item.
#[derive(Debug, Clone)]
pub struct ListBarrier {
    requests: Requests,
}

impl ListBarrier {
    pub(crate) fn new(requests: Requests) -> Self {
        Self { requests }
    }

    async fn position(&self, ty: &ResourceType) -> Result<Position, Failure> {
        let call = wire::position_call(ty);
        let rv = wire::position_rv(self.requests.send(Purpose::Barrier, call).await)?;
        Ok(Position::new(ty.resource.clone(), rv))
    }
}

impl Barrier for ListBarrier {
    fn positions<'a>(
        &'a self,
        types: &'a [Arc<ResourceType>],
    ) -> BoxFuture<'a, Result<Vec<Position>, Failure>> {
        Box::pin(async move {
            let answers = join_all(types.iter().map(|ty| self.position(ty))).await;
            let mut positions = Vec::new();
            let mut failed = None;
            for answer in answers {
                match answer {
                    Ok(position) => positions.push(position),
                    Err(failure) => failed = failed.or(Some(failure)),
                }
            }
            // A resource that cannot be listed must not hold up those that can.
            match failed {
                Some(failure) if positions.is_empty() => Err(failure),
                Some(_) | None => Ok(positions),
            }
        })
    }
}
