//! An engine on the bench: the test plays the server, and every turn is recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sundown_engine::flight::{Record, Veil};
use sundown_engine::{
    Config, Effect, EffectId, Engine, Failure, Input, Page, SentEffect, WatchEvent,
};
use sundown_model::{
    Catalog, Form, KnownKind, Object, ObjectKey, Outcome, Position, Refusal, RefusalReason,
    Resource, ResourceType, Rv, Verb, Write,
};

use crate::toy::{BOX, GADGET, TOY, Toys};

/// More effects than any test means to see; a loop that never rests ends here.
const EFFECTS_MAX: usize = 1_000;

/// The revision of the lists by which a bench settles.
pub(crate) const LISTED: u64 = 10;

pub(crate) const CRD: KnownKind = KnownKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};

pub(crate) const EVENT: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "Event",
    plural: "events",
};

/// The instant from which tests count, in milliseconds.
pub(crate) fn at(millis: i64) -> Timestamp {
    let start: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a valid instant");
    start + SignedDuration::from_millis(millis)
}

/// A veil that shows what toys are told to do.
pub(crate) fn veil() -> Veil {
    let told = &["asks", "message", "tells", "waits", "wakes"];
    Veil::new(mark).showing(told)
}

/// A mark that is the same in every run; a recorder's has a key.
pub(crate) fn mark(text: &str) -> u64 {
    text.bytes().fold(7, |mark: u64, byte| {
        mark.wrapping_mul(31).wrapping_add(byte.into())
    })
}

/// An object in the making.
#[derive(Debug, Clone)]
pub(crate) struct A {
    pub(crate) resource: Resource,
    pub(crate) json: Value,
}

pub(crate) fn a(kind: &KnownKind, name: &str) -> A {
    let metadata = json!({
        "name": name, "namespace": "here", "uid": format!("uid-{name}"), "resourceVersion": "5",
    });
    let api_version = ty(kind).api_version();
    A {
        resource: kind.resource(),
        json: json!({ "apiVersion": api_version, "kind": kind.kind, "metadata": metadata }),
    }
}

pub(crate) fn toy(name: &str) -> A {
    a(&TOY, name)
}

impl A {
    pub(crate) fn spec(mut self, field: &str, value: Value) -> Self {
        self.json["spec"][field] = value;
        self
    }

    pub(crate) fn doomed(self) -> Self {
        self.spec("doomed", json!(true))
    }

    pub(crate) fn meta(mut self, field: &str, value: Value) -> Self {
        self.json["metadata"][field] = value;
        self
    }

    pub(crate) fn rv(self, rv: u64) -> Self {
        self.meta("resourceVersion", json!(rv.to_string()))
    }

    pub(crate) fn uid(self, uid: &str) -> Self {
        self.meta("uid", json!(uid))
    }

    pub(crate) fn deleting(self) -> Self {
        self.meta("deletionTimestamp", json!(at(0).to_string()))
            .meta("finalizers", json!(["example.com/mine"]))
    }

    pub(crate) fn build(&self) -> Arc<Object> {
        let mut form = Form::metadata();
        form.add(&["/spec"]);
        Arc::new(Object::read(&self.resource, &self.json, &form).expect("a whole object"))
    }

    pub(crate) fn key(&self) -> ObjectKey {
        self.build().key().clone()
    }
}

pub(crate) fn ty(kind: &KnownKind) -> ResourceType {
    ResourceType {
        resource: kind.resource(),
        version: kind.version.into(),
        served: [kind.version.into()].into(),
        kind: kind.kind.into(),
        aliases: [].into(),
        namespaced: kind.plural != CRD.plural,
        verbs: [
            Verb::Get,
            Verb::List,
            Verb::Watch,
            Verb::Create,
            Verb::Patch,
            Verb::Delete,
        ]
        .into(),
    }
}

pub(crate) fn catalog(kinds: &[&KnownKind]) -> Catalog {
    Catalog::new(kinds.iter().map(|kind| ty(kind)))
}

pub(crate) fn page(objects: &[&A], rv: u64) -> Page {
    Page {
        objects: objects.iter().map(|object| object.build()).collect(),
        rv: Rv::new(rv),
        next: None,
    }
}

pub(crate) fn failure() -> Failure {
    Failure {
        message: "no answer".to_owned(),
        expired: false,
    }
}

pub(crate) fn refused(reason: RefusalReason, retry_after_seconds: Option<u32>) -> Outcome {
    Outcome::Refused(Refusal {
        reason,
        message: "no".to_owned(),
        retry_after_seconds,
    })
}

pub(crate) fn position(kind: &KnownKind, rv: u64) -> Position {
    Position::new(kind.resource(), Rv::new(rv))
}

/// An id that no engine gave.
pub(crate) fn id(number: u64) -> EffectId {
    serde_json::from_value(json!(number)).expect("an id is a number")
}

/// The effect, if it is the only one.
#[track_caller]
pub(crate) fn only(effects: Vec<Effect>) -> Effect {
    assert_eq!(effects.len(), 1, "{effects:?}");
    effects.into_iter().next().expect("there is one")
}

/// What the writes among the effects say.
pub(crate) fn writes(effects: &[Effect]) -> Vec<Write> {
    let writes = effects.iter().filter_map(|effect| match effect {
        Effect::Write { write, .. } => Some(write.clone()),
        _ => None,
    });
    writes.collect()
}

/// An engine with toys, the instant it lives in, and what it did so far.
#[derive(Debug, Clone)]
pub(crate) struct Rig {
    pub(crate) engine: Engine,
    pub(crate) now: Timestamp,
    pub(crate) catalog: Catalog,
    pub(crate) turns: Vec<Record>,
    inputs: Vec<Input>,
    watches: BTreeMap<Resource, EffectId>,
}

impl Rig {
    /// An engine that has not asked anything yet.
    pub(crate) fn new(config: Config) -> Self {
        Self {
            engine: Engine::new(config).with(Toys::default()),
            now: at(0),
            catalog: catalog(&[&TOY, &BOX, &EVENT]),
            turns: Vec::new(),
            inputs: Vec::new(),
            watches: BTreeMap::new(),
        }
    }

    /// A leading engine that has listed these objects and watches.
    pub(crate) fn settled(objects: &[&A]) -> Self {
        let mut rig = Self::new(Config::default());
        rig.settle(objects);
        rig.take(Input::Lead(true));
        rig
    }

    /// Answers discovery and lists until nothing is asked any more.
    #[track_caller]
    pub(crate) fn settle(&mut self, objects: &[&A]) {
        loop {
            let effects = self.turn();
            if effects.is_empty() {
                break;
            }
            for effect in effects {
                self.answer_stream(&effect, objects);
            }
        }
        assert!(self.engine.is_settled(), "all streams had a first answer");
    }

    #[track_caller]
    fn answer_stream(&mut self, effect: &Effect, objects: &[&A]) {
        match effect {
            Effect::Discover { id } => self.discovered(*id, self.catalog.clone()),
            Effect::List { id, ty, .. } => {
                let of_type = objects.iter().filter(|it| it.resource == ty.resource);
                let listed: Vec<&A> = of_type.copied().collect();
                self.listed(*id, page(&listed, LISTED));
            }
            other => assert!(matches!(other, Effect::Watch { .. }), "{other:?}"),
        }
    }

    pub(crate) fn take(&mut self, input: Input) {
        self.inputs.push(input.clone());
        self.engine.take(input, self.now);
    }

    /// Everything that the engine wants to be done now.
    #[track_caller]
    pub(crate) fn turn(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some(effect) = self.engine.next(self.now) {
            if let Effect::Watch { id, ty, .. } = &effect {
                self.watches.insert(ty.resource.clone(), *id);
            }
            effects.push(effect);
            assert!(effects.len() < EFFECTS_MAX, "it comes to rest");
        }
        self.turns.push(Record::Turn {
            at: self.now,
            inputs: std::mem::take(&mut self.inputs),
            effects: effects.iter().map(SentEffect::from).collect(),
        });
        effects
    }

    /// The same at another instant.
    #[track_caller]
    pub(crate) fn turn_at(&mut self, millis: i64) -> Vec<Effect> {
        self.now = at(millis);
        self.turn()
    }

    pub(crate) fn discovered(&mut self, id: EffectId, catalog: Catalog) {
        self.take(Input::Discovered {
            id,
            result: Ok(catalog),
        });
    }

    pub(crate) fn listed(&mut self, id: EffectId, page: Page) {
        self.take(Input::Listed {
            id,
            result: Ok(page),
        });
    }

    pub(crate) fn got(&mut self, id: EffectId, found: Option<&A>) {
        let result = Ok(found.map(A::build));
        self.take(Input::Got { id, result });
    }

    pub(crate) fn wrote(&mut self, id: EffectId, outcome: Outcome) {
        self.take(Input::Wrote { id, outcome });
    }

    /// An event of the watch that is open now.
    #[track_caller]
    pub(crate) fn watch(&mut self, kind: &KnownKind, event: WatchEvent) {
        let id = self.watch_of(kind);
        self.take(Input::Watched { id, event });
    }

    pub(crate) fn sees(&mut self, object: &A) {
        let kind = [TOY, BOX, GADGET, CRD]
            .into_iter()
            .find(|kind| object.resource.is(kind));
        self.watch(
            &kind.expect("a kind of the bench"),
            WatchEvent::Put(object.build()),
        );
    }

    pub(crate) fn bookmark(&mut self, kind: &KnownKind, rv: u64) {
        self.watch(kind, WatchEvent::Bookmark(Rv::new(rv)));
    }

    pub(crate) fn watch_of(&self, kind: &KnownKind) -> EffectId {
        self.watches[&kind.resource()]
    }

    /// What the cache holds of a key.
    pub(crate) fn cached(&self, object: &A) -> Option<Arc<Object>> {
        self.engine.cache().get(&object.key()).cloned()
    }
}
