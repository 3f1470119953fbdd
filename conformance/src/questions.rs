//! Random questions about rights: the same seed asks two servers the same. Who is asked about stands in
//! the line; what is answered is judged elsewhere.

use fastrand::Rng;
use serde::Deserialize;
use serde_json::{Value, json};

const VERBS: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "impersonate",
    "bind",
    "escalate",
    "use",
    "*",
];

/// Group, resource and subresource.
const RESOURCES: &[(&str, &str, &str)] = &[
    ("", "configmaps", ""),
    ("", "endpoints", ""),
    ("", "events", ""),
    ("", "groups", ""),
    ("", "namespaces", ""),
    ("", "nodes", ""),
    ("", "persistentvolumeclaims", ""),
    ("", "pods", ""),
    ("", "pods", "exec"),
    ("", "pods", "log"),
    ("", "pods", "status"),
    ("", "secrets", ""),
    ("", "serviceaccounts", ""),
    ("", "serviceaccounts", "token"),
    ("", "services", ""),
    ("", "services", "proxy"),
    ("", "users", ""),
    ("", "*", ""),
    ("apiextensions.k8s.io", "customresourcedefinitions", ""),
    ("apps", "deployments", ""),
    ("apps", "deployments", "scale"),
    ("apps", "statefulsets", ""),
    ("authentication.k8s.io", "selfsubjectreviews", ""),
    ("authentication.k8s.io", "userextras", "scopes"),
    ("authorization.k8s.io", "selfsubjectaccessreviews", ""),
    ("authorization.k8s.io", "subjectaccessreviews", ""),
    ("batch", "cronjobs", ""),
    ("batch", "jobs", ""),
    ("batch", "jobs", "status"),
    ("coordination.k8s.io", "leases", ""),
    ("discovery.k8s.io", "endpointslices", ""),
    ("example.com", "widgets", ""),
    ("networking.k8s.io", "networkpolicies", ""),
    ("policy", "poddisruptionbudgets", ""),
    ("rbac.authorization.k8s.io", "clusterroles", ""),
    ("rbac.authorization.k8s.io", "rolebindings", ""),
    ("rbac.authorization.k8s.io", "roles", ""),
];

const NAMES: &[&str] = &["", "", "", "a", "jane", "known", "view"];

const PATHS: &[&str] = &[
    "/",
    "/api",
    "/api/v1",
    "/apis/apps/v1",
    "/healthz",
    "/healthz/etcd",
    "/livez",
    "/logs/x",
    "/metrics",
    "/metrics/slis",
    "/openapi/v2",
    "/readyz",
    "/version",
    "/version/",
];

/// How many questions of which seed.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Questions {
    pub(crate) seed: u64,
    pub(crate) count: usize,
    /// Where; empty: everywhere, or in no namespace.
    pub(crate) namespaces: Vec<String>,
}

/// One question: how it reads in a transcript, and what is added to the spec of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) member: &'static str,
    pub(crate) attributes: Value,
}

impl Questions {
    /// All of them, no two alike.
    pub(crate) fn all(&self) -> Vec<Question> {
        let mut rng = Rng::with_seed(self.seed);
        let mut all: Vec<Question> = Vec::new();
        while all.len() < self.count {
            let question = self.next(&mut rng);
            if !all.contains(&question) {
                all.push(question);
            }
        }
        all
    }

    fn next(&self, rng: &mut Rng) -> Question {
        let verb = one(rng, VERBS);
        if rng.u8(..12) == 0 {
            let path = one(rng, PATHS);
            return Question {
                text: format!("{verb} {path}"),
                member: "nonResourceAttributes",
                attributes: json!({ "path": path, "verb": verb }),
            };
        }
        let (group, resource, subresource) = one(rng, RESOURCES);
        let name = one(rng, NAMES);
        let namespaces: Vec<&str> = self.namespaces.iter().map(String::as_str).collect();
        let namespace = one(rng, &namespaces);
        let what = [group, resource, subresource];
        let what: Vec<&str> = what.into_iter().filter(|it| !it.is_empty()).collect();
        Question {
            text: format!("{verb} {} {name:?} in {namespace:?}", what.join("/")),
            member: "resourceAttributes",
            attributes: json!({
                "namespace": namespace, "verb": verb, "group": group, "resource": resource,
                "subresource": subresource, "name": name,
            }),
        }
    }
}

fn one<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())]
}

#[cfg(test)]
mod tests {
    use super::Questions;

    #[test]
    fn the_same_seed_asks_the_same() {
        let questions = Questions {
            seed: 7,
            count: 200,
            namespaces: vec!["a".into(), String::new()],
        };
        let (first, second) = (questions.all(), questions.all());
        assert_eq!(first.len(), 200);
        assert_eq!(first, second);
    }
}
