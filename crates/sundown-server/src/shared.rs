//! The one state of the server: handled against a published snapshot, changed by one committer at a
//! time, published whole. What a request reads and writes is decided by `sundown-api`; how a durable
//! server orders its commits lies in `sequencer.rs`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::registry::Registry;
use sundown_api::{
    Caller, Commit, Config, Cx, Log, Request, Response, Server, Stale, User, Verdict, Watch,
};
use sundown_disk::{AppendError, Keep};
use sundown_store::Store;
use tokio::sync::watch;

use crate::bodies::Bodies;
use crate::compressed::Compressed;
use crate::keys::Keys;
use crate::metrics::{Metrics, Usage};
use crate::notices::Notices;
use crate::sequencer::{Durability, Sequencer};
use crate::status::Failure;
use crate::tasks::panic_message;
use crate::{Clock, Entropy, Identity, PodLogs};

/// How often a request is handled on a snapshot that proves to be stale.
///
/// After that it is handled once more while nobody else may commit, so contention costs time but
/// never an answer: a PATCH without a resourceVersion must not fail with a conflict. Between
/// handling and committing nothing awaits, so at most the other worker threads compete; more tries
/// would be of use only with more threads than that.
const TRIES_MAX: usize = 16;

/// The state, shared by every connection, watch and in-process client.
#[derive(Debug)]
pub struct Shared {
    core: Arc<Core>,
    commits: Commits,
    /// Signs the tokens of service accounts.
    pub(crate) keys: Keys,
    pub(crate) bodies: Bodies,
    pub(crate) notices: Notices,
    pub(crate) compressed: Compressed,
    pub(crate) metrics: Metrics,
    /// Nobody runs pods if there is none.
    pub(crate) logs: Option<Arc<dyn PodLogs>>,
}

/// Where commits go.
#[derive(Debug)]
enum Commits {
    /// The newest state. Locked for the commit only.
    Memory(Mutex<Arc<Server>>),
    /// Written down before anybody sees them.
    Durable(Sequencer),
}

/// What handling and committing share.
#[derive(Debug)]
pub(crate) struct Core {
    /// The newest state for readers, and the wake-up for watches.
    published: watch::Sender<Arc<Server>>,
    /// Why a commit failed. Nothing is committed after it.
    broken: watch::Sender<Option<String>>,
    pub(crate) clock: Arc<dyn Clock>,
    entropy: Entropy,
}

/// Why a durable server did not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// What every cluster has could not be written.
    #[error("write the first objects")]
    First(#[from] AppendError),
    /// There is no thread for the commits.
    #[error("start the thread of the commits")]
    Thread(#[source] std::io::Error),
}

/// What a request gets.
#[derive(Debug)]
pub enum Reply {
    /// A complete answer.
    Response(Response),
    /// A stream; the first poll has the initial events.
    Watch(Box<Watch>),
    /// What a pod wrote; whoever runs it has it.
    Log(Box<Log>),
}

impl Shared {
    /// A fresh server with the namespaces that every cluster has.
    pub fn new(config: Config, clock: Arc<dyn Clock>, entropy: Entropy) -> Self {
        let mut draw = || entropy.draw();
        let server = Server::new(
            config,
            &mut Cx {
                now: clock.now(),
                entropy: &mut draw,
            },
        );
        Self::with_server(server, clock, entropy)
    }

    /// A server in memory that goes on from a given state.
    pub fn with_server(server: Server, clock: Arc<dyn Clock>, entropy: Entropy) -> Self {
        let head = Arc::new(server);
        Self {
            core: Arc::new(Core::new(Arc::clone(&head), clock, entropy)),
            commits: Commits::Memory(Mutex::new(head)),
            keys: Keys::generate(),
            bodies: Bodies::default(),
            notices: Notices::default(),
            compressed: Compressed::default(),
            metrics: Metrics::default(),
            logs: None,
        }
    }

    /// A durable server that goes on from what was kept.
    ///
    /// Guarantees: nothing is visible before it is durable, but as `durability` says.
    pub fn durable(
        config: Config,
        clock: Arc<dyn Clock>,
        entropy: Entropy,
        store: Store,
        mut keep: Box<dyn Keep>,
        durability: Durability,
    ) -> Result<Self, OpenError> {
        let before = store.revision();
        let mut draw = || entropy.draw();
        let mut cx = Cx {
            now: clock.now(),
            entropy: &mut draw,
        };
        let server = Server::with_store(config, store, &mut cx);
        let first: Vec<_> = server.store().events_since(before).cloned().collect();
        if !first.is_empty() {
            keep.write(&first, server.store().oldest_event())?;
            keep.sync()?;
        }
        let core = Arc::new(Core::new(Arc::new(server.clone()), clock, entropy));
        let sequencer = Sequencer::start(Arc::clone(&core), server, keep, durability);
        let sequencer = sequencer.map_err(OpenError::Thread)?;
        let commits = Commits::Durable(sequencer);
        Ok(Self {
            core,
            commits,
            keys: Keys::generate(),
            bodies: Bodies::default(),
            notices: Notices::default(),
            compressed: Compressed::default(),
            metrics: Metrics::default(),
            logs: None,
        })
    }

    /// Signs the tokens of service accounts with the key of an identity.
    #[must_use]
    pub fn signing_as(self, identity: &Identity) -> Self {
        let keys = identity.keys();
        Self { keys, ..self }
    }

    /// Serves what pods wrote, out of these hands.
    #[must_use]
    pub fn logging_from(self, logs: Arc<dyn PodLogs>) -> Self {
        let logs = Some(logs);
        Self { logs, ..self }
    }

    /// Decides on a request of a caller and commits what follows.
    ///
    /// Guarantees: a write is committed only on a state on which the caller may do it; a change is visible to every later call when this returns; revisions are
    /// published in order. A panic while handling costs this request only (500).
    pub async fn call(&self, caller: Caller, mut request: Request) -> Reply {
        let core = &self.core;
        match &self.commits {
            Commits::Memory(head) => self.call_in_memory(head, &caller, &mut request),
            Commits::Durable(sequencer) => {
                match core.decide(&self.snapshot(), &caller, &mut request) {
                    Verdict::Answer(response) => Reply::Response(response),
                    Verdict::Watch(watch) => Reply::Watch(watch),
                    Verdict::Log(log) => Reply::Log(log),
                    Verdict::Commit(commit) => {
                        Reply::Response(sequencer.commit(caller, request, commit).await)
                    }
                }
            }
        }
    }

    /// Who the caller is.
    ///
    /// Errors: the answer for a caller whose credentials do not count any more.
    pub(crate) fn identify(&self, caller: &Caller) -> Result<User, Response> {
        self.snapshot().identify(caller, self.core.clock.now())
    }

    /// Whether the caller may do this, before the body of the request is read. A caller who acts as another
    /// user is judged as that one.
    ///
    /// Errors: the answer for a caller who may not.
    pub(crate) fn admit(&self, caller: &Caller, request: &mut Request) -> Result<(), Response> {
        let (at, now) = (self.snapshot(), self.core.clock.now());
        let judged = catch_unwind(AssertUnwindSafe(|| at.admit(caller, request, now)));
        judged.unwrap_or_else(|panic| Err(unhandled(panic.as_ref(), request)))
    }

    /// The newest published state.
    pub fn snapshot(&self) -> Arc<Server> {
        Arc::clone(&self.core.published.borrow())
    }

    /// The published state from now on; `changed` resolves after each commit.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Server>> {
        self.core.published.subscribe()
    }

    /// Lets others of this process show what they count among the metrics of the server.
    pub fn register_metrics(&self, register: impl FnOnce(&mut Registry)) {
        self.metrics.register(register);
    }

    /// How clients from outside use it.
    pub fn usage(&self) -> Usage {
        self.metrics.usage()
    }

    /// How many writes wait to be made durable; none in memory.
    pub fn queued_count(&self) -> usize {
        match &self.commits {
            Commits::Memory(_) => 0,
            Commits::Durable(sequencer) => sequencer.queued_count(),
        }
    }

    /// Ends after the writes that wait, and lets go of the data directory: nothing is written any
    /// more. In memory nothing has to end.
    pub async fn close(&self) {
        match &self.commits {
            Commits::Memory(_) => {}
            Commits::Durable(sequencer) => sequencer.close().await,
        }
    }

    /// Resolves with the cause once a commit has panicked: the process is to be ended.
    pub async fn broken(&self) -> String {
        let mut broken = self.core.broken.subscribe();
        let cause = broken
            .wait_for(Option::is_some)
            .await
            .expect("self holds the sender");
        cause.clone().expect("waited for it")
    }

    /// The clock that watches are measured by.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.core.clock
    }

    /// The source of uids and audit ids.
    pub fn entropy(&self) -> &Entropy {
        &self.core.entropy
    }

    fn call_in_memory(
        &self,
        head: &Mutex<Arc<Server>>,
        caller: &Caller,
        request: &mut Request,
    ) -> Reply {
        for _ in 0..TRIES_MAX {
            match self.core.decide(&self.snapshot(), caller, request) {
                Verdict::Answer(response) => return Reply::Response(response),
                Verdict::Watch(watch) => return Reply::Watch(watch),
                Verdict::Log(log) => return Reply::Log(log),
                Verdict::Commit(commit) => {
                    if let Ok(response) = change(head, |head| self.commit(head, &commit)) {
                        return Reply::Response(response);
                    }
                }
            }
        }
        change(head, |head| self.call_alone(head, caller, request))
    }

    fn call_alone(&self, head: &mut Arc<Server>, caller: &Caller, request: &mut Request) -> Reply {
        match self.core.decide(head, caller, request) {
            Verdict::Answer(response) => Reply::Response(response),
            Verdict::Watch(watch) => Reply::Watch(watch),
            Verdict::Log(log) => Reply::Log(log),
            Verdict::Commit(commit) => {
                Reply::Response(self.commit(head, &commit).unwrap_or_else(|Stale| {
                    Failure::Internal("stale although no other request could commit").response()
                }))
            }
        }
    }

    fn commit(&self, head: &mut Arc<Server>, commit: &Commit) -> Result<Response, Stale> {
        let now = self.core.clock.now();
        self.publish(head, |next| next.commit(commit, now))
    }

    /// Changes a copy of the head and publishes it whole.
    ///
    /// A panic in `change` is a broken invariant: the copy is thrown away, nothing more is accepted
    /// and [`Shared::broken`] tells the owner to end the process.
    fn publish(
        &self,
        head: &mut Arc<Server>,
        change: impl FnOnce(&mut Server) -> Result<Response, Stale>,
    ) -> Result<Response, Stale> {
        let stopped = || Failure::Internal("the server stopped after a failed commit").response();
        if self.core.broken.borrow().is_some() {
            return Ok(stopped());
        }
        let mut next = Server::clone(head);
        match catch_unwind(AssertUnwindSafe(|| change(&mut next))) {
            Ok(Ok(response)) => {
                *head = Arc::new(next);
                self.core.publish(Arc::clone(head));
                Ok(response)
            }
            Ok(Err(stale)) => Err(stale),
            Err(panic) => {
                self.core.break_down(panic_message(panic.as_ref()));
                Ok(stopped())
            }
        }
    }
}

impl Core {
    fn new(head: Arc<Server>, clock: Arc<dyn Clock>, entropy: Entropy) -> Self {
        Self {
            published: watch::Sender::new(head),
            broken: watch::Sender::new(None),
            clock,
            entropy,
        }
    }

    /// Shows a state to everybody.
    pub(crate) fn publish(&self, head: Arc<Server>) {
        self.published.send_replace(head);
    }

    /// Tells the owner to end the process.
    pub(crate) fn break_down(&self, cause: String) {
        self.broken.send_replace(Some(cause));
    }

    /// Deciding only reads, so a panic in it leaves nothing half done.
    pub(crate) fn decide(&self, at: &Server, caller: &Caller, request: &mut Request) -> Verdict {
        let mut draw = || self.entropy.draw();
        let mut cx = Cx {
            now: self.clock.now(),
            entropy: &mut draw,
        };
        catch_unwind(AssertUnwindSafe(|| at.decide(caller, request, &mut cx)))
            .unwrap_or_else(|panic| Verdict::Answer(unhandled(panic.as_ref(), request)))
    }
}

/// What a request gets that panicked.
fn unhandled(panic: &(dyn Any + Send), request: &Request) -> Response {
    let message = panic_message(panic);
    tracing::error!(message, method = ?request.method, path = request.path, "a request panicked");
    Failure::Internal("the request could not be handled").response()
}

/// Runs `change` while nobody else may commit.
fn change<T>(head: &Mutex<Arc<Server>>, change: impl FnOnce(&mut Arc<Server>) -> T) -> T {
    // Every panic of the core is caught before it could reach the lock.
    let mut head = head.lock().unwrap_or_else(PoisonError::into_inner);
    change(&mut head)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use sundown_api::{Config, Method, Request, User};

    use super::{Commits, Reply, Shared, change};
    use crate::status::Failure;
    use crate::{Entropy, SystemClock};

    fn create(name: &str) -> Request {
        Request {
            method: Method::Post,
            path: "/api/v1/namespaces/default/configmaps".to_owned(),
            query: Vec::new(),
            content_type: Some("application/json".to_owned()),
            accept: None,
            user_agent: None,
            if_none_match: None,
            user: User::admin(),
            body: format!(r#"{{"metadata":{{"name":"{name}"}}}}"#).into_bytes(),
        }
    }

    fn code(reply: Reply) -> u16 {
        match reply {
            Reply::Response(response) => response.code,
            Reply::Watch(_) | Reply::Log(_) => 0,
        }
    }

    #[tokio::test]
    async fn a_panic_while_handling_costs_one_request_only() {
        let is_dry = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_dry);
        let entropy = Entropy::from_fn(move || {
            assert!(!seen.load(Ordering::Relaxed), "no entropy");
            7
        });
        let shared = Shared::new(Config::default(), Arc::new(SystemClock), entropy);
        is_dry.store(true, Ordering::Relaxed);
        assert_eq!(
            code(shared.call(User::admin().into(), create("a")).await),
            500
        );
        is_dry.store(false, Ordering::Relaxed);
        assert_eq!(
            code(shared.call(User::admin().into(), create("a")).await),
            201
        );
    }

    #[tokio::test]
    async fn a_panic_inside_a_commit_stops_all_writes_and_tells_why() {
        let shared = Shared::new(Config::default(), Arc::new(SystemClock), Entropy::system());
        let before = shared.snapshot();
        let Commits::Memory(head) = &shared.commits else {
            panic!("it is in memory");
        };
        let failed = change(head, |head| {
            shared.publish(head, |_| {
                assert!(std::hint::black_box(false), "revision went back");
                Ok(Failure::Unauthorized.response())
            })
        });
        assert_eq!(failed.map(|response| response.code), Ok(500));
        assert_eq!(
            code(shared.call(User::admin().into(), create("a")).await),
            500
        );
        assert!(
            Arc::ptr_eq(&before, &shared.snapshot()),
            "nothing was published"
        );
        assert_eq!(shared.broken().await, "revision went back");
    }
}
