//! `pods/binding`: a scheduler names the node of a pod, once.

use serde_json::{Value, json};
use sundown_store::{Transaction, Write};

use crate::commit::{Answer, Commit};
use crate::document::{Document, whole_seconds};
use crate::failure::Failure;
use crate::registry::part_type;
use crate::route::Target;
use crate::{Cx, Request, Response, Server, Verdict};
use crate::{decode, dns, options, render};

/// Decides on a POST of a binding.
pub(crate) fn bind(
    server: &Server,
    target: &Target,
    request: &Request,
    cx: &Cx<'_>,
) -> Result<Verdict, Failure> {
    let dry_run = options::dry_run(request, "CreateOptions")?;
    let binding = decode::body(&part_type("", "Binding"), request)?.document;
    // Upstream has an older path, on which only the binding names the pod.
    let name = target.name.as_deref().unwrap_or(&binding.metadata.name);
    let ty = server.registry().find("", "v1", "pods");
    let ty = ty.ok_or_else(Failure::no_such_resource)?;
    if binding.metadata.name != name && !binding.metadata.name.is_empty() {
        let why = "name in URL does not match name in Binding object";
        return Err(Failure::bad_request(why));
    }
    check_target(&binding)?;
    let key = ty.key(target.namespace.as_deref(), name);
    let stored = server.store().get(&key);
    let stored = stored.ok_or_else(|| Failure::not_found(ty, name))?;
    let mut pod = Document::of(stored);
    check_pod(&pod, &binding)?;
    let node = binding.text_at(&["target", "name"]);
    pod.section("spec").insert("nodeName".into(), json!(node));
    pod.metadata
        .annotations
        .extend(binding.metadata.annotations.clone());
    pod.metadata.labels.extend(binding.metadata.labels.clone());
    let scheduled = json!({ "type": "PodScheduled", "status": "True" });
    set_condition(&mut pod, scheduled, cx);
    if dry_run {
        return Ok(Verdict::Answer(success()));
    }
    let transaction = Transaction {
        reads: vec![(key.clone(), Some(stored.revision()))],
        writes: vec![Write::Put {
            key,
            body: pod.encode(ty),
        }],
    };
    Ok(Verdict::Commit(Box::new(Commit::new(
        transaction,
        Answer::Fixed(success()),
    ))))
}

fn check_target(binding: &Document) -> Result<(), Failure> {
    let kind = binding.text_at(&["target", "kind"]);
    let name = binding.text_at(&["target", "name"]);
    if !matches!(kind, "" | "Node") {
        let known = "\"Node\", \"<empty>\"";
        return Err(Failure::unnamed(format!(
            "target.kind: Unsupported value: {kind:?}: supported values: {known}"
        )));
    }
    if name.is_empty() {
        return Err(Failure::unnamed("target.name: Required value"));
    }
    match dns::subdomain(name).first() {
        Some(why) => Err(Failure::unnamed(format!(
            "target.name: Invalid value: {name:?}: {why}"
        ))),
        None => Ok(()),
    }
}

fn check_pod(pod: &Document, binding: &Document) -> Result<(), Failure> {
    let name = pod.metadata.name.as_str();
    let refuse = |why: String| Err(Failure::conflict_as("pods/binding", name, &why));
    let (sent, own) = (&binding.metadata, &pod.metadata);
    if !sent.uid.is_empty() && sent.uid != own.uid {
        return refuse(format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {}",
            sent.uid, own.uid
        ));
    }
    if !sent.resource_version.is_empty() && sent.resource_version != own.resource_version {
        return refuse(format!(
            "Precondition failed: ResourceVersion in precondition: {}, ResourceVersion in object \
             meta: {}",
            sent.resource_version, own.resource_version
        ));
    }
    let node = pod.text_at(&["spec", "nodeName"]);
    if pod.is_deleting() {
        return refuse(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        ));
    }
    if !node.is_empty() {
        return refuse(format!("pod {name} is already assigned to node {node:?}"));
    }
    let gates = pod
        .at(&["spec", "schedulingGates"])
        .and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    Ok(())
}

/// Puts a condition into the status of a pod; its transition is now if its status is another one.
pub(super) fn set_condition(pod: &mut Document, mut condition: Value, cx: &Cx<'_>) {
    let conditions = pod
        .section("status")
        .entry("conditions")
        .or_insert(json!([]));
    let Some(list) = conditions.as_array_mut() else {
        return;
    };
    let old = list.iter().position(|own| own["type"] == condition["type"]);
    let since = old
        .map(|index| &list[index])
        .filter(|own| own["status"] == condition["status"])
        .map(|own| own["lastTransitionTime"].clone());
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] =
        since.unwrap_or_else(|| json!(whole_seconds(cx.now).to_string()));
    match old {
        Some(index) => list[index] = condition,
        None => list.push(condition),
    }
}

/// The answer of parts that have no object of their own.
pub(super) fn success() -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    render::response(201, status.to_string().into_bytes())
}
