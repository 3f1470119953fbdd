//! The order of commits of a durable server: one thread checks what each was decided on against the
//! newest state, makes everything that is queued durable as one group, publishes it, then answers.
//!
//! Nothing waits for a group to grow: while one is synced, the next one queues up. How bytes reach
//! the disk is left to `sundown-disk`.
//!
//! One exception: a group of nothing but Leases and Events is seen and answered when the system has
//! it, and synced right after. A killed process loses nothing of it, a power failure may.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use sundown_api::{Caller, Commit, Request, Response, Server, Verdict};
use sundown_disk::{AppendError, Keep, RELAXED_MAX};
use sundown_store::Event;
use tokio::sync::{mpsc, oneshot};

use crate::full_disk::{FullDisk, Said};
use crate::shared::Core;
use crate::status::Failure;
use crate::tasks::panic_message;

/// More writers than this at once are told to come again. Upstream lets 200 in.
const QUEUE_MAX: usize = 1_024;
/// What the bodies of all waiting writes may come to. A few hundred of the largest.
const QUEUE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// A group is one batch of the disk. Larger ones would make no write faster, only later.
const GROUP_MAX: usize = 512;
/// A group takes no further write once its bodies come to this.
const GROUP_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What may be seen before it is synced (spec of the embedded server, 3.1): it is renewed or repeated
/// by those who wrote it, and nobody decides on it for good.
const RELAXED: [(&str, &str); 3] = [
    ("coordination.k8s.io", "leases"),
    ("", "events"),
    ("events.k8s.io", "events"),
];

/// How soon a write is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Leases and Events when the system has them, everything else when it is synced.
    #[default]
    Relaxed,
    /// Everything when it is synced.
    Strict,
}

/// The way to the thread that commits.
#[derive(Debug)]
pub(crate) struct Sequencer {
    queue: Option<mpsc::Sender<Order>>,
    /// What the bodies of all waiting writes come to.
    queued_bytes: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread is asked.
#[derive(Debug)]
enum Order {
    Commit(Box<Job>),
    /// Nothing more; told when the data directory is free.
    Close(oneshot::Sender<()>),
}

/// A decided write that waits for its place.
#[derive(Debug)]
struct Job {
    caller: Caller,
    request: Request,
    commit: Box<Commit>,
    reply: oneshot::Sender<Response>,
}

struct Writer {
    core: Arc<Core>,
    keep: Box<dyn Keep>,
    durability: Durability,
    queued_bytes: Arc<AtomicUsize>,
    /// What is durable. Everything in it is published.
    head: Server,
    full_disk: FullDisk,
    /// When the thread began: what the log says of a full disk is counted from here.
    begun_at: Instant,
}

/// What a group comes to, before it is durable.
struct Group {
    next: Server,
    events: Vec<Arc<Event>>,
    answers: Vec<(oneshot::Sender<Response>, Response)>,
}

impl Sequencer {
    /// Starts the thread, which goes on from `head`.
    pub(crate) fn start(
        core: Arc<Core>,
        head: Server,
        keep: Box<dyn Keep>,
        durability: Durability,
    ) -> io::Result<Self> {
        let (queue, orders) = mpsc::channel(QUEUE_MAX);
        let queued_bytes = Arc::<AtomicUsize>::default();
        let writer = Writer {
            core,
            keep,
            durability,
            queued_bytes: Arc::clone(&queued_bytes),
            head,
            full_disk: FullDisk::default(),
            begun_at: Instant::now(),
        };
        let thread = std::thread::Builder::new().name("sequencer".to_owned());
        Ok(Self {
            queue: Some(queue),
            queued_bytes,
            thread: Some(thread.spawn(move || {
                if let Some(closed) = writer.run(orders) {
                    // Whoever asked has not waited.
                    let _ = closed.send(());
                }
            })?),
        })
    }

    /// How many writes wait, without those of the group that is being written.
    pub(crate) fn queued_count(&self) -> usize {
        let queue = self.queue.as_ref();
        queue.map_or(0, |queue| queue.max_capacity() - queue.capacity())
    }

    /// Commits a write, or what its request comes to on a newer state.
    pub(crate) async fn commit(
        &self,
        caller: Caller,
        request: Request,
        commit: Box<Commit>,
    ) -> Response {
        let bytes = request.body.len();
        if self.queued_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > QUEUE_BYTES_MAX {
            self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Failure::TooManyRequests.response();
        }
        let (reply, answer) = oneshot::channel();
        let job = Order::Commit(Box::new(Job {
            caller,
            request,
            commit,
            reply,
        }));
        let queue = self.queue.as_ref().expect("taken when dropped only");
        match queue.try_send(job) {
            Ok(()) => answer.await.unwrap_or_else(|_| stopped()),
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
                Failure::TooManyRequests.response()
            }
            Err(mpsc::error::TrySendError::Closed(_)) => stopped(),
        }
    }

    /// Ends after what is queued, and lets go of the data directory. Later writes are refused.
    pub(crate) async fn close(&self) {
        let (closed, is_closed) = oneshot::channel();
        let queue = self.queue.as_ref().expect("taken when dropped only");
        if queue.send(Order::Close(closed)).await.is_ok() {
            // An error means that it ended otherwise; it holds nothing either way.
            let _ = is_closed.await;
        }
    }
}

impl Drop for Sequencer {
    fn drop(&mut self) {
        // The end of the queue ends the thread, after what is queued; it holds the data directory.
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            let end = thread.join();
            assert!(end.is_ok(), "panics of the core are caught");
        }
    }
}

impl Writer {
    /// Works until the queue ends, or until it is closed: then gives whom to tell.
    fn run(mut self, mut orders: mpsc::Receiver<Order>) -> Option<oneshot::Sender<()>> {
        while let Some(first) = orders.blocking_recv() {
            let (group, closed) = self.collect(first, &mut orders);
            let decided = catch_unwind(AssertUnwindSafe(|| self.decide(group)));
            let end = match decided {
                Ok(group) => self.make_durable(group),
                Err(panic) => Err(panic_message(panic.as_ref())),
            };
            if let Err(cause) = end {
                self.core.break_down(cause);
                return closed;
            }
            if closed.is_some() {
                return closed;
            }
        }
        None
    }

    /// Everything that is queued, as far as it fits one group.
    fn collect(
        &self,
        first: Order,
        orders: &mut mpsc::Receiver<Order>,
    ) -> (Vec<Job>, Option<oneshot::Sender<()>>) {
        let (mut group, mut bytes, mut closed) = (Vec::new(), 0, None);
        let mut next = Some(first);
        while let Some(order) = next.take() {
            match order {
                Order::Commit(job) => {
                    bytes += job.request.body.len();
                    group.push(*job);
                }
                Order::Close(whom) => {
                    closed = Some(whom);
                    break;
                }
            }
            if group.len() < GROUP_MAX && bytes < GROUP_BYTES_MAX {
                next = orders.try_recv().ok();
            }
        }
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        (group, closed)
    }

    fn decide(&self, jobs: Vec<Job>) -> Group {
        let mut group = Group {
            next: self.head.clone(),
            events: Vec::new(),
            answers: Vec::with_capacity(jobs.len()),
        };
        for mut job in jobs {
            let before = group.next.revision();
            let response = self.decide_one(&mut group.next, &mut job);
            let written = group.next.store().events_since(before).cloned();
            group.events.extend(written);
            group.answers.push((job.reply, response));
        }
        group
    }

    fn decide_one(&self, next: &mut Server, job: &mut Job) -> Response {
        let now = self.core.clock.now();
        if let Ok(response) = next.commit(&job.commit, now) {
            return response;
        }
        // It was decided on an older state, its caller's rights included. No other commit can come in
        // between here.
        match self.core.decide(next, &job.caller, &mut job.request) {
            Verdict::Answer(response) => response,
            Verdict::Commit(commit) => next.commit(&commit, now).unwrap_or_else(|_| {
                Failure::Internal("stale although no other request could commit").response()
            }),
            Verdict::Watch(_) | Verdict::Log(_) => {
                Failure::Internal("a write became a stream").response()
            }
        }
    }

    /// Errors: the cause for which nothing more can be committed.
    fn make_durable(&mut self, group: Group) -> Result<(), String> {
        if group.events.is_empty() {
            group.answer();
            return Ok(());
        }
        let is_relaxed = self.durability == Durability::Relaxed && group.is_relaxed();
        match self.write(&group, is_relaxed) {
            Ok(()) => say(self.full_disk.written(self.begun_at.elapsed()), None),
            Err(AppendError::Full(error)) => {
                let count = group.answers.len();
                let said = self.full_disk.refused(count, self.begun_at.elapsed());
                say(said, Some(&error));
                group.refuse();
                return Ok(());
            }
            Err(error @ AppendError::Failed(_)) => return Err(cause(&error)),
        }
        if is_relaxed {
            self.publish(group);
            return self.sync();
        }
        self.sync()?;
        self.publish(group);
        Ok(())
    }

    fn write(&mut self, group: &Group, is_relaxed: bool) -> Result<(), AppendError> {
        if is_relaxed {
            self.keep.relax()?;
        }
        let oldest = group.next.store().oldest_event();
        self.keep.write(&group.events, oldest)
    }

    fn sync(&mut self) -> Result<(), String> {
        self.keep.sync().map_err(|error| cause(&error))
    }

    /// Shows the state to everybody, then answers.
    fn publish(&mut self, group: Group) {
        self.head = group.next.clone();
        self.core.publish(Arc::new(group.next.clone()));
        group.answer();
    }
}

impl Group {
    fn is_relaxed(&self) -> bool {
        let is_relaxed = |event: &Arc<Event>| {
            let resource = &event.key.resource;
            RELAXED.contains(&(resource.group(), resource.plural()))
        };
        self.events.len() <= RELAXED_MAX && self.events.iter().all(is_relaxed)
    }

    fn answer(self) {
        for (reply, response) in self.answers {
            // Whoever went away has its write all the same.
            let _ = reply.send(response);
        }
    }

    fn refuse(self) {
        for (reply, _) in self.answers {
            let _ = reply.send(Failure::InsufficientStorage.response());
        }
    }
}

/// Writes a line about a full disk.
fn say(said: Option<Said>, error: Option<&dyn std::error::Error>) {
    let error = error.map(tracing::field::display);
    match said {
        Some(Said::Full) => {
            tracing::warn!(
                error,
                "the disk is full: nothing is written until there is room"
            );
        }
        Some(Said::StillFull { refused_count }) => {
            tracing::warn!(error, refused_count, "the disk is still full");
        }
        Some(Said::RoomAgain { refused_count }) => {
            tracing::info!(refused_count, "there is room on the disk again");
        }
        None => {}
    }
}

fn cause(error: &AppendError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    format!("{error}: {}", source.unwrap_or_default())
}

fn stopped() -> Response {
    Failure::Internal("the server stopped after a failed commit").response()
}
