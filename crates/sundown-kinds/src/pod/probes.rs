//! How the kubelet finds out that Ray is well. Probes of users are left alone.

use serde_json::{Value, json};

use super::Context;
use crate::constants::{PORT_DASHBOARD, PORT_DASHBOARD_AGENT};
use crate::version::Version;

/// The first version whose nodes answer for all of themselves at one place.
const UNIFIED_SINCE: Version = Version(2, 53, 0);

/// Adds the probes that are missing.
pub(super) fn add(ray: &mut Value, context: &Context<'_>) {
    let check = check(context);
    let timeout = if context.is_head() { 5 } else { 2 };
    for (name, delay, failures) in [("livenessProbe", 30, 120), ("readinessProbe", 10, 10)] {
        if ray.get(name).is_some_and(|own| !own.is_null()) {
            continue;
        }
        let mut probe = json!({
            "initialDelaySeconds": delay,
            "periodSeconds": 5,
            "successThreshold": 1,
            "failureThreshold": failures,
            "timeoutSeconds": timeout,
        });
        if let (Value::Object(probe), Value::Object(check)) = (&mut probe, &check) {
            probe.extend(check.clone());
        }
        ray[name] = probe;
    }
}

fn check(context: &Context<'_>) -> Value {
    let agent = port(context, "dashboard-agent-listen-port", PORT_DASHBOARD_AGENT);
    let version = Version::generic(&context.cluster.spec.ray_version);
    if version.is_some_and(|version| version >= UNIFIED_SINCE) {
        return json!({"httpGet": {"path": "/api/healthz", "port": agent}});
    }
    let mut text = ask(2, agent, "api/local_raylet_healthz");
    if context.is_head() {
        let dashboard = port(context, "dashboard-port", PORT_DASHBOARD);
        text = format!("{text} && {}", ask(10, dashboard, "api/gcs_healthz"));
    }
    json!({"exec": {"command": ["bash", "-c", text]}})
}

fn ask(timeout: u8, port: i32, path: &str) -> String {
    format!("wget --tries 1 -T {timeout} -q -O- http://localhost:{port}/{path} | grep success")
}

fn port(context: &Context<'_>, param: &str, default: i32) -> i32 {
    let own = context.params.get(param).and_then(|text| text.parse().ok());
    own.unwrap_or(default)
}
