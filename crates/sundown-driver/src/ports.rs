//! The ports of a process: how it reaches what lies beyond the API server. Each port is a trait of its own,
//! and each is there or not.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use sundown_model::{Deed, DeedOutcome, ObjectKey, Question, Reply, What, node, ray};

/// Asks and tells Ray clusters.
pub trait RayPort: fmt::Debug + Send + Sync {
    /// Asks once.
    ///
    /// Errors: no answer that could be relied on.
    fn ask<'a>(&'a self, query: &'a ray::Query)
    -> BoxFuture<'a, Result<ray::Answer, ray::Failure>>;

    /// Does it once, on account of an object.
    fn carry_out<'a>(
        &'a self,
        about: &'a ObjectKey,
        call: &'a ray::Call,
    ) -> BoxFuture<'a, DeedOutcome>;
}

/// Asks and tells a node.
pub trait NodePort: fmt::Debug + Send + Sync {
    /// Asks once.
    ///
    /// Errors: why there is no answer, in words.
    fn ask<'a>(&'a self, query: &'a node::Query) -> BoxFuture<'a, Result<node::Answer, String>>;

    /// Does it once, on account of an object.
    fn carry_out<'a>(
        &'a self,
        about: &'a ObjectKey,
        call: &'a node::Call,
    ) -> BoxFuture<'a, DeedOutcome>;

    /// What the node says by itself, from now on; first of all its pods. How far a long deed is comes this way,
    /// too. Called again if a stream panicked.
    fn reports(&self) -> BoxStream<'static, node::Report>;
}

/// The ports of a process; by itself it has none.
#[derive(Debug, Clone, Default)]
pub struct Ports {
    ray: Option<Arc<dyn RayPort>>,
    node: Option<Arc<dyn NodePort>>,
}

const NONE: &str = "this process has no way there";

impl Ports {
    /// The same with a way to Ray clusters.
    #[must_use]
    pub fn ray(self, port: Arc<dyn RayPort>) -> Self {
        let ray = Some(port);
        Self { ray, ..self }
    }

    /// The same with a node.
    #[must_use]
    pub fn node(self, port: Arc<dyn NodePort>) -> Self {
        let node = Some(port);
        Self { node, ..self }
    }

    /// Asks once, where the question belongs.
    pub(crate) fn ask(&self, question: Question) -> BoxFuture<'static, Reply> {
        let ports = self.clone();
        async move {
            match (&question, ports) {
                (Question::Ray(query), Self { ray: Some(ray), .. }) => {
                    Reply::Ray(ray.ask(query).await)
                }
                (
                    Question::Node(query),
                    Self {
                        node: Some(node), ..
                    },
                ) => Reply::Node(node.ask(query).await),
                (question, _) => question.unreachable(NONE.to_owned()),
            }
        }
        .boxed()
    }

    /// Does it once, where the deed belongs.
    pub(crate) fn carry_out(&self, deed: Deed) -> BoxFuture<'static, DeedOutcome> {
        let ports = self.clone();
        async move {
            let about = &deed.about;
            match (&deed.what, ports) {
                (What::Ray(call), Self { ray: Some(ray), .. }) => ray.carry_out(about, call).await,
                (
                    What::Node(call),
                    Self {
                        node: Some(node), ..
                    },
                ) => node.carry_out(about, call).await,
                (what, _) => what.unreachable(NONE.to_owned()),
            }
        }
        .boxed()
    }

    /// The port that speaks by itself, if it is there.
    pub(crate) fn speaking(&self) -> Option<Arc<dyn NodePort>> {
        self.node.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sundown_model::{DeedReason, Resource};

    #[tokio::test]
    async fn a_port_that_is_not_there_is_not_reached() {
        let ports = Ports::default();
        let at = ray::Dashboard("head:8265".into());
        let asks = Question::Ray(ray::Query::Session { at });
        let Reply::Ray(Err(failure)) = ports.ask(asks).await else {
            unreachable!("Ray cannot have answered")
        };
        assert_eq!(failure.kind, ray::FailureKind::Unreachable);
        let image = "image".into();
        let about = ObjectKey::namespaced(&Resource::new("", "pods"), "here", "p");
        let what = What::Node(node::Call::Pull { image });
        let DeedOutcome::Refused(refusal) = ports.carry_out(Deed { about, what }).await else {
            unreachable!("no node can have done it")
        };
        let expect = DeedReason::Node(node::Refused::Unreachable);
        assert_eq!((refusal.reason, &*refusal.message), (expect, NONE));
    }
}
