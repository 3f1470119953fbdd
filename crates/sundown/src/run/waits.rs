//! What an object that is to go waits for, read off the object itself as a person would. Pure.

use serde_json::Value;

use crate::objects::{list_in, text};

/// What the API server and the collector add and remove themselves.
const OF_THE_COLLECTOR: [&str; 2] = ["foregroundDeletion", "orphan"];

/// Why an object is still there, the most telling first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wait {
    /// Others have to remove these finalizers.
    Finalizers(Vec<String>),
    /// The containers of a pod have so many seconds to end.
    Containers { grace: u64 },
    /// What the namespace holds has to go; what the server says about it.
    Content(String),
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
        let is_ours = |name: &&str| OF_THE_COLLECTOR.contains(name);
        let others = names.iter().filter(|it| !is_ours(it));
        let others: Vec<String> = others.map(|&it| it.to_owned()).collect();
        if metadata["deletionTimestamp"].is_null() {
            return Self::NotAsked;
        }
        if !others.is_empty() {
            return Self::Finalizers(others);
        }
        if !names.is_empty() {
            return Self::Dependents;
        }
        if !list_in(object, "/spec/finalizers").is_empty() {
            return Self::Content(content(object));
        }
        match metadata["deletionGracePeriodSeconds"].as_u64() {
            Some(grace) if grace > 0 => Self::Containers { grace },
            _ => Self::Nothing,
        }
    }

    /// Whether it may take for ever: nothing of ours ends this wait.
    pub(super) fn is_for_others(&self) -> bool {
        match self {
            Self::Finalizers(_) => true,
            Self::Containers { .. }
            | Self::Content(_)
            | Self::NotAsked
            | Self::Dependents
            | Self::Nothing => false,
        }
    }

    /// Of the object of this name.
    pub(super) fn in_words(&self, name: &str) -> String {
        match self {
            Self::Finalizers(all) if all.len() == 1 => {
                format!("{name} waits until its finalizer {} is removed", all[0])
            }
            Self::Finalizers(all) => {
                let all = all.join(", ");
                format!("{name} waits until its finalizers {all} are removed")
            }
            Self::Containers { grace } => {
                format!("{name} waits until its containers have ended, {grace} s at most")
            }
            Self::Content(why) if why.is_empty() => {
                format!("{name} waits until all that it holds is gone")
            }
            Self::Content(why) => format!("{name} waits until all that it holds is gone: {why}"),
            Self::NotAsked => format!("{name} waits until what owns it is gone"),
            Self::Dependents => format!("{name} waits until what it owns is gone"),
            Self::Nothing => format!("{name} is about to go"),
        }
    }
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
                "x waits until what owns it is gone",
            ),
            (
                going(&json!({"metadata": {"finalizers": hold}})),
                "x waits until its finalizer example.com/hold is removed",
            ),
            (
                going(&json!({"metadata": {"finalizers": ["a/b", "c/d"]}})),
                "x waits until its finalizers a/b, c/d are removed",
            ),
            (
                going(&json!({"metadata": {"finalizers": ["foregroundDeletion"]}})),
                "x waits until what it owns is gone",
            ),
            (
                going(&json!({"metadata": {"deletionGracePeriodSeconds": 30}})),
                "x waits until its containers have ended, 30 s at most",
            ),
            (
                going(
                    &json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"conditions": conditions}}),
                ),
                "x waits until all that it holds is gone: 1 pod",
            ),
            (going(&json!({})), "x is about to go"),
        ];
        for (object, expect) in cases {
            assert_eq!(Wait::of(&object).in_words("x"), expect, "{object}");
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
            Some("pod/p waits until its containers have ended, 30 s at most")
        );
        let all = [("job/j", &owner), ("pod/p", &pod), ("pod/q", &held)];
        assert_eq!(
            named(&all).as_deref(),
            Some("pod/q waits until its finalizer example.com/hold is removed")
        );
        assert_eq!(named(&[]), None);
    }
}
