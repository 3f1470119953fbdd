//! One request to the API server and what came back, with the one question that matters after a
//! failure: can it have reached the server? What an answer means is decided in `wire`.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use sundown_engine::wire::{Call, Method, Reply};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::counters::{Counters, Purpose};

/// How long an answer may take to begin, and to end. Upstream gives up on its own side after 60 s, so a longer patience
/// would only wait for a connection that is dead.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(65);

/// The longest answer: a page of 500 objects at 0.5 MiB each.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How many requests (without watches) may be open at once. kube opens a connection for each.
const REQUESTS_MAX: usize = 64;

const AGENT: &str = concat!("sundown/", env!("CARGO_PKG_VERSION"));

/// Sends requests and counts them.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
    counters: Arc<Counters>,
    permits: Arc<Semaphore>,
}

impl Requests {
    pub(crate) fn new(client: Client, counters: Arc<Counters>) -> Self {
        Self {
            client,
            counters,
            permits: Arc::new(Semaphore::new(REQUESTS_MAX)),
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(&self, purpose: Purpose, call: Call) -> Reply {
        let permit = self.permits.acquire().await;
        let _permit = permit.expect("the semaphore is never closed");
        match self.open(purpose, call).await {
            Ok(response) => read(response).await,
            Err(reply) => reply,
        }
    }

    /// Sends a request and gives back the answer as soon as it begins.
    ///
    /// Errors: what became of a request that has no answer.
    pub(crate) async fn open(
        &self,
        purpose: Purpose,
        call: Call,
    ) -> Result<http::Response<Body>, Reply> {
        let request = request(call).map_err(|error| Reply::NotSent(in_words(&error)))?;
        self.counters.sent(purpose);
        match timeout(ANSWER_TIME_MAX, self.client.send(request)).await {
            Ok(Ok(response)) => {
                if response.status() == http::StatusCode::FORBIDDEN {
                    self.counters.forbidden();
                }
                Ok(response)
            }
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => Err(too_late()),
        }
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests")
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// Reads the rest of an answer.
pub(crate) async fn read(response: http::Response<Body>) -> Reply {
    let code = response.status().as_u16();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
    match timeout(ANSWER_TIME_MAX, body.collect()).await {
        Ok(Ok(body)) => Reply::Answered {
            code,
            body: body.to_bytes().into(),
        },
        Ok(Err(error)) => Reply::Lost(in_words(error.as_ref())),
        Err(_) => too_late(),
    }
}

fn too_late() -> Reply {
    Reply::Lost(format!("no answer within {ANSWER_TIME_MAX:?}"))
}

fn request(call: Call) -> Result<http::Request<Body>, http::Error> {
    let mut uri = call.path;
    if !call.query.is_empty() {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&call.query);
        uri = format!("{uri}?{}", query.finish());
    }
    let method = match call.method {
        Method::Get => http::Method::GET,
        Method::Post => http::Method::POST,
        Method::Patch => http::Method::PATCH,
        Method::Delete => http::Method::DELETE,
    };
    let mut request = http::Request::builder()
        .method(method)
        .uri(uri)
        .header(ACCEPT, call.accept)
        .header(USER_AGENT, AGENT);
    if let Some(content_type) = call.content_type {
        request = request.header(CONTENT_TYPE, content_type);
    }
    request.body(Body::from(call.body))
}

fn failed(error: &kube::Error) -> Reply {
    let message = in_words(error);
    if is_before_sending(error) {
        Reply::NotSent(message)
    } else {
        Reply::Lost(message)
    }
}

/// Certain only where no connection came about or no credentials were had; all else may have left.
fn is_before_sending(error: &kube::Error) -> bool {
    if matches!(error, kube::Error::Auth(_)) {
        return true;
    }
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let transport = error.downcast_ref::<hyper_util::client::legacy::Error>();
        if transport.is_some_and(hyper_util::client::legacy::Error::is_connect) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// An error with its causes. Some print their cause themselves; it is not said twice.
fn in_words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !words.contains(&text) {
            words = format!("{words}: {text}");
        }
        cause = error.source();
    }
    words
}

#[cfg(test)]
mod tests;
