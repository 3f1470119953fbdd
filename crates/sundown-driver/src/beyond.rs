//! The port to what lies beyond the API server: Ray clusters and the node. Who answers is decided by
//! whoever starts the driver.

use std::fmt;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use sundown_model::{Deed, DeedOutcome, DeedReason, DeedRefusal, Question, Reply, node, ray};

/// Answers questions and carries out deeds.
pub trait Beyond: fmt::Debug + Send + Sync {
    /// Asks once. That nobody answers is an answer.
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply>;

    /// Does it once.
    fn carry_out(&self, deed: Deed) -> BoxFuture<'_, DeedOutcome>;

    /// What the node says by itself, from now on; first of all its pods. Called again if a stream
    /// panicked.
    fn reports(&self) -> BoxStream<'static, node::Report>;
}

/// Nobody is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nobody;

const NOBODY: &str = "this process has no way to Ray clusters or to a node";

impl Beyond for Nobody {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        let message = NOBODY.to_owned();
        let reply = match question {
            Question::Ray(_) => Reply::Ray(Err(ray::Failure {
                kind: ray::FailureKind::Unreachable,
                message,
            })),
            Question::Node(_) => Reply::Node(Err(message)),
        };
        Box::pin(std::future::ready(reply))
    }

    fn carry_out(&self, deed: Deed) -> BoxFuture<'_, DeedOutcome> {
        let reason = DeedReason::unreachable(deed.what.port());
        let refusal = DeedRefusal::new(reason, NOBODY);
        Box::pin(std::future::ready(DeedOutcome::Refused(refusal)))
    }

    fn reports(&self) -> BoxStream<'static, node::Report> {
        stream::pending().boxed()
    }
}
