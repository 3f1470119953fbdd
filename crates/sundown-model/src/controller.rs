//! How a controller is asked. One trait; whoever implements it gets queue, timers, retries, brakes,
//! simulation and `explain` from others.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Cache, Decision, Explain, Facts, KnownKind, Object, ObjectKey, Part, Port, Question, Report,
    Resource, ResourceType, Verb,
};

/// A controller: small incremental state, and one pure decision per key.
pub trait Controller: Clone + Debug + Send + 'static {
    /// What is decided on, one at a time.
    type Key: Clone + Ord + Debug + Send + Serialize + DeserializeOwned + 'static;
    /// Why; a closed enum.
    type Reason: Explain + Clone + Send + 'static;

    /// The name on the command line, in logs and in metrics.
    const NAME: &'static str;
    /// Whom people are told that a note is from: where it stands for a part of upstream, that one.
    const TOLD_BY: &'static str = Self::NAME;
    /// What is watched. Merged over all controllers: one watch per resource.
    const INTERESTS: &'static [Interest];
    /// What may leave. Enforced at the engine's exit; RBAC is printed from it.
    const GRANTS: &'static [Grant];
    /// The kinds that own what it creates, by references that block their deletion.
    const OWNERS: &'static [KnownKind] = &[];
    /// Where deeds may be done beyond the API server. Enforced at the engine's exit.
    const PORTS: &'static [Port] = &[];

    /// Follows one change of the cache and names the keys that it touches. A controller that remembers
    /// nothing, and for which a change is no more than the objects before and after it, needs none of its own.
    fn observe(&mut self, change: &Change, cache: &Cache, touched: &mut BTreeSet<Self::Key>) {
        for object in change.objects() {
            touched.extend(self.keys_touched(object, cache));
        }
    }

    /// The keys to decide on when this object came, changed or went.
    fn keys_touched(&self, object: &Object, cache: &Cache) -> Vec<Self::Key> {
        let _ = cache;
        self.keys_about(object)
    }

    /// Decides on one key. Total: no panic, no error, whatever the input.
    fn decide(&self, key: &Self::Key, sight: Sight<'_>) -> Decision<Self::Reason>;

    /// The keys whose decisions tell why this object is still there.
    fn keys_about(&self, object: &Object) -> Vec<Self::Key>;

    /// Compares the state that was followed change by change with one made anew from the cache.
    ///
    /// Errors: they differ, and how. Tests ask at rest; it is too slow for every change.
    fn audit(&self, cache: &Cache) -> Result<(), String> {
        let _ = cache;
        Ok(())
    }
}

/// All that a decision looks at.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    pub cache: &'a Cache,
    pub facts: &'a Facts,
    pub now: Timestamp,
}

/// One change of the cache.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    Added(Arc<Object>),
    Updated {
        old: Arc<Object>,
        new: Arc<Object>,
    },
    /// The last observation of an incarnation that is gone.
    Deleted(Arc<Object>),
    /// The resource is no longer served; nothing is concluded about the object.
    Forgotten(Arc<Object>),
    /// A live read of this key was answered.
    Read(ObjectKey),
    /// The API server refused to delete the object of this key; the facts know why.
    Refused(ObjectKey),
    /// The cache of this resource caught up with a barrier or a list.
    Freshness(Resource),
    /// What is served changed.
    Catalog,
    /// A port said something by itself; the facts have it already.
    Report(Report),
    /// A question beyond the API server was answered; the facts have it already.
    Answered(Question),
}

impl Change {
    /// The object before and after, where this is about one.
    pub fn transition(&self) -> (Option<&Arc<Object>>, Option<&Arc<Object>>) {
        match self {
            Self::Added(new) => (None, Some(new)),
            Self::Updated { old, new } => (Some(old), Some(new)),
            Self::Deleted(old) | Self::Forgotten(old) => (Some(old), None),
            Self::Read(_)
            | Self::Refused(_)
            | Self::Freshness(_)
            | Self::Catalog
            | Self::Report(_)
            | Self::Answered(_) => (None, None),
        }
    }

    /// The object as it was and as it is, where this is about one.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        let (old, new) = self.transition();
        old.into_iter().chain(new)
    }
}

/// What a controller wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest {
    pub scope: Scope,
    /// JSON pointers of the fields beyond metadata that the controller reads.
    pub fields: &'static [&'static str],
}

/// Which resources are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    One(KnownKind),
    /// All that can be listed, watched and deleted, but for these.
    Collectable {
        except: &'static [KnownKind],
    },
}

impl Scope {
    /// Whether a served type is meant.
    pub fn includes(&self, ty: &ResourceType) -> bool {
        match self {
            Self::One(kind) => ty.resource.is(kind),
            Self::Collectable { except } => {
                ty.is_collectable() && !except.iter().any(|kind| ty.resource.is(kind))
            }
        }
    }
}

/// Which fields of a resource are kept, over all controllers.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Form {
    fields: BTreeSet<Arc<str>>,
}

impl Form {
    /// Metadata only.
    pub fn metadata() -> Self {
        Self::default()
    }

    /// Adds fields by JSON pointer.
    pub fn add(&mut self, fields: &[&str]) {
        self.fields
            .extend(fields.iter().map(|field| Arc::from(*field)));
    }

    /// Whether metadata is enough, so that the server may send metadata only.
    pub fn is_metadata(&self) -> bool {
        self.fields.is_empty()
    }

    /// The fields beside the metadata, as JSON pointers.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| &**field)
    }

    /// The kept fields of a document, at the places where they stand in it.
    pub fn project(&self, json: &Value) -> Value {
        let mut kept = Value::Null;
        for field in &self.fields {
            if let Some(value) = json.pointer(field) {
                place(&mut kept, field, value.clone());
            }
        }
        kept
    }
}

fn place(root: &mut Value, pointer: &str, value: Value) {
    let mut at = root;
    for part in pointer.split('/').skip(1) {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let map = at.as_object_mut().expect("made an object above");
        at = map.entry(part).or_insert(Value::Null);
    }
    *at = value;
}

/// A permission: what a controller may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// None: every group.
    pub group: Option<&'static str>,
    /// None: every resource of the group.
    pub plural: Option<&'static str>,
    pub permits: &'static [Permit],
}

/// One kind of write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    Create,
    Delete,
    /// The end of a grace period that this controller has waited for.
    Finish,
    Patch(Part),
}

impl Grant {
    /// Whether this grant covers a write to a resource.
    pub fn covers(&self, resource: &Resource, permit: Permit) -> bool {
        self.group.is_none_or(|group| group == resource.group())
            && self.plural.is_none_or(|plural| plural == resource.plural())
            && self.permits.contains(&permit)
    }
}

impl Permit {
    /// The API verb behind it.
    pub fn verb(self) -> Verb {
        match self {
            Self::Create => Verb::Create,
            Self::Delete | Self::Finish => Verb::Delete,
            Self::Patch(_) => Verb::Patch,
        }
    }
}
