//! What was last heard about pods, for those who do not decide anything: where one is, and whether a
//! run is over.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use sundown_model::Uid;
use sundown_node::{ContainerKey, ContainerStatus, PodState};
use tokio::sync::watch;

/// All pods as they were last reported.
#[derive(Debug)]
pub(super) struct Pods(watch::Sender<Heard>);

/// What is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard {
    /// Whether every pod of the node was reported once.
    is_complete: bool,
    pods: BTreeMap<String, Pod>,
}

#[derive(Debug, Clone)]
struct Pod {
    /// None: what it ran in is gone, and another pod may be there by now.
    address: Option<Ipv4Addr>,
    containers: BTreeMap<String, ContainerStatus>,
}

impl Default for Pods {
    fn default() -> Self {
        Self(watch::Sender::new(Heard::default()))
    }
}

impl Pods {
    pub(super) fn heard(&self, state: &PodState) {
        let pod = Pod {
            address: state.lost.is_none().then_some(state.address),
            containers: state.containers.clone(),
        };
        let uid = state.uid.clone();
        self.0
            .send_modify(|heard| drop(heard.pods.insert(uid, pod)));
    }

    pub(super) fn removed(&self, uid: &str) {
        self.0.send_modify(|heard| drop(heard.pods.remove(uid)));
    }

    /// All pods that there are have been named: others went while nobody listened.
    pub(super) fn listed(&self, all: &[&str]) {
        let all: BTreeSet<&str> = all.iter().copied().collect();
        self.0.send_modify(|heard| {
            heard.is_complete = true;
            heard.pods.retain(|uid, _| all.contains(uid.as_str()));
        });
    }

    /// Where a pod is.
    pub(super) fn address(&self, pod: &Uid) -> Option<Ipv4Addr> {
        let heard = self.0.borrow();
        heard.pods.get(pod.as_str()).and_then(|pod| pod.address)
    }

    /// What is known from now on.
    pub(super) fn follow(&self) -> watch::Receiver<Heard> {
        self.0.subscribe()
    }
}

impl Heard {
    /// Whether nothing more is written by a run, as far as it is known.
    pub(super) fn is_over(&self, run: &ContainerKey) -> bool {
        let Some(pod) = self.pods.get(&run.uid) else {
            return self.is_complete;
        };
        match pod.containers.get(&run.container) {
            Some(status) if status.attempt == run.attempt => !status.state.is_running(),
            Some(status) => status.attempt > run.attempt,
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use sundown_node::ContainerState;

    use super::*;

    fn run(attempt: u32) -> ContainerKey {
        ContainerKey {
            uid: "u".to_owned(),
            container: "c".to_owned(),
            attempt,
        }
    }

    fn pod(containers: &[(u32, ContainerState)]) -> PodState {
        let containers = containers.iter().cloned();
        PodState {
            uid: "u".to_owned(),
            namespace: "n".to_owned(),
            name: "p".to_owned(),
            address: Ipv4Addr::LOCALHOST,
            containers: containers
                .map(|(attempt, state)| ("c".to_owned(), ContainerStatus { attempt, state }))
                .collect(),
            lost: None,
        }
    }

    #[test]
    fn a_run_is_over_when_it_ended_or_was_followed_or_its_pod_went() {
        let started_at = Timestamp::UNIX_EPOCH;
        let running = ContainerState::Running { pid: 1, started_at };
        let pods = Pods::default();
        let check = |attempt, expect, why: &str| {
            assert_eq!(pods.0.borrow().is_over(&run(attempt)), expect, "{why}");
        };
        check(0, false, "nobody has told of anything");
        pods.heard(&pod(&[]));
        check(0, false, "it has not been started");
        pods.heard(&pod(&[(1, running)]));
        check(1, false, "it runs");
        check(0, true, "another one runs");
        check(2, false, "it comes later");
        pods.heard(&pod(&[(1, ContainerState::Lost { started_at })]));
        check(1, true, "its pod was lost");
        pods.removed("u");
        check(1, false, "not all pods have been named");
        pods.listed(&[]);
        check(1, true, "all pods have been named and it is none");
    }

    #[test]
    fn pods_that_went_unheard_are_forgotten() {
        let pods = Pods::default();
        pods.heard(&pod(&[]));
        assert_eq!(pods.address(&Uid::from("u")), Some(Ipv4Addr::LOCALHOST));
        pods.listed(&["other"]);
        assert_eq!(pods.address(&Uid::from("u")), None);
    }
}
