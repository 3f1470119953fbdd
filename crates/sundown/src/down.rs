//! `sundown down`: ends the pods, then the control plane, then the node, and says what became of each.

mod delete;
mod stays;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use sundown_node::{Node, NodeError};
use tokio::time::{Instant, sleep};

use crate::arguments::{Down, Output};
use crate::complaint::Complaint;
use crate::control::{self, ControlError, Graces, Held};
use crate::kubectl::Sundown;
use crate::objects::{self, Known, Unfinished};
use crate::terminal::one_line;
use crate::{data, output};
use delete::NotDeleted;

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
    /// What `--delete` did not bring to its end.
    pub(crate) not_deleted: Vec<NotDeleted>,
    /// Whether files of ended pods were still being removed when the node ended.
    pub(crate) is_removing: bool,
}

/// Ends what is up.
pub(crate) async fn run(arguments: &Down, output: Output) -> Result<ExitCode, Complaint> {
    let told = arguments.place.data_dir.as_deref();
    let directory = data::directory(told)?;
    let commands = Sundown::of(told);
    let state = data::find(&directory)?;
    let not_deleted = match &state {
        Some(state) if arguments.delete => {
            delete::all(&directory, state, &commands, output).await?
        }
        Some(_) | None => Vec::new(),
    };
    let mut ended = match state {
        Some(state) => end(&directory, &state, output).await?,
        None => Ended::default(),
    };
    ended.not_deleted = not_deleted;
    forget_kubeconfig(&directory);
    let written = match output {
        Output::Text => output::print(&in_words(&ended, &directory, &commands)),
        Output::Json => output::print_json(&ended),
    };
    if ended.not_deleted.is_empty() {
        written?;
        return Ok(ExitCode::SUCCESS);
    }
    // Without a reader the exit code still tells it.
    Ok(ExitCode::FAILURE)
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
            // A user who does not read it any more still wants the end.
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
    ended.is_removing = sundown_node::is_removing(state);
    Ok(ended)
}

/// Jobs that have not come to their end, and clusters that come back. What cannot be asked is not told.
async fn what_stays(held: &Held) -> (Vec<Unfinished>, Vec<Unfinished>) {
    let Ok(connection) = sundown_driver::connect(Some(&held.kubeconfig)).await else {
        return Default::default();
    };
    let client = &connection.client;
    let mut all = Vec::new();
    for kind in [Known::RayJob, Known::Job, Known::RayCluster] {
        let found = objects::list(client, kind, None).await;
        let found = found.unwrap_or_default();
        all.extend(found.into_iter().map(|object| (kind, object)));
    }
    stays::of(&all)
}

/// One that ended by itself left its kubeconfig for the next; now none is wanted. One that starts meanwhile waits
/// until this is done, and writes its own; of one that started before it stays.
fn forget_kubeconfig(directory: &Path) {
    let path = data::kubeconfig(directory);
    sundown_disk::while_free(directory, || {
        if sundown_embedded::is_own_kubeconfig(&path)
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::warn!(%error, path = %path.display(), "remove the kubeconfig");
        }
    });
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

fn in_words(ended: &Ended, directory: &Path, commands: &Sundown) -> String {
    let mut text = String::new();
    if !ended.unfinished.is_empty() {
        text.push_str(
            "\nNot finished. When a control plane is up again, these continue as after a node drain:\n\
             with a new pod, or they fail if no retry is left:\n",
        );
        for it in &ended.unfinished {
            let row = format!("{}/{} -n {}", it.kind, it.name, it.namespace);
            let _ = writeln!(text, "  {}  {}", one_line(&row), one_line(&it.state));
        }
        text.push('\n');
    }
    if !ended.clusters.is_empty() {
        text.push_str("\nThese RayClusters will be recreated when a control plane is up again:\n");
        for it in &ended.clusters {
            let row = format!("{}/{} -n {}", it.kind, it.name, it.namespace);
            let _ = writeln!(text, "  {}", one_line(&row));
        }
        let (up, down) = (commands.command("up"), commands.command("down --delete"));
        let _ = writeln!(text, "to delete them: `{up}`, then `{down}`\n");
    }
    if !ended.not_deleted.is_empty() {
        text.push_str("\nNot deleted:\n");
        for it in &ended.not_deleted {
            let _ = writeln!(text, "  {}", it.in_words());
        }
        text.push('\n');
    }
    text += match (ended.was_up, ended.steps.is_empty()) {
        (true, _) => "the control plane and its pods have stopped",
        (false, false) => "no control plane was up; its pods have ended",
        (false, true) => "nothing was up",
    };
    let _ = writeln!(text, " ({})", directory.display());
    if ended.is_removing {
        text.push_str(
            "files of ended pods are not removed yet; the next start or a reset continues\n",
        );
    }
    text
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
        let text = in_words(&ended, Path::new("/d"), &Sundown::of(None));
        assert!(text.contains("  raycluster/c -n n\n"), "{text}");
        assert!(text.contains("`sundown down --delete`\n"), "{text}");
        // Pasted without it, the commands deleted what another control plane has.
        let there = Path::new("/d");
        let text = in_words(&ended, there, &Sundown::of(Some(there)));
        let how = "`sundown up --data-dir /d`, then `sundown down --delete --data-dir /d`\n";
        assert!(text.contains(how), "{text}");
    }

    #[test]
    fn what_was_not_deleted_and_files_that_are_left_are_told() {
        let held = NotDeleted::of(["job", "n", "held"], "finalizer a/b is not removed");
        let mut ended = Ended {
            was_up: true,
            not_deleted: vec![held],
            ..Ended::default()
        };
        let commands = Sundown::of(None);
        let text = in_words(&ended, Path::new("/d"), &commands);
        let row = "Not deleted:\n  job/held -n n  finalizer a/b is not removed\n";
        assert!(text.contains(row), "{text}");
        let end = "the control plane and its pods have stopped (/d)\n";
        assert!(text.ends_with(end), "{text}");
        ended.is_removing = true;
        let text = in_words(&ended, Path::new("/d"), &commands);
        assert!(text.contains("not removed yet"), "{text}");
    }

    /// It was removed under a control plane that had just started.
    #[test]
    fn only_the_kubeconfig_of_a_directory_that_no_process_uses_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let kubeconfig = data::kubeconfig(home.path());
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: sundown\n";
        sundown_disk::prepare(home.path()).unwrap();
        std::fs::write(&kubeconfig, text).unwrap();
        let used = sundown_disk::Hold::take(home.path()).unwrap();
        assert!(used.is_some());
        forget_kubeconfig(home.path());
        assert!(kubeconfig.exists());
        drop(used);
        forget_kubeconfig(home.path());
        assert!(!kubeconfig.exists());
    }

    #[test]
    fn files_of_ended_pods_are_no_leftover_of_processes() {
        assert!(!is_alive("directory /d/node/pods/u"));
        assert!(is_alive("process 7: sundown __node"));
        assert!(is_alive("mount: 1 2 0:3 / /d/node/mount"));
        assert!(!is_alive("socket /d/node.sock"));
    }
}
