//! One HTTP/1.1 connection to a dashboard, with bounds on time and size.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use sundown_model::ray;
use tokio::task::JoinSet;

use super::Dial;

/// No answer about a job is larger; its message holds 20,000 characters of log at most.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What came back.
#[derive(Debug, Clone)]
pub(super) struct Response {
    pub(super) code: u16,
    pub(super) body: Bytes,
}

/// Nothing came back.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    /// Whether the other side may have got the request.
    pub(super) may_be_sent: bool,
    pub(super) message: String,
}

impl From<Trouble> for ray::Failure {
    fn from(trouble: Trouble) -> Self {
        Self {
            kind: ray::FailureKind::Unreachable,
            message: trouble.message,
        }
    }
}

/// An open connection; closed when dropped.
#[derive(Debug)]
pub(super) struct Connection {
    address: String,
    sender: SendRequest<Full<Bytes>>,
    time_max: Duration,
    /// Drives the connection, and ends with it.
    _driver: JoinSet<()>,
}

impl Connection {
    /// Connects; nothing is sent yet.
    pub(super) async fn open(
        dial: &dyn Dial,
        address: &str,
        time_max: Duration,
    ) -> Result<Self, Trouble> {
        let opened = async {
            let stream = dial.dial(address).await.map_err(|it| it.to_string())?;
            handshake(TokioIo::new(stream))
                .await
                .map_err(|it| it.to_string())
        };
        let opened = tokio::time::timeout(time_max, opened).await;
        let opened = opened.unwrap_or_else(|_| Err("no connection in time".to_owned()));
        let (sender, connection) = opened.map_err(|why| Trouble {
            may_be_sent: false,
            message: format!("{address}: {why}"),
        })?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // What breaks the connection is told to whoever waits for an answer.
            let _ = connection.await;
        });
        Ok(Self {
            address: address.to_owned(),
            sender,
            time_max,
            _driver: driver,
        })
    }

    pub(super) async fn get(&mut self, path: &str) -> Result<Response, Trouble> {
        self.send(Method::GET, path, Vec::new()).await
    }

    pub(super) async fn post(&mut self, path: &str, json: Vec<u8>) -> Result<Response, Trouble> {
        self.send(Method::POST, path, json).await
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Response, Trouble> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.address)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)));
        let trouble = |may_be_sent, why: String| Trouble {
            may_be_sent,
            message: format!("{}: {why}", self.address),
        };
        let request = request.map_err(|error| trouble(false, error.to_string()))?;
        if let Err(error) = self.sender.ready().await {
            return Err(trouble(false, error.to_string()));
        }
        let exchange = async {
            let response = self.sender.send_request(request).await;
            let response = response.map_err(|error| error.to_string())?;
            let code = response.status().as_u16();
            let body = Limited::new(response.into_body(), BODY_BYTES_MAX);
            let body = body.collect().await.map_err(|error| error.to_string())?;
            Ok(Response {
                code,
                body: body.to_bytes(),
            })
        };
        let answered = tokio::time::timeout(self.time_max, exchange).await;
        let answered = answered.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        answered.map_err(|why| trouble(true, why))
    }
}
