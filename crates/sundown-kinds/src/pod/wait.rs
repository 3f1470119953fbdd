//! The container that makes a worker wait until the head answers: Ray would give up earlier.

use serde_json::{Value, json};

use super::Context;
use super::container::{push, shell};
use crate::constants::CONTAINER_WAIT_FOR_GCS;

/// How long what the check prints is kept from the log: heads are rarely up at once.
const QUIET_SECONDS: u32 = 120;

/// Appends it to the init containers of the user.
pub(super) fn add(pod: &mut Value, context: &Context<'_>) {
    let Some(ray) = pod.pointer("/spec/containers/0") else {
        return;
    };
    let amounts = json!({"cpu": "200m", "memory": "256Mi"});
    let mut container = json!({
        "name": CONTAINER_WAIT_FOR_GCS,
        "command": shell(context),
        "args": [script(&format!("{}:{}", context.head, context.port))],
        "resources": {"requests": amounts, "limits": amounts},
    });
    // With TLS the check needs the variables and files that Ray has.
    for member in [
        "image",
        "imagePullPolicy",
        "securityContext",
        "env",
        "volumeMounts",
    ] {
        if let Some(value) = ray.get(member) {
            container[member] = value.clone();
        }
    }
    push(&mut pod["spec"], "initContainers", container);
}

fn script(address: &str) -> String {
    format!(
        "SECONDS=0\n\
         while true; do\n\
         \x20 if (( SECONDS <= {QUIET_SECONDS} )); then\n\
         \x20   ray health-check --address {address} > /dev/null 2>&1 && break\n\
         \x20 else\n\
         \x20   ray health-check --address {address} && break\n\
         \x20 fi\n\
         \x20 echo \"waiting for the head at {address} for $SECONDS seconds\"\n\
         \x20 sleep 5\n\
         done\n\
         echo \"the head at {address} is ready\"\n"
    )
}
