//! What a decision only names: the content of `ConfigMap`s and Secrets, tokens, the certificate of the
//! server. It is read when it is used and kept nowhere.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde_json::{Value, json};
use sundown_model::{ObjectKey, Resource};

use super::DeedFailure;

/// Reads objects for pods.
#[derive(Clone)]
pub(super) struct Lookup {
    client: Client,
    authority: String,
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

    fn not_found(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMapNotFound",
            Self::Secret => "SecretNotFound",
        }
    }
}

impl Lookup {
    pub(super) fn new(client: Client, authority: String) -> Self {
        Self { client, authority }
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
        let plural = holder.plural();
        let path = format!("/api/v1/namespaces/{namespace}/{plural}/{name}");
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
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        let object = self.get(&path).await?.unwrap_or_default();
        if object["metadata"]["uid"] != uid {
            let message = format!("pod {namespace}/{name} is another one by now");
            return Err(DeedFailure::refused("PodGone", message));
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
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request = http::Request::post(path).header("content-type", "application/json");
        let answer = self
            .send(request.body(body.to_string().into_bytes()))
            .await?;
        let answer = answer.ok_or_else(|| {
            let message = format!("serviceaccount {account:?} not found");
            DeedFailure::refused("ServiceAccountNotFound", message)
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
        let request =
            request.map_err(|error| DeedFailure::refused("BadName", error.to_string()))?;
        match self.client.request::<Value>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(DeedFailure::refused("LookupFailed", error.to_string())),
        }
    }
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
