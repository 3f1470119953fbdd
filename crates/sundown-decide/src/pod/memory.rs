//! What the memory of a pod means where no cgroup enforces it: how large its volumes in memory may grow, and
//! how large Ray may make its object store. Nothing of it is ever in the pod object.
//!
//! Ray asks cgroups for the memory of its machine, and finds the whole of it here. Of what Ray can be told by
//! variables only the bound below leaves flags and parameters of users alone: `RAY_OVERRIDE_RESOURCES` would
//! replace them (docs/node.md has the others). CPUs and `memory` of a Ray node stand in the command that
//! `ray_cluster` makes.

use serde_json::Value;
use sundown_model::node::Variable;

use super::view::{ContainerView, PodView, Role};
use crate::json::{list, text};
use crate::quantity;

/// The most that Ray gives its object store, unless it is told a size (`ray_constants.py`).
const STORE_MAX: &str = "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES";
/// Which part of the memory that is, and Ray's default for it in thousandths.
const STORE_PROPORTION: &str = "RAY_DEFAULT_OBJECT_STORE_MEMORY_PROPORTION";
const STORE_PROPORTION_MILLI: i128 = 300;
/// Ray does not start with a smaller one.
const STORE_BYTES_MIN: i128 = 75 << 20;

/// What `/dev/shm` has at least: as with container runtimes.
const SHARED_BYTES_MIN: u64 = 64 << 20;

/// What tells Ray in a container how large its object store may be: the part of the container's memory that
/// it would take if that were its machine. By its limit, else by its request, as `KubeRay` sizes `/dev/shm`.
/// They come before the user's own, which replace them.
pub(super) fn variables(container: &ContainerView<'_>) -> Option<Variable> {
    let amount = |kind: &str| bytes(container.json.pointer(&format!("/resources/{kind}/memory")));
    let memory = amount("limits").or_else(|| amount("requests"))?;
    let store = i128::from(memory).saturating_mul(proportion(container.json)) / 1_000;
    Some(Variable::Text {
        name: STORE_MAX.to_owned(),
        value: store.max(STORE_BYTES_MIN).to_string(),
    })
}

/// The user's own proportion, where the manifest itself says it.
fn proportion(container: &Value) -> i128 {
    let mut env = list(container, "env").iter();
    let own = env.find(|it| text(it, "name") == STORE_PROPORTION);
    let own = own.and_then(|it| quantity::milli(text(it, "value")));
    let own = own.filter(|milli| (1..=1_000).contains(milli));
    own.unwrap_or(STORE_PROPORTION_MILLI)
}

/// The memory limit of a pod, as the kubelet counts it for its volumes in memory: none if one of its
/// containers has none.
pub(super) fn limit(pod: &PodView<'_>) -> Option<u64> {
    let of = |it: &ContainerView<'_>| bytes(it.json.pointer("/resources/limits/memory"));
    let mut sum: u64 = 0;
    for container in &pod.main {
        sum = sum.saturating_add(of(container)?);
    }
    let mut peak = 0;
    for container in &pod.init {
        match container.role {
            Role::Sidecar => sum = sum.saturating_add(of(container)?),
            Role::Init | Role::Main => peak = of(container)?.max(peak),
        }
    }
    Some(sum.max(peak))
}

/// How large a volume in memory may grow: what it asks for, and no more than its pod may use.
pub(super) fn volume_bytes(asked: Option<u64>, limit: Option<u64>) -> Option<u64> {
    [asked, limit].into_iter().flatten().min()
}

/// How large `/dev/shm` is where no volume is mounted there; None: as with container runtimes.
pub(super) fn shared_bytes(limit: Option<u64>) -> Option<u64> {
    limit.map(|bytes| bytes.max(SHARED_BYTES_MIN))
}

/// An amount of memory; none if it is missing, no quantity or nothing.
fn bytes(value: Option<&Value>) -> Option<u64> {
    let text = match value? {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let bytes = quantity::units(&text)?;
    u64::try_from(bytes).ok().filter(|bytes| *bytes > 0)
}
