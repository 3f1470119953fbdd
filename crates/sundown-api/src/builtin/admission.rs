//! What upstream's admission plugins add to objects: priorities, tolerations, taints and the
//! finalizers that protect storage in use. Who takes those off is the controller
//! `storage_protection`, as upstream.

use serde_json::{Value, json};
use sundown_model::{ObjectKey, Resource};

use super::set;
use crate::Server;
use crate::document::Document;
use crate::failure::Failure;
use crate::registry::Type;

const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// How long a pod stays on a node that is gone, as upstream's plugin has it.
const TOLERATION_SECONDS: u32 = 300;
/// The classes that every cluster has.
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// Adds what the plugins add.
///
/// Errors: a plugin refuses the object.
pub(super) fn admit(server: &Server, ty: &Type, object: &mut Document) -> Result<(), Failure> {
    match (ty.resource.group(), &*ty.kind) {
        ("", "Pod") => {
            prioritise(server, ty, object)?;
            tolerate(object);
        }
        ("", "Node") => taint(object),
        ("", "PersistentVolumeClaim") => {
            protect(object, CLAIM_PROTECTION);
            classify(server, object);
        }
        ("", "PersistentVolume") => protect(object, VOLUME_PROTECTION),
        _ => {}
    }
    Ok(())
}

/// Adds what the plugins add on an update: a client that sends its manifest again leaves out what was
/// filled in when the object was created.
pub(super) fn admit_update(ty: &Type, old: &Document, new: &mut Document) {
    if (ty.resource.group(), &*ty.kind) != ("", "Pod") {
        return;
    }
    for member in ["priority", "preemptionPolicy"] {
        if let Some(kept) = old.at(&["spec", member]) {
            set(new.section("spec"), member, kept.clone());
        }
    }
    tolerate(new);
}

fn protect(object: &mut Document, finalizer: &str) {
    let finalizers = &mut object.metadata.finalizers;
    if !finalizers.iter().any(|own| own == finalizer) {
        finalizers.push(finalizer.to_owned());
    }
}

/// A claim that names no class gets the default one, if there is one.
fn classify(server: &Server, object: &mut Document) {
    let classes = Resource::new("storage.k8s.io", "storageclasses");
    let default = server.store().of(&classes).find(|(_, stored)| {
        let annotations = Document::of(stored).metadata.annotations;
        annotations
            .get(DEFAULT_CLASS)
            .is_some_and(|text| text == "true")
    });
    if let Some((key, _)) = default {
        set(
            object.section("spec"),
            "storageClassName",
            json!(&*key.name),
        );
    }
}

/// A new node is not ready.
fn taint(object: &mut Document) {
    let taint = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" });
    let spec = object.section("spec");
    set(spec, "taints", json!([]));
    if let Some(taints) = spec.get_mut("taints").and_then(Value::as_array_mut)
        && !taints.contains(&taint)
    {
        taints.push(taint);
    }
}

fn tolerate(object: &mut Document) {
    let spec = object.section("spec");
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let list = spec.get("tolerations").and_then(Value::as_array);
        let is_tolerated = list.into_iter().flatten().any(|own| {
            let text = |member: &str| own[member].as_str().unwrap_or("");
            matches!(text("key"), "")
                && text("operator") == "Exists"
                && matches!(text("effect"), "" | "NoExecute")
                || text("key") == key && matches!(text("effect"), "" | "NoExecute")
        });
        if is_tolerated {
            continue;
        }
        set(spec, "tolerations", json!([]));
        if let Some(list) = spec.get_mut("tolerations").and_then(Value::as_array_mut) {
            list.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}

fn prioritise(server: &Server, ty: &Type, object: &mut Document) -> Result<(), Failure> {
    let wanted = object.text_at(&["spec", "priorityClassName"]).to_owned();
    let class = if wanted.is_empty() {
        default_priority(server)
    } else {
        let known = named_priority(server, &wanted);
        let name = object.metadata.name.as_str();
        let why = format!("no PriorityClass with name {wanted} was found");
        Some(known.ok_or_else(|| Failure::forbidden(ty, name, &why, None))?)
    };
    let (name, value, policy) = class.unwrap_or_default();
    let spec = object.section("spec");
    let sent = spec.get("priority").and_then(Value::as_i64);
    if sent.is_some_and(|sent| sent != value) {
        let why = format!(
            "the integer value of priority ({}) must not be provided in pod spec; priority admission \
             controller computed {value} from the given PriorityClass name",
            sent.unwrap_or(0)
        );
        let name = object.metadata.name.as_str();
        return Err(Failure::forbidden(ty, name, &why, None));
    }
    if !name.is_empty() {
        set(spec, "priorityClassName", json!(name));
    }
    spec.insert("priority".into(), json!(value));
    let policy = if policy.is_empty() {
        "PreemptLowerPriority".to_owned()
    } else {
        policy
    };
    set(spec, "preemptionPolicy", json!(policy));
    let sent = spec["preemptionPolicy"].as_str().unwrap_or("");
    if sent != policy {
        let why = format!(
            "the string value of PreemptionPolicy ({sent}) must not be provided in pod spec; priority \
             admission controller computed {policy} from the given PriorityClass name"
        );
        let name = object.metadata.name.as_str();
        return Err(Failure::forbidden(ty, name, &why, None));
    }
    Ok(())
}

/// Name, value and policy of a class.
type Priority = (String, i64, String);

fn named_priority(server: &Server, name: &str) -> Option<Priority> {
    let classes = Resource::new("scheduling.k8s.io", "priorityclasses");
    let stored = server.store().get(&ObjectKey::cluster(&classes, name));
    if let Some(stored) = stored {
        return Some(priority(name, &Document::of(stored)));
    }
    let system = SYSTEM_CLASSES.iter().find(|(own, _)| *own == name);
    system.map(|(name, value)| ((*name).to_owned(), *value, String::new()))
}

/// The class for pods that name none; of several the one with the lowest value.
fn default_priority(server: &Server) -> Option<Priority> {
    let classes = Resource::new("scheduling.k8s.io", "priorityclasses");
    let classes = server.store().of(&classes);
    let classes = classes.map(|(key, stored)| (key, Document::of(stored)));
    let defaults = classes.filter(|(_, class)| class.at(&["globalDefault"]) == Some(&json!(true)));
    defaults
        .map(|(key, class)| priority(&key.name, &class))
        .min_by_key(|(_, value, _)| *value)
}

fn priority(name: &str, class: &Document) -> Priority {
    let value = class.at(&["value"]).and_then(Value::as_i64).unwrap_or(0);
    let policy = class.text_at(&["preemptionPolicy"]).to_owned();
    (name.to_owned(), value, policy)
}
