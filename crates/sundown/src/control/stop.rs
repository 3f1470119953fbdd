//! Ends the pods of a node: asked first, killed when their grace is over. Also done without a control
//! plane, when only the node lives.
//!
//! Pods that have come to their end are left alone: nothing of them runs, and their logs stay.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};
use sundown_model::path::part;
use sundown_node::{ContainerKey, Node, NodeError, PodState};
use tokio::time::{Instant, sleep};

use crate::objects::{self, Known, text};

/// What Kubernetes gives a pod that says nothing.
const GRACE: Duration = Duration::from_secs(30);
/// How often it is looked who has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
const TERMINATE: i32 = 15;

/// Pods that have not come to their end, with the time that each may take to.
#[derive(Debug, Default)]
pub(crate) struct Graces {
    by_uid: BTreeMap<String, Value>,
}

/// What is to be done about a pod that is on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It has ended by itself, before: left alone.
    Leave,
    Wait,
    Remove,
}

/// Decides about one pod, so long after it was asked to end.
fn way(was_ended: bool, pod: &PodState, grace: Duration, elapsed: Duration) -> Way {
    if was_ended {
        return Way::Leave;
    }
    let runs = pod.containers.values().any(|it| it.state.is_running());
    if runs && elapsed < grace {
        Way::Wait
    } else {
        Way::Remove
    }
}

impl Graces {
    /// Reads what the server knows; without an answer every pod gets the usual time.
    pub(crate) async fn read(client: &Client) -> Self {
        let pods = objects::list(client, Known::Pod, None).await;
        let pods = pods.unwrap_or_default().into_iter();
        let open = pods.filter(|pod| objects::is_unfinished(Known::Pod, pod));
        let by_uid = open.map(|pod| (text(&pod, "/metadata/uid").to_owned(), pod));
        Self {
            by_uid: by_uid.collect(),
        }
    }

    fn of(&self, uid: &str) -> Duration {
        let pod = self.by_uid.get(uid);
        let seconds = pod.and_then(|pod| pod["spec"]["terminationGracePeriodSeconds"].as_u64());
        seconds.map_or(GRACE, Duration::from_secs)
    }

    /// Deletes the objects of the pods that were ended: kept, they would be told as lost, and count
    /// as failures of their jobs. Gives what was done, in words.
    pub(crate) async fn delete_unfinished(&self, client: &Client) -> Vec<String> {
        let mut told = Vec::new();
        for (uid, pod) in &self.by_uid {
            let (namespace, name) = (
                text(pod, "/metadata/namespace"),
                text(pod, "/metadata/name"),
            );
            let path = format!("{}/{}", Known::Pod.path(Some(namespace)), part(name));
            let at_once = json!({ "gracePeriodSeconds": 0 });
            match objects::delete(client, &path, uid, &at_once).await {
                Ok(()) => told.push(format!("pod {namespace}/{name} deleted")),
                Err(error) => told.push(format!("pod {namespace}/{name} not deleted: {error}")),
            }
        }
        told
    }
}

/// Ends every pod that has not ended yet and removes it from the node.
///
/// Errors: the node does not answer, or something of a pod cannot be removed.
pub(crate) async fn stop_pods(
    node: &Node,
    graces: &Graces,
    tell: &mut (dyn FnMut(&str) + Send),
) -> Result<(), NodeError> {
    let pods = node.snapshot().await?;
    // Ended pods that the server takes for unfinished would be started again: they go as well.
    let is_over = |pod: &PodState| pod.has_ended() && !graces.by_uid.contains_key(&pod.uid);
    let over: Vec<String> = pods
        .iter()
        .filter(|it| is_over(it))
        .map(|it| it.uid.clone())
        .collect();
    for pod in pods.iter().filter(|pod| !over.contains(&pod.uid)) {
        for (container, status) in &pod.containers {
            if status.state.is_running() {
                let key = ContainerKey {
                    uid: pod.uid.clone(),
                    container: container.clone(),
                    attempt: status.attempt,
                };
                node.signal(key, TERMINATE).await?;
            }
        }
        tell(&format!(
            "pod {}/{} is asked to end",
            pod.namespace, pod.name
        ));
    }
    let asked_at = Instant::now();
    loop {
        let mut is_waiting = false;
        for pod in node.snapshot().await? {
            let was_ended = over.contains(&pod.uid);
            match way(was_ended, &pod, graces.of(&pod.uid), asked_at.elapsed()) {
                Way::Leave => {}
                Way::Wait => is_waiting = true,
                Way::Remove => {
                    node.remove_pod(&pod.uid).await?;
                    tell(&format!("pod {}/{} has ended", pod.namespace, pod.name));
                }
            }
        }
        if !is_waiting {
            return Ok(());
        }
        sleep(LOOK_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use jiff::Timestamp;
    use sundown_node::{ContainerState, ContainerStatus};

    use super::*;

    fn a_pod(runs: bool) -> PodState {
        let started_at = Timestamp::UNIX_EPOCH;
        let state = if runs {
            ContainerState::Running { pid: 2, started_at }
        } else {
            ContainerState::Lost { started_at }
        };
        let status = ContainerStatus { attempt: 0, state };
        PodState {
            uid: "u".into(),
            namespace: "default".into(),
            name: "p".into(),
            address: Ipv4Addr::LOCALHOST,
            containers: [("main".to_owned(), status)].into(),
            lost: None,
        }
    }

    #[test]
    fn a_pod_is_waited_for_until_its_grace_is_over() {
        let (short, long) = (Duration::from_secs(5), Duration::from_secs(30));
        let cases = [
            (true, true, short, Way::Leave),
            (false, true, short, Way::Wait),
            (false, true, long, Way::Remove),
            (false, false, short, Way::Remove),
        ];
        for (was_ended, runs, elapsed, expect) in cases {
            let found = way(was_ended, &a_pod(runs), long, elapsed);
            assert_eq!(found, expect, "{was_ended} {runs} {elapsed:?}");
        }
    }
}
