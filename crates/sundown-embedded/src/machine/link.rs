//! The connection to the node of the data directory: made when it is first needed, and again when the
//! node was lost. A control plane without pods has no node.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use sundown_node::{Config, Node, NodeError, NodePaths, has_node_directory};
use tokio::sync::watch;

use super::Names;
use super::pods::Pods;

/// The way to the node.
#[derive(Debug)]
pub(crate) struct Link {
    config: Config,
    /// One start at a time.
    current: tokio::sync::Mutex<Option<Node>>,
    /// The node that was found last, for those who wait for the first or the next one.
    found: watch::Sender<Option<Node>>,
    pods: Pods,
    names: Arc<Names>,
}

impl Link {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            current: tokio::sync::Mutex::default(),
            found: watch::Sender::new(None),
            pods: Pods::default(),
            names: Arc::default(),
        }
    }

    /// The node; started if there is none.
    pub(super) async fn node(&self) -> Result<Node, NodeError> {
        let mut current = self.current.lock().await;
        if let Some(node) = &*current {
            return Ok(node.clone());
        }
        self.ensure_not_removed()?;
        let node = Node::connect_or_start(&self.config).await?;
        tracing::info!(isolation = ?node.isolation(), "node");
        // What was announced before it was there.
        node.set_names(self.names.all()).await?;
        *current = Some(node.clone());
        self.found.send_replace(Some(node.clone()));
        Ok(node)
    }

    /// A node whose directory is removed ends, and is not started again where all is being removed: that would
    /// bring a part of it back.
    fn ensure_not_removed(&self) -> Result<(), NodeError> {
        let data_dir = &self.config.settings.data_dir;
        if self.found.borrow().is_none() || has_node_directory(data_dir) {
            return Ok(());
        }
        Err(NodeError::Start {
            data_dir: data_dir.clone(),
            message: "the directory of its node was removed; `sundown down` and another start make a new one"
                .to_owned(),
        })
    }

    /// The node, if there is one: nobody starts it only to look.
    pub(super) async fn existing(&self) -> Option<Node> {
        self.current.lock().await.clone()
    }

    /// Whether a node, or pods of one, are left from before. Else there is nothing to follow until
    /// the first pod needs a node.
    pub(super) async fn is_needed(&self) -> bool {
        let directory = &self.config.settings.data_dir;
        if self.found.borrow().is_some() || !matches!(Node::connect(directory).await, Ok(None)) {
            return true;
        }
        let pods = NodePaths::new(directory).map(|paths| paths.pods_dir());
        let mut pods = pods.and_then(std::fs::read_dir).into_iter().flatten();
        pods.next().is_some()
    }

    /// Waits until somebody needed the node.
    pub(super) async fn until_needed(&self) {
        // The sender is this value itself.
        let _ = self.found.subscribe().wait_for(Option::is_some).await;
    }

    /// Tells the node the names; one that is not there yet hears of them when it starts.
    pub(super) async fn announce(
        &self,
        names: &BTreeMap<String, Vec<Ipv4Addr>>,
    ) -> Result<(), NodeError> {
        let current = self.current.lock().await;
        self.names.set(names);
        match &*current {
            Some(node) => node.set_names(self.names.all()).await,
            None => Ok(()),
        }
    }

    /// The node did not answer: the next one who asks starts or finds another.
    pub(super) async fn lost(&self) {
        *self.current.lock().await = None;
    }

    /// Each node that is found, from the one that is there now.
    pub(super) fn found(&self) -> watch::Receiver<Option<Node>> {
        let mut found = self.found.subscribe();
        found.mark_changed();
        found
    }

    /// The names that pods can look up.
    pub(super) fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// What was last heard about pods.
    pub(super) fn pods(&self) -> &Pods {
        &self.pods
    }

    /// Where pods reach what stands outside their network.
    pub(crate) fn bridge(&self) -> Ipv4Addr {
        self.config.settings.subnet.bridge
    }

    /// Where the node keeps everything.
    pub(super) fn data_directory(&self) -> &Path {
        &self.config.settings.data_dir
    }
}
