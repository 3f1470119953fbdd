//! One run of a container, complete, from the manifest. Total: what cannot be understood is a trouble
//! that the container's status names.

use core::net::Ipv4Addr;
use std::collections::BTreeSet;

use serde_json::Value;
use sundown_model::node::{Launch, Mount, Run, Variable};

use super::downward::{self, Seen};
use super::expand::{ALL_BYTES_MAX, TEXT_BYTES_MAX, TooLarge, escape};
use super::room::Room;
use super::view::{ContainerView, PodView};
use super::{confinement, memory, sandbox, unsupported, user};
use crate::json::{is_set, list, text, texts};

/// Under which name and port pods find the API server.
pub const API_HOST: &str = "kubernetes.default.svc";
/// The port beside it.
pub const API_PORT: u16 = 443;

/// Where the token of a service account is, as upstream's admission mounts it.
const ACCOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Why a container cannot be described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    what: String,
}

impl Trouble {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

/// What the node knows and a container may ask for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place<'a> {
    pub(super) pod_address: Option<Ipv4Addr>,
    pub(super) host_address: Option<Ipv4Addr>,
    /// What the node has for pods.
    pub(super) allocatable: Option<&'a Value>,
    pub(super) has_token: bool,
}

/// Describes one run of a container.
///
/// Errors: something in the manifest cannot be understood, and what.
pub(super) fn launch(
    pod: &PodView<'_>,
    container: &ContainerView<'_>,
    attempt: u32,
    place: Option<&Place<'_>>,
) -> Result<Launch, Trouble> {
    let nowhere = Place::default();
    let place = place.unwrap_or(&nowhere);
    let json = container.json;
    unsupported::check(pod, container)?;
    let mut variables = api_variables();
    variables.extend(memory::variables(container));
    for from in list(json, "envFrom") {
        variables.push(from_all(from)?);
    }
    let seen = Seen { pod, place };
    let mut room = Room::of(ALL_BYTES_MAX);
    for variable in list(json, "env") {
        variables.push(self::variable(&seen, container, variable, &mut room)?);
    }
    let read_only = json.pointer("/securityContext/readOnlyRootFilesystem");
    Ok(Launch {
        run: Run {
            pod: pod.uid.clone(),
            container: container.name.clone(),
            attempt,
        },
        image: container.image.clone(),
        command: texts(json, "command"),
        args: texts(json, "args"),
        variables,
        directory: text(json, "workingDir").to_owned(),
        mounts: mounts(pod, json, place)?,
        read_only_root: read_only == Some(&Value::Bool(true)),
        dropped: confinement::dropped(container),
        run_as: user::run_as(pod, container),
    })
}

fn api_variables() -> Vec<Variable> {
    let port = API_PORT.to_string();
    let all = [
        ("KUBERNETES_SERVICE_HOST", API_HOST),
        ("KUBERNETES_SERVICE_PORT", port.as_str()),
        ("KUBERNETES_SERVICE_PORT_HTTPS", port.as_str()),
    ];
    all.into_iter()
        .map(|(name, value)| plain(name, value))
        .collect()
}

fn plain(name: &str, value: &str) -> Variable {
    Variable::Text {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

fn from_all(json: &Value) -> Result<Variable, Trouble> {
    let prefix = text(json, "prefix").to_owned();
    let parts = |source: &Value| {
        (
            text(source, "name").to_owned(),
            is_set(source, "optional"),
            prefix.clone(),
        )
    };
    match (json.get("configMapRef"), json.get("secretRef")) {
        (Some(source), _) => {
            let (of, optional, prefix) = parts(source);
            Ok(Variable::ConfigMap {
                of,
                prefix,
                optional,
            })
        }
        (None, Some(source)) => {
            let (of, optional, prefix) = parts(source);
            Ok(Variable::Secret {
                of,
                prefix,
                optional,
            })
        }
        (None, None) => Err(Trouble::new(
            "envFrom names neither a ConfigMap nor a Secret",
        )),
    }
}

/// One variable of a container. What comes of fields of the pod takes room: the same long field can be
/// named many times.
fn variable(
    seen: &Seen<'_>,
    container: &ContainerView<'_>,
    json: &Value,
    room: &mut Room,
) -> Result<Variable, Trouble> {
    let name = text(json, "name").to_owned();
    let Some(source) = json.get("valueFrom") else {
        return Ok(plain(&name, text(json, "value")));
    };
    let key = |of: &Value| {
        let (object, key) = (text(of, "name").to_owned(), text(of, "key").to_owned());
        (object, key, is_set(of, "optional"))
    };
    if let Some(of) = source.get("configMapKeyRef") {
        let (of, key, optional) = key(of);
        return Ok(Variable::ConfigMapKey {
            name,
            of,
            key,
            optional,
        });
    }
    if let Some(of) = source.get("secretKeyRef") {
        let (of, key, optional) = key(of);
        return Ok(Variable::SecretKey {
            name,
            of,
            key,
            optional,
        });
    }
    let value = match (source.get("fieldRef"), source.get("resourceFieldRef")) {
        (Some(field), _) => downward::field(seen, text(field, "fieldPath"))?,
        (None, Some(resource)) => downward::resource(seen, resource, container)?,
        (None, None) => {
            return Err(Trouble::new(format!(
                "environment variable {name}: its source is not known here"
            )));
        }
    };
    let too_large = |why: TooLarge| Trouble::new(why.to_string());
    if value.len() > TEXT_BYTES_MAX {
        return Err(too_large(TooLarge::variable(&name)));
    }
    if room.take(value.len()).is_err() {
        return Err(too_large(TooLarge::together(&name)));
    }
    Ok(plain(&name, &escape(&value)))
}

fn mounts(pod: &PodView<'_>, json: &Value, place: &Place<'_>) -> Result<Vec<Mount>, Trouble> {
    let volumes: BTreeSet<&str> = sandbox::volumes(pod).collect();
    let mut all = Vec::new();
    for mount in list(json, "volumeMounts") {
        let volume = text(mount, "name");
        if !volumes.contains(volume) {
            let what = format!("volume mount {volume:?} names no volume of the pod");
            return Err(Trouble::new(what));
        }
        all.push(Mount {
            volume: volume.to_owned(),
            path: text(mount, "mountPath").to_owned(),
            sub_path: text(mount, "subPath").to_owned(),
            read_only: is_set(mount, "readOnly"),
        });
    }
    let is_taken = all.iter().any(|it: &Mount| it.path == ACCOUNT_PATH);
    if place.has_token && !is_taken {
        all.push(Mount {
            volume: sandbox::ACCOUNT_VOLUME.to_owned(),
            path: ACCOUNT_PATH.to_owned(),
            sub_path: String::new(),
            read_only: true,
        });
    }
    Ok(all)
}
