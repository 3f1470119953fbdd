//! One resource: list, then watch, then again. What others do meanwhile is not its concern.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sundown_model::{Cache, Change, Form, Object, Position, Put, Resource, ResourceType, Rv, Step};

use super::Sink;
use crate::backoff::retry_at;
use crate::effect::{Effect, EffectId, Failure, Page};

/// The list and watch of one resource.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Stream {
    pub(super) ty: Arc<ResourceType>,
    pub(super) form: Form,
    pub(super) phase: Phase,
    pub(super) failures: u32,
    /// A first answer came, good or bad.
    pub(super) tried: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Phase {
    ToList(Partial),
    Listing { id: EffectId, partial: Partial },
    ToWatch,
    Watching { id: EffectId, heard: bool },
}

/// The pages of a list so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Partial {
    /// When the first page was asked.
    pub(super) asked: Option<Step>,
    pub(super) objects: Vec<Arc<Object>>,
    pub(super) next: Option<String>,
}

/// What a list changed, and when its stream goes on.
pub(super) struct Listed {
    pub(super) changes: Vec<Change>,
    pub(super) go_on_at: Timestamp,
}

impl Stream {
    pub(super) fn new(ty: Arc<ResourceType>, form: Form) -> Self {
        let phase = Phase::ToList(Partial::default());
        Self {
            ty,
            form,
            phase,
            failures: 0,
            tried: false,
        }
    }

    pub(super) fn next(&mut self, id: EffectId, position: Option<Rv>, step: Step) -> Effect {
        let (ty, form) = (self.ty.clone(), self.form.clone());
        match (std::mem::replace(&mut self.phase, Phase::ToWatch), position) {
            (Phase::ToWatch, Some(from)) => {
                self.phase = Phase::Watching { id, heard: false };
                Effect::Watch { id, ty, form, from }
            }
            (Phase::ToList(mut partial), _) => {
                partial.asked.get_or_insert(step);
                let next = partial.next.take();
                self.phase = Phase::Listing { id, partial };
                Effect::List { id, ty, form, next }
            }
            (Phase::ToWatch | Phase::Listing { .. } | Phase::Watching { .. }, _) => {
                let partial = Partial {
                    asked: Some(step),
                    ..Partial::default()
                };
                self.phase = Phase::Listing { id, partial };
                Effect::List {
                    id,
                    ty,
                    form,
                    next: None,
                }
            }
        }
    }

    pub(super) fn hear(&mut self) {
        self.failures = 0;
        if let Phase::Watching { heard, .. } = &mut self.phase {
            *heard = true;
        }
    }

    /// Takes the end of a watch; gives the time to go on. Silence before the end counts as failure.
    pub(super) fn closed(&mut self, expired: bool, now: Timestamp) -> Timestamp {
        let heard = matches!(self.phase, Phase::Watching { heard: true, .. });
        self.phase = if expired {
            Phase::ToList(Partial::default())
        } else {
            Phase::ToWatch
        };
        if heard {
            return now;
        }
        self.failures += 1;
        retry_at(now, self.failures)
    }

    pub(super) fn listed(
        &mut self,
        resource: &Resource,
        result: Result<Page, Failure>,
        sink: &mut Sink<'_>,
    ) -> Listed {
        self.tried = true;
        let phase = std::mem::replace(&mut self.phase, Phase::ToList(Partial::default()));
        let Phase::Listing { mut partial, .. } = phase else {
            return Listed {
                changes: Vec::new(),
                go_on_at: sink.now,
            };
        };
        let page = match result {
            Ok(page) if !is_older(&page, resource, sink.cache) => page,
            Ok(_) | Err(_) => {
                self.failures += 1;
                let go_on_at = retry_at(sink.now, self.failures);
                return Listed {
                    changes: Vec::new(),
                    go_on_at,
                };
            }
        };
        partial.objects.extend(page.objects);
        if page.next.is_some() {
            partial.next = page.next;
            self.phase = Phase::ToList(partial);
            return Listed {
                changes: Vec::new(),
                go_on_at: sink.now,
            };
        }
        self.failures = 0;
        self.phase = Phase::ToWatch;
        Listed {
            changes: replace(resource, partial, page.rv, sink),
            go_on_at: sink.now,
        }
    }
}

/// A list from before our own position comes from a server that lags: nothing follows from it.
fn is_older(page: &Page, resource: &Resource, cache: &Cache) -> bool {
    let listed = Position::new(resource.clone(), page.rv);
    cache
        .position(resource)
        .is_some_and(|own| listed.reaches(own) == Some(false))
}

/// Makes the cache of a resource equal to a complete list, but for what is newer than the list.
fn replace(resource: &Resource, partial: Partial, rv: Rv, sink: &mut Sink<'_>) -> Vec<Change> {
    let position = Position::new(resource.clone(), rv);
    let listed: BTreeSet<_> = partial
        .objects
        .iter()
        .map(|object| object.key().clone())
        .collect();
    let missing = sink.cache.of(resource).filter(|object| {
        !listed.contains(object.key()) && position.reaches(&object.position()) == Some(true)
    });
    let missing: Vec<_> = missing.cloned().collect();
    let mut changes = Vec::new();
    for object in missing {
        changes.extend(
            sink.cache
                .remove(object.key(), object.uid())
                .map(Change::Deleted),
        );
    }
    for object in partial.objects {
        changes.extend(put(object, sink, true));
    }
    sink.cache.advance(position);
    if let Some(asked) = partial.asked {
        sink.facts.set_fresh(resource.clone(), asked);
    }
    changes.push(Change::Freshness(resource.clone()));
    changes
}

/// Takes one observation into the cache and says what changed.
pub(crate) fn put(object: Arc<Object>, sink: &mut Sink<'_>, listed: bool) -> Vec<Change> {
    let put = if listed {
        sink.cache.put_listed(object.clone(), sink.step)
    } else {
        sink.cache.put(object.clone(), sink.step)
    };
    match put {
        Put::Ignored | Put::Same => Vec::new(),
        Put::Added => {
            // Whoever made it: what kept it from being made is over.
            sink.facts.clear_refusal(object.key());
            vec![Change::Added(object)]
        }
        Put::Updated { old } => vec![Change::Updated { old, new: object }],
        Put::Replaced { old } => vec![Change::Deleted(old), Change::Added(object)],
    }
}
