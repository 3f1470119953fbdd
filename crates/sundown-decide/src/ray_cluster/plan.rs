//! What is to be done, collected: writes first, since words can be said by the next decision as well.

use jiff::Timestamp;
use serde_json::Value;
use sundown_kinds::names::NodeType;
use sundown_model::{ACTIONS_MAX, Action, Object, Propagation};

use super::view::Sight;
use crate::kinds::{POD, SERVICE};
use crate::ray::view::Pod;
use crate::ray::{create, delete, name_of, note, place};

/// What one decision does.
#[derive(Debug, Default)]
pub(super) struct Plan {
    writes: Vec<Action>,
    notes: Vec<Action>,
    pub(super) creates: usize,
    pub(super) deletes: usize,
    pub(super) wake_at: Option<Timestamp>,
}

impl Plan {
    pub(super) fn create_service(&mut self, sight: &Sight<'_>, body: Value) {
        let about = sight.object;
        let message = format!("Created service {}", beside_name(about, &body));
        self.creates += 1;
        self.notes
            .push(note(about, false, "CreatedService", message));
        self.writes.push(create(about.key(), &SERVICE, body));
    }

    pub(super) fn create_pod(&mut self, sight: &Sight<'_>, node_type: NodeType, body: Value) {
        let about = sight.object;
        let (reason, kind) = match node_type {
            NodeType::Head => ("CreatedHeadPod", "head"),
            NodeType::Worker => ("CreatedWorkerPod", "worker"),
        };
        let message = format!("Created {kind} Pod {}", beside_name(about, &body));
        self.creates += 1;
        self.notes.push(note(about, false, reason, message));
        self.writes.push(create(about.key(), &POD, body));
    }

    pub(super) fn delete_pod(&mut self, pod: &Pod<'_>) {
        self.deletes += 1;
        self.writes
            .push(delete(pod.object, Propagation::Background));
    }

    pub(super) fn write(&mut self, action: Action) {
        self.writes.push(action);
    }

    pub(super) fn tell(&mut self, sight: &Sight<'_>, reason: &str, message: String) {
        self.notes.push(note(sight.object, false, reason, message));
    }

    pub(super) fn warn(&mut self, sight: &Sight<'_>, reason: &str, message: String) {
        self.notes.push(note(sight.object, true, reason, message));
    }

    /// Wants to be asked again then, or before.
    pub(super) fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |before| before.min(at)));
    }

    /// How many more writes fit.
    pub(super) fn room(&self) -> usize {
        ACTIONS_MAX.saturating_sub(self.writes.len())
    }

    pub(super) fn into_actions(self) -> Vec<Action> {
        let all = self.writes.into_iter().chain(self.notes);
        all.take(ACTIONS_MAX).collect()
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
