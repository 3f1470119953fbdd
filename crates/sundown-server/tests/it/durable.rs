//! The order of commits of a durable server, on a disk that does what a test says: nothing is seen
//! before it is durable, groups form while one is written, a full queue and a full disk are answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use anyhow::{Context, Result};
use jiff::Timestamp;
use sundown_api::{Caller, Config, Method, Request, User};
use sundown_disk::{AppendError, Keep};
use sundown_server::{Durability, Entropy, ManualClock, Reply, Shared};
use sundown_store::{Event, Revision, Store};
use sundown_testing::{BOUND, TestBound, eventually, within};
use tokio::task::JoinSet;

/// What the test lets a disk do, one step at a time.
#[derive(Default)]
struct Orders {
    is_full: AtomicBool,
    fails_to_sync: AtomicBool,
    relaxed_count: AtomicUsize,
}

/// A disk that tells each step and waits for leave to do it.
struct Slow {
    orders: Arc<Orders>,
    steps: mpsc::Sender<Step>,
    leave: mpsc::Receiver<()>,
    /// The first objects are written before anybody could give leave.
    is_started: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The revisions of one group.
    Write(Vec<u64>),
    Sync,
}

impl Slow {
    fn step(&mut self, step: Step) {
        if self.is_started {
            // Nobody waits any more: the test has ended.
            let _ = self.steps.send(step);
            let _ = self.leave.recv();
        }
    }
}

impl Keep for Slow {
    fn write(&mut self, events: &[Arc<Event>], _: Option<Revision>) -> Result<(), AppendError> {
        let revisions = events.iter().map(|event| event.revision.number());
        self.step(Step::Write(revisions.collect()));
        if self.orders.is_full.load(Ordering::Relaxed) {
            return Err(AppendError::Full(std::io::ErrorKind::StorageFull.into()));
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), AppendError> {
        self.step(Step::Sync);
        self.is_started = true;
        if self.orders.fails_to_sync.load(Ordering::Relaxed) {
            return Err(AppendError::Failed(
                std::io::Error::other("no answer").into(),
            ));
        }
        Ok(())
    }

    fn relax(&mut self) -> Result<(), AppendError> {
        self.orders.relaxed_count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

pub(crate) struct World {
    /// Before `shared`: its end waits for the disk, which waits for leave. A test that fails must not hang.
    leave: mpsc::Sender<()>,
    pub(crate) shared: Arc<Shared>,
    orders: Arc<Orders>,
    steps: mpsc::Receiver<Step>,
    /// The revision before the first request.
    before: u64,
    _bound: TestBound,
}

impl World {
    pub(crate) fn new(durability: Durability) -> Result<Self> {
        let orders = Arc::<Orders>::default();
        let (steps_in, steps) = mpsc::channel();
        let (leave, leave_out) = mpsc::channel();
        let slow = Slow {
            orders: Arc::clone(&orders),
            steps: steps_in,
            leave: leave_out,
            is_started: false,
        };
        let shared = Shared::durable(
            Config::default(),
            Arc::new(ManualClock::new(Timestamp::constant(1_800_000_000, 0))),
            Entropy::system(),
            Store::default(),
            Box::new(slow),
            durability,
        )?;
        Ok(Self {
            before: shared.snapshot().revision().number(),
            shared: Arc::new(shared),
            orders,
            steps,
            leave,
            _bound: TestBound::of_this_test(),
        })
    }

    pub(crate) fn send(&self, tasks: &mut JoinSet<u16>, request: Request) {
        let caller = request.user.clone().into();
        self.send_as(tasks, caller, request);
    }

    pub(crate) fn send_as(&self, tasks: &mut JoinSet<u16>, caller: Caller, request: Request) {
        let shared = Arc::clone(&self.shared);
        tasks.spawn(async move { code(shared.call(caller, request).await) });
    }

    /// The next step of the disk, which then waits for leave.
    pub(crate) fn step(&self) -> Result<Step> {
        self.steps.recv_timeout(BOUND).context("the disk is idle")
    }

    pub(crate) fn go_on(&self) -> Result<()> {
        Ok(self.leave.send(())?)
    }

    fn seen(&self) -> u64 {
        self.shared.snapshot().revision().number() - self.before
    }

    /// What the next group holds, counted from the revision before the first request.
    fn group(&self) -> Result<Vec<u64>> {
        match self.step()? {
            Step::Write(revisions) => Ok(revisions.iter().map(|it| it - self.before).collect()),
            Step::Sync => anyhow::bail!("a sync instead of a write"),
        }
    }
}

pub(crate) fn request(method: Method, path: &str, body: &str) -> Request {
    Request {
        method,
        path: path.to_owned(),
        query: Vec::new(),
        content_type: Some("application/json".to_owned()),
        accept: None,
        user_agent: None,
        if_none_match: None,
        user: User::admin(),
        body: body.as_bytes().to_vec(),
    }
}

pub(crate) fn create(name: &str) -> Request {
    let body = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
    let path = "/api/v1/namespaces/default/configmaps";
    request(Method::Post, path, &body)
}

fn create_lease(name: &str) -> Request {
    let body = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{}}}}"#);
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    request(Method::Post, path, &body)
}

async fn call(shared: &Shared, request: Request) -> Reply {
    let caller = request.user.clone().into();
    shared.call(caller, request).await
}

pub(crate) fn code(reply: Reply) -> u16 {
    match reply {
        Reply::Response(response) => response.code,
        Reply::Watch(_) | Reply::Log(_) => 0,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_seen_or_answered_before_it_is_durable() -> Result<()> {
    let world = World::new(Durability::Relaxed)?;
    let mut tasks = JoinSet::new();
    let mut published = world.shared.subscribe();
    published.mark_unchanged();
    world.send(&mut tasks, create("a"));
    assert_eq!(world.group()?, [1]);
    assert_eq!(
        (world.seen(), published.has_changed()?),
        (0, false),
        "written"
    );
    world.go_on()?;
    assert_eq!(world.step()?, Step::Sync);
    assert_eq!(
        (world.seen(), published.has_changed()?),
        (0, false),
        "syncing"
    );
    assert!(tasks.try_join_next().is_none());
    world.go_on()?;
    assert_eq!(
        within("an answer", tasks.join_next())
            .await?
            .context("sent")??,
        201
    );
    assert_eq!(
        (world.seen(), published.has_changed()?),
        (1, true),
        "synced"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_while_a_group_is_written_makes_the_next_group_in_order() -> Result<()> {
    let world = World::new(Durability::Relaxed)?;
    let mut tasks = JoinSet::new();
    world.send(&mut tasks, create("first"));
    assert_eq!(world.group()?, [1]);
    // Each is decided on a state that knows nothing of the others.
    for number in 0..10 {
        world.send(&mut tasks, create(&format!("a-{number}")));
    }
    world.send(&mut tasks, create("first"));
    let queued = || world.shared.queued_count() == 11;
    eventually("all are queued", queued).await?;
    world.go_on()?;
    assert_eq!(world.step()?, Step::Sync);
    world.go_on()?;
    assert_eq!(world.group()?, (2..=11).collect::<Vec<_>>(), "one group");
    assert_eq!(world.seen(), 1);
    world.go_on()?;
    assert_eq!(world.step()?, Step::Sync);
    world.go_on()?;
    let mut codes = within("all answers", tasks.join_all()).await?;
    codes.sort_unstable();
    let mut expect = vec![201; 11];
    expect.push(409);
    assert_eq!(codes, expect, "the second `first` found the first one");
    assert_eq!(world.seen(), 11);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_writers_than_the_queue_holds_are_told_to_come_again() -> Result<()> {
    let world = World::new(Durability::Relaxed)?;
    let mut tasks = JoinSet::new();
    world.send(&mut tasks, create("first"));
    assert_eq!(world.group()?, [1]);
    for number in 0..1_024 {
        world.send(&mut tasks, create(&format!("a-{number}")));
    }
    let is_full = || world.shared.queued_count() == 1_024;
    eventually("the queue is full", is_full).await?;
    let refused = call(&world.shared, create("one-more")).await;
    let Reply::Response(refused) = refused else {
        anyhow::bail!("not a response");
    };
    assert_eq!(refused.code, 429);
    let retry = refused
        .headers
        .iter()
        .find(|(name, _)| *name == "retry-after");
    assert_eq!(retry.map(|(_, value)| value.as_str()), Some("1"));
    drop(world.leave);
    let codes = within("all answers", tasks.join_all()).await?;
    assert!(codes.iter().all(|code| *code == 201), "all others are in");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_and_shows_nothing_of_them() -> Result<()> {
    let world = World::new(Durability::Relaxed)?;
    drop(world.leave);
    world.orders.is_full.store(true, Ordering::Relaxed);
    let Reply::Response(refused) = call(&world.shared, create("a")).await else {
        anyhow::bail!("not a response");
    };
    assert_eq!(refused.code, 507);
    let said = String::from_utf8(refused.body)?;
    assert!(
        said.contains("the disk of the data directory is full"),
        "{said}"
    );
    let path = "/api/v1/namespaces/default/configmaps";
    let read = call(&world.shared, request(Method::Get, path, "")).await;
    assert_eq!(code(read), 200, "reads go on");
    world.orders.is_full.store(false, Ordering::Relaxed);
    assert_eq!(code(call(&world.shared, create("a")).await), 201);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failed_sync_nothing_is_written_any_more() -> Result<()> {
    let world = World::new(Durability::Relaxed)?;
    drop(world.leave);
    world.orders.fails_to_sync.store(true, Ordering::Relaxed);
    let revision = world.shared.snapshot().revision();
    assert_eq!(code(call(&world.shared, create("a")).await), 500);
    let cause = world.shared.broken().await;
    assert!(
        cause.starts_with("write to the data directory: "),
        "{cause}"
    );
    assert!(cause.contains("no answer"), "{cause}");
    assert_eq!(code(call(&world.shared, create("b")).await), 500);
    assert_eq!(world.shared.snapshot().revision(), revision);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_alone_is_answered_before_its_sync_and_never_before_others() -> Result<()> {
    let world = World::new(Durability::Relaxed)?;
    let mut tasks = JoinSet::new();
    world.send(&mut tasks, create_lease("a"));
    assert_eq!(world.group()?, [1]);
    assert_eq!(world.seen(), 0, "not before the system has it");
    assert_eq!(world.orders.relaxed_count.load(Ordering::Relaxed), 1);
    world.go_on()?;
    assert_eq!(world.step()?, Step::Sync);
    assert_eq!(
        within("an answer", tasks.join_next())
            .await?
            .context("sent")??,
        201
    );
    assert_eq!(world.seen(), 1, "while it is synced");
    // With anything else in the group the lease waits, so that the order of revisions holds.
    world.send(&mut tasks, create_lease("b"));
    world.send(&mut tasks, create("c"));
    eventually("both are queued", || world.shared.queued_count() == 2).await?;
    world.go_on()?;
    assert_eq!(world.group()?, [2, 3]);
    world.go_on()?;
    assert_eq!(world.step()?, Step::Sync);
    assert_eq!(world.seen(), 1);
    assert!(tasks.try_join_next().is_none());
    world.go_on()?;
    assert_eq!(within("all answers", tasks.join_all()).await?, [201, 201]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_strict_durability_a_lease_waits_as_well() -> Result<()> {
    let world = World::new(Durability::Strict)?;
    let mut tasks = JoinSet::new();
    world.send(&mut tasks, create_lease("a"));
    assert_eq!(world.group()?, [1]);
    world.go_on()?;
    assert_eq!(world.step()?, Step::Sync);
    assert_eq!((world.seen(), tasks.try_join_next().is_none()), (0, true));
    assert_eq!(world.orders.relaxed_count.load(Ordering::Relaxed), 0);
    world.go_on()?;
    assert_eq!(within("all answers", tasks.join_all()).await?, [201]);
    Ok(())
}
