//! `/scale`: the replicas of an object as an `autoscaling/v1` Scale, for whatever type names the
//! paths of its replicas.
//!
//! A Scale is a view: it is read from the object and written back into it, and the object takes the
//! way of every other update. Which types have one is in the registry.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::commit::Commit;
use crate::decode::{self, Sent};
use crate::document::Document;
use crate::failure::Failure;
use crate::field::{Errors, FieldError};
use crate::registry::{Type, part_type};
use crate::route::Target;
use crate::update::{Update, check_place, check_uid};
use crate::{Cx, Request, Response, Server, Verdict};
use crate::{list, patch};

/// Where the replicas of a type are. Paths as definitions write them: `.spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: Arc<str>,
    pub(crate) status_replicas: Arc<str>,
    /// A text, a label selector or a map of labels.
    pub(crate) label_selector: Option<Arc<str>>,
}

/// Decides on a GET.
pub(crate) fn get(server: &Server, target: &Target, request: &Request) -> Result<Verdict, Failure> {
    let (paths, answer) = (paths(target)?, list::get(server, target, request)?);
    let object = serde_json::from_slice(&answer.body).unwrap_or_default();
    if target.ty.is_custom() && at(&object, &paths.spec_replicas).is_none() {
        let path = &paths.spec_replicas;
        let why = format!("the spec replicas field \"{path}\" does not exist");
        return Err(Failure::internal(&why));
    }
    Ok(Verdict::Answer(paths.answer(answer)))
}

/// Decides on a PUT.
pub(crate) fn put(
    server: &Server,
    target: &Target,
    request: &Request,
    cx: &Cx<'_>,
) -> Result<Verdict, Failure> {
    let sent = decode::body(&scale_type(), request)?;
    let update = Update::begin(server, target, request, "UpdateOptions")?;
    finish(update, sent, cx)
}

/// Decides on a PATCH.
pub(crate) fn patch(
    server: &Server,
    target: &Target,
    request: &Request,
    cx: &Cx<'_>,
) -> Result<Verdict, Failure> {
    let scale_type = scale_type();
    // Strategic patches are for built-in kinds, and the object is what counts.
    let fact = decode::fact_of(&target.ty).and_then(|_| decode::fact_of(&scale_type));
    let patch = patch::Patch::read(fact, request)?;
    let update = Update::begin(server, target, request, "PatchOptions")?;
    let mut value = paths(target)?.scale(&update.old.to_value(&target.ty));
    patch.apply(&mut value)?;
    let sent = decode::patched(&scale_type, value, request)?;
    finish(update, sent, cx)
}

fn finish(mut update: Update<'_>, sent: Sent, cx: &Cx<'_>) -> Result<Verdict, Failure> {
    let (target, scale) = (update.target, sent.document);
    let paths = paths(target)?.clone();
    update.shown.warnings.extend(sent.warnings);
    check_place(target, &scale)?;
    let replicas = scale.at(&["spec", "replicas"]).cloned();
    check(target, &update.old, &scale, replicas.as_ref())?;
    let mut new = update.old.clone();
    put_at(
        &mut new.rest,
        &paths.spec_replicas,
        replicas.unwrap_or(json!(0)),
    );
    Ok(match update.finish(new, cx)? {
        Verdict::Answer(response) => Verdict::Answer(paths.answer(response)),
        Verdict::Commit(commit) => Verdict::Commit(Box::new(commit.scaled(paths))),
        other @ (Verdict::Watch(_) | Verdict::Log(_)) => other,
    })
}

fn check(
    target: &Target,
    old: &Document,
    scale: &Document,
    replicas: Option<&Value>,
) -> Result<(), Failure> {
    let (ty, name) = (&target.ty, &old.metadata.name);
    let count = replicas.and_then(Value::as_i64).unwrap_or(0);
    if count < 0 && !ty.is_custom() {
        let error =
            FieldError::invalid("spec.replicas", count, "must be greater than or equal to 0");
        return Err(Failure::invalid(
            &scale_type(),
            name,
            &Errors::from([error]),
        ));
    }
    let sent = &scale.metadata;
    if !sent.resource_version.is_empty() && sent.resource_version != old.metadata.resource_version {
        return Err(Failure::modified(ty, name));
    }
    check_uid(target, scale, old)
}

impl ScalePaths {
    /// The paths of most built-in kinds that have replicas.
    pub(crate) fn usual() -> Self {
        Self::new(".spec.replicas", ".status.replicas", Some(".spec.selector"))
    }

    /// Paths as a definition names them.
    pub(crate) fn new(spec: &str, status: &str, selector: Option<&str>) -> Self {
        Self {
            spec_replicas: spec.into(),
            status_replicas: status.into(),
            label_selector: selector.map(Arc::from),
        }
    }

    /// The Scale of an object.
    pub(crate) fn scale(&self, object: &Value) -> Value {
        let number = |path: &str| at(object, path).and_then(Value::as_i64).unwrap_or(0);
        let mut metadata = Map::new();
        for member in [
            "name",
            "namespace",
            "uid",
            "resourceVersion",
            "creationTimestamp",
        ] {
            if let Some(value) = object["metadata"].get(member) {
                metadata.insert(member.to_owned(), value.clone());
            }
        }
        let (replicas, current) = (number(&self.spec_replicas), number(&self.status_replicas));
        let mut spec = json!({});
        if replicas != 0 {
            spec["replicas"] = replicas.into();
        }
        let mut status = json!({ "replicas": current });
        let selector = self
            .label_selector
            .as_deref()
            .and_then(|path| at(object, path));
        let selector = selector.map(selector_text).unwrap_or_default();
        if !selector.is_empty() {
            status["selector"] = selector.into();
        }
        json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
            "spec": spec, "status": status,
        })
    }

    /// An answer with an object as one with its Scale; refusals stay.
    pub(crate) fn answer(&self, mut response: Response) -> Response {
        if response.code < 300
            && let Ok(object) = serde_json::from_slice(&response.body)
        {
            response.body = self.scale(&object).to_string().into_bytes();
        }
        response
    }
}

impl Commit {
    /// The same write, answered by the Scale of the object.
    fn scaled(self, paths: Arc<ScalePaths>) -> Self {
        let answer = crate::commit::Answer::Scale {
            of: Box::new(self.answer),
            paths,
        };
        Self { answer, ..self }
    }
}

fn scale_type() -> Type {
    part_type("autoscaling", "Scale")
}

fn paths(target: &Target) -> Result<&Arc<ScalePaths>, Failure> {
    let paths = target.ty.scale.as_ref();
    paths.ok_or_else(Failure::no_such_resource)
}

fn members(path: &str) -> impl Iterator<Item = &str> {
    path.trim_start_matches('.').split('.')
}

fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    members(path).try_fold(object, |value, member| value.get(member))
}

fn put_at(map: &mut Map<String, Value>, path: &str, value: Value) {
    let mut members: Vec<&str> = members(path).collect();
    let last = members.pop().unwrap_or("");
    let mut map = map;
    for member in members {
        let own = map.entry(member).or_insert(Value::Null);
        if !own.is_object() {
            *own = json!({});
        }
        map = own.as_object_mut().expect("made an object above");
    }
    map.insert(last.to_owned(), value);
}

/// A selector as clients write it in a query.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let is_plain = selector
        .as_object()
        .is_some_and(|map| map.values().all(Value::is_string));
    let labels = if is_plain {
        selector
    } else {
        &selector["matchLabels"]
    };
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", text(value))));
    }
    let expressions = selector["matchExpressions"].as_array();
    for expression in expressions.into_iter().flatten() {
        let key = text(&expression["key"]);
        let values = expression["values"].as_array().into_iter().flatten();
        let mut values: Vec<String> = values.map(text).collect();
        values.sort();
        let values = values.join(",");
        let shown = match expression["operator"].as_str().unwrap_or("") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        };
        parts.push((key, shown));
    }
    parts.sort_by(|one, other| one.0.cmp(&other.0));
    let shown: Vec<String> = parts.into_iter().map(|(_, shown)| shown).collect();
    shown.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_shown_as_clients_write_them() {
        let selector = json!({
            "matchLabels": { "b": "c" },
            "matchExpressions": [
                { "key": "a", "operator": "In", "values": ["y", "x"] },
                { "key": "c", "operator": "DoesNotExist" },
            ],
        });
        assert_eq!(selector_text(&selector), "a in (x,y),b=c,!c");
        assert_eq!(selector_text(&json!({ "a": "b" })), "a=b");
        assert_eq!(selector_text(&json!("x=y")), "x=y");
        assert_eq!(selector_text(&json!({})), "");
    }

    #[test]
    fn replicas_are_found_and_put_by_their_paths() {
        let paths = ScalePaths::new(".spec.worker.count", ".status.workers", None);
        let mut object = json!({ "metadata": { "name": "a", "labels": {} }, "spec": {} });
        let map = object.as_object_mut().unwrap();
        put_at(map, &paths.spec_replicas, json!(4));
        assert_eq!(
            paths.scale(&object),
            json!({
                "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": { "name": "a" },
                "spec": { "replicas": 4 }, "status": { "replicas": 0 },
            })
        );
    }
}
