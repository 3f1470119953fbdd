//! Who may do what: roles, bindings, the defaults of every cluster and the words of a refusal.

use serde_json::{Value, json};
use sundown_api::{Authorization, Config, Method, Request, User};

use crate::world::{CM, CRDS, PODS, Reply, World, cm, custom_resource_definition, request, sunjob};

pub(crate) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

pub(crate) fn user(name: &str, groups: &[&str]) -> User {
    let groups = groups.iter().copied().chain(["system:authenticated"]);
    User {
        name: name.to_owned(),
        groups: groups.map(str::to_owned).collect(),
        ..User::anonymous()
    }
}

pub(crate) fn jane() -> User {
    user("jane", &[])
}

impl World {
    /// Sends a request of somebody else than the administrator.
    pub(crate) fn send_as(
        &mut self,
        user: &User,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Reply {
        let user = user.clone();
        self.send(&Request {
            user,
            ..request(method, path, body)
        })
    }

    pub(crate) fn get_by(&mut self, user: &User, path: &str) -> Reply {
        self.send_as(user, Method::Get, path, &Value::Null)
    }

    pub(crate) fn post_by(&mut self, user: &User, path: &str, body: &Value) -> Reply {
        self.send_as(user, Method::Post, path, body)
    }

    /// Binds a role in a namespace, or in the cluster if that is empty.
    pub(crate) fn bind(&mut self, namespace: &str, role: (&str, &str), subject: &Value) {
        let (path, kind) = if namespace.is_empty() {
            (format!("{RBAC}/clusterrolebindings"), "ClusterRoleBinding")
        } else {
            let path = format!("{RBAC}/namespaces/{namespace}/rolebindings");
            (path, "RoleBinding")
        };
        let body = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": { "generateName": "b-" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1 },
            "subjects": [subject],
        });
        self.post(&path, &body).ok();
    }
}

pub(crate) fn the_user(name: &str) -> Value {
    json!({ "kind": "User", "name": name })
}

#[test]
fn a_stranger_to_all_roles_is_refused_in_the_words_of_upstream() {
    let mut world = World::new();
    let jane = jane();
    for (method, path, message) in [
        (
            Method::Get,
            PODS,
            "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"",
        ),
        (
            Method::Get,
            "/api/v1/secrets?watch=1",
            "secrets is forbidden: User \"jane\" cannot watch resource \"secrets\" in API group \"\" at the cluster scope",
        ),
        (
            Method::Delete,
            "/apis/batch/v1/namespaces/n/jobs/j",
            "jobs.batch \"j\" is forbidden: User \"jane\" cannot delete resource \"jobs\" in API group \"batch\" in the namespace \"n\"",
        ),
        (
            Method::Get,
            "/api/v1/namespaces/n/pods/p/log",
            "pods \"p\" is forbidden: User \"jane\" cannot get resource \"pods/log\" in API group \"\" in the namespace \"n\"",
        ),
        (
            Method::Post,
            "/api/v1/namespaces/n/serviceaccounts/s/token",
            "serviceaccounts \"s\" is forbidden: User \"jane\" cannot create resource \"serviceaccounts/token\" in API group \"\" in the namespace \"n\"",
        ),
        (
            Method::Get,
            "/apis/none.dev/v1/xs",
            "xs.none.dev is forbidden: User \"jane\" cannot list resource \"xs\" in API group \"none.dev\" at the cluster scope",
        ),
        (
            Method::Get,
            "/metrics",
            "forbidden: User \"jane\" cannot get path \"/metrics\"",
        ),
        (
            Method::Get,
            "/<b>",
            "forbidden: User \"jane\" cannot get path \"/&lt;b&gt;\"",
        ),
    ] {
        let reply = world.send_as(&jane, method, path, &Value::Null);
        assert_eq!((reply.code, reply.reason()), (403, "Forbidden"), "{path}");
        assert_eq!(reply.message(), message);
    }
    let reply = world.get_by(&jane, "/apis/batch/v1/namespaces/n/jobs/j");
    assert_eq!(
        reply.json["details"],
        json!({ "name": "j", "group": "batch", "kind": "jobs" })
    );
}

#[test]
fn everybody_may_look_around_and_strangers_see_the_health() {
    let mut world = World::new();
    for path in [
        "/api",
        "/apis",
        "/apis/batch/v1",
        "/openapi/v3",
        "/version",
        "/healthz",
    ] {
        assert_eq!(world.get_by(&jane(), path).code, 200, "{path}");
    }
    for (path, code) in [
        ("/version", 200),
        ("/healthz", 200),
        ("/livez", 200),
        ("/api", 403),
        ("/healthz/x", 403),
    ] {
        assert_eq!(world.get_by(&User::anonymous(), path).code, code, "{path}");
    }
}

#[test]
fn a_binding_gives_its_role_in_its_namespace_and_only_there() {
    let mut world = World::new();
    let other = CM.replace("default", "kube-public");
    world.bind("default", ("ClusterRole", "edit"), &the_user("jane"));
    let jane = jane();
    world.post_by(&jane, CM, &cm("a")).ok();
    assert_eq!(world.post_by(&jane, &other, &cm("a")).code, 403);
    assert_eq!(world.get_by(&jane, "/api/v1/configmaps").code, 403);
    assert_eq!(
        world
            .post_by(
                &jane,
                &format!("{RBAC}/namespaces/default/roles"),
                &json!({})
            )
            .code,
        403
    );
    let robot = User::service_account("default", "robot");
    let account = json!({ "kind": "ServiceAccount", "name": "robot", "namespace": "default" });
    world.bind("", ("ClusterRole", "view"), &account);
    assert_eq!(world.get_by(&robot, "/api/v1/configmaps").code, 200);
    assert_eq!(
        world.get_by(&robot, "/api/v1/secrets").code,
        403,
        "view shows no secrets"
    );
    assert_eq!(
        world
            .get_by(&User::service_account("kube-public", "robot"), CM)
            .code,
        403
    );
    let group = json!({ "kind": "Group", "name": "ops" });
    world.bind("", ("ClusterRole", "cluster-admin"), &group);
    assert_eq!(
        world.get_by(&user("joe", &["ops"]), "/metrics").code,
        404,
        "allowed, and not here"
    );
}

#[test]
fn a_right_ends_with_its_binding_and_with_its_role() {
    let mut world = World::new();
    let jane = jane();
    let role = json!({
        "metadata": { "name": "reader" },
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"] }],
    });
    let roles = format!("{RBAC}/namespaces/default/roles");
    world.post(&roles, &role).ok();
    world.bind("default", ("Role", "reader"), &the_user("jane"));
    assert_eq!(world.get_by(&jane, CM).code, 200);
    let narrower =
        json!({ "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] }] });
    world
        .patch(
            &format!("{roles}/reader"),
            "application/merge-patch+json",
            &narrower,
        )
        .ok();
    assert_eq!(world.get_by(&jane, CM).code, 403);
    assert_eq!(world.get_by(&jane, &format!("{CM}/a")).code, 404);
    world.delete(&format!("{roles}/reader"), &Value::Null).ok();
    let refused = world.get_by(&jane, &format!("{CM}/a"));
    let missing = "in the namespace \"default\": rbac: \
         RBAC: role.rbac.authorization.k8s.io \"reader\" not found";
    assert!(
        refused.message().ends_with(missing),
        "{}",
        refused.message()
    );
    world.post(&roles, &role).ok();
    assert_eq!(world.get_by(&jane, CM).code, 200);
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let name = world.get(&bindings).json["items"][0]["metadata"]["name"].clone();
    world
        .delete(
            &format!("{bindings}/{}", name.as_str().unwrap_or_default()),
            &Value::Null,
        )
        .ok();
    assert_eq!(world.get_by(&jane, CM).code, 403);
}

#[test]
fn a_named_object_may_be_read_and_watched_alone() {
    let mut world = World::new();
    let jane = jane();
    world.post(CM, &cm("mine")).ok();
    let role = json!({
        "metadata": { "name": "one" },
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"], "resourceNames": ["mine"] }],
    });
    world
        .post(&format!("{RBAC}/namespaces/default/roles"), &role)
        .ok();
    world.bind("default", ("Role", "one"), &the_user("jane"));
    assert_eq!(world.get_by(&jane, &format!("{CM}/mine")).code, 200);
    assert_eq!(world.get_by(&jane, &format!("{CM}/other")).code, 403);
    assert_eq!(world.get_by(&jane, CM).code, 403);
    let listed = world.get_by(&jane, &format!("{CM}?fieldSelector=metadata.name=mine"));
    assert_eq!(listed.json["items"].as_array().map(Vec::len), Some(1));
}

/// The path of a custom resource that is called like a part of a namespace means that part.
#[test]
fn what_is_judged_is_what_is_done() {
    let mut world = World::new();
    let mut definition = custom_resource_definition();
    definition["metadata"]["name"] = json!("status.sundown.dev");
    definition["spec"]["names"]["plural"] = json!("status");
    world.post(CRDS, &definition).ok();
    let path = "/apis/sundown.dev/v1/namespaces/default/status";
    let role = json!({
        "metadata": { "name": "r" },
        "rules": [{ "apiGroups": ["sundown.dev"], "resources": ["namespaces/status"], "verbs": ["*"] }],
    });
    world.post(&format!("{RBAC}/clusterroles"), &role).ok();
    world.bind("", ("ClusterRole", "r"), &the_user("jane"));
    assert_eq!(world.post_by(&jane(), path, &sunjob("a")).code, 404);
    assert_eq!(world.get_by(&jane(), path).code, 404);
}

#[test]
fn a_new_server_has_the_roles_of_every_cluster() {
    let mut world = World::new();
    for (path, count) in [
        ("/clusterroles", 73),
        ("/clusterrolebindings", 54),
        ("/roles", 7),
        ("/rolebindings", 7),
    ] {
        let list = world.get(&format!("{RBAC}{path}"));
        assert_eq!(
            list.json["items"].as_array().map(Vec::len),
            Some(count),
            "{path}"
        );
    }
    let view = world.get(&format!("{RBAC}/clusterroles/view"));
    assert_eq!(
        view.json["metadata"]["labels"],
        json!({
            "kubernetes.io/bootstrapping": "rbac-defaults",
            "rbac.authorization.k8s.io/aggregate-to-edit": "true",
        })
    );
    let own = world.get(&format!("{RBAC}/clusterroles/system:aggregate-to-view"));
    assert_eq!(
        view.json["rules"], own.json["rules"],
        "aggregated from the first moment"
    );
}

#[test]
fn with_always_allow_everybody_may_do_everything() {
    let mut world = World::with(Config {
        authorization: Authorization::AlwaysAllow,
        ..Config::default()
    });
    assert_eq!(world.post_by(&jane(), CM, &cm("a")).code, 201);
    assert_eq!(
        world
            .get_by(
                &User::service_account("default", "default"),
                "/api/v1/secrets"
            )
            .code,
        200
    );
    assert!(!world.server.takes_anonymous(), "every user of the machine");
    let roles = world.get(&format!("{RBAC}/clusterroles"));
    assert_eq!(roles.json["items"], json!([]), "nobody asks them");
}
