//! Stories about roles that gather the rules of others.

use serde_json::{Value, json};
use sundown_api::Method;

use crate::op::Op;
use crate::scenario::Scenario;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        // Rules come and go with the roles that bring them; a role may gather one that gathers.
        Scenario::new("aggregated-roles")
            .with_roles()
            .start()
            .does(create("part", &selected("inner", "pods")))
            .does(create("inner", &gathering("inner", Some("outer"))))
            .does(create("outer", &gathering("outer", None)))
            .settle()
            .does(create("second", &selected("inner", "secrets")))
            .settle()
            .does(delete("part"))
            .settle(),
    ]
}

fn selected(by: &str, resource: &str) -> Value {
    json!({
        "metadata": { "labels": { "to": by } },
        "rules": [{ "apiGroups": [""], "resources": [resource], "verbs": ["get"] }],
    })
}

fn gathering(what: &str, for_whom: Option<&str>) -> Value {
    let selector = json!({ "matchLabels": { "to": what } });
    let mut role = json!({ "aggregationRule": { "clusterRoleSelectors": [selector] } });
    if let Some(whom) = for_whom {
        role["metadata"] = json!({ "labels": { "to": whom } });
    }
    role
}

fn create(name: &str, role: &Value) -> Op {
    let mut body = role.clone();
    body["metadata"]["name"] = json!(name);
    let label = format!("create the role {name}");
    Op::new(Method::Post, ROLES.to_owned(), Some(&body), label)
}

fn delete(name: &str) -> Op {
    let label = format!("delete the role {name}");
    Op::new(Method::Delete, format!("{ROLES}/{name}"), None, label)
}
