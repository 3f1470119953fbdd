//! What a controller may say. Complete values: whoever applies them chooses nothing.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Deed, ObjectKey, Resource, Seen, Uid, node, ray};

/// How many actions one decision may carry; the rest is for the decision after it.
pub const ACTIONS_MAX: usize = 64;

/// What a controller concludes from a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision<R> {
    /// Facts that are missing or too old. They are asked first, even when paused.
    pub needs: Vec<Need>,
    /// Independent of each other; an order is expressed by deciding again.
    pub actions: Actions,
    /// When to decide again if nothing happens before.
    pub wake_at: Option<Timestamp>,
    /// Why.
    pub reason: R,
}

impl<R> Decision<R> {
    /// Nothing to do until something changes.
    pub fn idle(reason: R) -> Self {
        Self {
            needs: Vec::new(),
            actions: Actions::default(),
            wake_at: None,
            reason,
        }
    }

    /// Nothing to do before an instant.
    pub fn wake_at(at: Timestamp, reason: R) -> Self {
        Self {
            wake_at: Some(at),
            ..Self::idle(reason)
        }
    }

    /// Something must be known first.
    pub fn need(needs: Vec<Need>, reason: R) -> Self {
        Self {
            needs,
            ..Self::idle(reason)
        }
    }

    /// One thing to do now.
    pub fn act(action: Action, reason: R) -> Self {
        Self {
            actions: [action].into_iter().collect(),
            ..Self::idle(reason)
        }
    }

    /// Several independent things to do now.
    pub fn act_all(actions: impl IntoIterator<Item = Action>, reason: R) -> Self {
        Self {
            actions: actions.into_iter().collect(),
            ..Self::idle(reason)
        }
    }
}

/// What a decision carries: never more than [`ACTIONS_MAX`], whatever is added. What does not fit is for the
/// decision after it, which what was done brings about. Words give way to deeds; one that must be told with its
/// deed has to be counted by its controller.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Actions(Vec<Action>);

impl Actions {
    /// Adds one, if there is room.
    pub fn push(&mut self, action: Action) {
        let is_word = |it: &Action| matches!(it, Action::Tell(_));
        if self.0.len() == ACTIONS_MAX {
            let word = self.0.iter().rposition(is_word);
            let Some(word) = word.filter(|_| !is_word(&action)) else {
                return;
            };
            self.0.remove(word);
        }
        self.0.push(action);
    }
}

impl Extend<Action> for Actions {
    fn extend<I: IntoIterator<Item = Action>>(&mut self, actions: I) {
        actions.into_iter().for_each(|it| self.push(it));
    }
}

impl FromIterator<Action> for Actions {
    fn from_iter<I: IntoIterator<Item = Action>>(actions: I) -> Self {
        let mut all = Self::default();
        all.extend(actions);
        all
    }
}

impl IntoIterator for Actions {
    type Item = Action;
    type IntoIter = std::vec::IntoIter<Action>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Actions {
    type Item = &'a Action;
    type IntoIter = std::slice::Iter<'a, Action>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl std::ops::Deref for Actions {
    type Target = [Action];

    fn deref(&self) -> &[Action] {
        &self.0
    }
}

/// A fact that a decision cannot do without.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Need {
    /// A consistent read of one key, sent after now.
    Live(ObjectKey),
    /// Our caches of these resources shall show everything that was committed before now.
    Barrier(Vec<Resource>),
    /// An answer of a Ray cluster, asked after now.
    Ray(ray::Query),
    /// An answer of the node, asked after now.
    Node(node::Query),
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A write to the API server.
    Api(Write),
    /// A word to people: a Kubernetes Event and a log line.
    Tell(Note),
    /// Something beyond the API server.
    Do(Deed),
}

/// A write to the API server. Nothing that exists can be touched without having been seen.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    Create(Arc<Draft>),
    Patch {
        at: Seen,
        part: Part,
        patch: Patch,
    },
    Delete {
        at: Seen,
        how: Propagation,
    },
    /// The last word on a pod whose processes have ended: deletes without a grace period. A write of
    /// its own, so that nobody else can cut a grace period short by a slip.
    Finish {
        at: Seen,
    },
}

/// An object that shall come into being.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    pub key: ObjectKey,
    /// The whole object as JSON.
    pub body: Value,
    /// What is said once it is there. Before the answer nobody knows that it will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Note>,
}

impl Draft {
    /// An object that comes into being without a word.
    pub fn new(key: ObjectKey, body: Value) -> Self {
        let told = None;
        Self { key, body, told }
    }
}

/// Which part of an object a patch addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Part {
    Main,
    Status,
    /// `finalize` of a namespace.
    Finalize,
    /// `binding` of a pod: names its node, once.
    Binding,
}

/// What a patch says. Uid and revision of the [`Seen`] beside it are added on the way out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Patch {
    /// JSON merge patch, RFC 7386.
    Merge(Value),
}

/// What shall become of the dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// A word about an object, to be read by people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Note {
    pub about: ObjectKey,
    pub uid: Uid,
    pub warning: bool,
    /// CamelCase, as in the `reason` of a Kubernetes Event.
    pub reason: Arc<str>,
    /// In Sundown's own words, without secrets.
    pub message: String,
    /// What a pod or Ray said, word for word; it follows the message. A flight record hides it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quote: String,
}

impl Note {
    /// The whole text.
    pub fn text(&self) -> String {
        format!("{}{}", self.message, self.quote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Namespace;

    fn word(number: usize) -> Action {
        Action::Tell(Note {
            about: key("a"),
            uid: Uid::from("uid-a"),
            warning: false,
            reason: "Said".into(),
            message: number.to_string(),
            quote: String::new(),
        })
    }

    fn make(name: &str) -> Action {
        Action::Api(Write::Create(Draft::new(key(name), Value::Null).into()))
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            resource: Resource::new("", "pods"),
            namespace: Some(Namespace::from("default")),
            name: name.into(),
        }
    }

    #[test]
    fn a_decision_is_bounded_and_words_give_way_to_deeds() {
        let words: Vec<Action> = (0..100).map(word).collect();
        let mut decision = Decision::act_all(words, ());
        assert_eq!(decision.actions.len(), ACTIONS_MAX);
        decision.actions.push(make("a"));
        assert_eq!(decision.actions.len(), ACTIONS_MAX);
        assert_eq!(decision.actions.last(), Some(&make("a")));
        assert_eq!(decision.actions.first(), Some(&word(0)));

        let deeds: Vec<Action> = (0..100).map(|it| make(&it.to_string())).collect();
        let mut decision = Decision::act_all(deeds, ());
        decision.actions.extend([make("late"), word(0)]);
        assert_eq!(decision.actions.len(), ACTIONS_MAX);
        assert_eq!(decision.actions.last(), Some(&make("63")));
    }
}
