//! What is to be done, collected: writes first, since words can be said by the next decision as well.

use jiff::Timestamp;
use serde_json::Value;
use sundown_kinds::names::NodeType;
use sundown_model::{ACTIONS_MAX, Action, Actions, KnownKind, Object, Propagation};

use super::view::View;
use crate::actions::{delete, note, warning};
use crate::kinds::{POD, SERVICE};
use crate::ray::view::Pod;
use crate::ray::{Told, create, name_of, place};

/// What one decision does.
#[derive(Debug, Default)]
pub(super) struct Plan {
    writes: Vec<Action>,
    notes: Vec<Action>,
    pub(super) creates: usize,
    pub(super) deletes: usize,
    pub(super) wake_at: Option<Timestamp>,
    pub(super) failure: Option<Failure>,
}

/// What could not be made when it was last tried; it is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// The reason of the condition; None where there is no condition for it.
    pub(super) reason: Option<&'static str>,
    pub(super) message: String,
}

impl Plan {
    pub(super) fn create_service(&mut self, view: &View<'_>, body: Value) {
        let place = beside_name(view.object, &body);
        if let Some(why) = view.refusal(&SERVICE, &body) {
            let message = format!("Failed creating service {place}, {why}");
            self.fail(view, "FailedToCreateService", None, message);
        }
        let message = format!("Created service {place}");
        self.create(view, &SERVICE, body, "CreatedService", message);
    }

    pub(super) fn create_pod(&mut self, view: &View<'_>, node_type: NodeType, body: Value) {
        let place = beside_name(view.object, &body);
        if let Some(why) = view.refusal(&POD, &body) {
            self.fail_pod(view, node_type, &place, why);
        }
        let (reason, kind) = match node_type {
            NodeType::Head => ("CreatedHeadPod", "head"),
            NodeType::Worker => ("CreatedWorkerPod", "worker"),
        };
        let message = format!("Created {kind} Pod {place}");
        self.create(view, &POD, body, reason, message);
    }

    /// A pod cannot be made, in upstream's words.
    pub(super) fn fail_pod(
        &mut self,
        view: &View<'_>,
        node_type: NodeType,
        place: &str,
        why: &str,
    ) {
        match node_type {
            NodeType::Head => {
                let message = format!("Failed to create head Pod {place}, {why}");
                let reason = Some("FailedCreateHeadPod");
                self.fail(view, "FailedToCreateHeadPod", reason, message);
            }
            NodeType::Worker => {
                let cluster = self::place(view.object.key());
                let message =
                    format!("Failed to create worker Pod for the cluster {cluster}, {why}");
                let reason = Some("FailedCreateWorkerPod");
                self.fail(view, "FailedToCreateWorkerPod", reason, message);
            }
        }
    }

    /// The first failure is told; what has failed with it mostly did so for the same reason.
    fn fail(
        &mut self,
        view: &View<'_>,
        event: &str,
        reason: Option<&'static str>,
        message: String,
    ) {
        if self.failure.is_none() {
            self.warn(view, event, message.clone());
            self.failure = Some(Failure { reason, message });
        }
    }

    fn create(
        &mut self,
        view: &View<'_>,
        kind: &KnownKind,
        body: Value,
        reason: &'static str,
        message: String,
    ) {
        self.creates += 1;
        let told = Told { reason, message };
        self.writes.push(create(view.object, kind, body, told));
    }

    pub(super) fn delete_pod(&mut self, pod: &Pod<'_>) {
        self.deletes += 1;
        self.writes
            .push(delete(pod.object, Propagation::Background));
    }

    pub(super) fn write(&mut self, action: Action) {
        self.writes.push(action);
    }

    pub(super) fn tell(&mut self, view: &View<'_>, reason: &str, message: String) {
        self.notes.push(note(view.object, reason, message));
    }

    pub(super) fn warn(&mut self, view: &View<'_>, reason: &str, message: String) {
        self.notes.push(warning(view.object, reason, message));
    }

    /// Wants to be asked again then, or before.
    pub(super) fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |before| before.min(at)));
    }

    /// How many more writes fit.
    pub(super) fn room(&self) -> usize {
        ACTIONS_MAX.saturating_sub(self.writes.len())
    }

    pub(super) fn into_actions(self) -> Actions {
        self.writes.into_iter().chain(self.notes).collect()
    }
}

fn beside_name(about: &Object, body: &Value) -> String {
    format!("{}/{}", about.key().namespace_str(), name_of(body))
}

/// What upstream tells about a pod that it deletes.
pub(super) fn obituary(pod: &Pod<'_>) -> String {
    let exit = pod.ray_container_exit();
    let exit = exit.map_or_else(|| "running".to_owned(), |code| format!("exit code {code}"));
    format!(
        "{}; Pod status: {}; Pod restart policy: {}; Ray container terminated status: {exit}",
        place(pod.object.key()),
        pod.view.phase,
        pod.view.restart_policy,
    )
}
