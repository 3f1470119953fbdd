//! From a path to what it names. Which methods it takes is the server's business.

use std::sync::Arc;

use sundown_model::ObjectKey;

use crate::registry::{Registry, Rules, Type};

/// What a path names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Route<'a> {
    Version,
    Health,
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(&'a str),
    /// `/api/v1` and `/apis/GROUP/VERSION`.
    GroupVersion(&'a str, &'a str),
    /// `/openapi/v2`.
    OpenApiV2,
    OpenApiIndex,
    /// `/openapi/v3/api/v1` and `/openapi/v3/apis/GROUP/VERSION`.
    OpenApi(&'a str, &'a str),
    Resource(Target),
    /// A part of pods that upstream has and this server has not yet.
    NotYet(Arc<Type>, &'static str),
    /// A part that a custom resource of this name does not have.
    NoPart(Arc<Type>, String),
    /// A group and version that are served, but nothing in them.
    NoResource,
    Unknown,
}

/// What pods have upstream and not here; `docs/api-support.md` lists them.
const NOT_YET: [&str; 6] = [
    "attach",
    "ephemeralcontainers",
    "exec",
    "portforward",
    "proxy",
    "resize",
];

/// A collection, an object or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub(crate) ty: Arc<Type>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) part: Part,
}

/// Which part of an object a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
    Finalize,
    Scale,
    /// `pods/binding`.
    Binding,
    /// `pods/eviction`.
    Eviction,
    /// `pods/log`.
    Log,
}

impl Part {
    /// As it stands in paths and rules; empty for the object itself.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Finalize => "finalize",
            Self::Scale => "scale",
            Self::Binding => "binding",
            Self::Eviction => "eviction",
            Self::Log => "log",
        }
    }
}

impl Target {
    /// The key of the named object.
    pub(crate) fn key(&self, name: &str) -> ObjectKey {
        self.ty.key(self.namespace.as_deref(), name)
    }
}

/// Reads a path.
pub(crate) fn route<'a>(registry: &Registry, path: &'a str) -> Route<'a> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match segments.as_slice() {
        ["version"] => Route::Version,
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group(group),
        ["api", version] => Route::GroupVersion("", version),
        ["apis", group, version] => Route::GroupVersion(group, version),
        ["openapi", "v2"] => Route::OpenApiV2,
        ["openapi", "v3"] => Route::OpenApiIndex,
        ["openapi", "v3", "api", version] => Route::OpenApi("", version),
        ["openapi", "v3", "apis", group, version] => Route::OpenApi(group, version),
        ["api", version, rest @ ..] => in_group(registry, "", version, rest),
        ["apis", group, version, rest @ ..] => in_group(registry, group, version, rest),
        _ => Route::Unknown,
    }
}

fn in_group<'a>(registry: &Registry, group: &str, version: &str, rest: &[&str]) -> Route<'a> {
    let route = resource(registry, group, version, rest);
    // Groups of custom resources have nothing between them and the end of the chain.
    if route == Route::Unknown && registry.is_built_in_group(group, version) {
        return Route::NoResource;
    }
    route
}

fn resource<'a>(registry: &Registry, group: &str, version: &str, rest: &[&str]) -> Route<'a> {
    let find = |plural: &str| registry.find(group, version, plural);
    // `/namespaces/NAME/status` is a part of a namespace, since no resource is called `status`.
    if let ["namespaces", namespace, plural, rest @ ..] = rest
        && let Some(ty) = find(plural)
    {
        return if ty.namespaced {
            target(ty, Some(namespace), rest)
        } else {
            Route::Unknown
        };
    }
    match rest {
        [plural, rest @ ..] => match find(plural) {
            // Objects of namespaced types have no path without their namespace.
            Some(ty) if ty.namespaced && !rest.is_empty() => Route::Unknown,
            Some(ty) => target(ty, None, rest),
            None => Route::Unknown,
        },
        [] => Route::Unknown,
    }
}

fn target<'a>(ty: &Arc<Type>, namespace: Option<&str>, rest: &[&str]) -> Route<'a> {
    let (name, part) = match rest {
        [] => (None, Part::Main),
        [name] => (Some((*name).to_owned()), Part::Main),
        [name, "status"] if ty.has_status => (Some((*name).to_owned()), Part::Status),
        [name, "finalize"] if ty.rules == Rules::Namespace => {
            (Some((*name).to_owned()), Part::Finalize)
        }
        [name, "scale"] if ty.scale.is_some() => (Some((*name).to_owned()), Part::Scale),
        [name, "binding"] if ty.rules == Rules::Pod => (Some((*name).to_owned()), Part::Binding),
        [name, "eviction"] if ty.rules == Rules::Pod => (Some((*name).to_owned()), Part::Eviction),
        [name, "log"] if ty.rules == Rules::Pod => (Some((*name).to_owned()), Part::Log),
        [_, part, ..] if ty.rules == Rules::Pod && NOT_YET.contains(part) => {
            let part = NOT_YET.into_iter().find(|own| own == part);
            return Route::NotYet(Arc::clone(ty), part.unwrap_or_default());
        }
        // Upstream asks the definition before it looks for the object.
        [name, ..] if ty.is_custom() => return Route::NoPart(Arc::clone(ty), (*name).to_owned()),
        _ => return Route::Unknown,
    };
    Route::Resource(Target {
        ty: Arc::clone(ty),
        namespace: namespace.map(str::to_owned),
        name,
        part,
    })
}
