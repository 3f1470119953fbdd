//! What a decision only names: the content of `ConfigMap`s and Secrets, tokens, the certificate of the
//! server. It is read when it is used and kept nowhere.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde_json::{Value, json};
use sundown_model::node::Refused;
use sundown_model::path::part;
use sundown_model::{ObjectKey, Resource, dns};
use tokio::time::timeout;

use super::DeedFailure;

/// How long an answer may take. The server is in this process; it has this long when its disk is slow.
const LOOKUP_TIME_MAX: Duration = Duration::from_secs(10);
/// How much is shown of a name that is none: as long as a name can be.
const SHOWN_LEN_MAX: usize = 253;

/// Reads objects for pods.
#[derive(Clone)]
pub(super) struct Lookup {
    client: Client,
    authority: String,
    time_max: Duration,
}

impl std::fmt::Debug for Lookup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lookup")
    }
}

/// Keys and their content, of a `ConfigMap` or a Secret.
pub(super) type Content = BTreeMap<String, Vec<u8>>;

/// The two kinds that hold content for pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    ConfigMap,
    Secret,
}

impl Holder {
    fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }

    /// An object of this kind.
    pub(super) fn key(self, namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::namespaced(&Resource::new("", self.plural()), namespace, name)
    }

    /// As the kubelet writes it.
    fn word(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
        }
    }

    fn not_found(self) -> Refused {
        match self {
            Self::ConfigMap => Refused::ConfigMapNotFound,
            Self::Secret => Refused::SecretNotFound,
        }
    }
}

impl Lookup {
    pub(super) fn new(client: Client, authority: String) -> Self {
        let time_max = LOOKUP_TIME_MAX;
        Self {
            client,
            authority,
            time_max,
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The certificate by which pods know the API server.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// The content of an object; None if it is not there and need not be.
    pub(super) async fn content(
        &self,
        holder: Holder,
        namespace: &str,
        name: &str,
        optional: bool,
    ) -> Result<Option<Content>, DeedFailure> {
        let path = path(namespace, (holder.word(), holder.plural()), name)?;
        match self.get(&path).await? {
            Some(object) => Ok(Some(content_of(holder, &object))),
            None if optional => Ok(None),
            None => {
                let message = format!("{} {name:?} not found", holder.word());
                let refused = DeedFailure::refused(holder.not_found(), message);
                Err(refused.for_lack_of(holder.key(namespace, name)))
            }
        }
    }

    /// A token of the pod's service account, bound to the pod.
    pub(super) async fn token(
        &self,
        namespace: &str,
        pod: (&str, &str),
        audience: Option<&str>,
        expiration_seconds: u64,
    ) -> Result<String, DeedFailure> {
        let (name, uid) = pod;
        let path = self::path(namespace, ("pod", "pods"), name)?;
        let object = self.get(&path).await?.unwrap_or_default();
        if object["metadata"]["uid"] != uid {
            let message = format!("pod {namespace}/{name} is another one by now");
            return Err(DeedFailure::refused(Refused::PodGone, message));
        }
        let account = object["spec"]["serviceAccountName"].as_str();
        let account = account.unwrap_or("default");
        let audiences: Vec<&str> = audience.into_iter().collect();
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {
                "audiences": audiences, "expirationSeconds": expiration_seconds,
                "boundObjectRef": {
                    "apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid,
                },
            },
        });
        let account_path = self::path(namespace, ("serviceaccount", "serviceaccounts"), account)?;
        let path = format!("{account_path}/token");
        let request = http::Request::post(path).header("content-type", "application/json");
        let answer = self
            .send(request.body(body.to_string().into_bytes()))
            .await?;
        let answer = answer.ok_or_else(|| {
            let message = format!("serviceaccount {account:?} not found");
            DeedFailure::refused(Refused::ServiceAccountNotFound, message)
        })?;
        Ok(answer["status"]["token"]
            .as_str()
            .unwrap_or_default()
            .to_owned())
    }

    async fn get(&self, path: &str) -> Result<Option<Value>, DeedFailure> {
        self.send(http::Request::get(path).body(Vec::new())).await
    }

    /// None: there is no such object.
    async fn send(
        &self,
        request: http::Result<http::Request<Vec<u8>>>,
    ) -> Result<Option<Value>, DeedFailure> {
        let request = request
            .map_err(|error| DeedFailure::refused(Refused::NameInvalid, error.to_string()))?;
        let path = request.uri().path().to_owned();
        match timeout(self.time_max, self.client.request::<Value>(request)).await {
            Ok(Ok(object)) => Ok(Some(object)),
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(None),
            Ok(Err(error)) => Err(DeedFailure::refused(
                Refused::LookupFailed,
                error.to_string(),
            )),
            Err(_) => {
                let message = format!("{path}: no answer within {:?}", self.time_max);
                Err(DeedFailure::refused(Refused::LookupFailed, message))
            }
        }
    }
}

/// Where an object of the core group is.
///
/// Errors: what a manifest names cannot be the name of one. Upstream's validation asks only that there is
/// a name, so that it is checked here, before it becomes a part of a request of the administrator.
fn path(namespace: &str, (word, plural): (&str, &str), name: &str) -> Result<String, DeedFailure> {
    if let Some(why) = dns::subdomain(name).first() {
        let shown: String = name.chars().take(SHOWN_LEN_MAX).collect();
        let message = format!("{shown:?} cannot be the name of a {word}: {why}");
        return Err(DeedFailure::refused(Refused::NameInvalid, message));
    }
    let (namespace, name) = (part(namespace), part(name));
    Ok(format!("/api/v1/namespaces/{namespace}/{plural}/{name}"))
}

fn content_of(holder: Holder, object: &Value) -> Content {
    let texts = |member: &str| object[member].as_object().cloned().unwrap_or_default();
    let decoded = |(key, value): (String, Value)| {
        // The server checked it when it was written.
        let bytes = STANDARD.decode(value.as_str().unwrap_or_default());
        (key, bytes.unwrap_or_default())
    };
    match holder {
        Holder::ConfigMap => {
            let plain = texts("data").into_iter().map(|(key, value)| {
                let text = value.as_str().unwrap_or_default();
                (key, text.as_bytes().to_vec())
            });
            plain
                .chain(texts("binaryData").into_iter().map(decoded))
                .collect()
        }
        Holder::Secret => texts("data").into_iter().map(decoded).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use sundown_api::Config;
    use sundown_server::{ApiService, Entropy, Shared, Stop, SystemClock};

    use super::*;
    use crate::machine::registration::request;

    #[test]
    fn a_name_becomes_one_part_of_a_path_or_is_refused() {
        let secret = ("secret", "secrets");
        let found = path("ns", secret, "my.secret-1").ok();
        assert_eq!(
            found.as_deref(),
            Some("/api/v1/namespaces/ns/secrets/my.secret-1")
        );
        for name in [
            "?watch=true",
            "a/b",
            "..%2f..",
            "x#y",
            "..",
            ".",
            "",
            "A",
            "a b",
        ] {
            let Err(DeedFailure::Refused(refusal)) = path("ns", secret, name) else {
                unreachable!("{name:?} is no name")
            };
            assert_eq!(refusal.reason, Refused::NameInvalid.into());
            let expect = format!("{name:?} cannot be the name of a secret: a lowercase RFC 1123");
            assert!(refusal.message.starts_with(&expect), "{}", refusal.message);
        }
        let Err(DeedFailure::Refused(refusal)) = path("ns", secret, &"a".repeat(1 << 20)) else {
            unreachable!("it is too long")
        };
        assert!(refusal.message.len() < 1_000, "{}", refusal.message);
    }

    /// A namespace that terminates takes pod and account in any order.
    #[tokio::test]
    async fn a_token_in_a_namespace_that_terminates_is_given_or_refused_at_once() {
        let (clock, entropy) = (Arc::new(SystemClock), Entropy::system());
        let shared = Shared::new(Config::default(), clock, entropy);
        let service = ApiService::trusted(Arc::new(shared), Stop::new());
        let lookup = Lookup::new(Client::new(service, "default"), String::new());
        let send = async |method: &str, path: &str, body: Value| {
            let sent = request(method, &format!("/api/v1/namespaces{path}"), &body);
            let answer = lookup.client.request::<Value>(sent).await;
            answer.expect("the administrator may do it")
        };
        let named = |name: &str| json!({ "metadata": { "name": name } });
        send("POST", "", named("goes")).await;
        send("POST", "/goes/serviceaccounts", named("default")).await;
        let mut pod = named("p");
        pod["spec"] = json!({ "containers": [{ "name": "c", "image": "i" }] });
        let pod = send("POST", "/goes/pods", pod).await;
        let uid = pod["metadata"]["uid"].as_str().expect("it has a uid");
        let reason = async || match lookup.token("goes", ("p", uid), None, 3607).await {
            Ok(_) => String::new(),
            Err(DeedFailure::Refused(refusal)) => refusal.reason.to_string(),
            Err(other) => unreachable!("{other:?}"),
        };
        send("DELETE", "/goes", json!({})).await;
        assert_eq!(reason().await, "", "the account is still there");
        send("DELETE", "/goes/serviceaccounts/default", json!({})).await;
        assert_eq!(reason().await, "ServiceAccountNotFound");
        let now = json!({ "gracePeriodSeconds": 0 });
        send("DELETE", "/goes/pods/p", now).await;
        assert_eq!(reason().await, "PodGone");
    }

    /// A watch of all Secrets was collected without end, and the deed never returned.
    #[tokio::test]
    async fn a_server_that_does_not_answer_is_told() {
        let silence = |_: http::Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, Infallible>>()
        };
        let client = Client::new(tower::service_fn(silence), "default");
        let mut lookup = Lookup::new(client, String::new());
        lookup.time_max = Duration::from_millis(20);
        let content = lookup.content(Holder::Secret, "ns", "a", false).await;
        let Err(DeedFailure::Refused(refusal)) = content else {
            unreachable!("nobody answered")
        };
        assert_eq!(
            refusal.message,
            "/api/v1/namespaces/ns/secrets/a: no answer within 20ms"
        );
    }
}
