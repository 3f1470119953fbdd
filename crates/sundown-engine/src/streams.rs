//! List and watch of every resource that somebody is interested in, each on its own: a resource
//! that cannot be listed delays nobody else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sundown_model::{
    Cache, Catalog, Change, Facts, Form, Interest, KnownKind, Object, Position, Put, Resource,
    ResourceType, Rv, Scope, Step,
};

use crate::backoff::retry_at;
use crate::effect::{Effect, EffectId, Failure, Page, WatchEvent};

/// A change of these changes what is served, so the engine itself follows them.
const CRDS: KnownKind = KnownKind {
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

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stream {
    ty: Arc<ResourceType>,
    form: Form,
    phase: Phase,
    failures: u32,
    /// A first answer came, good or bad.
    tried: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Phase {
    ToList(Partial),
    Listing { id: EffectId, partial: Partial },
    ToWatch,
    Watching { id: EffectId, heard: bool },
}

/// The pages of a list so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Partial {
    /// When the first page was asked.
    asked: Option<Step>,
    objects: Vec<Arc<Object>>,
    next: Option<String>,
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
            if !self.by_resource.contains_key(&resource) {
                self.due.insert((sink.now, resource.clone()));
                self.by_resource.insert(resource, Stream::new(ty, form));
            }
        }
        changes
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
        self.due.insert((outcome.go_on_at, resource.clone()));
        if resource.is(&CRDS) && !outcome.changes.is_empty() {
            self.rediscover(sink.now);
        }
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
        let changes = match event {
            WatchEvent::Closed { expired } => {
                let at = stream.closed(expired, sink.now);
                self.due.insert((at, resource));
                return Vec::new();
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
                sink.cache.advance(Position::new(resource.clone(), rv));
                Vec::new()
            }
        };
        if resource.is(&CRDS) && !changes.is_empty() {
            self.rediscover(sink.now);
        }
        changes
    }
}

/// What a list changed, and when its stream goes on.
struct Listed {
    changes: Vec<Change>,
    go_on_at: Timestamp,
}

impl Stream {
    fn new(ty: Arc<ResourceType>, form: Form) -> Self {
        let phase = Phase::ToList(Partial::default());
        Self {
            ty,
            form,
            phase,
            failures: 0,
            tried: false,
        }
    }

    fn next(&mut self, id: EffectId, position: Option<Rv>, step: Step) -> Effect {
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

    fn hear(&mut self) {
        self.failures = 0;
        if let Phase::Watching { heard, .. } = &mut self.phase {
            *heard = true;
        }
    }

    /// Takes the end of a watch; gives the time to go on. Silence before the end counts as failure.
    fn closed(&mut self, expired: bool, now: Timestamp) -> Timestamp {
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

    fn listed(
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
        Put::Added => vec![Change::Added(object)],
        Put::Updated { old } => vec![Change::Updated { old, new: object }],
        Put::Replaced { old } => vec![Change::Deleted(old), Change::Added(object)],
    }
}
