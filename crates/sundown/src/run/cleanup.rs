//! What goes after a job by the policy of its manifest, and what stays. The controllers do it; here it
//! is only told, and how long it is worth waiting for. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sundown_kinds::RayJob;
use sundown_kinds::ray_job::{CleanUp, DeletionPolicy};

use super::snapshot::uid;
use super::target::Parts;
use crate::objects::{Known, list_in, text};

/// The state of the clean-up after a job that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cleanup {
    /// Something goes right now: worth waiting for.
    Goes(String),
    /// Nothing more happens by itself now.
    Settled {
        /// What is still there, as kubectl names it.
        kept: Vec<String>,
        /// What goes at a later time, in words.
        later: Option<String>,
    },
}

/// What the policy says about an outcome: what goes, and so many seconds after the end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Due {
    what: What,
    after: u64,
}

/// What can go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Cluster,
    Workers,
    Job,
}

/// How the clean-up stands. With `deletes_finished` the control plane deletes a `RayJob` together with
/// the cluster that it shuts down.
pub(super) fn of(parts: &Parts<'_>, deletes_finished: bool) -> Cleanup {
    let mut dues = match (parts.job, parts.target.kind) {
        (Some(job), Known::RayJob) => of_ray_job(job, deletes_finished),
        (Some(job), Known::Job) => of_job(job).into_iter().collect(),
        (None, _) | (_, Known::RayCluster | Known::Pod | Known::Service) => Vec::new(),
    };
    dues.retain(|due| is_there(parts, due.what));
    if let Some(due) = dues.iter().find(|due| due.after == 0) {
        return Cleanup::Goes(format!("deleting {}", named(parts, due.what)));
    }
    // The objects may go before what they own has ended.
    let roots = BTreeSet::from([parts.target.uid.clone()]);
    let left = parts.snapshot.descendants(&roots);
    // What somebody owned follows its owner, also where nobody has begun with it yet.
    let is_ending = |it: &Value| {
        !it["metadata"]["deletionTimestamp"].is_null() || parts.snapshot.is_left_behind(it)
    };
    let ending = left.iter().filter(|(_, it)| is_ending(it));
    let ending = match parts.job {
        Some(_) => ending.count(),
        None => left.len(),
    };
    if ending > 0 {
        return Cleanup::Goes(going_count(ending));
    }
    let later = dues.iter();
    let later = later.map(|due| {
        let what = named(parts, due.what);
        format!("{what} will be deleted in {}s", due.after)
    });
    let later: Vec<String> = later.collect();
    Cleanup::Settled {
        kept: kept(&left),
        later: (!later.is_empty()).then(|| later.join(", ")),
    }
}

/// How many objects are on their way out.
pub(super) fn going_count(count: usize) -> String {
    match count {
        1 => "deleting 1 object".to_owned(),
        count => format!("deleting {count} objects"),
    }
}

/// What is there, pods and services only counted.
pub(super) fn kept(left: &[(Known, &Value)]) -> Vec<String> {
    let mut counts: BTreeMap<Known, usize> = BTreeMap::new();
    let mut names = Vec::new();
    for (kind, object) in left {
        match kind {
            Known::RayJob | Known::RayCluster | Known::Job => {
                names.push(format!(
                    "{}/{}",
                    kind.word(),
                    text(object, "/metadata/name")
                ));
            }
            Known::Pod | Known::Service => *counts.entry(*kind).or_default() += 1,
        }
    }
    for (kind, count) in counts {
        let plural = if count == 1 { "" } else { "s" };
        names.push(format!("{count} {}{plural}", kind.word()));
    }
    names
}

fn is_there(parts: &Parts<'_>, what: What) -> bool {
    match what {
        What::Cluster => parts.cluster.is_some() && owns_cluster(parts),
        What::Workers => owns_cluster(parts) && !parts.nodes("worker").is_empty(),
        What::Job => parts.job.is_some(),
    }
}

/// A cluster that the job only points at is never touched.
fn owns_cluster(parts: &Parts<'_>) -> bool {
    let owners = parts
        .cluster
        .map(|it| list_in(it, "/metadata/ownerReferences"));
    let mut owners = owners.into_iter().flatten();
    parts
        .job
        .is_some_and(|job| owners.any(|it| it["uid"] == uid(job)))
}

fn named(parts: &Parts<'_>, what: What) -> String {
    let cluster = parts.cluster.map_or("", |it| text(it, "/metadata/name"));
    match what {
        What::Cluster => format!("raycluster/{cluster}"),
        What::Workers => format!("the workers of raycluster/{cluster}"),
        What::Job => format!("{} and its dependents", parts.target.word()),
    }
}

fn of_job(job: &Value) -> Option<Due> {
    let after = job["spec"]["ttlSecondsAfterFinished"].as_u64()?;
    Some(Due {
        what: What::Job,
        after,
    })
}

/// All that the policy says about the outcome of the job, the soonest first.
fn of_ray_job(job: &Value, deletes_finished: bool) -> Vec<Due> {
    let Ok(job) = RayJob::read(job) else {
        return Vec::new();
    };
    let CleanUp::Due(dues) = job.clean_up(deletes_finished) else {
        return Vec::new();
    };
    let dues = dues.into_iter().filter_map(|due| {
        Some(Due {
            what: what(due.policy)?,
            after: due.after.into(),
        })
    });
    let mut dues: Vec<Due> = dues.collect();
    dues.sort_by_key(|due| due.after);
    dues
}

fn what(policy: DeletionPolicy) -> Option<What> {
    match policy {
        DeletionPolicy::DeleteNone => None,
        DeletionPolicy::DeleteWorkers => Some(What::Workers),
        DeletionPolicy::DeleteCluster => Some(What::Cluster),
        DeletionPolicy::DeleteSelf => Some(What::Job),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::snapshot::{Seen, Snapshot};
    use super::super::target::Target;
    use super::*;

    fn check(spec: &Value, with_cluster: bool, expect: &str) {
        check_where(false, spec, with_cluster, expect);
    }

    fn a_ray_job() -> Target {
        Target {
            kind: Known::RayJob,
            namespace: "default".into(),
            name: "n".into(),
            uid: "u".into(),
        }
    }

    fn finished(spec: &Value) -> Value {
        let status = json!({"rayClusterName": "c", "jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"});
        json!({"metadata": {"uid": "u", "name": "n"}, "spec": spec, "status": status})
    }

    fn check_where(deletes_finished: bool, spec: &Value, with_cluster: bool, expect: &str) {
        let job = finished(spec);
        let cluster =
            json!({"metadata": {"uid": "c", "name": "c", "ownerReferences": [{"uid": "u"}]}});
        let mut snapshot = Snapshot::default();
        snapshot.take(Seen::Put(Known::RayJob, job));
        if with_cluster {
            snapshot.take(Seen::Put(Known::RayCluster, cluster));
        }
        let target = a_ray_job();
        let found = match of(&target.parts(&snapshot), deletes_finished) {
            Cleanup::Goes(text) => text,
            Cleanup::Settled { kept, later } => {
                format!(
                    "kept {} later {}",
                    kept.join(","),
                    later.unwrap_or_default()
                )
            }
        };
        assert_eq!(found, expect, "{spec}");
    }

    #[test]
    fn what_goes_now_is_waited_for_and_what_stays_is_named() {
        let shut = json!({"shutdownAfterJobFinishes": true});
        check(&json!({}), true, "kept rayjob/n,raycluster/c later ");
        check(&shut, true, "deleting raycluster/c");
        check(&shut, false, "kept rayjob/n later ");
        let later = json!({"shutdownAfterJobFinishes": true, "ttlSecondsAfterFinished": 60});
        check(
            &later,
            true,
            "kept rayjob/n,raycluster/c later raycluster/c will be deleted in 60s",
        );
        let rules = json!([
            {"policy": "DeleteSelf", "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": 60}},
            {"policy": "DeleteCluster", "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": 0}},
            {"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED", "ttlSeconds": 0}},
        ]);
        let strategy = json!({"deletionStrategy": {"deletionRules": rules}});
        check(&strategy, true, "deleting raycluster/c");
        // Only the first was told.
        let rules = json!([
            {"policy": "DeleteSelf", "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": 60}},
            {"policy": "DeleteCluster", "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": 30}},
        ]);
        let strategy = json!({"deletionStrategy": {"deletionRules": rules}});
        check(
            &strategy,
            true,
            "kept rayjob/n,raycluster/c later raycluster/c will be deleted in 30s, \
             rayjob/n and its dependents will be deleted in 60s",
        );
        let none = json!({"deletionStrategy": {"onSuccess": {"policy": "DeleteNone"}}});
        check(&none, true, "kept rayjob/n,raycluster/c later ");
    }

    #[test]
    fn where_finished_jobs_are_deleted_the_job_goes_with_its_cluster() {
        let shut = json!({"shutdownAfterJobFinishes": true});
        check_where(true, &shut, true, "deleting rayjob/n and its dependents");
        check_where(true, &json!({}), true, "kept rayjob/n,raycluster/c later ");
    }

    /// The pods of a cluster that had just gone were told as kept.
    #[test]
    fn what_a_cluster_owned_is_waited_for_when_the_cluster_has_gone() {
        let target = a_ray_job();
        let job = finished(&json!({"shutdownAfterJobFinishes": true}));
        let owned = |name: &str, by: &[&str]| {
            let owners: Vec<Value> = by.iter().map(|uid| json!({"uid": uid})).collect();
            json!({"metadata": {"uid": name, "name": name, "ownerReferences": owners}})
        };
        let mut snapshot = Snapshot::default();
        snapshot.take(Seen::Put(Known::RayJob, job));
        let cluster = owned("c", &["u"]);
        snapshot.take(Seen::Put(Known::RayCluster, cluster.clone()));
        snapshot.take(Seen::Put(Known::Pod, owned("p", &["c"])));
        snapshot.take(Seen::Put(Known::Service, owned("s", &["c", "u"])));
        snapshot.take(Seen::Gone(Known::RayCluster, cluster));
        let goes = Cleanup::Goes("deleting 1 object".to_owned());
        assert_eq!(of(&target.parts(&snapshot), false), goes);
        snapshot.take(Seen::Gone(Known::Pod, owned("p", &["c"])));
        let settled = Cleanup::Settled {
            kept: vec!["rayjob/n".to_owned(), "1 service".to_owned()],
            later: None,
        };
        assert_eq!(of(&target.parts(&snapshot), false), settled);
    }

    #[test]
    fn what_a_deleted_job_owned_is_waited_for_before_it_begins_to_go() {
        let target = a_ray_job();
        let owned = |by: &str| json!({"metadata": {"uid": "c", "name": "c", "ownerReferences": [{"uid": by}]}});
        let found = |cluster: Value| {
            let mut snapshot = Snapshot::default();
            snapshot.take(Seen::Put(Known::RayCluster, cluster));
            of(&target.parts(&snapshot), false)
        };
        assert_eq!(
            found(owned("u")),
            Cleanup::Goes("deleting 1 object".to_owned())
        );
        // Orphaned: it stays, and is the job's no more.
        let settled = Cleanup::Settled {
            kept: Vec::new(),
            later: None,
        };
        assert_eq!(found(owned("else")), settled);
    }
}
