//! Objects as the API server shows them, for commands: requests by kind, and what can be read off them.

use http::Method;
use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};
use sundown_model::path::part;

/// How often an object is looked at again that somebody changes at the same time.
const DELETE_TRIES_MAX: usize = 20;

/// A kind that commands know more of than its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Known {
    RayJob,
    RayCluster,
    Job,
    Pod,
    Service,
}

impl Known {
    /// In the order in which they are told.
    pub(crate) const ALL: [Self; 5] = [
        Self::RayJob,
        Self::RayCluster,
        Self::Job,
        Self::Pod,
        Self::Service,
    ];

    /// The kind of an object, by its own words.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let group = text(object, "/apiVersion").split('/').next();
        let group = group.unwrap_or_default();
        match (group, text(object, "/kind")) {
            ("ray.io", "RayJob") => Some(Self::RayJob),
            ("ray.io", "RayCluster") => Some(Self::RayCluster),
            ("batch", "Job") => Some(Self::Job),
            ("v1", "Pod") => Some(Self::Pod),
            ("v1", "Service") => Some(Self::Service),
            _ => None,
        }
    }

    /// As kubectl names it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::RayJob => "rayjob",
            Self::RayCluster => "raycluster",
            Self::Job => "job",
            Self::Pod => "pod",
            Self::Service => "service",
        }
    }

    /// Where all of a namespace are, or of the whole server.
    pub(crate) fn path(self, namespace: Option<&str>) -> String {
        let (root, plural) = match self {
            Self::RayJob => ("/apis/ray.io/v1", "rayjobs"),
            Self::RayCluster => ("/apis/ray.io/v1", "rayclusters"),
            Self::Job => ("/apis/batch/v1", "jobs"),
            Self::Pod => ("/api/v1", "pods"),
            Self::Service => ("/api/v1", "services"),
        };
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{}/{plural}", part(namespace)),
            None => format!("{root}/{plural}"),
        }
    }
}

/// What has not come to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Unfinished {
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) state: String,
}

impl Unfinished {
    /// By what the server shows of an object.
    pub(crate) fn of(kind: Known, object: &Value) -> Self {
        Self {
            kind: kind.word(),
            namespace: text(object, "/metadata/namespace").to_owned(),
            name: text(object, "/metadata/name").to_owned(),
            state: state(kind, object),
        }
    }
}

/// A text in an object; empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or("")
}

/// The elements of a list in an object.
pub(crate) fn list_in<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Whether a condition of this type holds.
pub(crate) fn has_condition(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some()
}

/// The condition of this type, if it holds.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = list_in(object, "/status/conditions").iter();
    let mut held = conditions.filter(|it| it["type"] == kind && it["status"] == "True");
    held.next()
}

/// Where an object stands, in a word.
pub(crate) fn state(kind: Known, object: &Value) -> String {
    let known = |pointer| text(object, pointer).to_owned();
    let word = match kind {
        Known::RayJob => match known("/status/jobDeploymentStatus") {
            state if state == "Running" => format!("{state} {}", known("/status/jobStatus")),
            state => state,
        },
        Known::RayCluster => known("/status/state"),
        Known::Job if has_condition(object, "Complete") => "Complete".to_owned(),
        Known::Job if has_condition(object, "Failed") => "Failed".to_owned(),
        Known::Job if object.pointer("/spec/suspend") == Some(&Value::Bool(true)) => {
            "Suspended".to_owned()
        }
        Known::Job => "Running".to_owned(),
        Known::Pod => known("/status/phase"),
        Known::Service => String::new(),
    };
    let word = word.trim_end().to_owned();
    if word.is_empty() {
        "Pending".to_owned()
    } else {
        word
    }
}

/// Whether more is to be expected of an object by itself.
pub(crate) fn is_unfinished(kind: Known, object: &Value) -> bool {
    let state = state(kind, object);
    let has_ended = match kind {
        Known::RayJob => {
            let ends = ["Complete", "Failed", "ValidationFailed", "Suspended"];
            ends.contains(&&*state)
        }
        Known::Job => ["Complete", "Failed", "Suspended"].contains(&&*state),
        Known::Pod => ["Succeeded", "Failed"].contains(&&*state),
        Known::RayCluster | Known::Service => true,
    };
    !has_ended
}

/// All jobs and pods that have not come to their end.
pub(crate) async fn unfinished(client: &Client) -> Result<Vec<Unfinished>, kube::Error> {
    let mut found = Vec::new();
    for kind in [Known::RayJob, Known::Job, Known::Pod] {
        let all = list(client, kind, None).await?;
        let open = all.iter().filter(|object| is_unfinished(kind, object));
        found.extend(open.map(|object| Unfinished::of(kind, object)));
    }
    Ok(found)
}

/// All objects of a kind; none if the server does not know it.
pub(crate) async fn list(
    client: &Client,
    kind: Known,
    namespace: Option<&str>,
) -> Result<Vec<Value>, kube::Error> {
    let path = kind.path(namespace);
    let answer = send(client, Method::GET, &path, &Value::Null).await;
    match answer {
        Ok(mut list) => match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        },
        Err(error) if is_missing(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// One request with a body in JSON; patches are merge patches.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<Value, kube::Error> {
    let media = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = match body {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    };
    let request = http::Request::builder().method(method).uri(path);
    let request = request.header("content-type", media).body(body);
    let request = request.map_err(kube::Error::HttpError)?;
    client.request(request).await
}

/// Deletes this very object, as it was just seen: one of the same name, or one that somebody changed
/// meanwhile, is looked at again first. That it is not there is success.
pub(crate) async fn delete(
    client: &Client,
    path: &str,
    uid: &str,
    options: &Value,
) -> Result<(), kube::Error> {
    let mut tries = DELETE_TRIES_MAX;
    loop {
        let seen = match send(client, Method::GET, path, &Value::Null).await {
            Ok(seen) if text(&seen, "/metadata/uid") == uid => seen,
            Ok(_) => return Ok(()),
            Err(error) if is_missing(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut body = options.clone();
        body["preconditions"] = json!({
            "uid": uid, "resourceVersion": text(&seen, "/metadata/resourceVersion"),
        });
        tries -= 1;
        match send(client, Method::DELETE, path, &body).await {
            Ok(_) => return Ok(()),
            Err(error) if is_missing(&error) => return Ok(()),
            Err(error) if code(&error) == Some(409) && tries > 0 => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether the server said that there is no such thing.
pub(crate) fn is_missing(error: &kube::Error) -> bool {
    code(error) == Some(404)
}

/// The status code of a refusal; None if nobody answered.
pub(crate) fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_not_come_to_its_end_is_known_by_its_status() {
        let complete = json!([{"type": "Complete", "status": "True"}]);
        let cases = [
            (Known::Pod, json!({"status": {"phase": "Pending"}}), true),
            (Known::Pod, json!({"status": {"phase": "Failed"}}), false),
            (Known::Job, json!({}), true),
            (Known::Job, json!({"spec": {"suspend": true}}), false),
            (
                Known::Job,
                json!({"status": {"conditions": complete}}),
                false,
            ),
            (Known::RayJob, json!({}), true),
            (
                Known::RayJob,
                json!({"status": {"jobDeploymentStatus": "Retrying"}}),
                true,
            ),
            (
                Known::RayJob,
                json!({"status": {"jobDeploymentStatus": "Failed"}}),
                false,
            ),
            (Known::RayCluster, json!({}), false),
        ];
        for (kind, object, expect) in cases {
            assert_eq!(is_unfinished(kind, &object), expect, "{kind:?} {object}");
        }
    }
}
