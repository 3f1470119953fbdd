//! The server as a tower service: the same for hyper behind TLS and for an in-process client.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tower::Service;

use crate::access::Access;
use crate::status::Failure;
use crate::{Body, Reply, Shared, Stop, wire};

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
                let body = Body::watch(watch, &self.shared, self.stop.clone());
                wire::write_watch(body, &audit_id)
            }
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
        if !self
            .access
            .allows(&head.method, head.uri.path(), &head.headers)
        {
            return Err(Failure::Unauthorized);
        }
        let request = wire::read(head, body, sundown_api::User::admin()).await?;
        Ok(self.shared.call(&request))
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
