//! The spec of a cluster. What only the API server judges is passed on unread.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::FaultToleranceOptions;
use crate::PodTemplate;
use crate::constants::PORT_GCS;
use crate::reader::{Malformed, Reader};

/// What a cluster shall be. The same in a `RayCluster` and inside a `RayJob`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterSpec {
    pub head: HeadGroup,
    pub worker_groups: Vec<WorkerGroup>,
    pub ray_version: String,
    pub suspend: Option<bool>,
    pub managed_by: Option<String>,
    pub upgrade_strategy: Option<String>,
    pub head_service_annotations: BTreeMap<String, String>,
    pub enable_autoscaling: bool,
    pub autoscaler: Option<AutoscalerOptions>,
    pub auth: Option<AuthOptions>,
    pub fault_tolerance: Option<FaultToleranceOptions>,
    /// Some if history is wanted; inside, what collects it.
    pub history_server: Option<Option<CollectorOptions>>,
    pub network_policy: Option<NetworkPolicy>,
    /// Some if TLS is spoken of; inside, whether it is on.
    pub tls_enabled: Option<bool>,
    /// All of it, to be passed on.
    pub raw: Map<String, Value>,
}

/// The group of the head.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeadGroup {
    pub template: PodTemplate,
    pub head_service: Option<Map<String, Value>>,
    pub service_type: String,
    pub resources: BTreeMap<String, String>,
    pub labels: BTreeMap<String, String>,
    pub ray_start_params: BTreeMap<String, String>,
}

/// A group of workers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerGroup {
    pub name: String,
    pub replicas: Option<i32>,
    pub min_replicas: Option<i32>,
    pub max_replicas: Option<i32>,
    pub host_count: i32,
    pub priority: i32,
    pub suspend: bool,
    pub idle_timeout: Option<i32>,
    pub resources: BTreeMap<String, String>,
    pub labels: BTreeMap<String, String>,
    pub ray_start_params: BTreeMap<String, String>,
    pub workers_to_delete: Vec<String>,
    pub template: PodTemplate,
}

/// What is decided on of the options of the autoscaler.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AutoscalerOptions {
    pub version: Option<String>,
    pub idle_timeout: Option<i32>,
    pub env: Vec<Value>,
    pub volume_mounts: Vec<Value>,
}

/// How clients prove who they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthOptions {
    pub mode: String,
    pub secret_name: Option<String>,
    pub enable_token_review: bool,
}

/// What collects the history of a cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CollectorOptions {
    pub image: String,
    pub env: Vec<Value>,
}

/// Who may talk to whom.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkPolicy {
    pub mode: String,
    pub head: NetworkPolicyRules,
    pub worker: NetworkPolicyRules,
    pub worker_groups: Vec<(String, NetworkPolicyRules)>,
}

/// Exceptions from a policy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkPolicyRules {
    pub ingress: Vec<Value>,
    pub egress: Vec<Value>,
}

type Read<T> = Result<T, Malformed>;

impl ClusterSpec {
    pub(crate) fn read(at: &Reader<'_>) -> Read<Self> {
        let history = |at: &Reader<'_>| at.optional("collectorOptions", CollectorOptions::read);
        let tls = |at: &Reader<'_>| Ok(at.flag("enabled")?.unwrap_or(false));
        Ok(Self {
            head: HeadGroup::read(&at.member("headGroupSpec")?)?,
            worker_groups: at.list("workerGroupSpecs", WorkerGroup::read)?,
            ray_version: at.text("rayVersion")?,
            suspend: at.flag("suspend")?,
            managed_by: at.optional_text("managedBy")?,
            upgrade_strategy: at.member("upgradeStrategy")?.optional_text("type")?,
            head_service_annotations: at.texts("headServiceAnnotations")?,
            enable_autoscaling: at.flag("enableInTreeAutoscaling")?.unwrap_or(false),
            autoscaler: at.optional("autoscalerOptions", AutoscalerOptions::read)?,
            auth: at.optional("authOptions", AuthOptions::read)?,
            fault_tolerance: at
                .optional("gcsFaultToleranceOptions", FaultToleranceOptions::read)?,
            history_server: at.optional("historyServerOptions", history)?,
            network_policy: at.optional("networkPolicy", NetworkPolicy::read)?,
            tls_enabled: at.optional("tlsOptions", tls)?,
            raw: at.whole(),
        })
    }

    /// Whether the second autoscaler is asked for by name.
    pub fn is_autoscaler_v2(&self) -> bool {
        let version = self
            .autoscaler
            .as_ref()
            .and_then(|options| options.version.as_deref());
        version == Some("v2")
    }

    /// Whether clients need a token.
    pub fn is_auth_enabled(&self) -> bool {
        self.auth.as_ref().is_some_and(|auth| auth.mode == "token")
    }

    /// Whether tokens are those of Kubernetes.
    pub fn is_token_review_enabled(&self) -> bool {
        self.auth
            .as_ref()
            .is_some_and(|auth| auth.enable_token_review)
    }
}

impl HeadGroup {
    fn read(at: &Reader<'_>) -> Read<Self> {
        Ok(Self {
            template: PodTemplate::read(&at.member("template")?)?,
            head_service: at.raw("headService")?,
            service_type: at.text("serviceType")?,
            resources: at.texts("resources")?,
            labels: at.texts("labels")?,
            ray_start_params: at.texts("rayStartParams")?,
        })
    }

    /// The port of the global control service.
    pub fn port(&self) -> String {
        let own = self.ray_start_params.get("port").cloned();
        own.unwrap_or_else(|| PORT_GCS.to_string())
    }

    pub(crate) fn service_name(&self) -> Option<&str> {
        let name = self
            .head_service
            .as_ref()?
            .get("metadata")?
            .get("name")?
            .as_str()?;
        Some(name).filter(|name| !name.is_empty())
    }
}

impl WorkerGroup {
    fn read(at: &Reader<'_>) -> Read<Self> {
        Ok(Self {
            name: at.text("groupName")?,
            replicas: at.int32("replicas")?,
            min_replicas: at.int32("minReplicas")?,
            max_replicas: at.int32("maxReplicas")?,
            host_count: at.int32("numOfHosts")?.unwrap_or(1),
            priority: at.int32("priority")?.unwrap_or(0),
            suspend: at.flag("suspend")?.unwrap_or(false),
            idle_timeout: at.int32("idleTimeoutSeconds")?,
            resources: at.texts("resources")?,
            labels: at.texts("labels")?,
            ray_start_params: at.texts("rayStartParams")?,
            workers_to_delete: at.member("scaleStrategy")?.text_list("workersToDelete")?,
            template: PodTemplate::read(&at.member("template")?)?,
        })
    }

    /// How many replicas there shall be: what is asked for, inside its bounds.
    pub fn desired_replicas(&self) -> i32 {
        if self.suspend {
            return 0;
        }
        let (min, max) = (
            self.min_replicas.unwrap_or(0),
            self.max_replicas.unwrap_or(i32::MAX),
        );
        match self.replicas {
            Some(replicas) if replicas >= min => replicas.min(max),
            Some(_) | None => min,
        }
    }

    /// How many pods that takes.
    pub fn desired_pods(&self) -> i32 {
        self.desired_replicas().saturating_mul(self.host_count)
    }
}

impl AutoscalerOptions {
    fn read(at: &Reader<'_>) -> Read<Self> {
        Ok(Self {
            version: at.optional_text("version")?,
            idle_timeout: at.int32("idleTimeoutSeconds")?,
            env: at.raw_list("env")?,
            volume_mounts: at.raw_list("volumeMounts")?,
        })
    }
}

impl AuthOptions {
    fn read(at: &Reader<'_>) -> Read<Self> {
        Ok(Self {
            mode: at.text("mode")?,
            secret_name: at
                .optional_text("secretName")?
                .filter(|name| !name.is_empty()),
            enable_token_review: at.flag("enableK8sTokenAuth")?.unwrap_or(false),
        })
    }
}

impl CollectorOptions {
    fn read(at: &Reader<'_>) -> Read<Self> {
        Ok(Self {
            image: at.text("image")?,
            env: at.raw_list("env")?,
        })
    }
}

impl NetworkPolicy {
    fn read(at: &Reader<'_>) -> Read<Self> {
        let named = |at: &Reader<'_>| Ok((at.text("groupName")?, NetworkPolicyRules::read(at)?));
        Ok(Self {
            mode: at.text("mode")?,
            head: NetworkPolicyRules::read(&at.member("head")?)?,
            worker: NetworkPolicyRules::read(&at.member("worker")?)?,
            worker_groups: at.list("workerGroups", named)?,
        })
    }
}

impl NetworkPolicyRules {
    fn read(at: &Reader<'_>) -> Read<Self> {
        Ok(Self {
            ingress: at.raw_list("ingressRules")?,
            egress: at.raw_list("egressRules")?,
        })
    }
}
