//! A running control plane, as its owner sees it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use sundown_api::User;
use sundown_driver::{Counts, DriverHandle, WaitError};
use sundown_engine::Engine;
use sundown_server::{ApiService, ManualClock, Shared, TaskError, Tasks};

use crate::builder::{Builder, StartError};
use crate::kubeconfig::KubeconfigFile;
use crate::local::Local;
use crate::machine::Machine;

/// How long everything may take to end. HTTPS alone gives open requests five seconds.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// A control plane in this process. Dropping it ends it at once, [`Embedded::stop`] in good order.
pub struct Embedded {
    pub(crate) shared: Arc<Shared>,
    pub(crate) client: Client,
    pub(crate) driver: DriverHandle,
    pub(crate) tasks: Tasks,
    pub(crate) door: Option<Door>,
    pub(crate) manual: Option<Arc<ManualClock>>,
    pub(crate) start_time: Duration,
    pub(crate) machine: Option<Arc<Machine>>,
}

/// The way in from outside.
pub(crate) struct Door {
    pub(crate) url: String,
    pub(crate) kubeconfig: String,
    pub(crate) files: Vec<KubeconfigFile>,
}

/// Why a control plane ended otherwise than it was asked to.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct StopError(#[from] TaskError);

impl Embedded {
    /// Starts a control plane with all controllers, without HTTPS, by the clock of the machine.
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// Starts one of your choice.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A client in this process, with the rights of the administrator.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client in this process with the rights that roles and bindings give to this user.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> Client {
        let groups = groups.iter().chain(&["system:authenticated"]);
        let user = User {
            name: user.to_owned(),
            uid: String::new(),
            groups: groups.map(|group| (*group).to_owned()).collect(),
            extra: BTreeMap::new(),
        };
        let shared = Arc::clone(&self.shared);
        let service = ApiService::acting_as(shared, self.tasks.signal(), user);
        Client::new(service, "default")
    }

    /// The same control plane, for those who do not own it.
    pub fn local(&self) -> Local {
        Local {
            client: self.client.clone(),
            driver: self.driver.clone(),
            machine: self.machine.clone(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Leaves the kubeconfigs where they are when this ends: whoever uses them goes on with the next one.
    pub fn keep_kubeconfigs(&mut self) {
        for file in self.door.iter_mut().flat_map(|door| &mut door.files) {
            file.is_kept = true;
        }
    }

    /// The controllers at work.
    pub fn controllers(&self) -> &DriverHandle {
        &self.driver
    }

    /// Where HTTPS listens.
    pub fn url(&self) -> Option<&str> {
        self.door.as_ref().map(|door| door.url.as_str())
    }

    /// What lets a client in over HTTPS.
    pub fn kubeconfig(&self) -> Option<&str> {
        self.door.as_ref().map(|door| door.kubeconfig.as_str())
    }

    /// Where the kubeconfig was written, first of all.
    pub fn kubeconfig_path(&self) -> Option<&Path> {
        let file = self.door.as_ref()?.files.first()?;
        Some(&file.path)
    }

    /// How long it took from the call of `start` to the first answered list.
    pub fn start_time(&self) -> Duration {
        self.start_time
    }

    /// [`Embedded::start_time`] in milliseconds.
    pub fn start_ms(&self) -> f64 {
        self.start_time.as_secs_f64() * 1000.0
    }

    /// The time as server and controllers see it.
    pub fn now(&self) -> Timestamp {
        self.shared.clock().now()
    }

    /// Moves the clock. What is due happens on its own account; see [`Embedded::until_at_rest`].
    ///
    /// Assumes: a manual clock, see [`Builder::manual_clock`]; the machine's clock cannot be moved.
    pub fn advance(&self, by: Duration) {
        let manual = self.manual.as_ref();
        manual
            .expect("the caller asked for a manual clock when it built this")
            .advance(by);
    }

    /// Waits until the controllers have seen everything that was committed so far, and have nothing
    /// left to do but to wait for time or for changes.
    ///
    /// Controllers that wrote to one object at once pause for a moment and go on. That is no rest: a manual
    /// clock moves to the end of the pause.
    pub async fn until_at_rest(&self, bound: Duration) -> Result<(), WaitError> {
        let shared = Arc::clone(&self.shared);
        let manual = self.manual.clone();
        let is_at_rest = move |engine: &Engine, now| {
            if !engine.is_at_rest(now) || !has_seen_all(engine, &shared) {
                return false;
            }
            let Some(at) = engine.mends_at() else {
                return true;
            };
            let pause = Duration::try_from(at.duration_since(now));
            if let (Some(clock), Ok(pause)) = (&manual, pause) {
                clock.advance(pause);
            }
            false
        };
        self.driver.wait_until(bound, is_at_rest).await
    }

    /// How many requests the controllers have made.
    pub fn counts(&self) -> Counts {
        self.driver.counts()
    }

    /// Waits until a part of it fails. Cancel-safe.
    ///
    /// Errors: always the cause, unless it was asked to stop.
    pub async fn failed(&mut self) -> Result<(), StopError> {
        Ok(self.tasks.run().await?)
    }

    /// Ends it in good order: requests are answered, watches ended, the kubeconfig removed, the data
    /// directory free for another.
    pub async fn stop(self) -> Result<(), StopError> {
        drop(self.door);
        let stopped = self.tasks.stop(STOP_TIME_MAX).await;
        self.shared.close().await;
        Ok(stopped?)
    }
}

/// Without the kubeconfig, which holds a credential.
impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded")
            .field("url", &self.url())
            .field("driver", &self.driver)
            .finish_non_exhaustive()
    }
}

/// Whether the watches have come to where the server's commits are.
fn has_seen_all(engine: &Engine, shared: &Shared) -> bool {
    let server = shared.snapshot();
    let cache = engine.cache();
    cache.resources().all(|resource| {
        let newest = server.position(resource);
        let seen = cache.position(resource);
        seen.is_some_and(|seen| seen.reaches(&newest) == Some(true))
    })
}
