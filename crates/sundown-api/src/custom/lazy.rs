//! The schema of one version of a definition, compiled when it is first asked for.
//!
//! Until then a definition costs no more than its stored bytes. A write that leaves the spec of a
//! definition alone (its status changes several times in its life) leaves the schema alone too.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use sundown_schema::{Compiler, Schema, member};
use sundown_store::{Revision, Stored};

/// The schema of one version of a definition.
#[derive(Debug, Clone)]
pub(crate) struct LazySchema {
    definition: Arc<Stored>,
    version: Arc<str>,
    /// Objects that are older were perhaps written under another schema.
    since: Revision,
    compiled: Arc<OnceLock<Compiled>>,
}

#[derive(Debug, Default)]
struct Compiled {
    own: Option<Schema>,
    /// That of the storage version, if it is another one with another schema.
    storage: Option<Schema>,
}

impl LazySchema {
    /// The schema of a version; `before` is what the same version had until now.
    pub(crate) fn new(
        definition: &Arc<Stored>,
        version: &Arc<str>,
        before: Option<&LazySchema>,
    ) -> Self {
        let spec = |stored: &Arc<Stored>| member(stored.json(), "spec").map(<[u8]>::to_vec);
        let same = before.filter(|it| spec(&it.definition) == spec(definition));
        Self {
            definition: Arc::clone(definition),
            version: Arc::clone(version),
            since: same.map_or_else(|| definition.revision(), |it| it.since),
            compiled: same.map_or_else(Arc::default, |it| Arc::clone(&it.compiled)),
        }
    }

    /// Whether it comes from exactly this state of the definition.
    pub(crate) fn is_from(&self, definition: &Arc<Stored>) -> bool {
        Arc::ptr_eq(&self.definition, definition)
    }

    /// The schema; None if the version has none.
    pub(crate) fn get(&self) -> Option<&Schema> {
        self.compiled().own.as_ref()
    }

    /// The schema of the storage version, if that is another one.
    pub(crate) fn storage(&self) -> Option<&Schema> {
        self.compiled().storage.as_ref()
    }

    /// The schema as it was written, with its descriptions.
    pub(crate) fn source(&self) -> Option<Value> {
        source(&mut self.versions()?, &self.version)
    }

    /// Tells the schema apart from all that the definition, or another one, had or will have.
    pub(crate) fn mark(&self) -> String {
        format!("{}@{}", self.definition.uid(), self.since)
    }

    /// Whether an object may look otherwise by this schema than it is stored.
    pub(crate) fn changes(&self, stored: &Stored) -> bool {
        let is_older = stored.revision() < self.since;
        (is_older && self.get().is_some()) || self.storage().is_some()
    }

    /// Makes of a stored object what is read by this schema: first as the storage version reads it,
    /// then without what the own version does not know.
    pub(crate) fn read(&self, object: &mut Value) {
        let Some(own) = self.get() else { return };
        let base = self.storage().unwrap_or(own);
        base.prune(object);
        base.default(object);
        if self.storage().is_some() {
            own.prune(object);
        }
    }

    fn compiled(&self) -> &Compiled {
        self.compiled
            .get_or_init(|| self.compile().unwrap_or_default())
    }

    fn compile(&self) -> Option<Compiled> {
        let mut versions = self.versions()?;
        let kept = versions.iter().find(|it| it["storage"] == true);
        let kept = kept.and_then(|it| it["name"].as_str()).map(str::to_owned);
        let own = source(&mut versions, &self.version);
        let other = kept.filter(|name| **name != *self.version);
        let other = other.and_then(|name| source(&mut versions, &name));
        let other = other.filter(|other| own.as_ref() != Some(other));
        let mut compiler = Compiler::default();
        Some(Compiled {
            own: own.map(|schema| compiler.compile(&schema)),
            storage: other.map(|schema| compiler.compile(&schema)),
        })
    }

    fn versions(&self) -> Option<Vec<Value>> {
        let spec = member(self.definition.json(), "spec")?;
        match serde_json::from_slice(member(spec, "versions")?).ok()? {
            Value::Array(versions) => Some(versions),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => None,
        }
    }
}

fn source(versions: &mut [Value], version: &str) -> Option<Value> {
    let own = versions.iter_mut().find(|it| it["name"] == *version)?;
    let schema = own.pointer_mut("/schema/openAPIV3Schema")?.take();
    schema.is_object().then_some(schema)
}

impl PartialEq for LazySchema {
    fn eq(&self, other: &Self) -> bool {
        self.version == other.version && Arc::ptr_eq(&self.definition, &other.definition)
    }
}
