//! Questions about access: answered by what judges requests.

use serde_json::{Value, json};
use sundown_api::{Method, User};

use crate::access::{jane, the_user, user};
use crate::granting::world;
use crate::world::World;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

const VERBS: [&str; 10] = [
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
];
const RESOURCES: [(&str, &str); 18] = [
    ("", "pods"),
    ("", "pods/log"),
    ("", "pods/exec"),
    ("", "secrets"),
    ("", "nodes"),
    ("", "serviceaccounts"),
    ("", "serviceaccounts/token"),
    ("", "namespaces"),
    ("", "events"),
    ("apps", "deployments"),
    ("apps", "deployments/scale"),
    ("batch", "jobs"),
    ("batch", "jobs/status"),
    ("ray.io", "rayjobs"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
];

#[test]
fn reviews_answer_as_requests_are_judged() {
    let mut world = world();
    let jane = jane();
    let ask = |world: &mut World, by: &User, plural: &str, spec: Value| {
        let body = json!({ "spec": spec });
        world
            .post_by(by, &format!("{REVIEWS}/{plural}"), &body)
            .ok()
            .json["status"]
            .clone()
    };
    let secrets =
        |namespace: &str| json!({ "verb": "list", "resource": "secrets", "namespace": namespace });
    let own = |namespace: &str| json!({ "resourceAttributes": secrets(namespace) });
    let granted = ask(
        &mut world,
        &jane,
        "selfsubjectaccessreviews",
        own("default"),
    );
    assert_eq!(granted["allowed"], true);
    let reason = granted["reason"].as_str().unwrap_or_default();
    assert!(
        reason.starts_with("RBAC: allowed by RoleBinding \"b-"),
        "{reason}"
    );
    let denied = ask(
        &mut world,
        &jane,
        "selfsubjectaccessreviews",
        own("kube-system"),
    );
    assert_eq!(denied, json!({ "allowed": false }));
    let path = json!({ "nonResourceAttributes": { "verb": "get", "path": "/healthz" } });
    assert_eq!(
        ask(&mut world, &jane, "selfsubjectaccessreviews", path)["allowed"],
        true
    );
    let admin = User::admin();
    assert_eq!(
        ask(&mut world, &admin, "selfsubjectaccessreviews", own("")),
        json!({ "allowed": true })
    );
    let of = |name: &str| json!({ "user": name, "resourceAttributes": secrets("default") });
    assert_eq!(
        ask(&mut world, &admin, "subjectaccessreviews", of("jane"))["allowed"],
        true
    );
    assert_eq!(
        ask(&mut world, &admin, "subjectaccessreviews", of("joe"))["allowed"],
        false
    );
    let local = "namespaces/default/localsubjectaccessreviews";
    assert_eq!(
        ask(&mut world, &jane, local, of("jane"))["allowed"],
        true,
        "admins may ask in their namespace"
    );
    let path = format!("{REVIEWS}/subjectaccessreviews");
    assert_eq!(
        world
            .post_by(&jane, &path, &json!({ "spec": of("joe") }))
            .code,
        403
    );
}

#[test]
fn a_list_of_rules_holds_what_is_allowed_and_nothing_else() {
    let mut world = World::new();
    let robot = User::service_account("default", "robot");
    let ask = |world: &mut World, by: &User| {
        let body = json!({ "spec": { "namespace": "default" } });
        let path = format!("{REVIEWS}/selfsubjectrulesreviews");
        world.post_by(by, &path, &body).ok().json["status"].clone()
    };
    let count = |status: &Value, list: &str| status[list].as_array().map_or(0, Vec::len);
    let few = ask(&mut world, &robot);
    assert_eq!(few["incomplete"], false);
    assert_eq!(
        few["resourceRules"],
        json!([
            {
                "verbs": ["get", "list", "watch"], "apiGroups": ["certificates.k8s.io"],
                "resources": ["clustertrustbundles"],
            },
            { "verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
              "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"] },
            { "verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"] },
        ])
    );
    let account = json!({ "kind": "ServiceAccount", "name": "robot", "namespace": "default" });
    world.bind("default", ("ClusterRole", "view"), &account);
    let more = ask(&mut world, &robot);
    assert!(count(&more, "resourceRules") > count(&few, "resourceRules"));
    world.bind("default", ("ClusterRole", "absent"), &account);
    assert_eq!(
        ask(&mut world, &robot)["evaluationError"],
        "clusterrole.rbac.authorization.k8s.io \"absent\" not found"
    );
    let everything = json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] });
    let admin = ask(&mut world, &User::admin());
    assert!(
        admin["resourceRules"]
            .as_array()
            .is_some_and(|it| it.contains(&everything))
    );
}

/// Whether one of the listed rules allows it, read as a person reads `kubectl auth can-i --list`.
fn is_listed(rules: &Value, verb: &str, group: &str, resource: &str) -> bool {
    let has = |rule: &Value, list: &str, wanted: &str| {
        let list = rule[list].as_array().into_iter().flatten();
        list.filter_map(Value::as_str)
            .any(|own| own == "*" || own == wanted)
    };
    let mut rules = rules.as_array().into_iter().flatten();
    rules.any(|rule| {
        rule.get("resourceNames").is_none()
            && has(rule, "verbs", verb)
            && has(rule, "apiGroups", group)
            && has(rule, "resources", resource)
    })
}

#[test]
fn the_list_of_rules_and_single_answers_agree() {
    let mut world = world();
    let account = json!({ "kind": "ServiceAccount", "name": "robot", "namespace": "default" });
    world.bind("default", ("ClusterRole", "edit"), &account);
    world.bind("", ("ClusterRole", "view"), &the_user("joe"));
    let identities = [
        User::admin(),
        User::anonymous(),
        User::service_account("default", "robot"),
        User::service_account("default", "other"),
        jane(),
        user("joe", &[]),
    ];
    let mut random = fastrand::Rng::with_seed(7);
    for identity in &identities {
        // The anonymous user may not ask, and may do nothing that could be listed.
        let body = json!({ "spec": { "namespace": "default" } });
        let path = format!("{REVIEWS}/selfsubjectrulesreviews");
        let listed = world.send_as(identity, Method::Post, &path, &body);
        let rules = if listed.code == 201 {
            listed.json["status"]["resourceRules"].clone()
        } else {
            json!([])
        };
        for _ in 0..200 {
            let verb = VERBS[random.usize(..VERBS.len())];
            let (group, resource) = RESOURCES[random.usize(..RESOURCES.len())];
            let (plural, part) = resource.split_once('/').unwrap_or((resource, ""));
            let spec = json!({
                "user": identity.name, "groups": identity.groups,
                "resourceAttributes": {
                    "verb": verb, "group": group, "resource": plural, "subresource": part,
                    "namespace": "default",
                },
            });
            let path = format!("{REVIEWS}/subjectaccessreviews");
            let answer = world.post(&path, &json!({ "spec": spec })).ok();
            assert_eq!(
                answer.json["status"]["allowed"],
                is_listed(&rules, verb, group, resource),
                "{} {verb} {resource}.{group}",
                identity.name
            );
        }
    }
}
