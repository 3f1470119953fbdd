//! What a decision only names: the content of `ConfigMap`s and Secrets. Any port may look it up while it does
//! a deed; it is read when it is used, kept nowhere, and no decision ever sees it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde_json::Value;
use sundown_decide::rights::Right;
use sundown_model::path::part;
use sundown_model::{ObjectKey, Resource, dns};
use tokio::time::timeout;

/// How long an answer may take: a server in this process has this long when its disk is slow.
const LOOKUP_TIME_MAX: Duration = Duration::from_secs(10);
/// How much is shown of a name that is none: as long as a name can be.
const SHOWN_LEN_MAX: usize = 253;

/// Reads objects of the core group for deeds.
#[derive(Clone)]
pub struct Lookup {
    client: Client,
    time_max: Duration,
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookup")
    }
}

/// Keys and their content, of a `ConfigMap` or a Secret.
pub type Content = BTreeMap<String, Vec<u8>>;

/// The two kinds that hold content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    ConfigMap,
    Secret,
}

/// Why there is nothing to use.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// What a manifest names cannot be the name of an object.
    #[error("{0}")]
    NameInvalid(String),
    #[error("{} {:?} not found", .holder.word(), .key.name)]
    NotFound { holder: Holder, key: ObjectKey },
    /// The API server did not give it.
    #[error("{0}")]
    Failed(String),
}

impl Holder {
    fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }

    /// An object of this kind.
    pub fn key(self, namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::namespaced(&Resource::new("", self.plural()), namespace, name)
    }

    /// As the kubelet writes it.
    fn word(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
        }
    }
}

impl Lookup {
    /// The rights that a port needs for it.
    pub const RIGHTS: &'static [Right] = &[
        Right::to("", "configmaps", &["get"]),
        Right::to("", "secrets", &["get"]),
    ];

    /// Reads as the user of this client.
    pub fn new(client: Client) -> Self {
        let time_max = LOOKUP_TIME_MAX;
        Self { client, time_max }
    }

    /// By which it reads.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The same with another bound on each answer.
    #[must_use]
    pub fn time_max(self, time_max: Duration) -> Self {
        Self { time_max, ..self }
    }

    /// The content of an object.
    ///
    /// Errors: it is not there, or could not be read.
    pub async fn content(
        &self,
        holder: Holder,
        namespace: &str,
        name: &str,
    ) -> Result<Content, LookupError> {
        let path = path(namespace, (holder.word(), holder.plural()), name)?;
        let missing = || {
            let key = holder.key(namespace, name);
            LookupError::NotFound { holder, key }
        };
        let object = self.get(&path).await?.ok_or_else(missing)?;
        Ok(content_of(holder, &object))
    }

    /// Reads an object at a path; None: there is no such object.
    ///
    /// Errors: no answer, or one that is no object.
    pub async fn get(&self, path: &str) -> Result<Option<Value>, LookupError> {
        self.send(http::Request::get(path).body(Vec::new())).await
    }

    /// Sends a request; None: there is no such object.
    ///
    /// Errors: no answer, or one that is no object.
    pub async fn send(
        &self,
        request: http::Result<http::Request<Vec<u8>>>,
    ) -> Result<Option<Value>, LookupError> {
        let request = request.map_err(|error| LookupError::NameInvalid(error.to_string()))?;
        let path = request.uri().path().to_owned();
        match timeout(self.time_max, self.client.request::<Value>(request)).await {
            Ok(Ok(object)) => Ok(Some(object)),
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(None),
            Ok(Err(error)) => Err(LookupError::Failed(error.to_string())),
            Err(_) => {
                let message = format!("{path}: no answer within {:?}", self.time_max);
                Err(LookupError::Failed(message))
            }
        }
    }
}

/// Where an object of the core group is.
///
/// Errors: what a manifest names cannot be the name of one. Upstream's validation asks only that there is
/// a name, so that it is checked here, before it becomes a part of a request.
pub fn path(
    namespace: &str,
    (word, plural): (&str, &str),
    name: &str,
) -> Result<String, LookupError> {
    if let Some(why) = dns::subdomain(name).first() {
        let shown: String = name.chars().take(SHOWN_LEN_MAX).collect();
        let message = format!("{shown:?} cannot be the name of a {word}: {why}");
        return Err(LookupError::NameInvalid(message));
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

    use super::*;

    #[test]
    fn a_name_becomes_one_part_of_a_path_or_is_refused() {
        let secret = ("secret", "secrets");
        let found = path("ns", secret, "my.secret-1").ok();
        let expect = "/api/v1/namespaces/ns/secrets/my.secret-1";
        assert_eq!(found.as_deref(), Some(expect));
        let refused = |name: &str| match path("ns", secret, name) {
            Err(LookupError::NameInvalid(message)) => message,
            other => unreachable!("{name:?} is no name: {other:?}"),
        };
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
            let message = refused(name);
            let expect = format!("{name:?} cannot be the name of a secret: a lowercase RFC 1123");
            assert!(message.starts_with(&expect), "{message}");
        }
        let message = refused(&"a".repeat(1 << 20));
        assert!(message.len() < 1_000, "{message}");
    }

    /// A watch of all Secrets was collected without end, and the deed never returned.
    #[tokio::test]
    async fn a_server_that_does_not_answer_is_told() {
        let silence = |_: http::Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, Infallible>>()
        };
        let client = Client::new(tower::service_fn(silence), "default");
        let lookup = Lookup::new(client).time_max(Duration::from_millis(20));
        let content = lookup.content(Holder::Secret, "ns", "a").await;
        let error = content.expect_err("the server is silent");
        assert_eq!(
            error.to_string(),
            "/api/v1/namespaces/ns/secrets/a: no answer within 20ms"
        );
    }
}
