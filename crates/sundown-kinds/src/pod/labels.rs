//! Labels and annotations of pods: ours, with the user's over them where that does no harm.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Context, WorkerPlace, recreate_hash};
use crate::PodTemplate;
use crate::constants::{
    ANNOTATION_FT_ENABLED, ANNOTATION_OPERATOR_VERSION, ANNOTATION_OVERWRITE_COMMAND,
    ANNOTATION_RECREATE_HASH, APPLICATION, CREATED_BY, HEAD_GROUP, LABEL_APPLICATION,
    LABEL_CLUSTER, LABEL_CREATED_BY, LABEL_GROUP, LABEL_HOST_INDEX, LABEL_IDENTIFIER,
    LABEL_IS_RAY_NODE, LABEL_NODE_TYPE, LABEL_REPLICA_INDEX, LABEL_REPLICA_NAME,
};
use crate::names::identifier;
use crate::ray_cluster::{HeadGroup, WorkerGroup};

type Texts = BTreeMap<String, String>;

/// The labels by which pods are found: nobody may change them.
const FIXED: [&str; 3] = [LABEL_NODE_TYPE, LABEL_GROUP, LABEL_CLUSTER];

pub(super) fn head(context: &Context<'_>, group: &HeadGroup) -> Value {
    json!(labels(context, HEAD_GROUP, &group.template, &group.labels))
}

pub(super) fn worker(context: &Context<'_>, group: &WorkerGroup, place: WorkerPlace<'_>) -> Value {
    let mut labels = labels(context, &group.name, &group.template, &group.labels);
    if context.settings.gates.ray_multi_host_indexing {
        labels.insert(LABEL_REPLICA_INDEX.into(), place.replica_index.to_string());
        if group.host_count > 1 {
            labels.insert(LABEL_REPLICA_NAME.into(), place.replica_name.into());
            labels.insert(LABEL_HOST_INDEX.into(), place.host_index.to_string());
        }
    }
    json!(labels)
}

fn labels(context: &Context<'_>, group: &str, template: &PodTemplate, own: &Texts) -> Texts {
    let cluster = &context.cluster.metadata.name;
    let mut labels: Texts = [
        (LABEL_IS_RAY_NODE, "yes"),
        (LABEL_CLUSTER, cluster),
        (LABEL_NODE_TYPE, context.node_type.as_str()),
        (LABEL_GROUP, group),
        (LABEL_IDENTIFIER, &identifier(cluster, context.node_type)),
        (LABEL_APPLICATION, APPLICATION),
        (LABEL_CREATED_BY, CREATED_BY),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    let users = texts(template, "labels").into_iter().chain(own.clone());
    labels.extend(users.filter(|(name, _)| !FIXED.contains(&name.as_str())));
    fill(&mut labels, &context.settings.default_pod_labels);
    labels
}

pub(super) fn head_annotations(context: &Context<'_>, group: &HeadGroup) -> Value {
    let mut annotations = annotations(context, &group.template);
    let cluster = context.cluster;
    let is_fault_tolerant = cluster.spec.is_fault_tolerant(&cluster.metadata);
    for (name, value) in [
        (ANNOTATION_FT_ENABLED, is_fault_tolerant.to_string()),
        (ANNOTATION_RECREATE_HASH, recreate_hash(&cluster.spec)),
        (
            ANNOTATION_OPERATOR_VERSION,
            context.settings.operator_version.clone(),
        ),
    ] {
        annotations.insert(name.into(), value);
    }
    json!(annotations)
}

pub(super) fn worker_annotations(context: &Context<'_>, group: &WorkerGroup) -> Value {
    json!(annotations(context, &group.template))
}

fn annotations(context: &Context<'_>, template: &PodTemplate) -> Texts {
    let mut annotations = texts(template, "annotations");
    if context
        .cluster
        .metadata
        .is_annotated(ANNOTATION_OVERWRITE_COMMAND)
    {
        annotations.insert(ANNOTATION_OVERWRITE_COMMAND.into(), "true".into());
    }
    fill(&mut annotations, &context.settings.default_pod_annotations);
    annotations
}

fn fill(texts: &mut Texts, defaults: &Texts) {
    for (name, value) in defaults {
        texts.entry(name.clone()).or_insert_with(|| value.clone());
    }
}

fn texts(template: &PodTemplate, member: &str) -> Texts {
    let own = template
        .0
        .get("metadata")
        .and_then(|metadata| metadata.get(member)?.as_object());
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    own.into_iter().flatten().filter_map(text).collect()
}
