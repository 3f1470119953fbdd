//! What the server says about itself: version, health, and what is served, in the legacy and in the
//! aggregated form.

mod storage_hash;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::registry::{Registry, Rules, Type};
use crate::render::response;
use crate::reviews::{REVIEWS, Review, VERSION};
use crate::{Request, Response, negotiate, tokens};

use storage_hash::storage_hash;

/// Must parse as a Kubernetes version: `kubectl version` fails on anything else.
const GIT_VERSION: &str = "v1.37.0+sundown";

/// The checks behind the health endpoints.
const HEALTH_CHECKS: [&str; 2] = ["ping", "store"];

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

/// `/healthz`, `/livez`, `/readyz`, each whole or one check of it: whoever answers is alive, and the
/// snapshot it answers from is the store.
pub(crate) fn health(request: &Request) -> Response {
    let mut parts = request.path.trim_matches('/').split('/');
    let probe = parts.next().unwrap_or("");
    match parts.next() {
        Some(check) if HEALTH_CHECKS.contains(&check) => text(200, "ok"),
        Some(_) => page_not_found(),
        None if request.param("verbose").is_some() => {
            let checks = HEALTH_CHECKS.map(|check| format!("[+]{check} ok\n"));
            text(200, &format!("{}{probe} check passed\n", checks.concat()))
        }
        None => text(200, "ok"),
    }
}

/// Adds what lets clients keep a document: 304 if they have this one already.
pub(crate) fn cacheable(mut response: Response, request: &Request) -> Response {
    let tag = format!("\"{:032X}\"", fingerprint(&response.body));
    if has_tag(request, &tag) {
        response.code = 304;
        response.body.clear();
    }
    response.headers.push(("etag", tag));
    response.headers.push(("vary", "Accept".to_owned()));
    response
        .headers
        .push(("cache-control", "public".to_owned()));
    response
}

/// Whether the client has the document of this tag already.
pub(crate) fn has_tag(request: &Request, tag: &str) -> bool {
    let known = request.if_none_match.as_deref().unwrap_or("");
    let mut known = known.split(',');
    known.any(|own| own.trim().trim_start_matches("W/") == tag)
}

/// FNV-1a of 128 bits: documents are our own, so nobody gains from a collision.
pub(crate) fn fingerprint(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
    })
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
        let groups = groups_with_reviews(registry);
        let named = groups.iter().filter(|(group, _)| !group.is_empty());
        let groups: Vec<Value> = named
            .map(|(group, versions)| group_json(group, versions))
            .collect();
        json_response(&json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups }))
    })
}

/// `/apis/GROUP`.
pub(crate) fn group(registry: &Registry, group: &str) -> Response {
    let groups = groups_with_reviews(registry);
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
    let types = registry.group_version(group, version);
    let mut resources: Vec<Value> = types
        .into_iter()
        .flat_map(|types| types.values())
        .flat_map(|ty| legacy_resources(ty))
        .collect();
    resources.extend(reviews_of(group, version).map(|review| {
        json!({
            "name": review.plural, "singularName": review.singular, "kind": review.kind,
            "namespaced": review.namespaced, "verbs": ["create"],
        })
    }));
    if resources.is_empty() {
        return page_not_found();
    }
    json_response(&json!({
        "kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": group_version_text(group, version), "resources": resources,
    }))
}

/// The groups of the registry and those of the reviews, which are not stored.
fn groups_with_reviews(registry: &Registry) -> BTreeMap<Arc<str>, Vec<Arc<str>>> {
    let mut groups = registry.groups();
    for review in &REVIEWS {
        let versions = groups.entry(review.group.into()).or_default();
        if !versions.iter().any(|own| **own == *VERSION) {
            versions.push(VERSION.into());
        }
    }
    groups
}

fn reviews_of(group: &str, version: &str) -> impl Iterator<Item = &'static Review> {
    let is_it = move |it: &&Review| it.group == group && version == VERSION;
    REVIEWS.iter().filter(is_it)
}

fn legacy_resources(ty: &Type) -> Vec<Value> {
    let plural = ty.resource.plural();
    let mut main = json!({
        "name": plural, "singularName": &*ty.singular, "namespaced": ty.namespaced,
        "kind": &*ty.kind, "verbs": ty.verbs(),
    });
    add_names(&mut main, ty);
    if let Some((group, version, kind)) = stored_as(ty) {
        main["storageVersionHash"] = storage_hash(group, version, kind).into();
    }
    let mut resources = vec![main];
    for part in parts(ty) {
        let mut resource = json!({
            "name": format!("{plural}/{}", part.name), "singularName": "",
            "namespaced": ty.namespaced, "kind": part.kind, "verbs": part.verbs,
        });
        if let Some((group, version)) = part.other {
            resource["group"] = group.into();
            resource["version"] = version.into();
        }
        resources.push(resource);
    }
    resources
}

/// Group, version and kind that objects are stored in; none for what is never stored.
fn stored_as(ty: &Type) -> Option<(&str, &str, &str)> {
    let (group, kind) = (ty.resource.group(), &*ty.kind);
    match (&ty.view, &ty.storage_version) {
        _ if ty.rules == Rules::Binding => None,
        (Some(view), _) => Some((view.resource.group(), view.version, view.kind)),
        (None, Some(version)) => Some((group, version, kind)),
        (None, None) if ty.is_custom() => None,
        // Upstream's storage of definitions goes by the name of their first version to this day.
        (None, None) if ty.rules == Rules::Definition => Some((group, "v1beta1", kind)),
        (None, None) => Some((group, &ty.version, kind)),
    }
}

fn aggregated(registry: &Registry, request: &Request, is_core: bool) -> Option<Response> {
    let content_type = negotiate::aggregated_discovery(request)?;
    let groups = groups_with_reviews(registry);
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
    let answer = Response {
        content_type,
        ..json_response(&body)
    };
    Some(cacheable(answer, request))
}

fn aggregated_group(registry: &Registry, group: &str, versions: &[Arc<str>]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            let types = registry.group_version(group, version).into_iter();
            let stored = types.flat_map(|types| types.values());
            let mut resources: Vec<Value> = stored.map(|ty| aggregated_resource(ty)).collect();
            resources.extend(reviews_of(group, version).map(aggregated_review));
            json!({
                "version": &**version, "freshness": "Current", "resources": resources,
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
        .map(|part| {
            // Upstream leaves it out for built-in kinds.
            let own = if ty.is_custom() {
                (ty.resource.group(), &*ty.version)
            } else {
                ("", "")
            };
            let (group, version) = part.other.unwrap_or(own);
            let kind = json!({ "group": group, "version": version, "kind": part.kind });
            json!({ "subresource": part.name, "responseKind": kind, "verbs": part.verbs })
        })
        .collect();
    if !subresources.is_empty() {
        resource["subresources"] = subresources.into();
    }
    resource
}

fn aggregated_review(review: &Review) -> Value {
    let scope = if review.namespaced {
        "Namespaced"
    } else {
        "Cluster"
    };
    json!({
        "resource": review.plural, "scope": scope, "singularResource": review.singular,
        "responseKind": { "group": review.group, "version": VERSION, "kind": review.kind },
        "verbs": ["create"],
    })
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

const PART_VERBS: &[&str] = &["get", "patch", "update"];

/// A part of an object that has a path of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartFact {
    pub(crate) name: &'static str,
    pub(crate) kind: String,
    /// Group and version of the kind, if they are not those of the object.
    pub(crate) other: Option<(&'static str, &'static str)>,
    pub(crate) verbs: &'static [&'static str],
}

/// The parts of a type, in upstream's order.
pub(crate) fn parts(ty: &Type) -> Vec<PartFact> {
    let own = |name, verbs| PartFact {
        name,
        kind: ty.kind.to_string(),
        other: None,
        verbs,
    };
    let other = |name, group, kind: &str, verbs| PartFact {
        name,
        kind: kind.to_owned(),
        other: Some((group, VERSION)),
        verbs,
    };
    let mut parts = Vec::new();
    if ty.has_status {
        parts.push(own("status", PART_VERBS));
    }
    if ty.scale.is_some() {
        parts.push(other("scale", "autoscaling", "Scale", PART_VERBS));
    }
    if ty.rules == Rules::Namespace {
        parts.push(own("finalize", &["update"]));
    }
    if ty.rules == Rules::Pod {
        parts.push(PartFact {
            kind: "Binding".to_owned(),
            ..own("binding", &["create"])
        });
        parts.push(other("eviction", "policy", "Eviction", &["create"]));
        parts.push(own("log", &["get"]));
    }
    if tokens::has_them(ty) {
        parts.push(other("token", tokens::GROUP, tokens::KIND, &["create"]));
    }
    if !ty.is_custom() {
        parts.sort_by_key(|part| part.name);
    }
    parts
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
