//! List and watch of every resource that somebody is interested in, each on its own: a resource
//! that cannot be listed delays nobody else.

mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sundown_model::{
    Cache, Catalog, Change, Facts, Form, Interest, KnownKind, Position, Resource, ResourceType,
    Scope, Step,
};

use crate::backoff::retry_at;
use crate::effect::{Effect, EffectId, Failure, Page, WatchEvent};

pub(crate) use stream::put;
use stream::{Phase, Stream};

/// A change of these changes what is served, so the engine itself follows them.
pub(crate) const CRDS: KnownKind = KnownKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};

/// The engine's own interest.
const OWN: Interest = Interest {
    scope: Scope::One(CRDS),
    fields: &[],
};

/// All streams, and the discovery that they follow from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Streams {
    discovery: Discovery,
    /// A first discovery was answered.
    discovered: bool,
    by_resource: BTreeMap<Resource, Stream>,
    /// When a stream wants to go on.
    due: BTreeSet<(Timestamp, Resource)>,
    /// Watches that are no longer wanted.
    closing: Vec<EffectId>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Discovery {
    Due {
        at: Timestamp,
        failures: u32,
    },
    /// `again`: something changed since it was asked.
    Asking {
        id: EffectId,
        again: bool,
        failures: u32,
    },
    Done,
}

/// What a stream works on.
pub(crate) struct Sink<'a> {
    pub(crate) cache: &'a mut Cache,
    pub(crate) facts: &'a mut Facts,
    pub(crate) step: Step,
    pub(crate) now: Timestamp,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self {
            discovery: Discovery::Due {
                at: Timestamp::MIN,
                failures: 0,
            },
            discovered: false,
            by_resource: BTreeMap::new(),
            due: BTreeSet::new(),
            closing: Vec::new(),
        }
    }

    /// Whether every stream had a first answer, so that deciding does not ask in vain.
    pub(crate) fn is_settled(&self) -> bool {
        self.discovered && self.by_resource.values().all(|stream| stream.tried)
    }

    /// Whether what is served was asked for after the last definition that was seen to change.
    pub(crate) fn follows_all_definitions(&self) -> bool {
        matches!(self.discovery, Discovery::Done)
    }

    pub(crate) fn is_watched(&self, resource: &Resource) -> bool {
        self.by_resource.contains_key(resource)
    }

    pub(crate) fn form(&self, resource: &Resource) -> Form {
        self.by_resource
            .get(resource)
            .map_or_else(Form::metadata, |stream| stream.form.clone())
    }

    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        let stream = self.due.first().map(|(at, _)| *at);
        let discovery = match &self.discovery {
            Discovery::Due { at, .. } => Some(*at),
            Discovery::Asking { .. } | Discovery::Done => None,
        };
        stream.into_iter().chain(discovery).min()
    }

    /// The next request of a stream, under this id.
    pub(crate) fn next(
        &mut self,
        id: EffectId,
        cache: &Cache,
        step: Step,
        now: Timestamp,
    ) -> Option<Effect> {
        if let Some(id) = self.closing.pop() {
            return Some(Effect::Unwatch { id });
        }
        if let Discovery::Due { at, failures } = self.discovery
            && at <= now
        {
            self.discovery = Discovery::Asking {
                id,
                again: false,
                failures,
            };
            return Some(Effect::Discover { id });
        }
        let (at, resource) = self.due.first()?.clone();
        if at > now {
            return None;
        }
        self.due.pop_first();
        let stream = self
            .by_resource
            .get_mut(&resource)
            .expect("a due stream exists");
        Some(stream.next(id, cache.position(&resource).map(Position::rv), step))
    }

    pub(crate) fn discovered(
        &mut self,
        id: EffectId,
        result: Result<Catalog, Failure>,
        interests: &[Interest],
        sink: &mut Sink<'_>,
    ) -> Vec<Change> {
        let Discovery::Asking {
            id: asked,
            again,
            failures,
        } = self.discovery
        else {
            return Vec::new();
        };
        if asked != id {
            return Vec::new();
        }
        let Ok(catalog) = result else {
            let failures = failures + 1;
            self.discovery = Discovery::Due {
                at: retry_at(sink.now, failures),
                failures,
            };
            return Vec::new();
        };
        self.discovery = if again {
            Discovery::Due {
                at: sink.now,
                failures: 0,
            }
        } else {
            Discovery::Done
        };
        self.discovered = true;
        if catalog == *sink.cache.catalog() {
            return Vec::new();
        }
        let mut changes = self.follow(&catalog, interests, sink);
        sink.cache.set_catalog(Arc::new(catalog));
        changes.push(Change::Catalog);
        changes
    }

    /// Begins streams of what is new, ends those of what is no longer served.
    fn follow(
        &mut self,
        catalog: &Catalog,
        interests: &[Interest],
        sink: &mut Sink<'_>,
    ) -> Vec<Change> {
        let mut wanted = BTreeMap::<Resource, (Arc<ResourceType>, Form)>::new();
        for ty in catalog.iter() {
            for interest in interests.iter().chain([&OWN]) {
                if interest.scope.includes(ty) {
                    let entry = wanted.entry(ty.resource.clone());
                    let (_, form) = entry.or_insert_with(|| (ty.clone(), Form::metadata()));
                    form.add(interest.fields);
                }
            }
        }
        let mut changes = Vec::new();
        let unwanted = self
            .by_resource
            .keys()
            .filter(|resource| !wanted.contains_key(resource));
        for resource in unwanted.cloned().collect::<Vec<_>>() {
            let stream = self
                .by_resource
                .remove(&resource)
                .expect("the key came from this map");
            if let Phase::Watching { id, .. } = stream.phase {
                self.closing.push(id);
            }
            self.due.retain(|(_, due)| *due != resource);
            changes.extend(
                sink.cache
                    .forget(&resource)
                    .into_iter()
                    .map(Change::Forgotten),
            );
        }
        for (resource, (ty, form)) in wanted {
            if let Some(stream) = self.by_resource.get_mut(&resource) {
                // Another version may be served now; the next request speaks it.
                stream.ty = ty;
            } else {
                self.due.insert((sink.now, resource.clone()));
                self.by_resource.insert(resource, Stream::new(ty, form));
            }
        }
        changes
    }

    /// Asks again what is served when a definition changed, whoever told so: a list, a watch, or the
    /// reply to a request of our own.
    pub(crate) fn heed(&mut self, changes: &[Change], now: Timestamp) {
        let is_about_kinds = |change: &Change| match change {
            Change::Added(object)
            | Change::Updated { new: object, .. }
            | Change::Deleted(object)
            | Change::Forgotten(object) => object.key().resource.is(&CRDS),
            Change::Read(_)
            | Change::Refused(_)
            | Change::Freshness(_)
            | Change::Catalog
            | Change::Report(_)
            | Change::Answered(_) => false,
        };
        if changes.iter().any(is_about_kinds) {
            self.rediscover(now);
        }
    }

    /// Wants to know again what is served.
    fn rediscover(&mut self, now: Timestamp) {
        match &mut self.discovery {
            Discovery::Asking { again, .. } => *again = true,
            Discovery::Done => {
                self.discovery = Discovery::Due {
                    at: now,
                    failures: 0,
                }
            }
            Discovery::Due { .. } => {}
        }
    }

    pub(crate) fn listed(
        &mut self,
        id: EffectId,
        result: Result<Page, Failure>,
        sink: &mut Sink<'_>,
    ) -> Vec<Change> {
        let Some((resource, stream)) = self.by_resource.iter_mut().find(|(_, stream)| {
            matches!(&stream.phase, Phase::Listing { id: current, .. } if *current == id)
        }) else {
            return Vec::new();
        };
        let resource = resource.clone();
        let outcome = stream.listed(&resource, result, sink);
        self.due.insert((outcome.go_on_at, resource));
        outcome.changes
    }

    pub(crate) fn watched(
        &mut self,
        id: EffectId,
        event: WatchEvent,
        sink: &mut Sink<'_>,
    ) -> Vec<Change> {
        let Some((resource, stream)) = self.by_resource.iter_mut().find(|(_, stream)| {
            matches!(&stream.phase, Phase::Watching { id: current, .. } if *current == id)
        }) else {
            return Vec::new();
        };
        let resource = resource.clone();
        match event {
            WatchEvent::Closed { expired } => {
                let at = stream.closed(expired, sink.now);
                self.due.insert((at, resource));
                Vec::new()
            }
            WatchEvent::Put(object) => {
                stream.hear();
                let position = object.position();
                let changes = put(object, sink, false);
                sink.cache.advance(position);
                changes
            }
            WatchEvent::Deleted(object) => {
                stream.hear();
                let removed = sink.cache.remove(object.key(), object.uid());
                sink.cache.advance(object.position());
                removed.map(Change::Deleted).into_iter().collect()
            }
            WatchEvent::Bookmark(rv) => {
                stream.hear();
                sink.cache.advance(Position::new(resource, rv));
                Vec::new()
            }
        }
    }
}
