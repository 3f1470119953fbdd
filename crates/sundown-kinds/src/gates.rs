//! Feature gates that the shipped kinds know, with the defaults of the operator that they come from.

/// Which optional behaviour is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches, named on a command line"
)]
pub struct Gates {
    pub ray_cluster_status_conditions: bool,
    pub ray_job_deletion_policy: bool,
    pub ray_multi_host_indexing: bool,
    pub ray_service_incremental_upgrade: bool,
    pub ray_cron_job: bool,
    pub sidecar_submitter_restart: bool,
    pub ray_cluster_network_policy: bool,
    pub gcs_fault_tolerance_embedded_storage: bool,
    pub ray_cluster_mtls: bool,
    pub ray_cluster_history_server: bool,
    pub kubernetes_was: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            ray_cluster_status_conditions: true,
            ray_job_deletion_policy: true,
            ray_multi_host_indexing: true,
            ray_service_incremental_upgrade: true,
            ray_cron_job: false,
            sidecar_submitter_restart: false,
            ray_cluster_network_policy: false,
            gcs_fault_tolerance_embedded_storage: false,
            ray_cluster_mtls: false,
            ray_cluster_history_server: false,
            kubernetes_was: false,
        }
    }
}

/// A text that sets no gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    #[error("{0:?} is not NAME=true or NAME=false")]
    Form(String),
    #[error("there is no feature gate {0:?}")]
    Unknown(String),
}

impl Gates {
    /// The defaults with what a text such as `A=true,B=false` says.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let mut gates = Self::default();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let form = || GateError::Form(part.to_owned());
            let (name, value) = part.split_once('=').ok_or_else(form)?;
            let value = value.trim().to_lowercase().parse().map_err(|_| form())?;
            let unknown = || GateError::Unknown(name.to_owned());
            *gates.gate(name.trim()).ok_or_else(unknown)? = value;
        }
        Ok(gates)
    }

    fn gate(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "RayClusterStatusConditions" => &mut self.ray_cluster_status_conditions,
            "RayJobDeletionPolicy" => &mut self.ray_job_deletion_policy,
            "RayMultiHostIndexing" => &mut self.ray_multi_host_indexing,
            "RayServiceIncrementalUpgrade" => &mut self.ray_service_incremental_upgrade,
            "RayCronJob" => &mut self.ray_cron_job,
            "SidecarSubmitterRestart" => &mut self.sidecar_submitter_restart,
            "RayClusterNetworkPolicy" => &mut self.ray_cluster_network_policy,
            "GCSFaultToleranceEmbeddedStorage" => &mut self.gcs_fault_tolerance_embedded_storage,
            "RayClusterMTLS" => &mut self.ray_cluster_mtls,
            "RayClusterHistoryServer" => &mut self.ray_cluster_history_server,
            "KubernetesWAS" => &mut self.kubernetes_was,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_start_with_their_defaults_and_take_what_is_said() {
        let gates = Gates::parse("RayCronJob=true, RayJobDeletionPolicy=false");
        let expected = Gates {
            ray_cron_job: true,
            ray_job_deletion_policy: false,
            ..Gates::default()
        };
        assert_eq!(gates, Ok(expected));
        assert_eq!(Gates::parse(""), Ok(Gates::default()));
    }

    #[test]
    fn unknown_gates_and_other_values_are_refused() {
        let unknown = Gates::parse("AsyncJobInfoQuery=true");
        assert_eq!(unknown, Err(GateError::Unknown("AsyncJobInfoQuery".into())));
        let form = Gates::parse("RayCronJob=yes");
        assert_eq!(form, Err(GateError::Form("RayCronJob=yes".into())));
    }
}
