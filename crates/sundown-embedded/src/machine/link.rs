//! The connection to the node of the data directory: made when it is first needed, and again when the
//! node was lost.

use std::path::Path;

use sundown_node::{Config, Node, NodeError};
use tokio::sync::watch;

use super::pods::Pods;

/// The way to the node.
#[derive(Debug)]
pub(crate) struct Link {
    config: Config,
    /// One start at a time.
    current: tokio::sync::Mutex<Option<Node>>,
    /// The node that was found last, for those who wait for the next one.
    found: watch::Sender<Option<Node>>,
    pods: Pods,
}

impl Link {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            current: tokio::sync::Mutex::default(),
            found: watch::Sender::new(None),
            pods: Pods::default(),
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
        self.found.send_replace(Some(node.clone()));
        Ok(node)
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

    /// What was last heard about pods.
    pub(super) fn pods(&self) -> &Pods {
        &self.pods
    }

    /// Where the node keeps everything.
    pub(super) fn data_directory(&self) -> &Path {
        &self.config.settings.data_dir
    }
}
