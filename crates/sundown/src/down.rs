//! `sundown down`: ends the pods, then the control plane, then the node, and says what became of each.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use sundown_node::{Node, NodeError};
use tokio::time::{Instant, sleep};

use crate::arguments::{Output, Place};
use crate::complaint::Complaint;
use crate::control::{self, ControlError, Graces, Held};
use crate::objects::{self, Unfinished};
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
}

/// Ends what is up.
pub(crate) async fn run(place: &Place, output: Output) -> Result<ExitCode, Complaint> {
    let directory = data::directory(place.data_dir.as_deref())?;
    let ended = match data::find(&directory)? {
        Some(state) => end(&directory, &state, output).await?,
        None => Ended::default(),
    };
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
            ended.unfinished = unfinished_jobs(&held).await;
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

async fn unfinished_jobs(held: &Held) -> Vec<Unfinished> {
    let Ok(connection) = sundown_driver::connect(Some(&held.kubeconfig)).await else {
        return Vec::new();
    };
    let found = objects::unfinished(&connection.client).await;
    let mut found = found.unwrap_or_default();
    found.retain(|it| it.kind != "pod");
    found
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

    #[test]
    fn files_of_ended_pods_are_no_leftover_of_processes() {
        assert!(!is_alive("directory /d/node/pods/u"));
        assert!(is_alive("process 7: sundown __node"));
        assert!(is_alive("mount: 1 2 0:3 / /d/node/mount"));
        assert!(!is_alive("socket /d/node.sock"));
    }
}
