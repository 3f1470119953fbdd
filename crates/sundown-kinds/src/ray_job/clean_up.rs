//! What the policy of a job says about its outcome. When that is carried out is decided elsewhere.

use super::{DeletionPolicy, DeletionRule, DeploymentStatus, JobStatus, RayJob};

/// What goes after a job that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CleanUp {
    /// Nothing goes, and nobody asked for anything to go.
    Kept,
    /// Something is said about other outcomes, and nothing about this one.
    Uncovered,
    Due(Vec<Due>),
}

/// One thing that goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub policy: DeletionPolicy,
    /// So many seconds after the end of the job.
    pub after: u32,
}

impl RayJob {
    /// What goes after the outcome that its status tells. With `deletes_finished`, shutting down takes
    /// the job itself along.
    pub fn clean_up(&self, deletes_finished: bool) -> CleanUp {
        let Some(strategy) = &self.spec.deletion_strategy else {
            return if self.spec.shutdown {
                self.shutdown(deletes_finished)
            } else {
                CleanUp::Kept
            };
        };
        if let Some(rules) = &strategy.rules {
            let matching = rules.iter().filter(|rule| self.meets(rule));
            let dues = matching.map(|rule| due(rule.policy, rule.condition.ttl));
            let dues: Vec<Due> = dues.collect();
            return if dues.is_empty() {
                CleanUp::Uncovered
            } else {
                CleanUp::Due(dues)
            };
        }
        let has_failed = self.status.job_deployment_status == DeploymentStatus::Failed;
        let policy = match self.status.job_status {
            // An attempt that ran out of time has failed, whatever Ray said last.
            JobStatus::New | JobStatus::Pending | JobStatus::Running | JobStatus::Stopped => {
                strategy.on_failure.filter(|_| has_failed)
            }
            JobStatus::Succeeded => strategy.on_success,
            JobStatus::Failed => strategy.on_failure,
        };
        match policy.flatten() {
            Some(policy) => CleanUp::Due(vec![due(policy, self.spec.ttl)]),
            // Upstream forgets a job that was stopped; shutdown was asked for, so it is done.
            None if self.spec.shutdown => self.shutdown(deletes_finished),
            None => CleanUp::Uncovered,
        }
    }

    fn shutdown(&self, deletes_finished: bool) -> CleanUp {
        let policy = if deletes_finished {
            DeletionPolicy::DeleteSelf
        } else {
            DeletionPolicy::DeleteCluster
        };
        // A cluster that was only pointed at stays, and the job that points at it with it.
        if self.selects_cluster() {
            CleanUp::Kept
        } else {
            CleanUp::Due(vec![due(policy, self.spec.ttl)])
        }
    }

    fn meets(&self, rule: &DeletionRule) -> bool {
        let condition = &rule.condition;
        match &condition.job_status {
            Some(wanted) => wanted == self.status.job_status.as_str(),
            None => {
                condition.deployment_status.as_deref()
                    == Some(self.status.job_deployment_status.as_str())
            }
        }
    }
}

fn due(policy: DeletionPolicy, ttl: i32) -> Due {
    let after = u32::try_from(ttl).unwrap_or(0);
    Due { policy, after }
}
