//! What a pod refers to: `ConfigMap`s and Secrets, tokens, the certificate of the server.

use kube::Client;
use serde_json::json;
use sundown_driver::lookup::{self, Content, Holder, Lookup, LookupError};
use sundown_model::node::Refused;

use super::DeedFailure;

/// Reads for pods, as the node.
#[derive(Debug, Clone)]
pub(super) struct References {
    lookup: Lookup,
    authority: String,
}

impl References {
    pub(super) fn new(client: Client, authority: String) -> Self {
        let lookup = Lookup::new(client);
        Self { lookup, authority }
    }

    pub(super) fn client(&self) -> &Client {
        self.lookup.client()
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
        match self.lookup.content(holder, namespace, name).await {
            Ok(content) => Ok(Some(content)),
            Err(LookupError::NotFound { .. }) if optional => Ok(None),
            Err(error) => Err(error.into()),
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
        let path = lookup::path(namespace, ("pod", "pods"), name)?;
        let object = self.lookup.get(&path).await?.unwrap_or_default();
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
        let account_path = lookup::path(namespace, ("serviceaccount", "serviceaccounts"), account)?;
        let path = format!("{account_path}/token");
        let request = http::Request::post(path).header("content-type", "application/json");
        let answer = self
            .lookup
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
}

impl From<LookupError> for DeedFailure {
    fn from(error: LookupError) -> Self {
        let message = error.to_string();
        match error {
            LookupError::NameInvalid(_) => Self::refused(Refused::NameInvalid, message),
            LookupError::Failed(_) => Self::refused(Refused::LookupFailed, message),
            LookupError::NotFound { holder, key } => {
                let reason = match holder {
                    Holder::ConfigMap => Refused::ConfigMapNotFound,
                    Holder::Secret => Refused::SecretNotFound,
                };
                Self::refused(reason, message).for_lack_of(key)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;
    use sundown_api::Config;
    use sundown_server::{ApiService, Entropy, Shared, Stop, SystemClock};

    use super::*;
    use crate::machine::registration::request;

    /// A namespace that terminates takes pod and account in any order.
    #[tokio::test]
    async fn a_token_in_a_namespace_that_terminates_is_given_or_refused_at_once() {
        let (clock, entropy) = (Arc::new(SystemClock), Entropy::system());
        let shared = Shared::new(Config::default(), clock, entropy);
        let service = ApiService::trusted(Arc::new(shared), Stop::new());
        let lookup = References::new(Client::new(service, "default"), String::new());
        let send = async |method: &str, path: &str, body: Value| {
            let sent = request(method, &format!("/api/v1/namespaces{path}"), &body);
            let answer = lookup.client().request::<Value>(sent).await;
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
}
