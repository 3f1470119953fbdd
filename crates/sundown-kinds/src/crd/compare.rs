//! Our definitions against those of others, field by field, and why they differ where they do.
//!
//! Where theirs come from is the business of `cargo xtask accept peers`.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

/// A place where two definitions differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// `v1.spec.headGroupSpec.template.spec.workloadRef`, or with `#` before a member of a schema.
    pub path: String,
    /// What ours says there; None if it says nothing.
    pub ours: Option<Value>,
    pub theirs: Option<Value>,
}

/// Differences that are meant: how their path ends, and the reason.
///
/// The fields that a newer Kubernetes has come in hundreds of places; everything else is named whole.
pub const MEANT: &[(&str, &str)] = &[
    ("v1alpha1#deprecated", DEPRECATED),
    ("v1alpha1#deprecationWarning", DEPRECATED),
    (".autoscalerOptions.command", NEWER_KIND),
    (".autoscalerOptions.args", NEWER_KIND),
    (".gcsFaultToleranceOptions.backend", NEWER_KIND),
    (".gcsFaultToleranceOptions.storage", NEWER_KIND),
    (".gcsFaultToleranceOptions#required", NEWER_KIND),
    (".historyServerOptions", NEWER_KIND),
    (".networkPolicy", NEWER_KIND),
    (".tlsOptions", NEWER_KIND),
    (".headGroupSpec.ingressOptions", NEWER_KIND),
    (".workerGroupSpecs[].priority", NEWER_KIND),
    ("v1.status.jobStatusCheckFailureStartTime", NEWER_KIND),
    (".volumeMounts[].bindMountOptions", NEWER_KUBERNETES),
    (".configMap.defaultUser", NEWER_KUBERNETES),
    (".secret.defaultUser", NEWER_KUBERNETES),
    (".downwardAPI.defaultUser", NEWER_KUBERNETES),
    (".projected.defaultUser", NEWER_KUBERNETES),
    (".items[].user", NEWER_KUBERNETES),
    (".serviceAccountToken.user", NEWER_KUBERNETES),
    (".clusterTrustBundle.user", NEWER_KUBERNETES),
    (".podCertificate.user", NEWER_KUBERNETES),
    (".template.spec.evictionResponders", NEWER_KUBERNETES),
    (
        ".submitterPodTemplate.spec.evictionResponders",
        NEWER_KUBERNETES,
    ),
    (".template.spec.schedulingGroup", NEWER_KUBERNETES),
    (
        ".submitterPodTemplate.spec.schedulingGroup",
        NEWER_KUBERNETES,
    ),
    (".emptyDir.mode", NEWER_KUBERNETES),
    (".grpc.mode", NEWER_KUBERNETES),
    (".httpGet.protocol", NEWER_KUBERNETES),
    (".template.spec.workloadRef", GONE),
    (".submitterPodTemplate.spec.workloadRef", GONE),
];

const DEPRECATED: &str = "v1alpha1 is deprecated since KubeRay 1.7";
const NEWER_KIND: &str = "KubeRay has it since 1.7";
const NEWER_KUBERNETES: &str = "pods have it since Kubernetes 1.36 or 1.37; theirs are of 1.35";
const GONE: &str = "an alpha field of Kubernetes 1.35 that became schedulingGroup";

impl Difference {
    /// Why the difference is meant; None if it is not.
    pub fn reason(&self) -> Option<&'static str> {
        let found = MEANT.iter().find(|(ending, _)| self.path.ends_with(ending));
        found.map(|(_, reason)| *reason)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |side: &Option<Value>| match side {
            None => "nothing".to_owned(),
            Some(value) => value.to_string().chars().take(100).collect(),
        };
        let (ours, theirs) = (shown(&self.ours), shown(&self.theirs));
        write!(f, "{}: ours {ours}, theirs {theirs}", self.path)
    }
}

/// Compares two definitions: names, scope, versions with their columns, and schemas.
pub fn compare(ours: &Value, theirs: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    for member in ["group", "names", "scope"] {
        plain(
            &format!("#{member}"),
            ours["spec"].get(member),
            theirs["spec"].get(member),
            &mut found,
        );
    }
    let versions = |definition: &Value| -> Vec<Value> {
        definition["spec"]["versions"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let (ours, theirs) = (versions(ours), versions(theirs));
    let names: BTreeSet<&str> = ours
        .iter()
        .chain(&theirs)
        .filter_map(|version| version["name"].as_str())
        .collect();
    for name in names {
        let of = |versions: &[Value]| {
            versions
                .iter()
                .find(|version| version["name"] == name)
                .cloned()
        };
        version(
            name,
            &of(&ours).unwrap_or_default(),
            &of(&theirs).unwrap_or_default(),
            &mut found,
        );
    }
    found
}

fn version(name: &str, ours: &Value, theirs: &Value, found: &mut Vec<Difference>) {
    let members = [
        "served",
        "storage",
        "subresources",
        "additionalPrinterColumns",
        "deprecated",
        "deprecationWarning",
    ];
    for member in members {
        plain(
            &format!("{name}#{member}"),
            ours.get(member),
            theirs.get(member),
            found,
        );
    }
    let schema = "/schema/openAPIV3Schema";
    node(name, ours.pointer(schema), theirs.pointer(schema), found);
}

fn plain(path: &str, ours: Option<&Value>, theirs: Option<&Value>, found: &mut Vec<Difference>) {
    if ours != theirs {
        found.push(Difference {
            path: path.to_owned(),
            ours: ours.cloned(),
            theirs: theirs.cloned(),
        });
    }
}

fn node(path: &str, ours: Option<&Value>, theirs: Option<&Value>, found: &mut Vec<Difference>) {
    let (Some(Value::Object(ours)), Some(Value::Object(theirs))) = (ours, theirs) else {
        return plain(path, ours, theirs, found);
    };
    for member in keys(ours, theirs) {
        let (ours, theirs) = (ours.get(member), theirs.get(member));
        match member {
            "description" => {}
            "properties" => properties(path, ours, theirs, found),
            "items" => node(&format!("{path}[]"), ours, theirs, found),
            "additionalProperties" => node(&format!("{path}{{}}"), ours, theirs, found),
            _ => plain(&format!("{path}#{member}"), ours, theirs, found),
        }
    }
}

fn properties(
    path: &str,
    ours: Option<&Value>,
    theirs: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    let none = Map::new();
    let ours = ours.and_then(Value::as_object).unwrap_or(&none);
    let theirs = theirs.and_then(Value::as_object).unwrap_or(&none);
    for name in keys(ours, theirs) {
        node(
            &format!("{path}.{name}"),
            ours.get(name),
            theirs.get(name),
            found,
        );
    }
}

fn keys<'a>(ours: &'a Map<String, Value>, theirs: &'a Map<String, Value>) -> BTreeSet<&'a str> {
    ours.keys()
        .chain(theirs.keys())
        .map(String::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::with;

    fn ray_job() -> Value {
        serde_json::from_str(&crate::crd::ray_job()).unwrap()
    }

    fn paths(changes: &[(&str, Value)]) -> Vec<String> {
        let found = compare(&ray_job(), &with(ray_job(), changes));
        found
            .into_iter()
            .map(|difference| difference.path)
            .collect()
    }

    const SPEC: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";

    #[test]
    fn a_definition_does_not_differ_from_itself() {
        assert_eq!(compare(&ray_job(), &ray_job()), []);
    }

    #[test]
    fn every_difference_is_named_by_its_path() {
        assert_eq!(
            paths(&[
                ("/spec/names/kind", json!("X")),
                ("/spec/versions/1/storage", json!(true)),
                (&format!("{SPEC}/new"), json!({"type": "string"})),
                (&format!("{SPEC}/suspend/default"), json!(true)),
                (&format!("{SPEC}/suspend/description"), json!("words")),
                (
                    &format!("{SPEC}/deletionStrategy/properties/deletionRules/items/required"),
                    json!([])
                ),
            ]),
            [
                "#names",
                "v1.spec.deletionStrategy.deletionRules[]#required",
                "v1.spec.new",
                "v1.spec.suspend#default",
                "v1alpha1#storage",
            ]
        );
    }

    #[test]
    fn only_what_is_listed_is_meant() {
        let of = |path: &str| {
            Difference {
                path: path.into(),
                ours: None,
                theirs: None,
            }
            .reason()
        };
        assert_eq!(
            of("v1.spec.headGroupSpec.template.spec.workloadRef"),
            Some(GONE)
        );
        assert_eq!(of("v1.spec.headGroupSpec.template.spec.containers"), None);
    }
}
