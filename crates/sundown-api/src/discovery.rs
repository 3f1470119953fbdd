//! What the server says about itself: version, health, and what is served, in the legacy and in the
//! aggregated form.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::registry::{Registry, Rules, Type};
use crate::render::response;
use crate::{Request, Response, negotiate};

/// Must parse as a Kubernetes version: `kubectl version` fails on anything else.
const GIT_VERSION: &str = "v1.37.0+sundown";

/// The answer on paths that nothing is behind; plain text, as upstream's router gives it.
pub(crate) fn page_not_found() -> Response {
    text(404, "404 page not found\n")
}

/// `/version`.
pub(crate) fn version() -> Response {
    json_response(&json!({
        "major": "1", "minor": "37", "gitVersion": GIT_VERSION, "gitCommit": "",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "",
        "compiler": "rustc", "platform": "linux/amd64",
    }))
}

/// `/healthz`, `/livez`, `/readyz`: whoever answers is alive.
pub(crate) fn health() -> Response {
    text(200, "ok")
}

/// `/api`.
pub(crate) fn core_versions(registry: &Registry, request: &Request) -> Response {
    aggregated(registry, request, true).unwrap_or_else(|| {
        json_response(&json!({
            "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [],
        }))
    })
}

/// `/apis`.
pub(crate) fn groups(registry: &Registry, request: &Request) -> Response {
    aggregated(registry, request, false).unwrap_or_else(|| {
        let groups = registry.groups();
        let named = groups.iter().filter(|(group, _)| !group.is_empty());
        let groups: Vec<Value> = named
            .map(|(group, versions)| group_json(group, versions))
            .collect();
        json_response(&json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups }))
    })
}

/// `/apis/GROUP`.
pub(crate) fn group(registry: &Registry, group: &str) -> Response {
    let groups = registry.groups();
    let Some(versions) = groups.get(group).filter(|_| !group.is_empty()) else {
        return page_not_found();
    };
    let mut json = group_json(group, versions);
    json["kind"] = "APIGroup".into();
    json["apiVersion"] = "v1".into();
    json_response(&json)
}

/// `/api/v1`, `/apis/GROUP/VERSION`.
pub(crate) fn group_version(registry: &Registry, group: &str, version: &str) -> Response {
    let Some(types) = registry.group_version(group, version) else {
        return page_not_found();
    };
    json_response(&json!({
        "kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": group_version_text(group, version),
        "resources": types.values().flat_map(|ty| legacy_resources(ty)).collect::<Vec<_>>(),
    }))
}

fn legacy_resources(ty: &Type) -> Vec<Value> {
    let plural = ty.resource.plural();
    let mut main = json!({
        "name": plural, "singularName": &*ty.singular, "namespaced": ty.namespaced,
        "kind": &*ty.kind, "verbs": ty.verbs(),
    });
    add_names(&mut main, ty);
    let mut resources = vec![main];
    for (part, verbs) in parts(ty) {
        resources.push(json!({
            "name": format!("{plural}/{part}"), "singularName": "", "namespaced": ty.namespaced,
            "kind": &*ty.kind, "verbs": verbs,
        }));
    }
    resources
}

fn aggregated(registry: &Registry, request: &Request, is_core: bool) -> Option<Response> {
    let content_type = negotiate::aggregated_discovery(request)?;
    let groups = registry.groups();
    let asked = groups
        .iter()
        .filter(|(group, _)| group.is_empty() == is_core);
    let items: Vec<Value> = asked
        .map(|(group, versions)| aggregated_group(registry, group, versions))
        .collect();
    let version = if content_type.contains("v2beta1") {
        "v2beta1"
    } else {
        "v2"
    };
    let body = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {}, "items": items,
    });
    Some(Response {
        content_type,
        ..json_response(&body)
    })
}

fn aggregated_group(registry: &Registry, group: &str, versions: &[Arc<str>]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            let types = registry.group_version(group, version).into_iter();
            let resources = types.flat_map(|types| types.values());
            json!({
                "version": &**version, "freshness": "Current",
                "resources": resources.map(|ty| aggregated_resource(ty)).collect::<Vec<_>>(),
            })
        })
        .collect();
    let metadata = if group.is_empty() {
        json!({})
    } else {
        json!({ "name": group })
    };
    json!({ "metadata": metadata, "versions": versions })
}

fn aggregated_resource(ty: &Type) -> Value {
    let kind = json!({
        "group": ty.resource.group(), "version": &*ty.version, "kind": &*ty.kind,
    });
    let mut resource = json!({
        "resource": ty.resource.plural(), "responseKind": kind, "scope": scope(ty),
        "singularResource": &*ty.singular, "verbs": ty.verbs(),
    });
    add_names(&mut resource, ty);
    let subresources: Vec<Value> = parts(ty)
        .into_iter()
        .map(|(part, verbs)| json!({ "subresource": part, "responseKind": kind, "verbs": verbs }))
        .collect();
    if !subresources.is_empty() {
        resource["subresources"] = subresources.into();
    }
    resource
}

fn add_names(resource: &mut Value, ty: &Type) {
    let texts = |texts: &[Arc<str>]| texts.iter().map(|text| Value::from(&**text)).collect();
    if !ty.short_names.is_empty() {
        resource["shortNames"] = texts(&ty.short_names);
    }
    if !ty.categories.is_empty() {
        resource["categories"] = texts(&ty.categories);
    }
}

fn parts(ty: &Type) -> Vec<(&'static str, &'static [&'static str])> {
    let status = ty
        .has_status
        .then_some(("status", &["get", "patch", "update"][..]));
    let is_namespace = ty.rules == Rules::Namespace;
    let finalize = is_namespace.then_some(("finalize", &["patch", "update"][..]));
    finalize.into_iter().chain(status).collect()
}

fn scope(ty: &Type) -> &'static str {
    if ty.namespaced {
        "Namespaced"
    } else {
        "Cluster"
    }
}

fn group_json(group: &str, versions: &[Arc<str>]) -> Value {
    let shown = |version: &Arc<str>| json!({ "groupVersion": group_version_text(group, version), "version": &**version });
    let versions: Vec<Value> = versions.iter().map(shown).collect();
    json!({ "name": group, "preferredVersion": versions.first(), "versions": versions })
}

fn group_version_text(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

fn json_response(json: &Value) -> Response {
    response(200, json.to_string().into_bytes())
}

fn text(code: u16, body: &str) -> Response {
    Response {
        code,
        content_type: "text/plain; charset=utf-8",
        warnings: Vec::new(),
        headers: Vec::new(),
        body: body.as_bytes().to_vec(),
    }
}
