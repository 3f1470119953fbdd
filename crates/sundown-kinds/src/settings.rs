//! What an operator is told about the objects that it makes; upstream reads these from its environment.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Gates;

/// Switches and additions that are the same for every cluster.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches, named by operators"
)]
pub struct Settings {
    pub gates: Gates,
    /// `CLUSTER_DOMAIN`.
    pub cluster_domain: String,
    /// `ENABLE_LOGIN_SHELL`: shells read the profile of the image.
    pub login_shell: bool,
    /// `ENABLE_PROBES_INJECTION`.
    pub inject_probes: bool,
    /// `ENABLE_INIT_CONTAINER_INJECTION`.
    pub inject_init_container: bool,
    /// `ENABLE_DETERMINISTIC_HEAD_POD_NAME`.
    pub deterministic_head_name: bool,
    /// `ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE`: head services get an address of their own.
    pub head_cluster_ip: bool,
    /// Told by heads. It differs from every version of other operators, so that heads that those made
    /// are taken over by rewriting this, not by making them anew.
    pub operator_version: String,
    /// Containers added to every head.
    pub head_sidecars: Vec<Value>,
    /// Containers added to every worker.
    pub worker_sidecars: Vec<Value>,
    /// Environment of Ray containers, where they have none of that name.
    pub default_env: Vec<Value>,
    pub default_pod_labels: BTreeMap<String, String>,
    pub default_pod_annotations: BTreeMap<String, String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gates: Gates::default(),
            cluster_domain: "cluster.local".to_owned(),
            login_shell: false,
            inject_probes: true,
            inject_init_container: true,
            deterministic_head_name: false,
            head_cluster_ip: false,
            operator_version: concat!("sundown-v", env!("CARGO_PKG_VERSION")).to_owned(),
            head_sidecars: Vec::new(),
            worker_sidecars: Vec::new(),
            default_env: Vec::new(),
            default_pod_labels: BTreeMap::new(),
            default_pod_annotations: BTreeMap::new(),
        }
    }
}
