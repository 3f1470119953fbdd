//! The connection to the node of the data directory: made when it is first needed, and again when the
//! node was lost.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};

use sundown_model::Uid;
use sundown_node::{Config, Node, NodeError};

/// The way to the node.
#[derive(Debug)]
pub(super) struct Link {
    config: Config,
    /// One start at a time.
    current: tokio::sync::Mutex<Option<Node>>,
    addresses: Mutex<BTreeMap<String, Ipv4Addr>>,
}

impl Link {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            current: tokio::sync::Mutex::default(),
            addresses: Mutex::default(),
        }
    }

    /// The node; started if there is none.
    pub(super) async fn node(&self) -> Result<Node, NodeError> {
        let mut current = self.current.lock().await;
        if let Some(node) = &*current {
            return Ok(node.clone());
        }
        let node = Node::connect_or_start(&self.config).await?;
        tracing::info!(isolation = ?node.isolation(), "node");
        *current = Some(node.clone());
        Ok(node)
    }

    /// The node did not answer: the next one who asks starts or finds another.
    pub(super) async fn lost(&self) {
        *self.current.lock().await = None;
    }

    pub(super) fn set_address(&self, pod: &str, address: Ipv4Addr) {
        self.addresses().insert(pod.to_owned(), address);
    }

    pub(super) fn forget(&self, pod: &str) {
        self.addresses().remove(pod);
    }

    /// Where a pod is, as it was last reported.
    pub(super) fn address(&self, pod: &Uid) -> Option<Ipv4Addr> {
        self.addresses().get(pod.as_str()).copied()
    }

    fn addresses(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Ipv4Addr>> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
