//! History, network policies and TLS: gated, and consistent in themselves.

use serde_json::Value;
use sundown_model::dns;

use crate::Gates;
use crate::invalid::{Invalid, Validated, go_list, refuse_if};
use crate::ray_cluster::{ClusterSpec, CollectorOptions, NetworkPolicyRules};
use crate::template::{list, named};

const COLLECTOR: &str = "ray-history-collector";
const STORAGE: &str = "STORAGE_BACKEND";
const INJECTED: [&str; 8] = [
    "POD_IP",
    "FQ_RAY_IP",
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_ROLE",
    "OWNER_KIND",
    "OWNER_NAME",
    "EVENTS_PORT",
];
const TLS_ENV: [&str; 4] = [
    "RAY_USE_TLS",
    "RAY_TLS_SERVER_CERT",
    "RAY_TLS_SERVER_KEY",
    "RAY_TLS_CA_CERT",
];
const TLS_VOLUME: &str = "ray-tls";
const TLS_MOUNT: &str = "/etc/ray/tls";

pub(super) fn validate_history(spec: &ClusterSpec, gates: &Gates) -> Validated {
    let Some(options) = &spec.history_server else {
        return Ok(());
    };
    refuse_if(!gates.ray_cluster_history_server, || {
        "RayClusterHistoryServer feature gate is not enabled".to_owned()
    })?;
    let Some(options) = options else {
        return Err(Invalid(
            "historyServerOptions.collectorOptions must be set".into(),
        ));
    };
    collector(options)?;
    let tail = format!(
        "pod template must not define a container with name '{COLLECTOR}' when history server \
         collector options are enabled"
    );
    let has_one = |containers: &[Value]| named(containers, COLLECTOR).is_some();
    refuse_if(has_one(spec.head.template.containers()), || {
        format!("head {tail}")
    })?;
    spec.worker_groups.iter().try_for_each(|group| {
        refuse_if(has_one(group.template.containers()), || {
            format!("worker group {} {tail}", group.name)
        })
    })
}

fn collector(options: &CollectorOptions) -> Validated {
    refuse_if(options.image.is_empty(), || {
        "historyServerOptions.collectorOptions.image must be set".to_owned()
    })?;
    if let Some(name) = INJECTED
        .iter()
        .find(|name| named(&options.env, name).is_some())
    {
        return Err(Invalid(format!(
            "historyServerOptions.collectorOptions.env must not contain {name}: it is managed by \
             KubeRay and injected automatically into the collector container"
        )));
    }
    let literal = |name: &str| named(&options.env, name)?.get("value")?.as_str();
    let backend = literal(STORAGE).unwrap_or("").to_uppercase();
    refuse_if(backend.is_empty(), || {
        format!(
            "{STORAGE} environment variable must be set with a literal string value in \
             historyServerOptions.collectorOptions.env"
        )
    })?;
    let wanted: &[&str] = match backend.as_str() {
        "GCS" => &["GCS_BUCKET"],
        "S3" => &["S3_REGION"],
        "ALIYUNOSS" => &["ALIYUN_BUCKET", "ALIYUN_ENDPOINT", "ALIYUN_REGION"],
        "AZUREBLOB" => return azure(options),
        _ => &[],
    };
    wanted.iter().try_for_each(|name| {
        refuse_if(!has_value(options, name), || {
            format!("{name} environment variable must be set when {STORAGE} is {backend}")
        })
    })
}

fn azure(options: &CollectorOptions) -> Validated {
    const TEXT: &str = "AZURE_STORAGE_CONNECTION_STRING";
    const URL: &str = "AZURE_STORAGE_ACCOUNT_URL";
    const MODE: &str = "AZURE_STORAGE_AUTH_MODE";
    let mode = named(&options.env, MODE).and_then(|env| env.get("value")?.as_str());
    let mode = mode.unwrap_or("").trim().to_lowercase();
    let wanted = match mode.as_str() {
        "connection_string" => TEXT,
        "workload_identity" | "default" => URL,
        _ => {
            return refuse_if(
                !has_value(options, TEXT) && !has_value(options, URL),
                || {
                    format!(
                        "either {TEXT} or {URL} environment variable must be set when {STORAGE} is AZUREBLOB"
                    )
                },
            );
        }
    };
    refuse_if(!has_value(options, wanted), || {
        format!(
            "{wanted} environment variable must be set when {STORAGE} is AZUREBLOB and {MODE} is {mode}"
        )
    })
}

fn has_value(options: &CollectorOptions, name: &str) -> bool {
    named(&options.env, name).is_some_and(|env| {
        env["value"].as_str().is_some_and(|value| !value.is_empty()) || env["valueFrom"].is_object()
    })
}

pub(super) fn validate_network_policy(spec: &ClusterSpec, gates: &Gates) -> Validated {
    let Some(policy) = &spec.network_policy else {
        return Ok(());
    };
    refuse_if(!gates.ray_cluster_network_policy, || {
        "spec.networkPolicy requires the RayClusterNetworkPolicy feature gate to be enabled"
            .to_owned()
    })?;
    rules("head", &policy.head, &policy.mode)?;
    rules("worker", &policy.worker, &policy.mode)?;
    for group in &spec.worker_groups {
        let wrong = dns::label(&group.name);
        refuse_if(!wrong.is_empty(), || {
            format!(
                "worker group name {:?} must be a valid DNS1123 label when networkPolicy is enabled (it \
                 is embedded in the NetworkPolicy name): {}",
                group.name,
                go_list(&wrong)
            )
        })?;
    }
    policy.worker_groups.iter().try_for_each(|(name, own)| {
        rules(&format!("workerGroups[{name:?}]"), own, &policy.mode)?;
        let is_known = spec.worker_groups.iter().any(|group| group.name == *name);
        refuse_if(!is_known, || {
            format!("networkPolicy.workerGroups[{name:?}] does not match any group name in workerGroupSpecs")
        })
    })
}

fn rules(place: &str, rules: &NetworkPolicyRules, mode: &str) -> Validated {
    for (free_mode, way, own) in [
        ("DenyAllEgress", "ingress", &rules.ingress),
        ("DenyAllIngress", "egress", &rules.egress),
    ] {
        refuse_if(mode == free_mode && !own.is_empty(), || {
            format!(
                "networkPolicy.{place}.{way}Rules cannot be set when mode is {mode:?} ({way} is not \
                 restricted)"
            )
        })?;
    }
    Ok(())
}

pub(super) fn validate_tls(spec: &ClusterSpec, gates: &Gates) -> Validated {
    refuse_if(
        spec.tls_enabled.is_some() && !gates.ray_cluster_mtls,
        || "spec.tlsOptions requires the RayClusterMTLS feature gate to be enabled".to_owned(),
    )?;
    if spec.tls_enabled != Some(true) {
        return Ok(());
    }
    let member = |container: Option<&Value>, name: &str| {
        list(container.and_then(|it| it.get(name))).to_vec()
    };
    let head = spec.head.template.ray_container();
    let auto = "TLS configuration automatically";
    tls_in(
        "head Pod",
        &member(head, "env"),
        &member(head, "volumeMounts"),
        auto,
    )?;
    for group in &spec.worker_groups {
        let own = group.template.ray_container();
        let place = format!("worker group {:?}", group.name);
        tls_in(
            &place,
            &member(own, "env"),
            &member(own, "volumeMounts"),
            auto,
        )?;
    }
    let Some(options) = &spec.autoscaler else {
        return Ok(());
    };
    let for_autoscaler = "TLS configuration for the autoscaler automatically";
    tls_in("autoscalerOptions.env", &options.env, &[], for_autoscaler)?;
    tls_in(
        "autoscalerOptions.volumeMounts",
        &[],
        &options.volume_mounts,
        auto,
    )
}

fn tls_in(place: &str, env: &[Value], mounts: &[Value], manages: &str) -> Validated {
    if let Some(name) = TLS_ENV.iter().find(|name| named(env, name).is_some()) {
        return Err(Invalid(format!(
            "cannot set {name} environment variable in {place} when tlsOptions is set - the operator \
             manages {manages}"
        )));
    }
    for mount in mounts {
        let what = if mount["name"] == TLS_VOLUME {
            format!("named {TLS_VOLUME:?}")
        } else if mount["mountPath"] == TLS_MOUNT {
            format!("at path {TLS_MOUNT:?}")
        } else {
            continue;
        };
        return Err(Invalid(format!(
            "cannot use volume mount {what} in {place} when tlsOptions is set - the operator manages \
             {manages}"
        )));
    }
    Ok(())
}
