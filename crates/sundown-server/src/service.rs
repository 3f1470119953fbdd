//! The server as a tower service: the same for hyper behind TLS and for an in-process client.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use sundown_api::{Encoding, ISSUER, Log, Method, Response, User};
use tower::Service;

use crate::access::Access;
use crate::keys::complete_review;
use crate::metrics::Label;
use crate::status::Failure;
use crate::{Body, Reply, Shared, Stop, pretty, wire};

/// The longest request body, as upstream (3 MiB).
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Speaks HTTP for a [`Shared`] state.
#[derive(Debug, Clone)]
pub struct ApiService {
    shared: Arc<Shared>,
    access: Access,
    stop: Stop,
}

impl ApiService {
    /// For clients in this process: `kube::Client::new(service, "default")`. Every request counts
    /// as the administrator's. Watches end when `stop` is asked.
    pub fn trusted(shared: Arc<Shared>, stop: Stop) -> Self {
        Self::new(shared, Access::Trusted, stop)
    }

    pub(crate) fn new(shared: Arc<Shared>, access: Access, stop: Stop) -> Self {
        Self {
            shared,
            access,
            stop,
        }
    }

    async fn answer<B: http_body::Body>(&self, request: http::Request<B>) -> http::Response<Body> {
        let audit_id = self.shared.entropy().uuid();
        let is_head = request.method() == http::Method::HEAD;
        let mut response = match self.reply(request).await {
            Ok(Reply::Response(response)) => wire::write(response, &audit_id),
            Ok(Reply::Watch(watch)) => {
                let head = (watch.media_type(), watch.warning().map(wire::warning));
                let body = Body::watch(watch, &self.shared, self.stop.clone());
                wire::write_watch(body, head, &audit_id)
            }
            Ok(Reply::Log(log)) => match self.open(*log).await {
                Ok(body) => wire::write_stream(body, "text/plain", &audit_id),
                Err(response) => wire::write(response, &audit_id),
            },
            Err(failure) => wire::write(failure.response(), &audit_id),
        };
        if is_head {
            // hyper leaves the body out for HTTP/1.1 only; in HTTP/2 curl takes it for an error.
            *response.body_mut() = Body::whole(Vec::new());
        }
        response
    }

    /// Asks for credentials before a byte of the body is read.
    async fn reply<B: http_body::Body>(&self, request: http::Request<B>) -> Result<Reply, Failure> {
        let (head, body) = request.into_parts();
        let user = self
            .access
            .user(&head.method, head.uri.path(), &head.headers, |token| {
                self.account(token, ISSUER).ok()
            })
            .ok_or(Failure::Unauthorized)?;
        let request = wire::read(head, body, user).await?;
        let label = Label::of(&request);
        if request.path == "/metrics" && request.method == Method::Get {
            return Ok(Reply::Response(self.metrics()));
        }
        let is_token = request.is_for_token();
        let is_review = request.is_token_review();
        let is_pretty = pretty::is_wanted(&request);
        let encoding = Encoding::of(&request);
        let mut reply = self.shared.call(request).await;
        if let Reply::Response(response) = &mut reply {
            if is_token && response.code == 201 {
                self.shared.keys.seal(response);
            }
            if is_review && response.code == 201 {
                complete_review(response, |token, audience| self.whose(token, audience));
            }
            if is_pretty && response.content_type.starts_with("application/json") {
                response.body = pretty::indented(&response.body);
            }
            encoding.apply(response);
        }
        self.shared.metrics.count(label, code_of(&reply));
        Ok(reply)
    }

    async fn open(&self, log: Log) -> Result<Body, Response> {
        let Some(logs) = &self.shared.logs else {
            return Err(Log::without_node());
        };
        let text = logs.open(log).await;
        let text = text.map_err(|why| Log::unreadable(&why))?;
        Ok(Body::log(text, self.stop.clone()))
    }

    /// The service account that a token speaks for.
    fn account(&self, token: &str, audience: &str) -> Result<User, &'static str> {
        let claims = self.shared.keys.open(token).ok_or("invalid bearer token")?;
        let now = self.shared.clock().now();
        self.shared.snapshot().token_user(&claims, audience, now)
    }

    /// Whose any token is, for a review.
    fn whose(&self, token: &str, audience: &str) -> Result<User, &'static str> {
        if self.access.is_admin_token(token) {
            return Ok(User::admin());
        }
        self.account(token, audience)
    }

    fn metrics(&self) -> Response {
        let revision = self.shared.snapshot().revision().to_string();
        Response {
            code: 200,
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            warnings: Vec::new(),
            headers: Vec::new(),
            body: self.shared.metrics.text(&revision).into_bytes(),
        }
    }
}

fn code_of(reply: &Reply) -> u16 {
    match reply {
        Reply::Response(response) => response.code,
        Reply::Watch(_) | Reply::Log(_) => 200,
    }
}

impl<B> Service<http::Request<B>> for ApiService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Send,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}
