//! What is stored and comes back with the next control plane. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::objects::{self, Known, Unfinished, list_in, text};

/// The jobs that have not come to their end, and the clusters that are made again and are not told with their job.
pub(super) fn of(all: &[(Known, Value)]) -> (Vec<Unfinished>, Vec<Unfinished>) {
    let is_open =
        |(kind, it): &&(Known, Value)| objects::is_unfinished(*kind, it) && !is_deleting(it);
    let open: Vec<&(Known, Value)> = all.iter().filter(is_open).collect();
    let owners: BTreeSet<&str> = open.iter().map(|(_, it)| uid(it)).collect();
    let jobs = open.iter().map(|(kind, it)| Unfinished::of(*kind, it));
    let clusters = all.iter().filter(|(kind, it)| {
        // One of a job that has ended comes back alone.
        let mut own = list_in(it, "/metadata/ownerReferences").iter();
        let is_told = own.any(|it| owners.contains(text(it, "/uid")));
        *kind == Known::RayCluster && comes_back(it) && !is_told
    });
    let clusters = clusters.map(|(kind, it)| Unfinished::of(*kind, it));
    (jobs.collect(), clusters.collect())
}

/// Whether pods are made of a cluster: not of one that is deleted, suspended or was refused.
fn comes_back(cluster: &Value) -> bool {
    !is_deleting(cluster)
        && cluster["spec"]["suspend"] != true
        && text(cluster, "/status/state") != "failed"
}

fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(name: &str, status: &str) -> (Known, Value) {
        let object = json!({"metadata": {"name": name, "uid": name},
            "status": {"jobDeploymentStatus": status}});
        (Known::RayJob, object)
    }

    fn cluster(name: &str, owner: Option<&str>) -> (Known, Value) {
        let owners: Vec<Value> = owner.into_iter().map(|uid| json!({"uid": uid})).collect();
        let object = json!({"metadata": {"name": name, "uid": name, "ownerReferences": owners}});
        (Known::RayCluster, object)
    }

    fn with(mut it: (Known, Value), part: &str, name: &str, value: Value) -> (Known, Value) {
        it.1[part][name] = value;
        it
    }

    /// Those of finished jobs came back at the next start without a word.
    #[test]
    fn clusters_are_told_unless_their_job_is() {
        let all = [
            job("runs", "Running"),
            job("over", "Complete"),
            with(
                job("gone", "Running"),
                "metadata",
                "deletionTimestamp",
                json!("now"),
            ),
            cluster("of-runs", Some("runs")),
            cluster("of-over", Some("over")),
            cluster("of-gone", Some("gone")),
            cluster("alone", None),
            with(cluster("suspended", None), "spec", "suspend", json!(true)),
            with(cluster("refused", None), "status", "state", json!("failed")),
            with(
                cluster("going", None),
                "metadata",
                "deletionTimestamp",
                json!("now"),
            ),
        ];
        let (jobs, clusters) = of(&all);
        let names = |all: &[Unfinished]| all.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&jobs), ["runs"]);
        assert_eq!(names(&clusters), ["of-over", "of-gone", "alone"]);
    }
}
