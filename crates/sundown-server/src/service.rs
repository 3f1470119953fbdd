//! The server as a tower service: the same for hyper behind TLS and for an in-process client.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use sundown_api::{Caller, Encoding, ISSUER, Log, Method, Request, Response, User};
use tower::Service;

use crate::access::Access;
use crate::https::Trial;
use crate::keys::complete_review;
use crate::metrics::Label;
use crate::status::Failure;
use crate::{Body, Reply, Shared, Stop, pretty, wire};

/// The longest request body, as upstream (3 MiB).
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// How long a body may take to arrive. Clients send theirs at once.
const BODY_TIME_MAX: std::time::Duration = std::time::Duration::from_mins(1);

/// Speaks HTTP for a [`Shared`] state.
#[derive(Debug, Clone)]
pub struct ApiService {
    shared: Arc<Shared>,
    access: Access,
    stop: Stop,
    /// The connection that requests come by, if they do.
    trial: Option<Arc<Trial>>,
}

impl ApiService {
    /// For clients in this process: `kube::Client::new(service, "default")`. Every request counts
    /// as the administrator's. Watches end when `stop` is asked.
    pub fn trusted(shared: Arc<Shared>, stop: Stop) -> Self {
        Self::acting_as(shared, stop, User::admin())
    }

    /// For clients in this process that have the rights of this user, and no others.
    pub fn acting_as(shared: Arc<Shared>, stop: Stop, user: User) -> Self {
        Self::new(shared, Access::Known(user.into()), stop)
    }

    pub(crate) fn new(shared: Arc<Shared>, access: Access, stop: Stop) -> Self {
        Self {
            shared,
            access,
            stop,
            trial: None,
        }
    }

    /// The same, for a connection that has to show a credential.
    pub(crate) fn on_trial(self, trial: Arc<Trial>) -> Self {
        let trial = Some(trial);
        Self { trial, ..self }
    }

    /// A connection whose request showed a credential is on trial no more.
    fn knows(&self, user: &User) {
        if let Some(trial) = self.trial.as_ref().filter(|_| *user != User::anonymous()) {
            trial.pass();
        }
    }

    /// Whoever came by a connection and showed a credential uses this server, as long as an answer lasts.
    fn note_use(&self, body: &mut Body) {
        if self.trial.as_ref().is_some_and(|it| it.is_trusted()) {
            let metrics = &self.shared.metrics;
            metrics.enter();
            body.hold(metrics.open_stream());
        }
    }

    async fn answer<B: http_body::Body>(&self, request: http::Request<B>) -> http::Response<Body> {
        let audit_id = self.shared.entropy().uuid();
        let is_head = request.method() == http::Method::HEAD;
        let encoding = Encoding::accepted(wire::accept(request.headers()).as_deref());
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
            Err(mut refused) => {
                encoding.apply(&mut refused);
                wire::write(refused, &audit_id)
            }
        };
        self.note_use(response.body_mut());
        if is_head {
            // hyper leaves the body out for HTTP/1.1 only; in HTTP/2 curl takes it for an error.
            *response.body_mut() = Body::whole(Vec::new());
        }
        response
    }

    /// Asks who calls and whether they may before a byte of the body is read.
    ///
    /// Errors: the answer, in JSON, to a request that nobody is known to have sent, or that says nothing.
    async fn reply<B: http_body::Body>(
        &self,
        request: http::Request<B>,
    ) -> Result<Reply, Response> {
        let (head, body) = request.into_parts();
        let caller = self.caller(&head).map_err(Failure::response)?;
        let user = self.shared.identify(&caller)?;
        self.knows(&user);
        let mut request = wire::read(&head, user.clone()).map_err(Failure::response)?;
        let label = Label::of(&request);
        let is_pretty = pretty::is_wanted(&request);
        let encoding = Encoding::of(&request);
        let compressed = &self.shared.compressed;
        let asked = compressed.ask(&head.headers, &mut request);
        let mut reply = match self.shared.admit(&caller, &mut request) {
            Err(refused) => Reply::Response(refused),
            Ok(()) if request.path == "/metrics" && request.method == Method::Get => {
                return Ok(Reply::Response(self.metrics()));
            }
            // No GET of ours has a body, so that a caller without rights fills no memory.
            Ok(()) if request.method == Method::Get => self.act(caller, request).await,
            Ok(()) => match self.read_body(&user, body).await {
                Err(failure) => Reply::Response(failure.response()),
                Ok(body) => self.act(caller, Request { body, ..request }).await,
            },
        };
        if let Reply::Response(response) = &mut reply {
            // What is compressed is read by programs, and upstream indents it for nobody.
            if is_pretty && asked.is_none() && response.content_type.starts_with("application/json")
            {
                response.body = pretty::indented(&response.body);
            }
            encoding.apply(response);
            if let Some(asked) = asked {
                compressed.complete(&asked, response);
            }
        }
        self.shared.metrics.count(label, code_of(&reply));
        Ok(reply)
    }

    fn caller(&self, head: &http::request::Parts) -> Result<Caller, Failure> {
        let takes_anonymous = self.shared.snapshot().takes_anonymous();
        let open = |token: &str| self.shared.keys.open(token);
        let proof = self.access.proof(&head.headers, takes_anonymous, open);
        Ok(Caller {
            proof: proof.ok_or(Failure::Unauthorized)?,
            wanted: wire::impersonation(&head.headers),
        })
    }

    async fn read_body<B: http_body::Body>(
        &self,
        user: &User,
        body: B,
    ) -> Result<Vec<u8>, Failure> {
        let _place = self
            .shared
            .bodies
            .enter(user)
            .ok_or(Failure::TooManyRequests)?;
        let read = tokio::time::timeout(BODY_TIME_MAX, wire::read_body(body)).await;
        read.map_err(|_| Failure::BadRequest("the body came too slowly"))?
    }

    /// Does what is asked, if the caller may still ask for it: the body may have taken its time. Adds what
    /// only the holder of the keys can.
    async fn act(&self, caller: Caller, request: Request) -> Reply {
        let is_token = request.is_for_token();
        let is_review = request.is_token_review();
        let (user, agent) = (request.user.clone(), request.user_agent.clone());
        let mut reply = self.shared.call(caller, request).await;
        if let Reply::Response(response) = &mut reply {
            let warnings = &mut response.warnings;
            let notices = &self.shared.notices;
            notices.keep_new(&user, agent.as_deref(), warnings);
            if is_token && response.code == 201 {
                self.shared.keys.seal(response);
            }
            if is_review && response.code == 201 {
                complete_review(response, |token, asked| self.whose(token, asked));
            }
        }
        reply
    }

    async fn open(&self, log: Log) -> Result<Body, Response> {
        let Some(logs) = &self.shared.logs else {
            return Err(Log::without_node());
        };
        let text = logs.open(log).await;
        let text = text.map_err(|why| Log::unreadable(&why))?;
        Ok(Body::log(text, self.stop.clone()))
    }

    /// The service account that a token speaks for, and to which of these audiences.
    fn account(
        &self,
        token: &str,
        audiences: &[&str],
    ) -> Result<(User, Vec<String>), &'static str> {
        let claims = self.shared.keys.open(token).ok_or("invalid bearer token")?;
        let now = self.shared.clock().now();
        self.shared.snapshot().token_user(&claims, audiences, now)
    }

    /// Whose any token is, for a review. The administrator's is meant for this server alone.
    fn whose(&self, token: &str, audiences: &[&str]) -> Result<(User, Vec<String>), &'static str> {
        if self.access.is_admin_token(token) {
            let own = audiences.iter().find(|audience| **audience == ISSUER);
            let own = own.ok_or("token audiences are not ours")?;
            return Ok((User::admin(), vec![(*own).to_owned()]));
        }
        self.account(token, audiences)
    }

    fn metrics(&self) -> Response {
        let revision = self.shared.snapshot().revision();
        Response {
            code: 200,
            content_type: "application/openmetrics-text; version=1.0.0; charset=utf-8",
            warnings: Vec::new(),
            headers: Vec::new(),
            body: self.shared.metrics.text(revision.number()).into_bytes(),
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
