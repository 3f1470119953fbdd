//! What requests ask for, what rules allow, and what the defaults are.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::rule::{Rule, uncovered};
use super::{Attributes, policy};
use crate::document::Document;
use crate::{Config, Cx, Method, Request, Server, User};

fn jane() -> User {
    User {
        name: "jane".into(),
        uid: String::new(),
        groups: vec!["system:authenticated".into()],
        extra: std::collections::BTreeMap::new(),
    }
}

fn request(method: Method, path: &str) -> Request {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    Request {
        method,
        path: path.into(),
        query: pairs
            .map(|(key, value)| (key.into(), value.into()))
            .collect(),
        content_type: None,
        accept: None,
        user_agent: None,
        if_none_match: None,
        user: jane(),
        body: Vec::new(),
    }
}

fn server() -> Server {
    let mut entropy = 0;
    let mut draw = move || {
        entropy += 1;
        entropy
    };
    let mut cx = Cx {
        now: Timestamp::UNIX_EPOCH,
        entropy: &mut draw,
    };
    Server::new(Config::default(), &mut cx)
}

fn rules(json: Value) -> Vec<Rule> {
    serde_json::from_value(json).expect("rules")
}

/// The table of upstream's `RequestInfo`: verb, group, namespace, resource, subresource, name.
#[test]
fn a_request_asks_for_what_upstream_reads_from_it() {
    use Method::{Delete, Get, Patch, Post, Put};
    #[rustfmt::skip]
    let table: [(Method, &str, [&str; 6]); 31] = [
        (Get, "/api/v1/namespaces", ["list", "", "", "namespaces", "", ""]),
        (Get, "/api/v1/namespaces/other", ["get", "", "other", "namespaces", "", "other"]),
        (Put, "/api/v1/namespaces/other/finalize", ["update", "", "other", "namespaces", "finalize", "other"]),
        (Get, "/api/v1/namespaces/other/status", ["get", "", "other", "namespaces", "status", "other"]),
        (Delete, "/api/v1/namespaces/other", ["delete", "", "other", "namespaces", "", "other"]),
        (Get, "/api/v1/namespaces/other/pods", ["list", "", "other", "pods", "", ""]),
        (Get, "/api/v1/namespaces/other/pods/foo", ["get", "", "other", "pods", "", "foo"]),
        (Get, "/api/v1/pods", ["list", "", "", "pods", "", ""]),
        (Post, "/api/v1/pods", ["create", "", "", "pods", "", ""]),
        (Post, "/api/v1/namespaces/other/pods", ["create", "", "other", "pods", "", ""]),
        (Put, "/api/v1/namespaces/other/pods/foo", ["update", "", "other", "pods", "", "foo"]),
        (Patch, "/api/v1/namespaces/other/pods/foo", ["patch", "", "other", "pods", "", "foo"]),
        (Delete, "/api/v1/namespaces/other/pods/foo", ["delete", "", "other", "pods", "", "foo"]),
        (Delete, "/api/v1/namespaces/other/pods", ["deletecollection", "", "other", "pods", "", ""]),
        (Get, "/api/v1/namespaces/other/pods/foo/log", ["get", "", "other", "pods", "log", "foo"]),
        (Get, "/api/v1/namespaces/other/pods/foo/proxy/a/b", ["get", "", "other", "pods", "proxy", "foo"]),
        (Post, "/api/v1/namespaces/n/serviceaccounts/a/token", ["create", "", "n", "serviceaccounts", "token", "a"]),
        (Get, "/api/v1/nodes/one/proxy/metrics", ["get", "", "", "nodes", "proxy", "one"]),
        (Get, "/apis/batch/v1/jobs", ["list", "batch", "", "jobs", "", ""]),
        (Get, "/apis/batch/v1/namespaces/other/jobs/foo/status", ["get", "batch", "other", "jobs", "status", "foo"]),
        (Get, "/api/v1/namespaces/other/pods?watch=true", ["watch", "", "other", "pods", "", ""]),
        (Get, "/api/v1/namespaces/other/pods?watch=", ["watch", "", "other", "pods", "", ""]),
        (Get, "/api/v1/namespaces/other/pods?watch=0", ["list", "", "other", "pods", "", ""]),
        (Get, "/api/v1/namespaces/other/pods?watch=nonsense", ["watch", "", "other", "pods", "", ""]),
        (Get, "/api/v1/namespaces/other/pods/foo?watch=true", ["get", "", "other", "pods", "", "foo"]),
        (Get, "/api/v1/pods?fieldSelector=metadata.name=foo", ["list", "", "", "pods", "", "foo"]),
        (Get, "/api/v1/pods?watch=1&fieldSelector=spec.nodeName=x,metadata.name==foo", ["watch", "", "", "pods", "", "foo"]),
        (Get, "/api/v1/pods?fieldSelector=metadata.name!=foo", ["list", "", "", "pods", "", ""]),
        (Get, "/api/v1/pods?fieldSelector=metadata.name=a/b", ["list", "", "", "pods", "", ""]),
        (Get, "/api/v1/watch/namespaces/other/pods/foo", ["watch", "", "other", "pods", "", "foo"]),
        (Post, "/api/v1/proxy/namespaces/other/pods/foo/bar", ["proxy", "", "other", "pods", "", "foo"]),
    ];
    for (method, path, expect) in table {
        let request = request(method, path);
        let asked = Attributes::of(&request);
        assert!(asked.is_resource, "{path}");
        let read = [
            asked.verb,
            asked.group,
            asked.namespace,
            asked.resource,
            asked.subresource,
            asked.name,
        ];
        assert_eq!(read, expect, "{method:?} {path}");
    }
}

#[test]
fn other_paths_are_asked_for_by_method_and_path() {
    for (method, path, verb) in [
        (Method::Get, "/", "get"),
        (Method::Get, "/api", "get"),
        (Method::Get, "/api/v1", "get"),
        (Method::Get, "/apis/batch", "get"),
        (Method::Get, "/apis/batch/v1", "get"),
        (Method::Post, "/apis/batch/v1", "post"),
        (Method::Get, "/openapi/v3/apis/batch/v1", "get"),
        (Method::Delete, "/logs/x/y/z", "delete"),
        (Method::Patch, "/healthz", "patch"),
    ] {
        let request = request(method, path);
        let asked = Attributes::of(&request);
        assert!(!asked.is_resource, "{path}");
        assert_eq!((asked.verb, asked.path), (verb, path));
    }
}

#[test]
fn a_rule_allows_what_it_names() {
    let check = |rule: Value, method: Method, path: &str, expect: bool| {
        let request = request(method, path);
        let rule: Rule = serde_json::from_value(rule).expect("a rule");
        assert_eq!(
            rule.allows(&Attributes::of(&request)),
            expect,
            "{rule} {path}"
        );
    };
    let rule = |verbs: &str, group: &str, resource: &str| json!({ "verbs": [verbs], "apiGroups": [group], "resources": [resource] });
    let (pods, log) = (
        "/api/v1/namespaces/n/pods",
        "/api/v1/namespaces/n/pods/p/log",
    );
    check(rule("list", "", "pods"), Method::Get, pods, true);
    check(rule("*", "*", "*"), Method::Get, pods, true);
    check(rule("*", "*", "*"), Method::Get, log, true);
    check(rule("get", "", "pods"), Method::Get, pods, false);
    check(rule("list", "batch", "pods"), Method::Get, pods, false);
    check(rule("get", "", "pods"), Method::Get, log, false);
    check(rule("get", "", "pods/log"), Method::Get, log, true);
    check(rule("get", "", "*/log"), Method::Get, log, true);
    check(rule("get", "", "pods/*"), Method::Get, log, false);
    check(rule("get", "", "*/lo"), Method::Get, log, false);
    check(rule("list", "", "*/log"), Method::Get, pods, false);
    let mut named = rule("*", "", "pods");
    named["resourceNames"] = json!(["a"]);
    check(
        named.clone(),
        Method::Get,
        "/api/v1/namespaces/n/pods/a",
        true,
    );
    check(
        named.clone(),
        Method::Get,
        "/api/v1/namespaces/n/pods/b",
        false,
    );
    check(named.clone(), Method::Get, pods, false);
    let listed = "/api/v1/namespaces/n/pods?fieldSelector=metadata.name=a";
    check(named.clone(), Method::Get, listed, true);
    check(named, Method::Post, pods, false);
    let url = |url: &str| json!({ "verbs": ["get"], "nonResourceURLs": [url] });
    check(url("/healthz"), Method::Get, "/healthz", true);
    check(url("/healthz"), Method::Get, "/healthz/etcd", false);
    check(url("/healthz/*"), Method::Get, "/healthz/etcd", true);
    check(url("/healthz/*"), Method::Get, "/healthz", false);
    check(url("*"), Method::Get, "/anything", true);
    check(url("*"), Method::Get, pods, false);
    check(rule("*", "*", "*"), Method::Get, "/healthz", false);
    check(
        json!({ "verbs": null, "resources": null }),
        Method::Get,
        pods,
        false,
    );
}

#[test]
fn rules_cover_rules_part_by_part() {
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!([{ "apiGroups": groups, "resources": resources, "verbs": verbs }]);
    let check = |held: Value, asked: Value, expect: &[&str]| {
        let missing = uncovered(&rules(held).iter(), &rules(asked));
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        assert_eq!(missing, expect);
    };
    let get = r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#;
    check(
        rule(&["*"], &["*"], &["*"]),
        rule(&[""], &["pods", "a/b"], &["get", "x"]),
        &[],
    );
    check(
        rule(&[""], &["pods"], &["list"]),
        rule(&[""], &["pods"], &["get", "list"]),
        &[get],
    );
    check(json!([]), rule(&[""], &["pods"], &["get"]), &[get]);
    check(
        rule(&[""], &["*/log"], &["get"]),
        rule(&[""], &["pods/log"], &["get"]),
        &[],
    );
    check(
        rule(&[""], &["pods"], &["get"]),
        rule(&[""], &["pods"], &["*"]),
        &[r#"{APIGroups:[""], Resources:["pods"], Verbs:["*"]}"#],
    );
    let named = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a", "b"] }]);
    check(named.clone(), rule(&[""], &["pods"], &["get"]), &[get]);
    check(rule(&[""], &["pods"], &["get"]), named.clone(), &[]);
    let one = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a"] }]);
    check(
        one,
        named,
        &[r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}"#],
    );
    let url = |url: &str| json!([{ "verbs": ["get"], "nonResourceURLs": [url] }]);
    check(url("/api/*"), url("/api/v1"), &[]);
    check(
        url("/api"),
        url("/api/*"),
        &[r#"{NonResourceURLs:["/api/*"], Verbs:["get"]}"#],
    );
}

/// A table that says otherwise than the store would write would be compared in vain at each start.
#[test]
fn the_defaults_are_written_as_the_store_writes_them() {
    let mut count = 0;
    for given in policy::given() {
        for member in ["aggregationRule", "roleRef", "rules", "subjects"] {
            let value = given.value(member);
            if !value.is_null() {
                assert!(given.has(member, &value.to_string()), "{}", given.name);
            }
        }
        count += 1;
    }
    assert_eq!(count, 141, "of Kubernetes 1.37");
}

#[test]
fn a_default_role_gets_back_what_it_lacks_and_keeps_what_was_added() {
    let given =
        policy::given().find(|it| it.name == "system:basic-user" && it.kind == "ClusterRole");
    let given = given.expect("every cluster has it");
    let mut cx = Cx {
        now: Timestamp::UNIX_EPOCH,
        entropy: &mut || 7,
    };
    let added = json!({ "apiGroups": ["x.dev"], "resources": ["xs"], "verbs": ["get"] });
    let stored = |annotation: &str, rules: Value| {
        Document::of_value(json!({
            "metadata": {
                "name": given.name,
                "annotations": { "rbac.authorization.kubernetes.io/autoupdate": annotation },
                "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
            },
            "rules": rules,
        }))
    };
    let whole = given.value("rules");
    assert_eq!(
        given.reconciled(&stored("true", whole.clone()), &mut cx),
        None
    );
    assert_eq!(given.reconciled(&stored("false", json!([])), &mut cx), None);
    let new = given.reconciled(&stored("true", json!([added])), &mut cx);
    let new = new.expect("it lacked its own rules");
    let own = new.at(&["rules"]).cloned().unwrap_or_default();
    assert_eq!(own[0], added);
    assert_eq!(uncovered(&rules(own).iter(), &rules(whole)), []);
}

#[test]
fn a_default_binding_gets_back_its_subjects_and_its_role() {
    let given =
        policy::given().find(|it| it.name == "cluster-admin" && it.kind == "ClusterRoleBinding");
    let given = given.expect("every cluster has it");
    let mut cx = Cx {
        now: Timestamp::UNIX_EPOCH,
        entropy: &mut || 7,
    };
    let stored = |role: &str| {
        Document::of_value(json!({
            "metadata": { "name": given.name, "uid": "old" },
            "roleRef": { "apiGroup": super::GROUP, "kind": "ClusterRole", "name": role },
            "subjects": [{ "apiGroup": super::GROUP, "kind": "User", "name": "jane" }],
        }))
    };
    let added = given
        .reconciled(&stored("cluster-admin"), &mut cx)
        .expect("lacks one");
    let subjects = added
        .at(&["subjects"])
        .and_then(Value::as_array)
        .map(Vec::len);
    assert_eq!((subjects, &*added.metadata.uid), (Some(2), "old"));
    let anew = given
        .reconciled(&stored("view"), &mut cx)
        .expect("names another role");
    assert_eq!(anew.at(&["subjects"]), Some(&given.value("subjects")));
    assert_ne!(anew.metadata.uid, "old");
}

/// Binds a cluster role in the namespace `default`.
fn bind(server: &mut Server, name: &str, role: &str, subject: &Value) {
    let mut cx = Cx {
        now: Timestamp::UNIX_EPOCH,
        entropy: &mut || 9 << 64,
    };
    let body = json!({
        "metadata": { "name": name },
        "roleRef": { "kind": "ClusterRole", "name": role },
        "subjects": [subject],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    let request = Request {
        user: User::admin(),
        content_type: Some("application/json".into()),
        body: body.to_string().into_bytes(),
        ..request(Method::Post, path)
    };
    let crate::Called::Response(response) = server.call(&request, &mut cx) else {
        panic!("an answer");
    };
    let text = String::from_utf8_lossy(&response.body);
    assert_eq!(response.code, 201, "{text}");
}

#[test]
fn reasons_name_binding_role_and_subject() {
    let mut server = server();
    let subject = |kind: &str, name: &str| json!({ "kind": kind, "name": name });
    bind(&mut server, "b", "view", &subject("User", "jane"));
    bind(
        &mut server,
        "c",
        "edit",
        &subject("ServiceAccount", "robot"),
    );
    bind(&mut server, "d", "absent", &subject("Group", "lost"));
    let say = |user: User, method: Method, path: &str| {
        let request = Request {
            user,
            ..request(method, path)
        };
        let asked = Attributes::of(&request);
        let decision = server.may(&asked);
        (decision.is_allowed(), decision.to_string())
    };
    let pods = "/api/v1/namespaces/default/pods";
    let by = |text: &str| (true, format!("RBAC: allowed by {text}"));
    assert_eq!(
        say(jane(), Method::Get, pods),
        by(r#"RoleBinding "b/default" of ClusterRole "view" to User "jane""#)
    );
    assert_eq!(
        say(
            User::service_account("default", "robot"),
            Method::Post,
            pods
        ),
        by(r#"RoleBinding "c/default" of ClusterRole "edit" to ServiceAccount "robot/default""#)
    );
    assert_eq!(
        say(User::anonymous(), Method::Get, "/version"),
        by(
            r#"ClusterRoleBinding "system:public-info-viewer" of ClusterRole "system:public-info-viewer" to Group "system:unauthenticated""#
        )
    );
    assert_eq!(say(User::admin(), Method::Get, pods), (true, String::new()));
    assert_eq!(say(jane(), Method::Post, pods), (false, String::new()));
    let lost = User {
        groups: vec!["lost".into()],
        ..jane()
    };
    let missing = r#"rbac: RBAC: clusterrole.rbac.authorization.k8s.io "absent" not found"#;
    assert_eq!(say(lost, Method::Post, pods), (false, missing.to_owned()));
}

/// Both the work and the answer were for the author of bindings to choose.
#[test]
fn a_refusal_names_some_of_the_missing_roles_and_each_once() {
    let mut server = server();
    let subject = json!({ "kind": "User", "name": "jane" });
    for number in 0..3 * super::MISSING_MAX {
        let role = format!("absent-{}", number / 2);
        bind(&mut server, &format!("b-{number}"), &role, &subject);
    }
    let pods = request(Method::Post, "/api/v1/namespaces/default/pods");
    let told = server.may(&Attributes::of(&pods)).to_string();
    assert_eq!(
        told.matches("not found").count(),
        super::MISSING_MAX,
        "{told}"
    );
    assert_eq!(told.matches("\"absent-0\"").count(), 1, "{told}");
    let joe = User {
        name: "joe".into(),
        ..jane()
    };
    let held = |user: &User| server.held(user, "default").count();
    assert_eq!(held(&jane()) - held(&joe), 3 * super::MISSING_MAX);
}
