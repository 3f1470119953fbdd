//! `sundown down`: ends the pods, then the control plane, then the node, and says what became of each.

mod delete;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use sundown_node::{Node, NodeError};
use tokio::time::{Instant, sleep};

use crate::arguments::{Down, Output};
use crate::complaint::Complaint;
use crate::control::{self, ControlError, Graces, Held};
use crate::objects::{self, Known, Unfinished};
use crate::terminal::one_line;
use crate::{data, output};

/// The kernel takes namespaces and mounts apart after their last process.
const GONE_TIME_MAX: Duration = Duration::from_secs(30);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// How it ended.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ended {
    /// Whether a control plane was up.
    pub(crate) was_up: bool,
    /// What was done, in order.
    pub(crate) steps: Vec<String>,
    /// Jobs that have not come to their end, and go on when a control plane is up again.
    pub(crate) unfinished: Vec<Unfinished>,
    /// Clusters that are stored, and are made again when a control plane is up again.
    pub(crate) clusters: Vec<Unfinished>,
}

/// Ends what is up.
pub(crate) async fn run(arguments: &Down, output: Output) -> Result<ExitCode, Complaint> {
    let directory = data::directory(arguments.place.data_dir.as_deref())?;
    let state = data::find(&directory)?;
    if let Some(state) = state.as_deref().filter(|_| arguments.delete) {
        delete::all(&directory, state, output).await?;
    }
    let ended = match state {
        Some(state) => end(&directory, &state, output).await?,
        None => Ended::default(),
    };
    forget_kubeconfig(&directory);
    match output {
        Output::Text => output::print(&in_words(&ended, &directory))?,
        Output::Json => output::print_json(&ended)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends everything of a data directory, by where its state lies; with text each step is told as it happens.
pub(crate) async fn end(data: &Path, state: &Path, output: Output) -> Result<Ended, Complaint> {
    let mut ended = Ended::default();
    let failed = |error: &(dyn std::error::Error + 'static)| {
        Complaint::of(error).at(data.display().to_string())
    };
    let mut steps = Vec::new();
    let mut tell = |text: &str| {
        if output == Output::Text {
            // Whoever does not read it any more still wants the end.
            let _ = output::print(&format!("{}\n", one_line(text)));
        }
        steps.push(text.to_owned());
    };
    match control::connect(data, state).await {
        Ok(held) => {
            ended.was_up = true;
            (ended.unfinished, ended.clusters) = what_stays(&held).await;
            let down = control::down(state, &mut tell).await;
            down.map_err(|error| failed(&error))?;
        }
        Err(ControlError::NotUp) => {}
        Err(error) => return Err(error.complaint(data)),
    }
    end_node(state, &mut tell)
        .await
        .map_err(|error| failed(&error))?;
    ended.steps = steps;
    until_gone(state).await?;
    Ok(ended)
}

/// Jobs that have not come to their end, and clusters.
async fn what_stays(held: &Held) -> (Vec<Unfinished>, Vec<Unfinished>) {
    let Ok(connection) = sundown_driver::connect(Some(&held.kubeconfig)).await else {
        return Default::default();
    };
    let found = objects::unfinished(&connection.client).await;
    let mut jobs = found.unwrap_or_default();
    jobs.retain(|it| it.kind != "pod");
    let clusters = objects::list(&connection.client, Known::RayCluster, None).await;
    let clusters = clusters.unwrap_or_default();
    // What a job owns goes on with it, or goes with it.
    let is_own = |it: &&Value| objects::list_in(it, "/metadata/ownerReferences").is_empty();
    let clusters = clusters.iter().filter(is_own);
    let clusters = clusters.map(|it| Unfinished::of(Known::RayCluster, it));
    (jobs, clusters.collect())
}

/// One that ended by itself left its kubeconfig for the next; now none is wanted. One that is just starting, and
/// does not answer yet, has written its own.
fn forget_kubeconfig(directory: &Path) {
    let path = data::kubeconfig(directory);
    if !sundown_disk::is_in_use(directory)
        && sundown_embedded::is_own_kubeconfig(&path)
        && let Err(error) = std::fs::remove_file(&path)
    {
        tracing::warn!(%error, path = %path.display(), "remove the kubeconfig");
    }
}

/// A node that outlived its control plane, or has nothing to run any more.
async fn end_node(directory: &Path, tell: &mut (dyn FnMut(&str) + Send)) -> Result<(), NodeError> {
    let node = match Node::connect(directory).await {
        Ok(Some(node)) => node,
        Ok(None) => return Ok(()),
        Err(NodeError::Version { theirs, .. }) => {
            let process = Node::end_other_version(directory).await?;
            tell(&format!(
                "the node was started by another version of Sundown (protocol {theirs}): \
                 its process {process} is killed with its pods"
            ));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    control::stop_pods(&node, &Graces::default(), tell).await?;
    match node.end().await {
        // Another call got there first.
        Err(NodeError::Gone { .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Waits until neither processes nor mounts of the node are left; files of ended pods stay.
async fn until_gone(directory: &Path) -> Result<(), Complaint> {
    let begun_at = Instant::now();
    loop {
        let left = sundown_node::leftovers(directory);
        let left =
            left.map_err(|error| Complaint::new("cannot tell what is left").because(&error))?;
        let left: Vec<_> = left.into_iter().filter(|it| is_alive(it)).collect();
        if left.is_empty() {
            return Ok(());
        }
        if begun_at.elapsed() > GONE_TIME_MAX {
            let complaint = Complaint::new("some processes or mounts of the node are still there");
            return Err(left
                .iter()
                .fold(complaint, |complaint, it| complaint.help(it.clone())));
        }
        sleep(LOOK_INTERVAL).await;
    }
}

/// Files are not: those of pods that have ended hold their logs, and a socket of a node that was killed
/// leads nowhere.
fn is_alive(leftover: &str) -> bool {
    let is_file = |kind: &&str| leftover.starts_with(*kind);
    !["directory ", "socket "].iter().any(is_file)
}

fn in_words(ended: &Ended, directory: &Path) -> String {
    let mut text = String::new();
    if !ended.unfinished.is_empty() {
        text.push_str("\nNot finished. When a control plane is up again, these continue as after a node drain:\nwith a new pod, or they fail if no retry is left:\n");
        for it in &ended.unfinished {
            let row = format!("{}/{} -n {}", it.kind, it.name, it.namespace);
            let _ = writeln!(text, "  {}  {}", one_line(&row), one_line(&it.state));
        }
        text.push('\n');
    }
    if !ended.clusters.is_empty() {
        text.push_str("\nStored. These are made again by the next control plane:\n");
        for it in &ended.clusters {
            let row = format!("{}/{} -n {}", it.kind, it.name, it.namespace);
            let _ = writeln!(text, "  {}", one_line(&row));
        }
        text.push_str(
            "`sundown down --delete` deletes them, while a control plane is up: sundown up\n\n",
        );
    }
    text += match (ended.was_up, ended.steps.is_empty()) {
        (true, _) => "the control plane has ended, and nothing of its pods is left",
        (false, false) => "no control plane was up; its pods have ended",
        (false, true) => "nothing was up",
    };
    text + &format!(" ({})\n", directory.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They came back without a word at the next start.
    #[test]
    fn clusters_that_stay_are_named() {
        let cluster = serde_json::json!({"metadata": {"name": "c", "namespace": "n"}});
        let ended = Ended {
            was_up: true,
            clusters: vec![Unfinished::of(Known::RayCluster, &cluster)],
            ..Ended::default()
        };
        let text = in_words(&ended, Path::new("/d"));
        assert!(text.contains("  raycluster/c -n n\n"), "{text}");
        assert!(text.contains("sundown down --delete"), "{text}");
    }

    #[test]
    fn files_of_ended_pods_are_no_leftover_of_processes() {
        assert!(!is_alive("directory /d/node/pods/u"));
        assert!(is_alive("process 7: sundown __node"));
        assert!(is_alive("mount: 1 2 0:3 / /d/node/mount"));
        assert!(!is_alive("socket /d/node.sock"));
    }
}
