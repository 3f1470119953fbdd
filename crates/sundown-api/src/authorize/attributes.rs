//! What a request asks for, as upstream reads it from method and path (endpoints/request/requestinfo.go).
//!
//! The path alone decides: whether such a resource is served is found out later, by those who may.

use crate::route::Target;
use crate::{Method, Request, User, options};

/// What roles are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attributes<'a> {
    pub(crate) user: &'a User,
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// The whole path; rules look at it where this is not about a resource.
    pub(crate) path: &'a str,
    pub(crate) is_resource: bool,
}

/// Parts of a namespace; whatever else follows its name is a resource in it.
const OF_NAMESPACES: [&str; 2] = ["status", "finalize"];

impl<'a> Attributes<'a> {
    /// Reads a request.
    pub(crate) fn of(request: &'a Request) -> Self {
        let path = Self::of_path(request);
        let segments: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        let (group, rest) = match segments.as_slice() {
            ["api", _, rest @ ..] if !rest.is_empty() => ("", rest),
            ["apis", group, _, rest @ ..] if !rest.is_empty() => (*group, rest),
            _ => return path,
        };
        let (special, rest) = match rest {
            [verb @ ("watch" | "proxy"), rest @ ..] if !rest.is_empty() => (Some(*verb), rest),
            _ => (None, rest),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, part, ..] if OF_NAMESPACES.contains(part) => {
                (*namespace, rest)
            }
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            ["namespaces", namespace] => (*namespace, rest),
            _ => ("", rest),
        };
        let at = |index: usize| rest.get(index).copied().unwrap_or("");
        let in_path = at(1);
        let is_list = request.method == Method::Get && in_path.is_empty() && special.is_none();
        let name = if is_list {
            selected_name(request)
        } else {
            in_path
        };
        Self {
            verb: special.unwrap_or_else(|| verb(request, in_path, name)),
            group,
            resource: at(0),
            subresource: if special == Some("proxy") { "" } else { at(2) },
            namespace,
            name,
            is_resource: true,
            ..path
        }
    }

    fn of_path(request: &'a Request) -> Self {
        let verb = match request.method {
            Method::Get => "get",
            Method::Post => "post",
            Method::Put => "put",
            Method::Patch => "patch",
            Method::Delete => "delete",
        };
        Self {
            user: &request.user,
            verb,
            group: "",
            resource: "",
            subresource: "",
            namespace: "",
            name: "",
            path: &request.path,
            is_resource: false,
        }
    }

    /// Something that a verb does to one object, asked besides the request itself.
    pub(crate) fn on(user: &'a User, verb: &'a str, group: &'a str, resource: &'a str) -> Self {
        Self {
            user,
            verb,
            group,
            resource,
            subresource: "",
            namespace: "",
            name: "",
            path: "",
            is_resource: true,
        }
    }

    /// The resource with its part, as rules name it.
    pub(crate) fn combined(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// Whether the router understands the same by the path.
    pub(crate) fn is_about(&self, target: &Target) -> bool {
        let resource = &target.ty.resource;
        let name = target.name.as_deref();
        // The namespace of a namespace is itself.
        let is_namespace = (resource.group(), resource.plural()) == ("", "namespaces");
        let namespace = target.namespace.as_deref();
        let namespace = namespace.or_else(|| name.filter(|_| is_namespace));
        self.is_resource
            && (self.group, self.resource) == (resource.group(), resource.plural())
            && self.subresource == target.part.name()
            && self.namespace == namespace.unwrap_or("")
            && name.is_none_or(|name| self.name == name)
    }
}

fn verb(request: &Request, in_path: &str, name: &str) -> &'static str {
    match request.method {
        Method::Post => "create",
        Method::Put => "update",
        Method::Patch => "patch",
        Method::Delete if name.is_empty() => "deletecollection",
        Method::Delete => "delete",
        Method::Get if !in_path.is_empty() => "get",
        // A flag that cannot be read is refused later.
        Method::Get if options::flag(request, "watch").is_ok_and(|it| it != Some(true)) => "list",
        Method::Get => "watch",
    }
}

/// A list of one name is a question about that name.
fn selected_name(request: &Request) -> &str {
    let rules = request.param("fieldSelector").unwrap_or("").split(',');
    let mut names = rules.filter_map(|rule| {
        let (field, value) = rule.trim().split_once('=')?;
        let is_plain =
            |text: &&str| !text.contains(['/', '%', '\\']) && !matches!(*text, "." | "..");
        let value = value.strip_prefix('=').unwrap_or(value);
        (field == "metadata.name").then_some(value).filter(is_plain)
    });
    names.next().unwrap_or("")
}
