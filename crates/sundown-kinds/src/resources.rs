//! Resources of containers: which keys mean GPUs, and what a pod takes.

use std::collections::BTreeMap;

use serde_json::Value;
use sundown_model::Quantity;

use crate::PodTemplate;

/// Amounts by the name of a resource.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// The amounts under a key of a container's resources, `limits` or `requests`.
pub(crate) fn amounts(container: &Value, key: &str) -> Amounts {
    let own = container
        .get("resources")
        .and_then(|own| own.get(key)?.as_object());
    let amount = |(name, value): (&String, &Value)| Some((name.clone(), quantity(value)?));
    own.into_iter().flatten().filter_map(amount).collect()
}

/// A quantity as manifests write it: a text, or a number.
pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text),
        Value::Number(number) => Quantity::parse(&number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What a pod takes: of each container what it requests, or else its limit.
pub(crate) fn of_pod(template: &PodTemplate) -> Amounts {
    let mut sum = Amounts::new();
    for container in template.containers() {
        let mut own = amounts(container, "limits");
        own.extend(amounts(container, "requests"));
        add(&mut sum, &own, 1);
    }
    sum
}

/// Adds some amounts so many times.
pub(crate) fn add(sum: &mut Amounts, amounts: &Amounts, count: i64) {
    for (name, amount) in amounts {
        let total = sum.entry(name.clone()).or_insert(Quantity::ZERO);
        *total = total.plus(amount.times(count));
    }
}

/// Whether a resource is a GPU or a part of one: `…gpu`, or `nvidia.com/mig-<n>g.<m>gb`.
pub(crate) fn is_gpu(name: &str) -> bool {
    if name.ends_with("gpu") {
        return true;
    }
    let Some((_, slice)) = name.split_once("nvidia.com/mig-") else {
        return false;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    slice.split_once("g.").is_some_and(|(count, memory)| {
        is_number(count) && memory.strip_suffix("gb").is_some_and(is_number)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn gpus_are_known_by_their_names() {
        for name in ["nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-2g.32gb"] {
            assert!(is_gpu(name), "{name}");
        }
        for name in [
            "nvidia.com/mig-2g.gb",
            "google.com/tpu",
            "cpu",
            "nvidia.com/mig-g.1gb",
        ] {
            assert!(!is_gpu(name), "{name}");
        }
    }

    #[test]
    fn a_request_counts_before_a_limit_for_each_resource_and_container() {
        let template = json!({"spec": {"containers": [
            {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}},
            {"resources": {"limits": {"cpu": 1}}},
            {},
        ]}});
        let template = PodTemplate(template.as_object().cloned().unwrap_or_default());
        let sum = of_pod(&template);
        assert_eq!(sum["cpu"].canonical(), "2");
        assert_eq!(sum["memory"].canonical(), "1Gi");
    }
}
