//! What is taken of the node and by which pod, for commands that show it: counted as the scheduler counts.

use serde_json::Value;

use super::amounts::{Amounts, Asking, read, requests, sum};
use crate::json::text;

/// What a node offers, and what is taken of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    pub offered: Amounts,
    pub taken: Amounts,
}

/// Counts the pods of a node; both as the API server shows them.
pub fn taken(node: &Value, pods: &[Value]) -> Taken {
    let name = node.pointer("/metadata/name").and_then(Value::as_str);
    let mut all = Taken {
        offered: read(node.pointer("/status/allocatable")),
        taken: Amounts::new(),
    };
    for pod in pods {
        if name.is_some_and(|name| is_on(pod, name)) {
            sum(&mut all.taken, &asked_by(pod));
        }
    }
    all
}

/// What one pod asks for.
pub fn asked_by(pod: &Value) -> Amounts {
    requests(Asking {
        containers: pod.pointer("/spec/containers"),
        init_containers: pod.pointer("/spec/initContainers"),
        overhead: pod.pointer("/spec/overhead"),
    })
}

fn is_on(pod: &Value, node: &str) -> bool {
    let null = Value::Null;
    let part = |name: &str| pod.get(name).unwrap_or(&null);
    let is_over = matches!(text(part("status"), "phase"), "Succeeded" | "Failed");
    text(part("spec"), "nodeName") == node && !is_over
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_that_are_over_or_elsewhere_take_nothing() {
        let pod = |node: &str, phase: &str| {
            json!({ "spec": { "nodeName": node, "containers": [
                { "resources": { "requests": { "cpu": "500m" } } } ] },
                "status": { "phase": phase } })
        };
        let node = json!({ "metadata": { "name": "n" },
            "status": { "allocatable": { "cpu": "2" } } });
        let pods = [
            pod("n", "Running"),
            pod("n", "Pending"),
            pod("n", "Succeeded"),
            pod("n", "Failed"),
            pod("m", "Running"),
            pod("", "Pending"),
        ];
        let found = taken(&node, &pods);
        assert_eq!(found.offered["cpu"], 2_000);
        assert_eq!(found.taken["cpu"], 1_000);
        assert_eq!(found.taken["pods"], 2_000);
    }
}
