//! A server, a clock and a fixed stream of entropy; requests that read as sentences.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sundown_api::{Called, Config, Cx, Method, Request, Server, Watch};

pub(crate) const CM: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
pub(crate) const NAMESPACES: &str = "/api/v1/namespaces";
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const SUNJOBS: &str = "/apis/sundown.dev/v1/namespaces/default/sunjobs";

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// One server and what drives it.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) now: Timestamp,
    entropy: u128,
}

/// An answer with its body read.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) json: Value,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn message(&self) -> &str {
        self.json["message"].as_str().unwrap_or("")
    }

    pub(crate) fn reason(&self) -> &str {
        self.json["reason"].as_str().unwrap_or("")
    }

    pub(crate) fn uid(&self) -> String {
        self.json["metadata"]["uid"]
            .as_str()
            .unwrap_or("")
            .to_owned()
    }

    pub(crate) fn rv(&self) -> String {
        self.json["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or("")
            .to_owned()
    }

    pub(crate) fn metadata(&self, field: &str) -> &Value {
        &self.json["metadata"][field]
    }

    /// This answer, which has to be a success.
    pub(crate) fn ok(self) -> Self {
        assert!(
            (200..300).contains(&self.code),
            "{} {}",
            self.code,
            self.text
        );
        self
    }
}

pub(crate) fn request(method: Method, path: &str, body: &Value) -> Request {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key.to_owned(), value.to_owned())
    };
    Request {
        method,
        path: path.into(),
        query: pairs.map(pair).collect(),
        content_type: Some("application/json".into()),
        accept: None,
        user_agent: None,
        if_none_match: None,
        user: sundown_api::User::admin(),
        body: if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        },
    }
}

/// A plain config map.
pub(crate) fn cm(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

/// A config map with finalizers.
pub(crate) fn held(name: &str, finalizers: &[&str]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "finalizers": finalizers },
    })
}

/// A pod with one container.
pub(crate) fn pod(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": pod_spec() })
}

/// A job of one such pod.
pub(crate) fn job(name: &str) -> Value {
    let mut spec = pod_spec();
    spec["restartPolicy"] = json!("Never");
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name },
        "spec": { "template": { "spec": spec } },
    })
}

fn pod_spec() -> Value {
    json!({ "containers": [{ "name": "main", "image": "busybox" }] })
}

pub(crate) fn custom_resource_definition() -> Value {
    let schema = json!({ "openAPIV3Schema": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
    } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "sunjobs.sundown.dev" },
        "spec": {
            "group": "sundown.dev", "scope": "Namespaced",
            "names": { "plural": "sunjobs", "kind": "SunJob", "shortNames": ["sj"] },
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true, "schema": schema,
                    "subresources": { "status": {} },
                },
                { "name": "v1beta1", "served": true, "storage": false, "schema": schema },
            ],
        },
    })
}

pub(crate) fn sunjob(name: &str) -> Value {
    json!({ "apiVersion": "sundown.dev/v1", "kind": "SunJob", "metadata": { "name": name } })
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let now: Timestamp = "2026-01-01T00:00:00.5Z".parse().unwrap();
        let mut entropy = 0_u128;
        let mut next = || {
            entropy = entropy.wrapping_add(0x1234_5678_9abc_def0_0fed_cba9_8765_4321);
            entropy
        };
        let server = Server::new(
            config,
            &mut Cx {
                now,
                entropy: &mut next,
            },
        );
        Self {
            server,
            now,
            entropy,
        }
    }

    /// A world in which `SunJob`s are served.
    pub(crate) fn with_sunjobs() -> Self {
        let mut world = Self::new();
        world.post(CRDS, &custom_resource_definition()).ok();
        world
    }

    pub(crate) fn call(&mut self, request: &Request) -> Called {
        let entropy = &mut self.entropy;
        let mut next = || {
            *entropy = entropy
                .wrapping_mul(0x2545_f491_4f6c_dd1d)
                .wrapping_add(0x9e37_79b9);
            *entropy
        };
        self.server.call(
            request,
            &mut Cx {
                now: self.now,
                entropy: &mut next,
            },
        )
    }

    pub(crate) fn send(&mut self, request: &Request) -> Reply {
        match self.call(request) {
            Called::Watch(watch) => panic!("a watch, not an answer: {watch:?}"),
            Called::Log(log) => panic!("a log, not an answer: {log:?}"),
            Called::Response(response) => {
                let text = String::from_utf8(response.body).unwrap();
                let json = serde_json::from_str(&text).unwrap_or(Value::Null);
                Reply {
                    code: response.code,
                    warnings: response.warnings,
                    json,
                    text,
                }
            }
        }
    }

    pub(crate) fn get(&mut self, path: &str) -> Reply {
        self.send(&request(Method::Get, path, &Value::Null))
    }

    pub(crate) fn get_as(&mut self, path: &str, accept: &str) -> Reply {
        let plain = request(Method::Get, path, &Value::Null);
        self.send(&Request {
            accept: Some(accept.into()),
            ..plain
        })
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Reply {
        self.send(&request(Method::Post, path, body))
    }

    pub(crate) fn put(&mut self, path: &str, body: &Value) -> Reply {
        self.send(&request(Method::Put, path, body))
    }

    pub(crate) fn delete(&mut self, path: &str, options: &Value) -> Reply {
        self.send(&request(Method::Delete, path, options))
    }

    pub(crate) fn patch(&mut self, path: &str, media: &str, body: &Value) -> Reply {
        let plain = request(Method::Patch, path, body);
        self.send(&Request {
            content_type: Some(media.into()),
            ..plain
        })
    }

    pub(crate) fn merge(&mut self, path: &str, body: &Value) -> Reply {
        self.patch(path, MERGE, body)
    }

    pub(crate) fn exists(&mut self, path: &str) -> bool {
        self.get(path).code == 200
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    pub(crate) fn watch(&mut self, path: &str) -> Watch {
        self.watch_as(path, "application/json")
    }

    pub(crate) fn watch_as(&mut self, path: &str, accept: &str) -> Watch {
        let plain = request(Method::Get, path, &Value::Null);
        match self.call(&Request {
            accept: Some(accept.into()),
            ..plain
        }) {
            Called::Watch(watch) => watch,
            Called::Log(log) => panic!("a log, not a watch: {log:?}"),
            Called::Response(response) => {
                panic!(
                    "no watch: {} {}",
                    response.code,
                    String::from_utf8_lossy(&response.body)
                )
            }
        }
    }

    /// The events of a watch since the last poll, and whether it ended.
    pub(crate) fn poll(&self, watch: &mut Watch) -> (Vec<Value>, bool) {
        let polled = watch.poll(&self.server, self.now);
        let read = |line: &std::sync::Arc<[u8]>| {
            assert_eq!(line.last(), Some(&b'\n'), "each line is complete");
            serde_json::from_slice(line).unwrap()
        };
        (polled.lines.iter().map(read).collect(), polled.ended)
    }

    /// Type and name of each event since the last poll.
    pub(crate) fn seen(&self, watch: &mut Watch) -> Vec<String> {
        let (events, _) = self.poll(watch);
        let text = |event: &Value| {
            let name = event["object"]["metadata"]["name"].as_str().unwrap_or("-");
            format!("{} {name}", event["type"].as_str().unwrap())
        };
        events.iter().map(text).collect()
    }
}
