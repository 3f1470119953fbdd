//! What the engine sees and does, in words.

use sundown_engine::{Effect, Input, SentEffect, SentWrite, WatchEvent};
use sundown_model::{Blocker, DeedOutcome, Outcome, Part, Propagation, Reply, Report, node};

/// What keeps an object from going.
pub(crate) fn blocker(blocker: &Blocker) -> String {
    match blocker {
        Blocker::Finalizer { on, finalizer } => format!("finalizer {finalizer} on {on}"),
        Blocker::Owner { owner } => format!("owner {owner}, which is there"),
        Blocker::Dependent { dependent } => format!("dependent {dependent}, which is there"),
        Blocker::User { user } => format!("{user}, which uses it"),
        Blocker::Refused { object } => format!("{object}, which may not be deleted"),
        Blocker::Unobservable { resource } => format!("{resource} cannot be listed"),
        Blocker::UnknownKind { api_version, kind } => {
            format!("an owner of kind {kind} in {api_version}, which is not served")
        }
        Blocker::Until { at } => format!("time, until {at}"),
    }
}

/// What happened outside.
pub(crate) fn input(input: &Input) -> String {
    match input {
        Input::Lead(true) => "leads".to_owned(),
        Input::Lead(false) => "no longer leads".to_owned(),
        Input::Brake(brake) if brake.all => "everything is braked".to_owned(),
        Input::Brake(brake) if brake.namespaces.is_empty() && brake.resources.is_empty() => {
            "nothing is braked".to_owned()
        }
        Input::Brake(brake) => format!("braked: {:?} {:?}", brake.namespaces, brake.resources),
        Input::Discovered { id, result } => match result {
            Ok(catalog) => format!("{id:?} {} resources are served", catalog.iter().count()),
            Err(failure) => format!("{id:?} discovery failed: {failure}"),
        },
        Input::Listed { id, result } => match result {
            Ok(page) => format!("{id:?} listed {} at rv {}", page.objects.len(), page.rv),
            Err(failure) => format!("{id:?} the list failed: {failure}"),
        },
        Input::Watched { id, event } => format!("{id:?} {}", watched(event)),
        Input::Got { id, result } => match result {
            Ok(Some(object)) => format!("{id:?} read {:?}", object.seen()),
            Ok(None) => format!("{id:?} read: not there"),
            Err(failure) => format!("{id:?} the read failed: {failure}"),
        },
        Input::Positions { id, result } => match result {
            Ok(positions) => format!("{id:?} positions of {} resources", positions.len()),
            Err(failure) => format!("{id:?} no positions: {failure}"),
        },
        Input::Wrote { id, outcome } => match outcome {
            Outcome::Done(_) => format!("{id:?} done"),
            Outcome::Refused(refusal) => {
                format!("{id:?} refused, {:?}: {}", refusal.reason, refusal.message)
            }
            Outcome::Unknown => format!("{id:?} sent, result unknown"),
        },
        Input::Answered { id, reply } => match reply {
            Reply::Ray(Ok(_)) | Reply::Node(Ok(_)) => format!("{id:?} answered"),
            Reply::Ray(Err(failure)) => format!("{id:?} no answer: {}", failure.message),
            Reply::Node(Err(message)) => format!("{id:?} no answer: {message}"),
        },
        Input::Done { id, outcome } => match outcome {
            DeedOutcome::Done => format!("{id:?} done"),
            DeedOutcome::Refused(refusal) => {
                format!("{id:?} refused, {}: {}", refusal.reason, refusal.text())
            }
            DeedOutcome::Unknown { .. } => format!("{id:?} sent, result unknown"),
        },
        Input::Reported(Report::Node(report)) => reported(report),
    }
}

fn reported(report: &node::Report) -> String {
    match report {
        node::Report::All(pods) => format!("the node has {} pods", pods.len()),
        node::Report::Pod(pod) => format!("the node tells of pod {}", pod.pod),
        node::Report::Removed { pod } => format!("the node has removed pod {pod}"),
        node::Report::Image { image, .. } => format!("the node tells of image {image}"),
        node::Report::Away { message } => format!("the node is away: {message}"),
    }
}

fn watched(event: &WatchEvent) -> String {
    match event {
        WatchEvent::Put(object) => format!("saw {:?}", object.seen()),
        WatchEvent::Deleted(object) => format!("deleted {:?}", object.seen()),
        WatchEvent::Bookmark(rv) => format!("has seen all up to rv {rv}"),
        WatchEvent::Closed { expired: true } => "the watch is too old".to_owned(),
        WatchEvent::Closed { expired: false } => "the watch ended".to_owned(),
    }
}

/// What is to be done outside.
pub(crate) fn effect(effect: &SentEffect) -> String {
    let id = effect.id();
    match effect {
        Effect::Discover { .. } => format!("{id:?} ask what is served"),
        Effect::List { ty, next: None, .. } => format!("{id:?} list {}", ty.resource),
        Effect::List { ty, .. } => format!("{id:?} list more {}", ty.resource),
        Effect::Watch { ty, from, .. } => format!("{id:?} watch {} after rv {from}", ty.resource),
        Effect::Unwatch { .. } => format!("{id:?} watch no longer"),
        Effect::Get { key, .. } => format!("{id:?} read {key}"),
        Effect::Barrier { types, .. } => {
            format!("{id:?} ask how far {} resources are", types.len())
        }
        Effect::Write { by, write, .. } => format!("{id:?} {by}: {}", change(write)),
        Effect::Ask { question, .. } => format!("{id:?} {}", question.in_words()),
        Effect::Do { by, deed, .. } => format!("{id:?} {by}: {}", deed.in_words()),
    }
}

/// What a write does.
pub(crate) fn change(write: &SentWrite) -> String {
    match write {
        SentWrite::Create(draft) => format!("create {}", draft.key),
        SentWrite::Patch { at, part, .. } => match part {
            Part::Main => format!("patch {at:?}"),
            Part::Status => format!("patch the status of {at:?}"),
            Part::Finalize => format!("finalize {at:?}"),
            Part::Binding => format!("bind {at:?} to its node"),
        },
        SentWrite::Finish { at } => format!("finish the deletion of {at:?}"),
        SentWrite::Delete { at, how } => match how {
            Propagation::Background => format!("delete {at:?}"),
            Propagation::Foreground => format!("delete {at:?} after its dependents"),
            Propagation::Orphan => format!("delete {at:?}, keep its dependents"),
        },
    }
}
