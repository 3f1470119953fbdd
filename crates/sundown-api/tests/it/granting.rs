//! Nobody gives away what they do not hold, and nobody acts as somebody else without leave.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sundown_api::{Impersonation, Method, Request, User};

use crate::access::{RBAC, jane, the_user, user};
use crate::world::{CM, MERGE, Reply, World, cm, request};

fn roles() -> String {
    format!("{RBAC}/namespaces/default/roles")
}

fn bindings() -> String {
    format!("{RBAC}/namespaces/default/rolebindings")
}

fn rule(resource: &str, verbs: &[&str]) -> Value {
    json!({ "apiGroups": [""], "resources": [resource], "verbs": verbs })
}

fn role(name: &str, rules: &Value) -> Value {
    json!({ "metadata": { "name": name }, "rules": rules })
}

fn binding(name: &str, kind: &str, role: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
        "subjects": [{ "kind": "User", "name": "joe" }],
    })
}

/// Jane administers the namespace `default`, and only that.
pub(crate) fn world() -> World {
    let mut world = World::new();
    world.bind("default", ("ClusterRole", "admin"), &the_user("jane"));
    world
}

#[track_caller]
fn check_forbidden(reply: &Reply, message: &str) {
    assert_eq!(reply.code, 403, "{}", reply.text);
    assert_eq!(reply.message(), message);
}

#[test]
fn a_role_holds_no_more_than_its_author() {
    let mut world = world();
    let jane = jane();
    world
        .post_by(
            &jane,
            &roles(),
            &role("own", &json!([rule("pods", &["get"])])),
        )
        .ok();
    let more = json!([
        rule("pods", &["get"]),
        rule("nodes", &["list", "get"]),
        rule("secrets", &["*"])
    ]);
    check_forbidden(
        &world.post_by(&jane, &roles(), &role("more", &more)),
        "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"jane\" \
         (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"list\" \"get\"]}\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"*\"]}",
    );
    let own = format!("{}/own", roles());
    let patch = |rules: &Value| json!({ "rules": rules });
    let patched = |world: &mut World, body: &Value| {
        world.send(&Request {
            user: jane.clone(),
            content_type: Some(MERGE.into()),
            ..request(Method::Patch, &own, body)
        })
    };
    assert_eq!(patched(&mut world, &patch(&more)).code, 403);
    assert_eq!(
        patched(&mut world, &patch(&json!([rule("pods", &["list"])]))).code,
        200
    );
    // What others put there may stay while only owners and finalizers change.
    world.patch(&own, MERGE, &patch(&more)).ok();
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    assert_eq!(patched(&mut world, &label).code, 403);
    let finalizer = json!({ "metadata": { "finalizers": ["x.dev/y"] } });
    assert_eq!(patched(&mut world, &finalizer).code, 200);
}

#[test]
fn the_verb_escalate_lets_an_author_go_beyond() {
    let mut world = world();
    let rules = json!([{ "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"] }]);
    world.post(&roles(), &role("escalator", &rules)).ok();
    let more = role("more", &json!([rule("nodes", &["*"])]));
    assert_eq!(world.post_by(&jane(), &roles(), &more).code, 403);
    world.bind("default", ("Role", "escalator"), &the_user("jane"));
    assert_eq!(world.post_by(&jane(), &roles(), &more).code, 201);
}

#[test]
fn aggregating_takes_everything() {
    let mut world = World::new();
    let rules = json!([
        { "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create"] },
        rule("pods", &["get"]),
    ]);
    world
        .post(&format!("{RBAC}/clusterroles"), &role("author", &rules))
        .ok();
    world.bind("", ("ClusterRole", "author"), &the_user("jane"));
    let mut body = role("gather", &json!([rule("pods", &["get"])]));
    let path = format!("{RBAC}/clusterroles");
    body["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] });
    check_forbidden(
        &world.post_by(&jane(), &path, &body),
        "clusterroles.rbac.authorization.k8s.io \"gather\" is forbidden: must have cluster-admin privileges to use \
         the aggregationRule",
    );
    world.bind("", ("ClusterRole", "cluster-admin"), &the_user("jane"));
    assert_eq!(world.post_by(&jane(), &path, &body).code, 201);
}

#[test]
fn a_binding_gives_no_more_than_its_author_holds() {
    let mut world = world();
    let jane = jane();
    world
        .post_by(&jane, &bindings(), &binding("v", "ClusterRole", "view"))
        .ok();
    let refused = world.post_by(
        &jane,
        &bindings(),
        &binding("c", "ClusterRole", "cluster-admin"),
    );
    check_forbidden(
        &refused,
        "rolebindings.rbac.authorization.k8s.io \"c\" is forbidden: user \"jane\" \
         (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n\
         {NonResourceURLs:[\"*\"], Verbs:[\"*\"]}",
    );
    let missing = world.post_by(&jane, &bindings(), &binding("m", "ClusterRole", "absent"));
    assert_eq!(missing.code, 404);
    assert_eq!(
        missing.message(),
        "rolebindings.rbac.authorization.k8s.io \"absent\" not found"
    );
    let rules = json!([{
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["bind"],
        "resourceNames": ["cluster-admin"],
    }]);
    world.post(&roles(), &role("binder", &rules)).ok();
    world.bind("default", ("Role", "binder"), &the_user("jane"));
    world
        .post_by(
            &jane,
            &bindings(),
            &binding("c", "ClusterRole", "cluster-admin"),
        )
        .ok();
}

#[test]
fn a_role_with_more_combinations_than_are_compared_is_refused() {
    let mut world = world();
    let many: Vec<String> = (0..300).map(|it| format!("x{it}")).collect();
    let rules =
        json!([{ "apiGroups": many, "resources": many, "resourceNames": many, "verbs": many }]);
    let refused = world.post_by(&jane(), &roles(), &role("huge", &rules));
    assert_eq!(refused.code, 403);
    assert!(
        refused.message().contains("8100000000 combinations"),
        "{}",
        refused.message()
    );
}

#[test]
fn an_owner_reference_needs_the_right_to_delete_the_dependent() {
    let mut world = World::new();
    let rules = json!([rule("configmaps", &["create", "get", "patch"])]);
    world.post(&roles(), &role("writer", &rules)).ok();
    world.bind("default", ("Role", "writer"), &the_user("jane"));
    let jane = jane();
    let uid = world.post(CM, &cm("owner")).ok().uid();
    let reference = |blocks: Option<bool>| {
        let mut reference =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid });
        if let Some(blocks) = blocks {
            reference["blockOwnerDeletion"] = json!(blocks);
        }
        json!({ "metadata": { "ownerReferences": [reference] } })
    };
    let owned = |name: &str, blocks| {
        let mut body = cm(name);
        body["metadata"]["ownerReferences"] =
            reference(blocks)["metadata"]["ownerReferences"].clone();
        body
    };
    let patch = |world: &mut World, body: &Value| {
        world.send(&Request {
            user: jane.clone(),
            content_type: Some(MERGE.into()),
            ..request(Method::Patch, &format!("{CM}/a"), body)
        })
    };
    world.post_by(&jane, CM, &owned("a", None)).ok();
    check_forbidden(
        &patch(
            &mut world,
            &json!({ "metadata": { "ownerReferences": null } }),
        ),
        "configmaps \"a\" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>",
    );
    assert_eq!(
        patch(&mut world, &json!({ "data": { "x": "y" } })).code,
        200
    );
    check_forbidden(
        &world.post_by(&jane, CM, &owned("b", Some(true))),
        "configmaps \"b\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you \
         can't set finalizers on: , <nil>",
    );
    let rules = json!([
        rule("configmaps", &["delete"]),
        rule("configmaps/finalizers", &["update"])
    ]);
    world.post(&roles(), &role("finalizer", &rules)).ok();
    world.bind("default", ("Role", "finalizer"), &the_user("jane"));
    assert_eq!(patch(&mut world, &reference(Some(true))).code, 200);
    world.post_by(&jane, CM, &owned("b", Some(true))).ok();
    let mut strange = owned("c", Some(true));
    strange["metadata"]["ownerReferences"][0]["kind"] = json!("Strange");
    let refused = world.post_by(&jane, CM, &strange);
    assert_eq!(refused.code, 403);
    assert!(
        refused
            .message()
            .contains("cannot find RESTMapping for APIVersion v1 Kind Strange")
    );
}

fn wanted(name: &str) -> Impersonation {
    Impersonation {
        user: name.to_owned(),
        ..Impersonation::default()
    }
}

fn acting(world: &World, by: &User, wanted: &Impersonation) -> Result<User, (u16, String)> {
    let mut asked = request(Method::Get, CM, &Value::Null);
    asked.user = by.clone();
    match world.server.impersonate(wanted, &mut asked) {
        Ok(()) => Ok(asked.user),
        Err(response) => {
            let body: Value = serde_json::from_slice(&response.body).unwrap();
            let message = body["message"].as_str().unwrap_or_default();
            Err((response.code, message.to_owned()))
        }
    }
}

#[test]
fn the_administrator_may_act_as_anybody() {
    let world = World::new();
    let admin = User::admin();
    let check = |wanted: &Impersonation, name: &str, groups: &[&str]| {
        let user = acting(&world, &admin, wanted).unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups.as_slice()),
            (
                name,
                &groups.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()[..]
            )
        );
    };
    check(&wanted("jane"), "jane", &["system:authenticated"]);
    check(
        &wanted("system:anonymous"),
        "system:anonymous",
        &["system:unauthenticated"],
    );
    let account = "system:serviceaccount:default:robot";
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ];
    check(&wanted(account), account, &groups);
    check(
        &wanted("system:node:one"),
        "system:node:one",
        &["system:nodes", "system:authenticated"],
    );
    let grouped = |groups: &[&str]| Impersonation {
        groups: groups.iter().map(|it| (*it).to_owned()).collect(),
        ..wanted("jane")
    };
    check(&grouped(&["a"]), "jane", &["a", "system:authenticated"]);
    check(
        &grouped(&["system:unauthenticated"]),
        "jane",
        &["system:unauthenticated"],
    );
    check(
        &grouped(&["system:masters"]),
        "jane",
        &["system:masters", "system:authenticated"],
    );
    let extra = Impersonation {
        uid: "7".into(),
        extra: BTreeMap::from([("scopes".to_owned(), vec!["x".to_owned()])]),
        ..wanted("jane")
    };
    let user = acting(&world, &admin, &extra).unwrap();
    assert_eq!(
        (user.uid, user.extra),
        (extra.uid.clone(), extra.extra.clone())
    );
    assert_eq!(
        acting(&world, &admin, &Impersonation::default()),
        Ok(admin.clone())
    );
    let nobody = Impersonation {
        groups: vec!["a".into()],
        ..Impersonation::default()
    };
    let message = "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"a\"}, \
                   Extra:map[string][]string(nil)} without impersonating a user name";
    assert_eq!(
        acting(&world, &admin, &nobody),
        Err((400, message.to_owned()))
    );
}

#[test]
fn others_act_as_those_whom_a_rule_names() {
    let mut world = World::new();
    let jane = jane();
    let refused = "configmaps is forbidden: User \"jane\" cannot impersonate-on:user-info:list resource \"configmaps\" \
                   in API group \"\" in the namespace \"default\"";
    assert_eq!(
        acting(&world, &jane, &wanted("joe")),
        Err((403, refused.to_owned()))
    );
    let rules = json!([{ "apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["joe"] }]);
    world
        .post(&format!("{RBAC}/clusterroles"), &role("actor", &rules))
        .ok();
    world.bind("", ("ClusterRole", "actor"), &the_user("jane"));
    assert_eq!(acting(&world, &jane, &wanted("joe")), Ok(user("joe", &[])));
    assert!(acting(&world, &jane, &wanted("jack")).is_err());
    let masters = Impersonation {
        groups: vec!["system:masters".into()],
        ..wanted("joe")
    };
    assert!(acting(&world, &jane, &masters).is_err());
    // Just this, as just these: what upstream calls constrained impersonation.
    let rules = json!([
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["impersonate-on:user-info:list"] },
        { "apiGroups": ["authentication.k8s.io"], "resources": ["users"], "verbs": ["impersonate:user-info"] },
    ]);
    world
        .post(&format!("{RBAC}/clusterroles"), &role("narrow", &rules))
        .ok();
    world.bind("", ("ClusterRole", "narrow"), &the_user("jim"));
    let jim = user("jim", &[]);
    assert_eq!(acting(&world, &jim, &wanted("joe")), Ok(user("joe", &[])));
    let other = request(Method::Get, "/api/v1/secrets", &Value::Null);
    let mut other = Request { user: jim, ..other };
    assert!(
        world
            .server
            .impersonate(&wanted("joe"), &mut other)
            .is_err()
    );
}
