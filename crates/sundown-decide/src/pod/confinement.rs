//! What a manifest says about the rights of a container: done, refused by name, or, for the few that
//! common manifests carry and that cannot be done here, told with a warning. A field that asks for less
//! is never passed over in silence.

use serde_json::Value;
use sundown_model::node::CAPABILITIES;

use super::launch::Trouble;
use super::view::{ContainerView, PodView};
use crate::json::{text, texts};

/// Ray's own way to profiles asks for it, and Ray runs without: containers of such manifests start, and are
/// told that they do not have it. It would let a container into its own init, which has more rights.
const TOLERATED: &str = "SYS_PTRACE";

/// Stands for all capabilities.
const ALL: &str = "ALL";

/// The rights of root that a container gives up.
pub(super) fn dropped(container: &ContainerView<'_>) -> Vec<String> {
    let (added, dropped) = (names(container, "add"), names(container, "drop"));
    let has = |all: &[String], name: &str| all.iter().any(|it| it == name);
    let gives_up_all = has(&dropped, ALL);
    let is_dropped = |name: &&str| {
        let name = *name;
        has(&dropped, name) || (gives_up_all && !has(&added, name))
    };
    let all = CAPABILITIES.into_iter().filter(is_dropped);
    all.map(ToOwned::to_owned).collect()
}

/// Whether what is asked for can be done, or does no harm undone.
///
/// Errors: it cannot, by the name of its field and with what to do.
pub(super) fn check(pod: &PodView<'_>, container: &ContainerView<'_>) -> Result<(), Trouble> {
    for name in names(container, "add") {
        if name != TOLERATED && !CAPABILITIES.contains(&name.as_str()) {
            return Err(Trouble::new(format!(
                "securityContext.capabilities.add: {name} is not supported here; remove it, a \
                 container can have {}",
                CAPABILITIES.join(", ")
            )));
        }
    }
    for field in ["seccompProfile", "appArmorProfile"] {
        if profile(pod, container, field) == "Localhost" {
            return Err(Trouble::new(format!(
                "securityContext.{field}.type: Localhost is not supported here; remove it, or say \
                 Unconfined"
            )));
        }
    }
    let context = container.json.get("securityContext");
    if context.map_or("", |it| text(it, "procMount")) == "Unmasked" {
        let what = "securityContext.procMount: Unmasked is not supported here";
        return Err(Trouble::new(what));
    }
    let contexts = [context, pod.object.field("/spec/securityContext")];
    let mut labels = contexts
        .iter()
        .filter_map(|it| it.and_then(|it| it.get("seLinuxOptions")));
    if labels.any(|it| it.as_object().is_some_and(|it| !it.is_empty())) {
        let what = "securityContext.seLinuxOptions is not supported here";
        return Err(Trouble::new(what));
    }
    Ok(())
}

/// What is asked for, not done and not refused, in sentences for the user.
pub(super) fn unmet(pod: &PodView<'_>, container: &ContainerView<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for (field, what) in [
        ("seccompProfile", "no system call is filtered"),
        ("appArmorProfile", "no profile confines it"),
    ] {
        if profile(pod, container, field) == "RuntimeDefault" {
            let name = &container.name;
            all.push(format!(
                "securityContext.{field}: RuntimeDefault is not enforced here: {what} in container \
                 {name}, which has no new privileges and a small set of capabilities all the same"
            ));
        }
    }
    if names(container, "add").iter().any(|it| it == TOLERATED) {
        let name = &container.name;
        all.push(format!(
            "securityContext.capabilities.add: {TOLERATED} is not given to container {name}: \
             programs that look into other processes may fail"
        ));
    }
    all
}

/// The type of a profile: the container's own, else that of the pod.
fn profile<'a>(pod: &'a PodView<'_>, container: &'a ContainerView<'_>, field: &str) -> &'a str {
    let own = container.json.get("securityContext");
    let contexts = [own, pod.object.field("/spec/securityContext")];
    let mut said = contexts.into_iter().filter_map(|it| it?.get(field));
    said.next().map_or("", |it| text(it, "type"))
}

/// Names of capabilities as Kubernetes writes them; runtimes also take the kernel's.
fn names(container: &ContainerView<'_>, member: &str) -> Vec<String> {
    let none = Value::Null;
    let lists = container.json.pointer("/securityContext/capabilities");
    let all = texts(lists.unwrap_or(&none), member).into_iter();
    all.map(|name| {
        let name = name.to_ascii_uppercase();
        name.strip_prefix("CAP_").unwrap_or(&name).to_owned()
    })
    .collect()
}
