//! A control plane that runs pods, as a client of its API server sees it. Every answer is waited for with a
//! bound.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use kube::Client;
use serde_json::{Value, json};
use sundown_testing::{BOUND, within};

use crate::process::Up;

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const BINDINGS: &str =
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

/// Between two looks at what cannot be watched.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Of an answer that is told when a wait is over.
const SHOWN_LENGTH_MAX: usize = 4_000;

/// A running `sundown up` with pods, and its administrator.
pub(crate) struct Plane {
    pub(crate) up: Up,
    pub(crate) client: Client,
}

impl Plane {
    pub(crate) async fn start(home: &Path) -> Result<Self> {
        let up = Up::start_durable(home, &["--node"])?;
        let kubeconfig = Path::new(up.kubeconfig()).to_owned();
        let client = sundown_driver::connect(Some(&kubeconfig)).await?.client;
        Ok(Self { up, client })
    }

    /// The answer to a request; a null stands for no body.
    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> Result<String> {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        self.send_text(method, path, body).await
    }

    /// The answer to a request with any body, or the refusal in the words of the server.
    pub(crate) async fn send_text(&self, method: &str, path: &str, body: String) -> Result<String> {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("content-type", kind);
        let answer = self.client.request_text(request.body(body.into_bytes())?);
        let answer = within(format!("an answer to {method} {path}"), answer).await?;
        answer.map_err(|error| match error {
            kube::Error::Api(status) => anyhow!("{}", status.message),
            error => error.into(),
        })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        let text = self.send("GET", path, &Value::Null).await?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Asks until the answer, or the refusal, is as wanted.
    pub(crate) async fn until(
        &self,
        path: &str,
        what: &str,
        is: impl Fn(&str) -> bool,
    ) -> Result<String> {
        let begun_at = Instant::now();
        loop {
            let said = self.send("GET", path, &Value::Null).await;
            let said = said.unwrap_or_else(|error| error.to_string());
            if is(&said) {
                return Ok(said);
            }
            let shown: String = said.chars().take(SHOWN_LENGTH_MAX).collect();
            ensure!(begun_at.elapsed() < BOUND, "waited for {what}: {shown}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Asks until an object is as wanted.
    pub(crate) async fn until_object(
        &self,
        path: &str,
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> Result<()> {
        let is = |said: &str| serde_json::from_str(said).is_ok_and(|it| is(&it));
        self.until(path, what, is).await.map(drop)
    }

    /// Waits until a list is empty.
    pub(crate) async fn until_empty(&self, path: &str) -> Result<()> {
        let is_empty = |list: &Value| list["items"].as_array().is_some_and(Vec::is_empty);
        self.until_object(path, "an empty list", is_empty).await
    }

    /// Removes all pods of the namespace and waits until they are gone.
    pub(crate) async fn remove_pods(&self) -> Result<()> {
        self.send("DELETE", PODS, &Value::Null).await?;
        self.until_empty(PODS).await
    }

    /// Removes all pods and ends the control plane.
    pub(crate) async fn end(self) -> Result<()> {
        self.remove_pods().await?;
        assert_eq!(self.up.terminate()?, Some(0));
        Ok(())
    }
}

/// A pod of one container that runs a command once.
pub(crate) fn a_pod(name: &str, image: &str, command: &[&str]) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": "main", "image": image, "command": command }],
        },
    })
}
