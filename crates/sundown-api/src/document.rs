//! An object as the verbs work on it: metadata with types, everything else as it came.
//!
//! Decoding keeps what upstream's `ObjectMeta` knows and drops the rest; whether the values are
//! allowed is checked by `validate`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sundown_model::Uid;
use sundown_store::{Body, Parts, Stored};

use crate::facts::facts;
use crate::failure::Failure;
use crate::go_json;
use crate::registry::Type;

/// Objects nested deeper are refused: the parser stops at 128, and what is stored must always be
/// readable again, also inside a watch event or a list.
pub(crate) const DEPTH_MAX: usize = 100;

/// So much of a body that is no object is repeated to its sender.
const SUMMARY_BYTES_MAX: usize = 30;

/// How Go prints the type that kind and version are looked for in.
const TYPE_META: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// An object. Its apiVersion and kind are those of the type it is served as.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Document {
    pub(crate) metadata: Metadata,
    /// All other members of the top level.
    pub(crate) rest: Map<String, Value>,
}

/// The metadata that the server keeps. managedFields are not kept: there is no server-side apply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) creation_timestamp: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deletion_grace_period_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deletion_timestamp: Option<Timestamp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) finalizers: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) generate_name: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) generation: i64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) owner_references: Vec<OwnerReference>,
    /// Never serialised: the store stamps it.
    #[serde(skip_serializing)]
    pub(crate) resource_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
}

/// One entry of metadata.ownerReferences, as sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OwnerReference {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) controller: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) block_owner_deletion: Option<bool>,
}

impl Document {
    /// The object that the store holds.
    pub(crate) fn of(stored: &Stored) -> Self {
        let value = serde_json::from_slice(stored.json()).expect("stored bytes are our own JSON");
        Self::read(value).expect("stored metadata was written from these types")
    }

    /// A stored object that was changed on the way.
    pub(crate) fn of_value(value: Value) -> Self {
        Self::read(value).expect("stored metadata was written from these types")
    }

    /// Reads an object that a client sent or a patch made.
    ///
    /// Errors: another kind or version than the type's, or metadata of wrong types.
    pub(crate) fn decode(ty: &Type, value: Value) -> Result<Self, Failure> {
        if let Value::Object(map) = &value {
            Self::check_type(ty, map)?;
        }
        if depth(&value) > DEPTH_MAX {
            return Err(Failure::bad_request("exceeded max depth"));
        }
        Self::read(value).map_err(|error| undecodable(ty, &error.to_string()))
    }

    /// Reads an object from a request body.
    pub(crate) fn parse(ty: &Type, body: &[u8]) -> Result<Self, Failure> {
        let value = serde_json::from_slice::<Value>(body);
        let why = match &value {
            Err(_) => go_json::syntax_error(body),
            Ok(Value::Object(_)) => return Self::decode(ty, value.unwrap_or_default()),
            Ok(other) => format!(
                "json: cannot unmarshal {} into Go value of type {TYPE_META}",
                go_json::name_of(other)
            ),
        };
        let why = format!("couldn't get version/kind; json parse error: {why}");
        Err(unrecognized(ty, &why, body))
    }

    /// Refuses an object that says it is of another type.
    pub(crate) fn check_type(ty: &Type, value: &Map<String, Value>) -> Result<(), Failure> {
        let text = |member: &str| value.get(member).and_then(Value::as_str).unwrap_or("");
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        // Upstream's decoder fills in the type of built-in kinds, and of nothing else.
        if kind.is_empty() && ty.is_custom() {
            let raw = Value::Object(value.clone()).to_string();
            let why = format!("Object 'Kind' is missing in '{raw}'");
            return Err(unrecognized(ty, &why, raw.as_bytes()));
        }
        let expected = ty.api_version();
        if api_version != expected && (ty.is_custom() || !api_version.is_empty()) {
            if !ty.is_custom() {
                return Err(another_type(ty, api_version, kind));
            }
            return Err(Failure::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version \
                 ({expected})"
            )));
        }
        if kind != &*ty.kind && !kind.is_empty() && !ty.is_custom() {
            return Err(another_type(ty, &expected, kind));
        }
        if kind != &*ty.kind && !kind.is_empty() {
            let version = &ty.version;
            return Err(Failure::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {}: the kind in the data does \
                 not match the expected kind",
                ty.kind
            )));
        }
        Ok(())
    }

    fn read(value: Value) -> serde_json::Result<Self> {
        // An object is taken as it is: reading it as a map would build every value of it anew.
        let mut rest: Map<String, Value> = if let Value::Object(map) = value {
            map
        } else {
            serde_json::from_value(value)?
        };
        rest.remove("apiVersion");
        rest.remove("kind");
        let mut metadata = rest.remove("metadata").unwrap_or_default();
        if metadata.is_null() {
            metadata = Value::Object(Map::new());
        }
        strip_nulls(&mut metadata);
        let mut metadata: Metadata = serde_json::from_value(metadata)?;
        metadata.creation_timestamp = metadata.creation_timestamp.map(whole_seconds);
        metadata.deletion_timestamp = metadata.deletion_timestamp.map(whole_seconds);
        Ok(Self { metadata, rest })
    }

    /// The object as JSON, resourceVersion included where there is one.
    pub(crate) fn to_value(&self, ty: &Type) -> Value {
        let mut value = match &ty.view {
            Some(view) => view.served(ty, self.rest.clone()),
            None => self.rest.clone(),
        };
        let mut metadata = serde_json::to_value(&self.metadata).expect("metadata is plain data");
        if !self.metadata.resource_version.is_empty() {
            metadata["resourceVersion"] = self.metadata.resource_version.as_str().into();
        }
        value.insert("metadata".into(), metadata);
        value.insert("apiVersion".into(), ty.api_version().into());
        value.insert("kind".into(), (*ty.kind).into());
        Value::Object(value)
    }

    /// The form that the store stamps and keeps.
    pub(crate) fn encode(&self, ty: &Type) -> Body {
        let api_version = ty.stored_api_version();
        let parts = Parts {
            api_version: &api_version,
            kind: &ty.kind,
            uid: &Uid::from(self.metadata.uid.as_str()),
            labels: &self.metadata.labels,
            metadata: &self.metadata,
            rest: &self.rest,
        };
        Body::encode(&parts).expect("metadata is plain data")
    }

    /// Whether DELETE was already answered for this object.
    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The same of what the store holds. Only its metadata is read: a definition is long.
    pub(crate) fn is_going(stored: &Stored) -> bool {
        Self::deletion_at(stored).is_some()
    }

    /// The `deletionTimestamp` of what the store holds.
    pub(crate) fn deletion_at(stored: &Stored) -> Option<Timestamp> {
        let metadata: Metadata = serde_json::from_slice(stored.metadata_json())
            .expect("stored metadata was written from these types");
        metadata.deletion_timestamp
    }

    /// The value at a path of members; None if any is missing.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Value> {
        let (first, others) = path.split_first()?;
        others
            .iter()
            .try_fold(self.rest.get(*first)?, |value, member| value.get(member))
    }

    /// The text at a path of members; empty if there is none.
    pub(crate) fn text_at(&self, path: &[&str]) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or("")
    }

    /// A member of the top level as a map, made if missing or of another type.
    pub(crate) fn section(&mut self, member: &str) -> &mut Map<String, Value> {
        let value = self.rest.entry(member).or_insert(Value::Null);
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        value.as_object_mut().expect("made an object above")
    }

    /// Sets a member of the top level, or removes it.
    pub(crate) fn replace(&mut self, member: &str, value: Option<Value>) {
        match value {
            Some(value) => self.rest.insert(member.into(), value),
            None => self.rest.remove(member),
        };
    }
}

/// A built-in kind was expected, and this one sent.
fn another_type(ty: &Type, api_version: &str, kind: &str) -> Failure {
    let version = api_version.rsplit('/').next().unwrap_or("");
    Failure::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {}: {}",
        ty.kind,
        unconverted(ty, api_version, kind)
    ))
}

/// Why Go's decoder makes no object of a built-in kind out of another type: it tries to convert what
/// it knows.
pub(crate) fn unconverted(ty: &Type, api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if facts().kind(group, version, kind).is_none() {
        return format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \
             \"pkg/runtime/scheme.go:111\""
        );
    }
    let own = ty.resource.group().split('.').next().unwrap_or("");
    let own = if own.is_empty() { "core" } else { own };
    format!(
        "converting ({version}.{kind}) to ({own}.{}): unknown conversion",
        ty.kind
    )
}

/// How deep a value is nested; plain values have depth 1.
///
/// Assumes: the value was parsed, or built from parsed values within `DEPTH_MAX`.
pub(crate) fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Object(map) => map.values().map(depth).max(),
        Value::Array(list) => list.iter().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    1 + deepest.unwrap_or(0)
}

/// The instant with the precision of the wire.
pub(crate) fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).expect("the seconds of a timestamp are in range")
}

fn unrecognized(ty: &Type, why: &str, body: &[u8]) -> Failure {
    let (start, dots) = match body.get(..SUMMARY_BYTES_MAX) {
        Some(start) if body.len() > SUMMARY_BYTES_MAX => (start, " ..."),
        _ => (body, ""),
    };
    // Upstream shows what begins as an object, and anything else as hexadecimal digits.
    let shown = match start.first() {
        None => "<empty>".into(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start
            .iter()
            .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}")),
    };
    let shown = format!("{shown}{dots}");
    Failure::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why} ({shown})",
        ty.kind
    ))
}

fn undecodable(ty: &Type, why: &str) -> Failure {
    Failure::bad_request(format!(
        "{} in version \"{}\" cannot be handled as a {}: {why}",
        ty.kind, ty.version, ty.kind
    ))
}

/// Go decodes null as the zero value, and so does this: in metadata, its maps and its references.
fn strip_nulls(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|_, value| !value.is_null());
        map.values_mut().for_each(strip_nulls);
    } else if let Some(list) = value.as_array_mut() {
        list.iter_mut().for_each(strip_nulls);
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(number: &i64) -> bool {
    *number == 0
}
