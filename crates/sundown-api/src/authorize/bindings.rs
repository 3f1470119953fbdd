//! The stored bindings by those who hold them, followed write by write.
//!
//! A request asks for the bindings of one user and a few groups; looking through all of them would make
//! every request slower with each binding of the cluster. Rules are read when they are first asked for.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rpds::RedBlackTreeMapSync as Map;
use serde::Deserialize;
use sundown_model::{ObjectKey, Resource};
use sundown_schema::member;
use sundown_store::{Store, Stored};

use super::GROUP;
use super::rule::Rule;
use crate::User;
use crate::commit::Access;

/// All bindings and roles of a store.
#[derive(Debug, Clone)]
pub(crate) struct Bindings {
    users: Holders,
    groups: Holders,
    /// Each binding as it was entered, to be taken out again.
    entered: Map<ObjectKey, Arc<Binding>>,
    /// The rules of each role, read when they are first asked for.
    roles: Map<ObjectKey, Arc<OnceLock<Vec<Rule>>>>,
    /// Which state of them this is. A write that was decided on another one is decided again.
    access: Access,
}

/// By the name of a holder, then by namespace (empty: the whole cluster), then by the binding's name.
type Holders = Map<Arc<str>, Map<Arc<str>, Map<Arc<str>, Granted>>>;

/// A binding, and which of its subjects somebody is.
#[derive(Debug, Clone)]
pub(crate) struct Granted {
    pub(crate) binding: Arc<Binding>,
    subject: usize,
}

/// A `RoleBinding` or a `ClusterRoleBinding`.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(super) key: ObjectKey,
    pub(crate) role: ObjectKey,
    subjects: Vec<Subject>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Subject {
    kind: Box<str>,
    name: Box<str>,
    namespace: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RoleRef {
    kind: Box<str>,
    name: Box<str>,
}

/// Which of the four kinds a key is of.
enum Sort {
    Role,
    Binding,
}

impl Bindings {
    /// Reads a store.
    pub(crate) fn of(store: &Store) -> Self {
        let mut bindings = Self {
            users: Map::new_sync(),
            groups: Map::new_sync(),
            entered: Map::new_sync(),
            roles: Map::new_sync(),
            access: Access::default(),
        };
        for plural in [
            "roles",
            "clusterroles",
            "rolebindings",
            "clusterrolebindings",
        ] {
            for (key, stored) in store.of(&Resource::new(GROUP, plural)) {
                bindings.follow(key, Some(stored));
            }
        }
        bindings
    }

    /// Takes note of a write; of anything but roles and bindings there is nothing to note.
    pub(crate) fn follow(&mut self, key: &ObjectKey, stored: Option<&Arc<Stored>>) {
        let Some(sort) = sort(key) else {
            return;
        };
        self.access.0 += 1;
        match sort {
            Sort::Role => match stored {
                Some(_) => self.roles.insert_mut(key.clone(), Arc::default()),
                None => {
                    self.roles.remove_mut(key);
                }
            },
            Sort::Binding => {
                if let Some(old) = self.entered.get(key).cloned() {
                    self.take_out(&old);
                    self.entered.remove_mut(key);
                }
                if let Some(stored) = stored {
                    self.enter(Arc::new(Binding::read(key, stored)));
                }
            }
        }
    }

    /// Which state of the roles and bindings this is.
    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// What a user holds in the whole cluster, then what it holds in a namespace. A binding that names a
    /// user and one of its groups comes twice.
    pub(crate) fn held<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Granted> {
        let local = (!namespace.is_empty()).then(|| self.held_in(user, namespace));
        self.held_in(user, "").chain(local.into_iter().flatten())
    }

    fn held_in<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Granted> {
        let own = self.users.get(user.name.as_str());
        let groups = user.groups.iter();
        let groups = groups.filter_map(|group| self.groups.get(group.as_str()));
        own.into_iter()
            .chain(groups)
            .filter_map(move |places| places.get(namespace))
            .flat_map(|held| held.values())
    }

    /// The rules of a role; None if there is no such role.
    pub(crate) fn rules(&self, store: &Store, role: &ObjectKey) -> Option<&[Rule]> {
        let rules = self.roles.get(role)?;
        // The cell came with the write of the state that this store has.
        Some(rules.get_or_init(|| store.get(role).map(|it| read_rules(it)).unwrap_or_default()))
    }

    fn enter(&mut self, binding: Arc<Binding>) {
        let (namespace, name) = binding.place();
        for (subject, own) in binding.subjects.iter().enumerate() {
            let Some((holders, holder)) = self.holders(own, &binding) else {
                continue;
            };
            let mut places = holders.get(&*holder).cloned().unwrap_or_else(Map::new_sync);
            let mut held = places
                .get(&*namespace)
                .cloned()
                .unwrap_or_else(Map::new_sync);
            // The first of several subjects that mean the same is the one that reasons name.
            if held.get(&*name).is_none() {
                let granted = Granted {
                    binding: Arc::clone(&binding),
                    subject,
                };
                held.insert_mut(Arc::clone(&name), granted);
            }
            places.insert_mut(Arc::clone(&namespace), held);
            holders.insert_mut(holder, places);
        }
        self.entered.insert_mut(binding.key.clone(), binding);
    }

    fn take_out(&mut self, binding: &Binding) {
        let (namespace, name) = binding.place();
        for own in &binding.subjects {
            let Some((holders, holder)) = self.holders(own, binding) else {
                continue;
            };
            let Some(mut places) = holders.get(&*holder).cloned() else {
                continue;
            };
            if let Some(held) = places.get(&*namespace) {
                let held = held.remove(&*name);
                if held.is_empty() {
                    places.remove_mut(&*namespace);
                } else {
                    places.insert_mut(Arc::clone(&namespace), held);
                }
            }
            if places.is_empty() {
                holders.remove_mut(&*holder);
            } else {
                holders.insert_mut(holder, places);
            }
        }
    }

    /// Where a subject is entered, and by which name its bearer calls.
    fn holders(&mut self, own: &Subject, binding: &Binding) -> Option<(&mut Holders, Arc<str>)> {
        match &*own.kind {
            "User" => Some((&mut self.users, (*own.name).into())),
            "Group" => Some((&mut self.groups, (*own.name).into())),
            "ServiceAccount" => {
                let namespace = own.namespace_in(binding);
                let name = format!("system:serviceaccount:{namespace}:{}", own.name);
                (!namespace.is_empty()).then(|| (&mut self.users, name.into()))
            }
            _ => None,
        }
    }
}

impl Binding {
    /// Total: what cannot be read binds nothing to anybody.
    fn read(key: &ObjectKey, stored: &Stored) -> Self {
        let json = stored.json();
        let role = member(json, "roleRef").and_then(|it| serde_json::from_slice(it).ok());
        let role: RoleRef = role.unwrap_or_default();
        let (roles, cluster_roles) = ("roles", "clusterroles");
        let (role, is_known) = match &*role.kind {
            "Role" => {
                let roles = Resource::new(GROUP, roles);
                let role = ObjectKey::namespaced(&roles, key.namespace_str(), &role.name);
                (role, true)
            }
            kind => {
                let role = ObjectKey::cluster(&Resource::new(GROUP, cluster_roles), &role.name);
                (role, kind == "ClusterRole")
            }
        };
        let subjects = member(json, "subjects").filter(|_| is_known);
        let subjects = subjects.and_then(|it| serde_json::from_slice(it).ok());
        Self {
            key: key.clone(),
            role,
            subjects: subjects.unwrap_or_default(),
        }
    }

    /// The reference in the words of upstream's lister.
    pub(crate) fn missing_role(&self) -> String {
        let kind = if self.role.namespace.is_some() {
            "role"
        } else {
            "clusterrole"
        };
        format!("{kind}.{GROUP} {:?} not found", &*self.role.name)
    }

    fn place(&self) -> (Arc<str>, Arc<str>) {
        (self.key.namespace_str().into(), Arc::clone(&self.key.name))
    }
}

impl Subject {
    fn namespace_in<'a>(&'a self, binding: &'a Binding) -> &'a str {
        if self.namespace.is_empty() {
            binding.key.namespace_str()
        } else {
            &self.namespace
        }
    }
}

/// As upstream describes it: `RoleBinding "x/default" of ClusterRole "view" to User "jane"`.
impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding { key, role, .. } = &*self.binding;
        let name = &key.name;
        match &key.namespace {
            Some(namespace) => write!(f, "RoleBinding \"{name}/{namespace}\"")?,
            None => write!(f, "ClusterRoleBinding \"{name}\"")?,
        }
        let kind = if role.namespace.is_some() {
            "Role"
        } else {
            "ClusterRole"
        };
        write!(f, " of {kind} \"{}\" to ", role.name)?;
        let own = &self.binding.subjects[self.subject];
        match &*own.kind {
            "ServiceAccount" => {
                let namespace = own.namespace_in(&self.binding);
                write!(f, "ServiceAccount \"{}/{namespace}\"", own.name)
            }
            kind => write!(f, "{kind} \"{}\"", own.name),
        }
    }
}

fn sort(key: &ObjectKey) -> Option<Sort> {
    if key.resource.group() != GROUP {
        return None;
    }
    match key.resource.plural() {
        "roles" | "clusterroles" => Some(Sort::Role),
        "rolebindings" | "clusterrolebindings" => Some(Sort::Binding),
        _ => None,
    }
}

fn read_rules(role: &Stored) -> Vec<Rule> {
    let rules = member(role.json(), "rules").and_then(|it| serde_json::from_slice(it).ok());
    rules.unwrap_or_default()
}
