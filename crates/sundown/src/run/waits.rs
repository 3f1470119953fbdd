//! What an object that is to go waits for, read off the object itself as a person would. Pure.

use serde_json::Value;
use sundown_decide::batch_job::TRACKING;
use sundown_decide::kinds::{CLAIM_PROTECTION, VOLUME_PROTECTION};
use sundown_kinds::constants::FINALIZER_RAY_JOB;

use crate::objects::{list_in, text};

/// What the API server and the collector add and remove themselves.
pub(super) const OF_THE_COLLECTOR: [&str; 2] = ["foregroundDeletion", "orphan"];
/// What goes when nothing uses a claim or a volume any more.
const OF_STORAGE: [&str; 2] = [CLAIM_PROTECTION, VOLUME_PROTECTION];
/// What goes when the last object of a definition is gone.
const OF_DEFINITIONS: &str = "customresourcecleanup.apiextensions.k8s.io";
/// What the controllers of jobs remove, with what they own.
const OF_JOBS: [&str; 2] = [TRACKING, FINALIZER_RAY_JOB];

/// Why an object is still there, the most telling first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wait {
    /// Others have to remove these finalizers.
    Finalizers(Vec<String>),
    /// The containers of a pod have so many seconds to end.
    Containers { grace: u64 },
    /// What the namespace holds has to go; what the server says about it.
    Content(String),
    /// Pods that use it have to end.
    Users,
    /// The objects of a definition have to go.
    Instances,
    /// It was not deleted yet: what owns it comes first.
    NotAsked,
    /// What it owns goes before it.
    Dependents,
    /// Nothing that can be told: it is about to go.
    Nothing,
}

impl Wait {
    /// Why this object is still there.
    pub(super) fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let names = list_in(object, "/metadata/finalizers").iter();
        let names: Vec<&str> = names.filter_map(Value::as_str).collect();
        let others = names.iter().filter(|it| is_of_others(it));
        let others: Vec<String> = others.map(|&it| it.to_owned()).collect();
        if metadata["deletionTimestamp"].is_null() {
            return Self::NotAsked;
        }
        // Who holds a pod may do so until its containers have ended: the server counts that down to 0.
        if let Some(grace @ 1..) = metadata["deletionGracePeriodSeconds"].as_u64() {
            return Self::Containers { grace };
        }
        if !others.is_empty() {
            return Self::Finalizers(others);
        }
        if names.iter().any(|it| OF_STORAGE.contains(it)) {
            return Self::Users;
        }
        if names.contains(&OF_DEFINITIONS) {
            return Self::Instances;
        }
        if !names.is_empty() {
            return Self::Dependents;
        }
        if !list_in(object, "/spec/finalizers").is_empty() {
            return Self::Content(content(object));
        }
        Self::Nothing
    }

    /// Of the object of this name.
    pub(super) fn in_words(&self, name: &str) -> String {
        match self {
            Self::Finalizers(all) if all.len() == 1 => {
                format!("waiting for finalizer {} of {name} to be removed", all[0])
            }
            Self::Finalizers(all) => {
                let all = all.join(", ");
                format!("waiting for finalizers {all} of {name} to be removed")
            }
            Self::Containers { grace } => {
                format!("waiting for containers of {name} to terminate (grace period {grace}s)")
            }
            Self::Content(why) if why.is_empty() => {
                format!("waiting for everything in {name} to be deleted")
            }
            Self::Content(why) => format!("waiting for everything in {name} to be deleted: {why}"),
            Self::Users => format!("waiting for the pods that use {name} to terminate"),
            Self::Instances => format!("waiting for all objects of {name} to be deleted"),
            Self::NotAsked => format!("waiting for the owner of {name} to be deleted"),
            Self::Dependents => format!("waiting for the dependents of {name} to be deleted"),
            Self::Nothing => format!("{name} is being deleted"),
        }
    }
}

/// Whether nothing of Sundown removes a finalizer.
pub(super) fn is_of_others(finalizer: &str) -> bool {
    let ours = OF_THE_COLLECTOR.iter().chain(&OF_STORAGE);
    let mut ours = ours.chain(&OF_JOBS).chain([&OF_DEFINITIONS]);
    !ours.any(|it| *it == finalizer)
}

/// The most telling wait of some objects, each with its name, in words.
pub(super) fn told<'a>(all: impl Iterator<Item = (String, &'a Value)>) -> Option<String> {
    let all = all.map(|(name, object)| (Wait::of(object), name));
    let (wait, name) = all.min()?;
    Some(wait.in_words(&name))
}

/// What the server says about the content of a namespace that goes.
fn content(namespace: &Value) -> String {
    let conditions = list_in(namespace, "/status/conditions").iter();
    let held = conditions.filter(|it| it["status"] == "True");
    let said: Vec<&str> = held.map(|it| text(it, "/message")).collect();
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn going(object: &Value) -> Value {
        let mut object = object.clone();
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        object
    }

    #[test]
    fn what_is_waited_for_is_named() {
        let hold = json!(["example.com/hold", "foregroundDeletion"]);
        let conditions = json!([
            {"type": "NamespaceContentRemaining", "status": "True", "message": "1 pod"},
            {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "no"},
        ]);
        let cases = [
            (
                json!({"metadata": {"name": "x"}}),
                "waiting for the owner of x to be deleted",
            ),
            (
                going(&json!({"metadata": {"finalizers": hold}})),
                "waiting for finalizer example.com/hold of x to be removed",
            ),
            (
                going(&json!({"metadata": {"finalizers": ["a/b", "c/d"]}})),
                "waiting for finalizers a/b, c/d of x to be removed",
            ),
            (
                going(&json!({"metadata": {"finalizers": ["foregroundDeletion"]}})),
                "waiting for the dependents of x to be deleted",
            ),
            (
                going(&json!({"metadata": {"deletionGracePeriodSeconds": 30}})),
                "waiting for containers of x to terminate (grace period 30s)",
            ),
            (
                going(
                    &json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"conditions": conditions}}),
                ),
                "waiting for everything in x to be deleted: 1 pod",
            ),
            (
                going(&json!({"metadata": {"finalizers": [CLAIM_PROTECTION]}})),
                "waiting for the pods that use x to terminate",
            ),
            (
                going(&json!({"metadata": {"finalizers": [OF_DEFINITIONS]}})),
                "waiting for all objects of x to be deleted",
            ),
            (going(&json!({})), "x is being deleted"),
        ];
        for (object, expect) in cases {
            let wait = Wait::of(&object);
            assert_eq!(wait.in_words("x"), expect, "{object}");
            // A claim that its pod still used was given up as if nothing of ours could help it.
            let is_for_others = matches!(wait, Wait::Finalizers(_));
            assert_eq!(is_for_others, expect.contains("finalizer"), "{object}");
        }
    }

    #[test]
    fn the_cause_is_told_before_those_who_wait_for_it() {
        let owner = going(&json!({"metadata": {"finalizers": ["foregroundDeletion"]}}));
        let pod = going(&json!({"metadata": {"deletionGracePeriodSeconds": 30}}));
        let held = going(&json!({"metadata": {"finalizers": ["example.com/hold"]}}));
        let all = [("job/j", &owner), ("pod/p", &pod)];
        let named = |all: &[(&str, &Value)]| {
            let all: Vec<(String, Value)> = all
                .iter()
                .map(|(name, it)| ((*name).to_owned(), (*it).clone()))
                .collect();
            told(all.iter().map(|(name, it)| (name.clone(), it)))
        };
        assert_eq!(
            named(&all).as_deref(),
            Some("waiting for containers of pod/p to terminate (grace period 30s)")
        );
        let all = [("job/j", &owner), ("pod/p", &pod), ("pod/q", &held)];
        assert_eq!(
            named(&all).as_deref(),
            Some("waiting for finalizer example.com/hold of pod/q to be removed")
        );
        assert_eq!(named(&[]), None);
    }
}
