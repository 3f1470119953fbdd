//! What a process that runs a control plane may ask of it from aside: its node, its names, its brake.
//!
//! Nothing is decided here; who asks and why is left to the caller.

use std::net::Ipv4Addr;
use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use sundown_driver::{DriverHandle, Ended, WaitError};
use sundown_engine::{Brake, Engine};
use sundown_server::{Shared, Usage};

use crate::machine::Machine;

/// How long the controllers may take to finish what is under way once they are braked.
const REST_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(10);

/// How long whoever asks the controllers waits for their first look around.
const LOOK_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// A control plane in this process, for those who do not own it. Clones are the same.
#[derive(Clone)]
pub struct Local {
    pub(crate) client: Client,
    pub(crate) driver: DriverHandle,
    pub(crate) machine: Option<Arc<Machine>>,
    pub(crate) shared: Arc<Shared>,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_node = self.machine.is_some();
        f.debug_struct("Local")
            .field("has_node", &has_node)
            .finish_non_exhaustive()
    }
}

impl Local {
    /// A client in this process, with the rights of the administrator.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// How clients use it that come over HTTPS; those in this process do not count.
    pub fn usage(&self) -> Usage {
        self.shared.usage()
    }

    /// Whether pods run here at all.
    pub fn runs_pods(&self) -> bool {
        self.machine.is_some()
    }

    /// The node, if a pod has needed one.
    pub async fn node(&self) -> Option<sundown_node::Node> {
        self.machine.as_ref()?.node().await
    }

    /// Where a name that pods know leads, such as `head-svc.default.svc.cluster.local`.
    pub fn address_of(&self, name: &str) -> Option<Ipv4Addr> {
        self.machine.as_ref()?.address_of(name)
    }

    /// Lets the controllers do nothing any more, and waits until what is under way has ended.
    ///
    /// Errors: they have ended, or something takes too long; nothing new is begun either way.
    pub async fn hold_controllers(&self) -> Result<(), WaitError> {
        self.driver.brake(Brake::everything()).await?;
        self.driver.wait_until_at_rest(REST_TIME_MAX).await
    }

    /// Asks the engine of the controllers, between two of its turns, once it has looked around; where that takes
    /// long, as it is then.
    ///
    /// Errors: they have ended.
    pub async fn ask_controllers<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Engine, Timestamp) -> T + Send + 'static,
    ) -> Result<T, Ended> {
        let looked = |engine: &Engine, _| engine.is_settled();
        match self.driver.wait_until(LOOK_TIME_MAX, looked).await {
            Ok(()) | Err(WaitError::TooLate { .. }) => self.driver.ask(question).await,
            Err(WaitError::Ended(ended)) => Err(ended),
        }
    }

    /// Lets held controllers go on.
    ///
    /// Errors: they have ended.
    pub async fn release_controllers(&self) -> Result<(), WaitError> {
        Ok(self.driver.brake(Brake::default()).await?)
    }
}
