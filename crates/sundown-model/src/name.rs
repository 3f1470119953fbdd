//! Names of things: resources, namespaces, objects, and the uid that tells two bearers of one name
//! apart. How a resource is reached (version, scope) is the catalog's business.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A group and the plural name of a resource in it; the same in every served version.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Resource(Arc<GroupPlural>);

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct GroupPlural {
    group: Box<str>,
    plural: Box<str>,
}

impl Resource {
    /// Names a resource; the core group is the empty string.
    pub fn new(group: &str, plural: &str) -> Self {
        Self(Arc::new(GroupPlural {
            group: group.into(),
            plural: plural.into(),
        }))
    }

    /// The API group, empty for the core group.
    pub fn group(&self) -> &str {
        &self.0.group
    }

    /// The plural name, as it stands in paths.
    pub fn plural(&self) -> &str {
        &self.0.plural
    }

    /// Whether this is the resource of a kind that the code knows by name.
    pub fn is(&self, kind: &KnownKind) -> bool {
        self.plural() == kind.plural && self.group() == kind.group
    }
}

// Written by hand for the pointer shortcut: keys of one resource share one allocation.
impl Ord for Resource {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) {
            Ordering::Equal
        } else {
            self.0.cmp(&other.0)
        }
    }
}

impl PartialOrd for Resource {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.plural())?;
        if self.group().is_empty() {
            Ok(())
        } else {
            write!(f, ".{}", self.group())
        }
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Resource {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Resource {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (plural, group) = text.split_once('.').unwrap_or((&text, ""));
        Ok(Self::new(group, plural))
    }
}

/// A kind whose content the code decides on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownKind {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
}

impl KnownKind {
    /// The resource of this kind.
    pub fn resource(&self) -> Resource {
        Resource::new(self.group, self.plural)
    }
}

macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_newtype! {
    /// The identity of one incarnation of an object.
    Uid
}

text_newtype! {
    /// The name of a namespace.
    Namespace
}

/// Where an object lives. Two incarnations share a key; only the uid tells them apart.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    pub resource: Resource,
    /// None for cluster-scoped resources.
    pub namespace: Option<Namespace>,
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key in a namespace.
    pub fn namespaced(resource: &Resource, namespace: &str, name: &str) -> Self {
        Self {
            resource: resource.clone(),
            namespace: Some(namespace.into()),
            name: name.into(),
        }
    }

    /// A key of a cluster-scoped resource.
    pub fn cluster(resource: &Resource, name: &str) -> Self {
        Self {
            resource: resource.clone(),
            namespace: None,
            name: name.into(),
        }
    }

    /// The namespace as text, empty for cluster-scoped objects.
    pub fn namespace_str(&self) -> &str {
        self.namespace.as_ref().map_or("", Namespace::as_str)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{}/{}/{}", self.resource, namespace, self.name),
            None => write!(f, "{}/{}", self.resource, self.name),
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
