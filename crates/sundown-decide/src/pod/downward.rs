//! What a pod may know about itself: fields and resources by name, for variables and files.

use serde_json::Value;

use super::launch::{Place, Trouble};
use super::view::{ContainerView, PodView};
use crate::json::text;
use crate::quantity;

/// The resources of which a container without a limit may have all that the node has, as in upstream's
/// `pkg/api/v1/resource/helpers.go`.
const BOUNDED_BY_NODE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// A pod and where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) pod: &'a PodView<'a>,
    pub(super) place: &'a Place<'a>,
}

/// The value of a field path.
///
/// Errors: there is no such field that a pod may know.
pub(super) fn field(seen: &Seen<'_>, path: &str) -> Result<String, Trouble> {
    let pod = seen.pod;
    let address = |it: Option<core::net::Ipv4Addr>| it.map(|it| it.to_string()).unwrap_or_default();
    let of = |pointer| {
        let found = pod.object.field(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    Ok(match path {
        "metadata.name" => pod.name().to_owned(),
        "metadata.namespace" => pod.namespace().to_owned(),
        "metadata.uid" => pod.uid.to_string(),
        "metadata.labels" => listed(pod.object.field("/metadata/labels")),
        "metadata.annotations" => listed(pod.object.field("/metadata/annotations")),
        "spec.nodeName" => pod.node.to_owned(),
        "spec.serviceAccountName" => match of("/spec/serviceAccountName") {
            name if name.is_empty() => "default".to_owned(),
            name => name,
        },
        "status.podIP" | "status.podIPs" => address(seen.place.pod_address),
        "status.hostIP" | "status.hostIPs" => address(seen.place.host_address),
        path => subscript(pod, path)
            .ok_or_else(|| Trouble::new(format!("unsupported fieldPath: {path}")))?,
    })
}

/// `metadata.labels['x']` and the same of annotations; a key that is not there is empty.
fn subscript(pod: &PodView<'_>, path: &str) -> Option<String> {
    let (map, rest) = path.split_once("['")?;
    let key = rest.strip_suffix("']")?;
    let pointer = match map {
        "metadata.labels" => "/metadata/labels",
        "metadata.annotations" => "/metadata/annotations",
        _ => return None,
    };
    let found = pod.object.field(pointer).map(|map| text(map, key));
    Some(found.unwrap_or_default().to_owned())
}

/// A map as files of the downward API show it.
fn listed(map: Option<&Value>) -> String {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    let lines = entries.map(|(key, value)| format!("{key}={}", quoted(value)));
    lines.collect::<Vec<_>>().join("\n")
}

fn quoted(value: &Value) -> String {
    format!("{:?}", value.as_str().unwrap_or_default())
}

/// The value of a resource of a container, divided and rounded up.
///
/// Errors: no such resource or container, or a text that is no quantity.
pub(super) fn resource(
    seen: &Seen<'_>,
    json: &Value,
    container: &ContainerView<'_>,
) -> Result<String, Trouble> {
    let (wanted, of) = (text(json, "resource"), text(json, "containerName"));
    let trouble = || Trouble::new(format!("unsupported container resource: {wanted}"));
    let (kind, name) = wanted.split_once('.').ok_or_else(trouble)?;
    if !matches!(kind, "limits" | "requests") {
        return Err(trouble());
    }
    let mut all = seen.pod.containers();
    let container = match of {
        "" => container,
        of => all
            .find(|it| &*it.name == of)
            .ok_or_else(|| Trouble::new(format!("container {of} not found")))?,
    };
    let amount = |kind: &str| {
        let found = container.json.pointer(&format!("/resources/{kind}/{name}"));
        found.and_then(scalar)
    };
    // Without a limit upstream gives what the node has; without a request, the limit or nothing.
    let of_node = || {
        let has_bound = kind == "limits" && BOUNDED_BY_NODE.contains(&name);
        let allocatable = seen.place.allocatable.filter(|_| has_bound)?;
        allocatable.get(name).and_then(scalar)
    };
    let is_some = |it: &String| kind != "limits" || quantity::milli(it) != Some(0);
    let amount = amount(kind)
        .or_else(|| amount("limits"))
        .filter(is_some)
        .or_else(of_node)
        .unwrap_or_else(|| "0".to_owned());
    let divisor = json.get("divisor").and_then(scalar);
    let divisor = divisor.filter(|it| quantity::milli(it) != Some(0));
    let divisor = divisor.unwrap_or_else(|| "1".to_owned());
    let milli = |text: &str| {
        quantity::milli(text)
            .ok_or_else(|| Trouble::new(format!("{text:?} of {wanted} is no quantity")))
    };
    let (amount, divisor) = (milli(&amount)?, milli(&divisor)?);
    let (whole, part) = (amount.div_euclid(divisor), amount.rem_euclid(divisor));
    Ok((whole + i128::from(part != 0)).to_string())
}

/// A quantity may stand as a number as well.
fn scalar(json: &Value) -> Option<String> {
    match json {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
