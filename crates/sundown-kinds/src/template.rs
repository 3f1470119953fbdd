//! A pod template as users write it, and what is asked about it. Total: what is not of the expected
//! type is not there.

use serde_json::{Map, Value};

use crate::reader::{Malformed, Reader};

/// A pod template, passed on as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PodTemplate(pub Map<String, Value>);

impl PodTemplate {
    pub(crate) fn read(at: &Reader<'_>) -> Result<Self, Malformed> {
        let spec = at.member("spec")?;
        spec.list("containers", |container| {
            container.text("name")?;
            container.text("image")?;
            container.raw_list("env")?;
            container.raw_list("ports")?;
            container.text_list("command")?;
            container.text_list("args")
        })?;
        spec.text("restartPolicy")?;
        let metadata = at.member("metadata")?;
        metadata.texts("labels")?;
        metadata.texts("annotations")?;
        Ok(Self(at.whole()))
    }

    fn spec(&self, member: &str) -> Option<&Value> {
        self.0.get("spec")?.get(member)
    }

    /// The containers.
    pub fn containers(&self) -> &[Value] {
        list(self.spec("containers"))
    }

    /// The container that runs Ray: the first.
    pub fn ray_container(&self) -> Option<&Value> {
        self.containers().first()
    }

    /// Empty, `Always`, `OnFailure` or `Never`.
    pub fn restart_policy(&self) -> &str {
        self.spec("restartPolicy")
            .and_then(Value::as_str)
            .unwrap_or("")
    }

    /// The volumes.
    pub fn volumes(&self) -> &[Value] {
        list(self.spec("volumes"))
    }

    /// A label of the template; None if it has none.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.0.get("metadata")?.get("labels")?.get(name)?.as_str()
    }

    /// Whether the Ray container has such an environment variable.
    pub fn has_env(&self, name: &str) -> bool {
        self.env(name).is_some()
    }

    /// The literal value of an environment variable of the Ray container.
    pub fn env_value(&self, name: &str) -> Option<&str> {
        self.env(name)?
            .get("value")
            .and_then(Value::as_str)
            .or(Some(""))
    }

    fn env(&self, name: &str) -> Option<&Value> {
        named(list(self.ray_container()?.get("env")), name)
    }

    /// The number of a port of the Ray container by name.
    pub fn port(&self, name: &str) -> Option<i64> {
        let ports = list(self.ray_container()?.get("ports"));
        named(ports, name)?.get("containerPort")?.as_i64()
    }
}

/// The items of a list; none if it is none.
pub(crate) fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The item of this name.
pub(crate) fn named<'a>(items: &'a [Value], name: &str) -> Option<&'a Value> {
    items
        .iter()
        .find(|item| item.get("name").and_then(Value::as_str) == Some(name))
}
