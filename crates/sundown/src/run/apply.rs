//! Brings the objects of a file to the server: created, or found as they should be. A job that is there
//! with the same content is joined; one with other content is nobody's to overwrite.

use http::Method;
use kube::Client;
use serde::Serialize;
use serde_json::Value;
use sundown_decide::ray_job::ANNOTATION_READER;
use sundown_model::path::part;

use super::manifest;
use crate::complaint::Complaint;
use crate::kubectl::Kubectl;
use crate::objects::{self, Known, text};

/// What Sundown serves of Ray.
const RAY_VERSION: &str = "ray.io/v1";
const RAY_KINDS: [&str; 2] = ["RayJob", "RayCluster"];

/// An object that is there now.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Applied {
    /// As kubectl names it, such as `configmap/code`.
    pub(super) object: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    pub(super) how: How,
    /// Where it is on the server.
    #[serde(skip)]
    pub(super) path: String,
    #[serde(skip)]
    pub(super) value: Value,
}

/// How it came to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum How {
    Created,
    /// It was there with other content, and has this one now.
    Configured,
    /// It was there with this content.
    Unchanged,
}

/// Where objects of a kind are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// Without a namespace: of the whole server.
    collection: String,
    namespace: Option<String>,
}

/// What an object is applied as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The job that is followed.
    Job,
    /// Something that it needs.
    Beside,
}

/// Why an object is not there.
#[derive(Debug)]
pub(super) enum ApplyError {
    /// Nobody answered: it may be there or not, and asking again tells.
    Away(Complaint),
    /// It was refused, or asking again would not tell.
    Refused(Complaint),
}

/// Where objects are applied.
#[derive(Clone)]
pub(super) struct Server<'a> {
    pub(super) client: Client,
    /// Makes the commands that users are told.
    pub(super) kubectl: &'a Kubectl,
    /// Of objects that name none.
    pub(super) namespace: &'a str,
}

/// Applies one object.
pub(super) async fn apply(
    server: &Server<'_>,
    object: &Value,
    role: Role,
) -> Result<Applied, ApplyError> {
    let place = place(server, object).await?;
    let client = &server.client;
    let mut object = object.clone();
    if let Some(namespace) = &place.namespace {
        object["metadata"]["namespace"] = Value::from(namespace.clone());
    }
    let created = create(client, &place, &read_along(&object), "").await;
    match created {
        Ok(value) => Ok(applied(&place, value, How::Created)),
        Err(error) if objects::code(&error) == Some(409) => {
            meet(server, &place, &object, role).await
        }
        // A second one of a name that the server makes would be another object.
        Err(error) if text(&object, "/metadata/name").is_empty() => {
            Err(ApplyError::Refused(complaint(&object, &error)))
        }
        Err(error) => Err(refused(&object, &error)),
    }
}

/// A `RayJob` is told that its logs are read, so that what it ran on does not go before its last lines.
fn read_along(object: &Value) -> Value {
    let mut object = object.clone();
    if Known::of(&object) == Some(Known::RayJob) {
        object["metadata"]["annotations"][ANNOTATION_READER] = Value::from("run");
    }
    object
}

/// Asks the server whether it would take an object, before anything else is created.
pub(super) async fn check(server: &Server<'_>, object: &Value) -> Result<(), ApplyError> {
    let place = place(server, object).await?;
    match create(&server.client, &place, object, "&dryRun=All").await {
        // The namespace may be one of the objects of the file.
        Err(error) if !matches!(objects::code(&error), Some(404 | 409)) => {
            Err(refused(object, &error))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

async fn create(
    client: &Client,
    place: &Place,
    object: &Value,
    more: &str,
) -> Result<Value, kube::Error> {
    let path = format!("{}?fieldValidation=Strict{more}", place.collection);
    objects::send(client, Method::POST, &path, object).await
}

/// The object is there already.
async fn meet(
    server: &Server<'_>,
    place: &Place,
    wanted: &Value,
    role: Role,
) -> Result<Applied, ApplyError> {
    let client = &server.client;
    let name = part(text(wanted, "/metadata/name"));
    let path = format!("{}/{name}", place.collection);
    let failed = |error: &kube::Error| refused(wanted, error);
    let found = objects::send(client, Method::GET, &path, &Value::Null).await;
    let found = found.map_err(|error| failed(&error))?;
    let difference = difference(&found, wanted);
    if !found["metadata"]["deletionTimestamp"].is_null() {
        let error = format!("{} is being deleted", manifest::name(wanted));
        let complaint = Complaint::new(error).help("try again when it is deleted");
        return Err(ApplyError::Refused(complaint));
    }
    match (difference, role) {
        (None, _) => Ok(applied(place, found, How::Unchanged)),
        (Some(field), Role::Job) => {
            let complaint = other_content(server.kubectl, wanted, place, &field);
            Err(ApplyError::Refused(complaint))
        }
        (Some(_), Role::Beside) => {
            let path = format!("{path}?fieldValidation=Strict");
            let patched = objects::send(client, Method::PATCH, &path, wanted).await;
            let patched = patched.map_err(|error| failed(&error))?;
            Ok(applied(place, patched, How::Configured))
        }
    }
}

fn other_content(kubectl: &Kubectl, wanted: &Value, place: &Place, field: &str) -> Complaint {
    let name = manifest::name(wanted);
    let delete = kubectl.command("delete", place.namespace.as_deref(), &[&name]);
    Complaint::new(format!("{name} already exists with different content"))
        .at(field.to_owned())
        .help(format!("delete it first: {delete}"))
        .help("or give yours another name; with metadata.generateName each run has its own")
}

fn applied(place: &Place, value: Value, how: How) -> Applied {
    let name = part(text(&value, "/metadata/name"));
    let path = format!("{}/{name}", place.collection);
    Applied {
        object: manifest::name(&value),
        namespace: place.namespace.clone(),
        how,
        path,
        value,
    }
}

/// Where objects of this kind are, as the server tells.
async fn place(server: &Server<'_>, object: &Value) -> Result<Place, ApplyError> {
    let version = text(object, "/apiVersion");
    let root = if version.contains('/') {
        format!("/apis/{version}")
    } else {
        format!("/api/{version}")
    };
    let unknown = || {
        if let Some(complaint) = unsupported(object) {
            return ApplyError::Refused(complaint);
        }
        let kind = text(object, "/kind");
        let complaint = Complaint::new(format!("the server has no kind {kind} in {version}"));
        let complaint = complaint.at(manifest::name(object));
        let list = server.kubectl.command("api-resources", None, &[]);
        ApplyError::Refused(complaint.help(format!("see what it has: {list}")))
    };
    let known = objects::send(&server.client, Method::GET, &root, &Value::Null).await;
    let known = known.map_err(|error| match objects::code(&error) {
        Some(404) => unknown(),
        _ => refused(object, &error),
    })?;
    let all = objects::list_in(&known, "/resources").iter();
    let mut all = all.filter(|it| it["kind"] == object["kind"] && !text(it, "/name").contains('/'));
    let found = all.next().ok_or_else(unknown)?;
    let plural = text(found, "/name");
    if found["namespaced"] != true {
        return Ok(Place {
            collection: format!("{root}/{plural}"),
            namespace: None,
        });
    }
    let own = text(object, "/metadata/namespace");
    let namespace = if own.is_empty() {
        server.namespace
    } else {
        own
    };
    Ok(Place {
        collection: format!("{root}/namespaces/{}/{plural}", part(namespace)),
        namespace: Some(namespace.to_owned()),
    })
}

/// What is told about a kind of Ray, or a version of one, that Sundown does not serve.
fn unsupported(object: &Value) -> Option<Complaint> {
    let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
    if version.split('/').next() != Some("ray.io") {
        return None;
    }
    let complaint = if RAY_KINDS.contains(&kind) && version != RAY_VERSION {
        Complaint::new(format!("{kind} is not supported in {version}"))
            .help(format!("set apiVersion: {RAY_VERSION}"))
    } else {
        Complaint::new(format!("{kind} is not supported by Sundown yet"))
            .help("supported in ray.io/v1: RayJob, RayCluster (see docs/ray.md)")
    };
    Some(complaint.at(manifest::name(object)))
}

fn refused(object: &Value, error: &kube::Error) -> ApplyError {
    let complaint = complaint(object, error);
    match error {
        kube::Error::Api(_) => ApplyError::Refused(complaint),
        _ => ApplyError::Away(complaint),
    }
}

/// The server said no: with the fields, if it names them.
fn complaint(object: &Value, error: &kube::Error) -> Complaint {
    let name = manifest::name(object);
    let kube::Error::Api(status) = error else {
        return Complaint::new(format!("cannot apply {name}")).because(error);
    };
    let complaint =
        Complaint::new(format!("the server refuses {name}")).because_of(&status.message);
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let fields: Vec<&str> = causes
        .map(|cause| &*cause.field)
        // Upstream's word for an object as a whole.
        .filter(|it| !it.is_empty() && *it != "<nil>")
        .collect();
    match fields.first() {
        Some(field) => complaint.at((*field).to_owned()),
        None => complaint,
    }
}

/// Where an object differs from what is wanted; what the server added is no difference.
fn difference(found: &Value, wanted: &Value) -> Option<String> {
    let parts = wanted.as_object()?.iter();
    let mut parts = parts.filter(|(name, _)| !["metadata", "status"].contains(&&***name));
    let own = |name: &str| {
        let pointer = format!("/metadata/{name}");
        let wanted = wanted.pointer(&pointer)?;
        let found = found.pointer(&pointer).unwrap_or(&Value::Null);
        differs(found, wanted, &format!("metadata.{name}"))
    };
    parts
        .find_map(|(name, value)| differs(&found[name], value, name))
        .or_else(|| own("labels"))
        .or_else(|| own("annotations"))
}

fn differs(found: &Value, wanted: &Value, path: &str) -> Option<String> {
    match (found, wanted) {
        // What is written as nothing is not there.
        (Value::Null, Value::Null) => None,
        (Value::Null, Value::Object(wanted)) if wanted.is_empty() => None,
        (Value::Null, Value::Array(wanted)) if wanted.is_empty() => None,
        (Value::Object(found), Value::Object(wanted)) => wanted.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            differs(found.get(name).unwrap_or(&Value::Null), value, &path)
        }),
        (Value::Array(found), Value::Array(wanted)) if found.len() == wanted.len() => {
            let pairs = found.iter().zip(wanted).enumerate();
            let mut pairs =
                pairs.map(|(at, (found, wanted))| differs(found, wanted, &format!("{path}[{at}]")));
            pairs.find_map(|it| it)
        }
        (found, wanted) => (found != wanted).then(|| path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An old manifest was told that `RayJob` is not supported, which it is.
    #[test]
    fn a_kind_of_ray_that_is_not_served_is_told_with_what_is() {
        let cases = [
            (
                "v1",
                "RayService",
                "RayService is not supported by Sundown yet",
            ),
            (
                "v1",
                "RayCronJob",
                "RayCronJob is not supported by Sundown yet",
            ),
            (
                "v1alpha1",
                "RayService",
                "RayService is not supported by Sundown yet",
            ),
            (
                "v1alpha1",
                "RayJob",
                "RayJob is not supported in ray.io/v1alpha1",
            ),
            (
                "v1alpha1",
                "RayCluster",
                "RayCluster is not supported in ray.io/v1alpha1",
            ),
        ];
        for (version, kind, expect) in cases {
            let object = json!({"apiVersion": format!("ray.io/{version}"), "kind": kind,
                "metadata": {"name": "x"}});
            let told = unsupported(&object).map(|it| it.text()).unwrap_or_default();
            assert!(told.starts_with(&format!("error: {expect}\n")), "{told}");
            let help = if expect.contains("yet") {
                "= help: supported in ray.io/v1: RayJob, RayCluster"
            } else {
                "= help: set apiVersion: ray.io/v1\n"
            };
            assert!(told.contains(help), "{told}");
        }
        assert!(unsupported(&json!({"apiVersion": "apps/v1", "kind": "Deployment"})).is_none());
    }

    #[test]
    fn what_the_server_added_is_no_difference_and_what_the_file_says_is() {
        let wanted = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"},
            "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}}});
        let mut found = wanted.clone();
        found["metadata"]["uid"] = json!("u");
        found["spec"]["completions"] = json!(1);
        found["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = json!("Always");
        assert_eq!(difference(&found, &wanted), None);
        found["spec"]["template"]["spec"]["containers"][0]["image"] = json!("alpine");
        let expect = "spec.template.spec.containers[0].image";
        assert_eq!(difference(&found, &wanted).as_deref(), Some(expect));
        let labelled = json!({"metadata": {"labels": {"a": "b"}}});
        assert_eq!(
            difference(&found, &labelled).as_deref(),
            Some("metadata.labels")
        );
    }
}
