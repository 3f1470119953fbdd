//! The stream of reports.

use std::io;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixStream;

use super::{Node, NodeError, open};
use crate::state::Change;
use crate::wire::Call;

pub(super) async fn watch(node: &Node) -> Result<Watch, NodeError> {
    let opened = open(&node.inner.paths, &Call::Watch).await;
    let stream = opened.map_err(|error| node.gone(error))?;
    Ok(Watch {
        node: node.clone(),
        reader: BufReader::new(stream),
        line: Vec::new(),
    })
}

/// Every pod as it stands, then [`Change::Listed`], then every change.
#[derive(Debug)]
pub struct Watch {
    node: Node,
    reader: BufReader<UnixStream>,
    line: Vec<u8>,
}

impl Watch {
    /// The next report. May be cancelled.
    ///
    /// # Errors
    /// The node is gone, or this watch was too slow: connect again and open another.
    pub async fn next(&mut self) -> Result<Change, NodeError> {
        let gone = |error: io::Error| self.node.gone(error);
        // What was read of a line stays in the buffer if the caller stops waiting.
        let read = self.reader.read_until(b'\n', &mut self.line).await;
        read.map_err(gone)?;
        if self.line.last() != Some(&b'\n') {
            return Err(gone(io::ErrorKind::UnexpectedEof.into()));
        }
        let change = serde_json::from_slice(&self.line);
        self.line.clear();
        change.map_err(|error| gone(error.into()))
    }
}
