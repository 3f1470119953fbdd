//! The schema of one version of a definition, compiled when it is first asked for.
//!
//! Until then a definition costs no more than its stored bytes. A write that leaves the spec of a
//! definition alone (its status changes several times in its life) leaves the schema alone too.

use std::collections::BTreeMap;
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
    /// Those of the other versions that differ, by their names.
    others: BTreeMap<String, Schema>,
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

    /// The schema of another version; None if it is the same as this one.
    pub(crate) fn of(&self, version: &str) -> Option<&Schema> {
        if *version == *self.version {
            return None;
        }
        self.compiled().others.get(version)
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
        (is_older && self.get().is_some()) || self.of(version_of(stored.api_version())).is_some()
    }

    /// Makes of a stored object what is read by this schema: first as the version reads it that it
    /// was stored in, then without what the own version does not know.
    pub(crate) fn read(&self, object: &mut Value) {
        let Some(own) = self.get() else { return };
        let stored_in = version_of(object["apiVersion"].as_str().unwrap_or_default());
        let other = self.of(stored_in);
        let base = other.unwrap_or(own);
        base.prune(object);
        base.default(object);
        if other.is_some() {
            own.prune(object);
        }
    }

    fn compiled(&self) -> &Compiled {
        self.compiled
            .get_or_init(|| self.compile().unwrap_or_default())
    }

    fn compile(&self) -> Option<Compiled> {
        let mut versions = self.versions()?;
        let own = source(&mut versions, &self.version);
        let mut compiler = Compiler::default();
        let mut others = BTreeMap::new();
        for version in &mut versions {
            let Some(name) = version["name"].as_str().map(str::to_owned) else {
                continue;
            };
            let schema = source(std::slice::from_mut(version), &name);
            let other = schema.filter(|other| own.as_ref() != Some(other));
            if let Some(other) = other.filter(|_| *name != *self.version) {
                others.insert(name, compiler.compile(&other));
            }
        }
        Some(Compiled {
            own: own.map(|schema| compiler.compile(&schema)),
            others,
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

fn version_of(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
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
