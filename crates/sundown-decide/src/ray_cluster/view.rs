//! A cluster together with what belongs to it.

use std::sync::Arc;

use serde_json::Value;
use sundown_kinds::names::{self, NodeType};
use sundown_kinds::ray_cluster::summary::{PodView, ServiceView};
use sundown_kinds::{RayCluster, Settings};
use sundown_model::{Cache, KnownKind, Object, ObjectKey, Sight};

use crate::kinds::{POD, RAY_CLUSTER, SERVICE};
use crate::ray::view::{Pod, service};
use crate::ray::{beside, is_owned, name_of};

/// All that a decision on a `RayCluster` looks at.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) object: &'a Object,
    pub(super) cluster: RayCluster,
    /// Its pods, terminating ones too, in the order of their names.
    pub(super) pods: Vec<Pod<'a>>,
    pub(super) head_service: Found<'a>,
    pub(super) settings: &'a Settings,
    pub(super) sight: Sight<'a>,
}

/// What bears a name.
#[derive(Debug, Clone)]
pub(super) enum Found<'a> {
    Nothing,
    Own(&'a Arc<Object>),
    /// Something that is not ours.
    Foreign(ObjectKey),
}

impl<'a> View<'a> {
    pub(super) fn of(
        object: &'a Object,
        cluster: RayCluster,
        settings: &'a Settings,
        sight: Sight<'a>,
    ) -> Self {
        let all = POD.resource();
        let near = |pod: &&Arc<Object>| pod.key().namespace == object.key().namespace;
        let own = sight
            .cache
            .of(&all)
            .filter(near)
            .filter(|it| is_owned(it, object));
        let pods = own.map(|pod| Pod::of(pod)).collect();
        let name = cluster.head_service_name();
        Self {
            head_service: find_service(object, &name, sight.cache),
            object,
            cluster,
            pods,
            settings,
            sight,
        }
    }

    /// The pods of one sort, terminating ones too.
    pub(super) fn of_type(&self, node_type: NodeType) -> impl Iterator<Item = &Pod<'a>> {
        let pods = self.pods.iter();
        pods.filter(move |pod| pod.view.node_type == Some(node_type))
    }

    pub(super) fn service(&self, name: &str) -> Found<'a> {
        find_service(self.object, name, self.sight.cache)
    }

    /// Whether some pod has this name: one of ours that goes, or anybody's.
    pub(super) fn is_taken(&self, pod: &str) -> bool {
        self.sight
            .cache
            .get(&beside(self.object.key(), &POD, pod))
            .is_some()
    }

    /// Why what a body describes could not be made when it was last tried.
    pub(super) fn refusal(&self, kind: &KnownKind, body: &Value) -> Option<&'a str> {
        let key = beside(self.object.key(), kind, name_of(body));
        self.sight.facts.refusal(&key).map(|it| it.message.as_str())
    }

    pub(super) fn head_service_view(&self) -> Option<ServiceView> {
        match &self.head_service {
            Found::Own(object) => Some(service(object)),
            Found::Nothing | Found::Foreign(_) => None,
        }
    }

    pub(super) fn pod_views(&self) -> Vec<PodView> {
        self.pods.iter().map(|pod| pod.view.clone()).collect()
    }
}

fn find_service<'a>(object: &Object, name: &str, cache: &'a Cache) -> Found<'a> {
    let key = beside(object.key(), &SERVICE, name);
    match cache.get(&key) {
        None => Found::Nothing,
        Some(found) if is_owned(found, object) => Found::Own(found),
        Some(_) => Found::Foreign(key),
    }
}

/// The clusters of which a service is called so. Their specs are not read for it: this is asked for every
/// change of every service.
pub(super) fn clusters_with_service(service: &ObjectKey, cache: &Cache) -> Vec<ObjectKey> {
    let custom = "/spec/headGroupSpec/headService/metadata/name";
    let is_named = |object: &Object| {
        let own = &object.key().name;
        let custom = object.field(custom).and_then(Value::as_str);
        custom == Some(&*service.name)
            || names::head_service(own) == *service.name
            || names::headless_service(own) == *service.name
    };
    clusters_near(service, cache, is_named)
}

/// The clusters whose template calls their head so. Other names of pods are made of the cluster's own.
pub(super) fn clusters_with_head(pod: &ObjectKey, cache: &Cache) -> Vec<ObjectKey> {
    let name = "/spec/headGroupSpec/template/metadata/name";
    let is_named = |object: &Object| {
        let name = object.field(name).and_then(Value::as_str);
        name.is_some_and(|name| name.eq_ignore_ascii_case(&pod.name))
    };
    clusters_near(pod, cache, is_named)
}

fn clusters_near(
    key: &ObjectKey,
    cache: &Cache,
    is_meant: impl Fn(&Object) -> bool,
) -> Vec<ObjectKey> {
    let all = RAY_CLUSTER.resource();
    let near = cache
        .of(&all)
        .filter(|it| it.key().namespace == key.namespace);
    near.filter(|it| is_meant(it))
        .map(|it| it.key().clone())
        .collect()
}
