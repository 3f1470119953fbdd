//! One connection: handshake, HTTP/1.1 or HTTP/2, and the end of both.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use sundown_api::User;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::Trial;
use crate::access::{Access, Token};
use crate::{ApiService, Shared, Stop};

/// How long a client may take for its TLS handshake.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a client may take for the head of a request, and how long an HTTP/1.1 connection may
/// be idle: hyper counts both with one timer. kube-rs and client-go drop idle connections after 90
/// seconds; if we were first, a request could meet a connection that is being closed.
const HEAD_TIME_MAX: Duration = Duration::from_mins(3);

/// How long a client may take from its handshake to a request with a credential. Who only asks for the
/// health of the server is answered before.
const TRIAL_TIME_MAX: Duration = Duration::from_secs(10);

/// After how long without a word a client of HTTP/2 is asked whether it is there, and how long it may take
/// to answer: one that is gone without a word would keep its connection for ever.
const PING_INTERVAL: Duration = Duration::from_mins(1);
const PING_TIME_MAX: Duration = Duration::from_secs(20);

/// Requests at once on one HTTP/2 connection. client-go puts every informer on one: the garbage
/// collector of upstream alone opens 62 watches.
const STREAMS_MAX: u32 = 2000;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Serves one connection to its end; after a stop, until its requests are answered.
pub(super) async fn serve(
    stream: TcpStream,
    tls: TlsAcceptor,
    shared: Arc<Shared>,
    token: Token,
    trial: Arc<Trial>,
    stop: Stop,
) -> Result<(), BoxError> {
    // Watch lines are small and wanted now.
    stream.set_nodelay(true)?;
    let stream = tokio::select! {
        stream = tokio::time::timeout(HANDSHAKE_TIME_MAX, tls.accept(stream)) => stream??,
        () = trial.is_over() => return Ok(()),
        () = stop.asked() => return Ok(()),
    };
    // rustls has refused every certificate that is not of our authority, which issues no other one.
    let access = match stream.get_ref().1.peer_certificates() {
        Some(_) => {
            trial.pass();
            Access::Known(User::admin().into())
        }
        None => Access::Token(token),
    };
    let service = ApiService::new(shared, access, stop.clone()).on_trial(Arc::clone(&trial));
    let service = TowerToHyperService::new(service);
    let http = http();
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        end = &mut connection => return end,
        () = lost(&trial) => return Ok(()),
        () = stop.asked() => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await
}

/// Waits until a connection has to go: for another one, or because it did not show a credential in time.
/// One that has shown one stays.
async fn lost(trial: &Trial) {
    let is_late = async {
        tokio::time::sleep(TRIAL_TIME_MAX).await;
        if trial.is_trusted() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = trial.is_over() => {}
        () = is_late => {}
    }
}

fn http() -> auto::Builder<Streams> {
    let mut http = auto::Builder::new(Streams::default());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIME_MAX)
        .max_concurrent_streams(STREAMS_MAX);
    http
}

/// The tasks of one HTTP/2 connection. Owned by it, unlike those of hyper-util's executor, so that
/// none outlives it.
#[derive(Debug, Clone, Default)]
struct Streams(Arc<Mutex<JoinSet<()>>>);

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        running.spawn(stream);
    }
}
