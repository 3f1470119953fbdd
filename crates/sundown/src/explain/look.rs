//! Reads the answer out of an engine that has looked around: the object, what each controller says of it, and the
//! same for what blocks it, and for what blocks that.

use std::collections::{BTreeSet, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sundown_engine::{Engine, Explanation};
use sundown_model::{Blocker, ObjectKey, Resource, ResourceType};

use super::Wanted;

/// How many blockers are explained too; a person follows the first few.
const CHAIN_MAX: usize = 10;

/// How many blockers of one explanation are told, and of anything else that there may be many of; a namespace may
/// hold a hundred thousand.
const BLOCKERS_MAX: usize = 100;
/// How long a text may be that is told.
const TEXT_LENGTH_MAX: usize = 2_000;

/// What an engine knows of the wanted object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Answer {
    Told(Box<Told>),
    /// The type is not served.
    UnknownType {
        known: Vec<String>,
    },
    /// No controller is interested in the type, or it could not be listed.
    Unseen {
        resource: Resource,
    },
    Missing {
        key: ObjectKey,
    },
}

/// An object with its explanation and that of its blockers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    #[serde(flatten)]
    pub(super) object: Explained,
    pub(super) chain: Vec<Explained>,
}

/// One object and what the controllers say of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Explained {
    pub(super) key: String,
    pub(super) uid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deleting_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) finalizers: Vec<String>,
    /// Those that tell most first.
    pub(super) explanations: Vec<Explanation>,
    /// How many blockers there are beside those that are told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) further_blockers: usize,
}

/// Finds the object and asks every controller about it.
pub(crate) fn answer(engine: &Engine, now: Timestamp, wanted: &Wanted) -> Answer {
    let cache = engine.cache();
    let Some(ty) = cache.catalog().find(&wanted.word) else {
        let watched = cache.catalog().iter().map(|ty| &ty.resource);
        let watched = watched.filter(|resource| cache.is_synced(resource));
        let known = watched.map(ToString::to_string).collect();
        return Answer::UnknownType { known };
    };
    let resource = ty.resource.clone();
    let key = key_of(ty, wanted);
    if let Some(object) = explained(engine, now, &key) {
        let chain = chain(engine, now, &key, &object);
        return Answer::Told(Box::new(Told { object, chain }));
    }
    if cache.is_synced(&resource) {
        Answer::Missing { key }
    } else {
        Answer::Unseen { resource }
    }
}

fn key_of(ty: &ResourceType, wanted: &Wanted) -> ObjectKey {
    if ty.namespaced {
        ObjectKey::namespaced(&ty.resource, wanted.namespace(), &wanted.name)
    } else {
        ObjectKey::cluster(&ty.resource, &wanted.name)
    }
}

fn explained(engine: &Engine, now: Timestamp, key: &ObjectKey) -> Option<Explained> {
    let object = engine.cache().get(key)?;
    let mut explanations = engine.explain(key, now);
    explanations.sort_by_key(rank);
    let blockers = explanations.iter().map(|it| it.blockers.len());
    let further_blockers = blockers.map(|it| it.saturating_sub(BLOCKERS_MAX)).sum();
    for explanation in &mut explanations {
        explanation.blockers.truncate(BLOCKERS_MAX);
        explanation.needs.truncate(BLOCKERS_MAX);
        cut(&mut explanation.sentence);
        explanation.actions.iter_mut().for_each(cut);
    }
    Some(Explained {
        key: key.to_string(),
        uid: object.uid().to_string(),
        deleting_since: object.deletion().map(|deletion| deletion.at),
        finalizers: object
            .finalizers()
            .iter()
            .take(BLOCKERS_MAX)
            .map(ToString::to_string)
            .collect(),
        explanations,
        further_blockers,
    })
}

/// Reasons quote what users wrote, which may be long; an answer has to fit a line of the control socket.
fn cut(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(TEXT_LENGTH_MAX) {
        text.truncate(at);
        text.push('…');
    }
}

/// What is stuck comes before what goes on, and that before what has nothing to do with the object.
fn rank(explanation: &Explanation) -> u8 {
    let Explanation {
        blockers,
        actions,
        needs,
        wake_at,
        ..
    } = explanation;
    match () {
        () if !blockers.is_empty() => 0,
        () if !actions.is_empty() => 1,
        () if !needs.is_empty() => 2,
        () if wake_at.is_some() => 3,
        () => 4,
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Follows the blockers, nearest first.
fn chain(engine: &Engine, now: Timestamp, key: &ObjectKey, object: &Explained) -> Vec<Explained> {
    let mut known = BTreeSet::from([key.clone()]);
    let mut next = VecDeque::from(blocking(object));
    let mut chain = Vec::new();
    while let Some(key) = next.pop_front().filter(|_| chain.len() < CHAIN_MAX) {
        if known.insert(key.clone())
            && let Some(object) = explained(engine, now, &key)
        {
            next.extend(blocking(&object));
            chain.push(object);
        }
    }
    chain
}

fn blocking(object: &Explained) -> Vec<ObjectKey> {
    let blockers = object.explanations.iter().flat_map(|it| &it.blockers);
    blockers.filter_map(named).cloned().collect()
}

fn named(blocker: &Blocker) -> Option<&ObjectKey> {
    match blocker {
        Blocker::Finalizer { on: key, .. }
        | Blocker::Owner { owner: key }
        | Blocker::Dependent { dependent: key }
        | Blocker::User { user: key }
        | Blocker::Refused { object: key } => Some(key),
        Blocker::Unobservable { .. } | Blocker::UnknownKind { .. } | Blocker::Until { .. } => None,
    }
}
