//! The dashboards of Ray clusters: one short connection per question, and one for a submission or
//! a stop from its first question to its answer, so that both speak to the same process.
//!
//! What an answer means is in `ray::answer`; what follows from it is decided elsewhere.

mod answer;
mod connection;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use sundown_model::path::part;
use sundown_model::{DeedOutcome, DeedRefusal, ObjectKey, ray};
use tokio::net::TcpStream;

use connection::{Connection, Trouble};

use crate::RayPort;

/// How long a question may take; it is asked again soon.
const ASK_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a call may take. Ray itself waits up to ten seconds for an agent to submit to.
const CALL_TIME_MAX: Duration = Duration::from_secs(15);

/// The way to a dashboard.
pub trait Dial: fmt::Debug + Send + Sync {
    /// Connects to `host:port`.
    fn dial<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<TcpStream>>;
}

/// The network of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnNetwork;

impl Dial for OwnNetwork {
    fn dial<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(address))
    }
}

/// Asks and tells dashboards.
#[derive(Debug, Clone)]
pub struct Dashboards {
    dial: Arc<dyn Dial>,
}

impl RayPort for Dashboards {
    fn ask<'a>(
        &'a self,
        query: &'a ray::Query,
    ) -> BoxFuture<'a, Result<ray::Answer, ray::Failure>> {
        let (ray::Query::Session { at } | ray::Query::Job { at, .. }) = query;
        Box::pin(async move {
            let mut connection = self.connect(at, ASK_TIME_MAX).await?;
            match query {
                ray::Query::Session { .. } => session(&mut connection).await,
                ray::Query::Job { submission_id, .. } => {
                    let path = format!("/api/jobs/{}", part(submission_id));
                    let response = connection.get(&path).await?;
                    answer::job(submission_id, &response)
                }
            }
        })
    }

    fn carry_out<'a>(
        &'a self,
        _: &'a ObjectKey,
        call: &'a ray::Call,
    ) -> BoxFuture<'a, DeedOutcome> {
        Box::pin(async move {
            match call {
                ray::Call::Submit { at, session, job } => self.submit(at, session, job).await,
                ray::Call::Stop {
                    at,
                    session,
                    submission_id,
                } => self.stop(at, session.as_deref(), submission_id).await,
            }
        })
    }
}

impl Dashboards {
    /// Dashboards that are reached this way.
    pub fn new(dial: Arc<dyn Dial>) -> Self {
        Self { dial }
    }

    async fn submit(
        &self,
        at: &ray::Dashboard,
        wanted: &str,
        job: &ray::Submission,
    ) -> DeedOutcome {
        let mut connection = match self.connect(at, CALL_TIME_MAX).await {
            Ok(connection) => connection,
            Err(failure) => return refused(ray::Refused::Unreachable, failure.message),
        };
        if let Some(refusal) = other_session(&mut connection, wanted).await {
            return refusal;
        }
        let body = serde_json::to_vec(job).expect("a submission is plain data");
        match connection.post("/api/jobs/", body).await {
            Ok(response) => answer::submitted(&response),
            Err(trouble) => fate(trouble),
        }
    }

    async fn stop(
        &self,
        at: &ray::Dashboard,
        wanted: Option<&str>,
        submission_id: &str,
    ) -> DeedOutcome {
        let mut connection = match self.connect(at, CALL_TIME_MAX).await {
            Ok(connection) => connection,
            Err(failure) => return refused(ray::Refused::Unreachable, failure.message),
        };
        if let Some(wanted) = wanted
            && let Some(refusal) = other_session(&mut connection, wanted).await
        {
            return refusal;
        }
        let path = format!("/api/jobs/{}/stop", part(submission_id));
        match connection.post(&path, Vec::new()).await {
            Ok(response) => answer::stopped(submission_id, &response),
            Err(trouble) => fate(trouble),
        }
    }

    async fn connect(
        &self,
        at: &ray::Dashboard,
        time_max: Duration,
    ) -> Result<Connection, ray::Failure> {
        let address = at.0.strip_prefix("http://").unwrap_or(&at.0);
        Ok(Connection::open(self.dial.as_ref(), address, time_max).await?)
    }
}

async fn session(connection: &mut Connection) -> Result<ray::Answer, ray::Failure> {
    answer::session(&connection.get("/api/version").await?)
}

/// Why nothing is told on this connection; None if it leads to the session that is meant.
async fn other_session(connection: &mut Connection, wanted: &str) -> Option<DeedOutcome> {
    match session(connection).await {
        Ok(ray::Answer::Session { name, .. }) if *name == *wanted => None,
        Ok(_) => {
            let message = format!("the cluster is no longer in session {wanted}");
            Some(refused(ray::Refused::OtherSession, message))
        }
        Err(failure) => Some(refused(ray::Refused::Unreachable, failure.message)),
    }
}

/// What was not sent was not done; of what was sent nothing is known without an answer.
fn fate(trouble: Trouble) -> DeedOutcome {
    if trouble.may_be_sent {
        let message = trouble.message;
        DeedOutcome::Unknown { message }
    } else {
        refused(ray::Refused::Unreachable, trouble.message)
    }
}

fn refused(reason: ray::Refused, quote: String) -> DeedOutcome {
    DeedOutcome::Refused(DeedRefusal::new(reason, "").quoting(quote))
}
