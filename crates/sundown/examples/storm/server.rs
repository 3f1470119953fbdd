//! A durable `sundown up` as a child process: started, killed, connected to.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Start-up takes milliseconds; a busy machine may take much longer.
const START_DURATION_MAX: Duration = Duration::from_mins(1);

pub(crate) struct Server {
    child: Child,
    pub(crate) client: Client,
}

impl Server {
    /// Starts it on a data directory and waits until it says that it is up.
    pub(crate) async fn start(binary: &Path, data: &Path, with_node: bool) -> Result<Self> {
        let mut child = Command::new(binary)
            .args(["up", "--node=false", "-o", "json", "--data-dir"])
            .arg(data)
            .args(with_node.then_some("--node"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let mut lines = BufReader::new(stdout).lines();
        let line = tokio::time::timeout(START_DURATION_MAX, lines.next_line()).await??;
        line.context("it ended before it was up")?;
        let connection = sundown_driver::connect(Some(&data.join("kubeconfig"))).await?;
        Ok(Self {
            child,
            client: connection.client,
        })
    }

    /// kill -9.
    pub(crate) async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }
}
