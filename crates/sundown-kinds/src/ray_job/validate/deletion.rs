//! What may be said about the end of a job: one way at a time, and nothing that cannot be done.

use std::collections::BTreeMap;

use super::PREFIX;
use crate::Gates;
use crate::invalid::{Invalid, Validated, refuse_if};
use crate::ray_job::{DeletionPolicy, DeletionRule, DeletionStrategy, RayJob};

pub(super) fn validate(job: &RayJob, gates: &Gates) -> Validated {
    let spec = &job.spec;
    refuse_if(!spec.shutdown && spec.ttl > 0, || {
        format!(
            "{PREFIX} a RayJob with shutdownAfterJobFinishes set to false cannot have \
             TTLSecondsAfterFinished"
        )
    })?;
    let Some(strategy) = &spec.deletion_strategy else {
        return Ok(());
    };
    refuse_if(!gates.ray_job_deletion_policy, || {
        "RayJobDeletionPolicy feature gate must be enabled to use DeletionStrategy".to_owned()
    })?;
    let has_legacy = strategy.on_success.is_some() || strategy.on_failure.is_some();
    let rules = strategy.rules.as_deref().unwrap_or_default();
    refuse_if(!rules.is_empty() && spec.shutdown, || {
        format!(
            "{PREFIX} spec.shutdownAfterJobFinishes and spec.deletionStrategy.deletionRules are \
             mutually exclusive"
        )
    })?;
    refuse_if(!rules.is_empty() && has_legacy, || {
        format!(
            "{PREFIX} Cannot use both legacy onSuccess/onFailure fields and deletionRules simultaneously"
        )
    })?;
    if has_legacy {
        return legacy(job, strategy);
    }
    refuse_if(rules.is_empty(), || {
        format!(
            "{PREFIX} DeletionStrategy requires either BOTH onSuccess and onFailure, OR the \
             deletionRules field (cannot be empty)"
        )
    })?;
    let wrong = all_rules(job, rules);
    refuse_if(!wrong.is_empty(), || wrong.join("\n"))
}

fn legacy(job: &RayJob, strategy: &DeletionStrategy) -> Validated {
    let (Some(on_success), Some(on_failure)) = (strategy.on_success, strategy.on_failure) else {
        return Err(Invalid(
            "both DeletionStrategy.OnSuccess and DeletionStrategy.OnFailure must be set when using the \
             legacy deletion policy fields of DeletionStrategy"
                .into(),
        ));
    };
    let unset = |field: &str| {
        Invalid(format!(
            "the DeletionPolicyType field of DeletionStrategy.{field} cannot be unset when \
             DeletionStrategy is enabled"
        ))
    };
    let on_success = on_success.ok_or_else(|| unset("OnSuccess"))?;
    let on_failure = on_failure.ok_or_else(|| unset("OnFailure"))?;
    for (policy, outcome) in [(on_success, "success"), (on_failure, "failure")] {
        refuse_if(job.selects_cluster() && needs_own_cluster(policy), || {
            format!(
                "the ClusterSelector mode doesn't support DeletionStrategy={policy} on {outcome}"
            )
        })?;
    }
    let either = |policy| on_success == policy || on_failure == policy;
    refuse_if(
        either(DeletionPolicy::DeleteWorkers) && job.spec.is_autoscaling(),
        || {
            "DeletionStrategy=DeleteWorkers currently does not support RayCluster with autoscaling enabled"
            .to_owned()
        },
    )?;
    refuse_if(
        job.spec.shutdown && either(DeletionPolicy::DeleteNone),
        || {
            // The missing letter is on the wire.
            format!(
                "{PREFIX} shutdownAfterJobFinshes is set to 'true' while deletion policy is 'DeleteNone'"
            )
        },
    )
}

fn needs_own_cluster(policy: DeletionPolicy) -> bool {
    matches!(
        policy,
        DeletionPolicy::DeleteCluster | DeletionPolicy::DeleteWorkers
    )
}

/// The time to live of each policy, for one value of a condition.
type Ttls = BTreeMap<DeletionPolicy, i32>;

/// Everything that is wrong with the rules: first one by one, then with each other.
fn all_rules(job: &RayJob, rules: &[DeletionRule]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut by_condition: BTreeMap<(bool, &str), Ttls> = BTreeMap::new();
    for (index, rule) in rules.iter().enumerate() {
        let taken = rule_itself(job, rule).and_then(|(is_deployment, value)| {
            let ttls = by_condition.entry((is_deployment, value)).or_default();
            if ttls.contains_key(&rule.policy) {
                return Err(format!(
                    "duplicate rule for DeletionPolicyType '{}' and {} '{value}'",
                    rule.policy,
                    kind(is_deployment)
                ));
            }
            ttls.insert(rule.policy, rule.condition.ttl);
            Ok(())
        });
        if let Err(why) = taken {
            wrong.push(format!("deletionRules[{index}]: {why}"));
        }
    }
    for ((is_deployment, value), ttls) in &by_condition {
        wrong.extend(order(
            &format!("for {} '{value}'", kind(*is_deployment)),
            ttls,
        ));
    }
    wrong
}

fn kind(is_deployment: bool) -> &'static str {
    if is_deployment {
        "JobDeploymentStatus"
    } else {
        "JobStatus"
    }
}

/// What the rule applies to: whether a deployment status, and its value.
fn rule_itself<'a>(job: &RayJob, rule: &'a DeletionRule) -> Result<(bool, &'a str), String> {
    let condition = &rule.condition;
    let applies_to = match (&condition.job_status, &condition.deployment_status) {
        (Some(_), Some(_)) => {
            return Err(
                "cannot set both JobStatus and JobDeploymentStatus at the same time".into(),
            );
        }
        (None, None) => {
            return Err("exactly one of JobStatus and JobDeploymentStatus must be set".into());
        }
        (Some(status), None) => (false, status.as_str()),
        (None, Some(status)) => (true, status.as_str()),
    };
    if condition.ttl < 0 {
        return Err("TTLSeconds must be non-negative".into());
    }
    let policy = rule.policy;
    if job.selects_cluster() && needs_own_cluster(policy) {
        return Err(format!(
            "DeletionPolicyType '{policy}' not supported when ClusterSelector is set"
        ));
    }
    if policy == DeletionPolicy::DeleteWorkers && job.spec.is_autoscaling() {
        return Err(
            "DeletionPolicyType 'DeleteWorkers' not supported with autoscaling enabled".into(),
        );
    }
    Ok(applies_to)
}

/// What has more impact must not come earlier. `DeleteNone` has no place in that order.
fn order(prefix: &str, ttls: &Ttls) -> Vec<String> {
    let ordered: Vec<_> = ttls
        .iter()
        .filter(|(policy, _)| **policy != DeletionPolicy::DeleteNone)
        .collect();
    ordered
        .windows(2)
        .filter(|pair| pair[1].1 < pair[0].1)
        .map(|pair| {
            let ((before, ttl_before), (policy, ttl)) = (pair[0], pair[1]);
            format!("{prefix}: {policy} TTL ({ttl}) must be >= {before} TTL ({ttl_before})")
        })
        .collect()
}
