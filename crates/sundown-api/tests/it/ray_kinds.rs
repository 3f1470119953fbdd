//! The definitions that we ship, on our own server: they are served, and objects of theirs are judged.

use serde_json::{Value, json};
use sundown_kinds::{Gates, RayCluster, RayJob, Settings, crd, pod, ray_job, service};

use crate::world::{CRDS, PODS, World};

const RAY_JOBS: &str = "/apis/ray.io/v1/namespaces/default/rayjobs";
const RAY_CLUSTERS: &str = "/apis/ray.io/v1/namespaces/default/rayclusters";

fn world() -> World {
    let mut world = World::new();
    for definition in [crd::ray_job(), crd::ray_cluster()] {
        let definition = serde_json::from_str(&definition).unwrap();
        world.post(CRDS, &definition).ok();
    }
    world
}

fn a_job() -> Value {
    let template =
        json!({"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.55.0"}]}});
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "counter"},
        "spec": {
            "entrypoint": "python count.py",
            "managedBy": "ray.io/kuberay-operator",
            "rayClusterSpec": {
                "rayVersion": "2.55.0",
                "headGroupSpec": {"template": template},
                "workerGroupSpecs": [{"groupName": "small", "replicas": 1, "template": template}],
            },
        },
    })
}

#[test]
fn both_kinds_are_served_in_both_versions() {
    let mut world = world();
    world.post(RAY_JOBS, &a_job()).ok();
    let old = world.get(&RAY_JOBS.replace("/v1/", "/v1alpha1/")).ok();
    assert_eq!(old.json["items"][0]["metadata"]["name"], "counter");
    let warning = &old.warnings[0];
    assert!(
        warning.starts_with("ray.io/v1alpha1 RayJob is deprecated; use ray.io/v1 RayJob."),
        "{warning}"
    );
}

#[test]
fn what_is_immutable_or_contradicts_itself_is_refused() {
    let mut world = world();
    world.post(RAY_JOBS, &a_job()).ok();
    let path = format!("{RAY_JOBS}/counter");
    let other = json!({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}});
    let told = world.merge(&path, &other);
    assert_eq!(told.code, 422);
    assert!(
        told.message().contains("the managedBy field is immutable"),
        "{}",
        told.message()
    );
    let one_side = json!({"spec": {"deletionStrategy": {"onSuccess": {"policy": "DeleteSelf"}}}});
    let told = world.merge(&path, &one_side);
    assert!(
        told.message()
            .contains("deletionStrategy requires either BOTH onSuccess and onFailure"),
        "{}",
        told.message()
    );
    let rules = json!({"spec": {"deletionStrategy": {"deletionRules": [
        {"policy": "DeleteCluster", "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": 5}}]}}});
    world.merge(&path, &rules).ok();
}

/// From a job to all that it is carried out with: each object is taken by the server that it is for.
#[test]
fn everything_that_is_made_of_a_job_is_taken() {
    let mut world = world();
    let stored = world.post(RAY_JOBS, &a_job()).ok();
    let mut job = RayJob::read(&stored.json).unwrap();
    assert_eq!(
        ray_job::validate::validate_spec(&job, &Gates::default()),
        Ok(())
    );
    let made = ray_job::cluster::ray_cluster(&job, "counter-bc9bc").unwrap();
    let stored = world.post(RAY_CLUSTERS, &made).ok();
    let cluster = RayCluster::read(&stored.json).unwrap();
    let settings = Settings::default();
    let head = pod::head_pod(&cluster, Some("bc9bc"), &settings);
    let place = pod::WorkerPlace {
        replica_index: 0,
        replica_name: "",
        host_index: 0,
    };
    let group = &cluster.spec.worker_groups[0];
    let worker = pod::worker_pod(&cluster, group, place, Some("bc9bc"), &settings);
    for (made, name) in [
        (head, "counter-bc9bc-head-bc9bc"),
        (worker, "counter-bc9bc-small-worker-bc9bc"),
    ] {
        assert_eq!(world.post(PODS, &made).ok().json["metadata"]["name"], name);
    }
    let services = "/api/v1/namespaces/default/services";
    world
        .post(services, &service::head_service(&cluster, &settings))
        .ok();
    world
        .post(
            services,
            &service::ray_job_head_service(&job, &cluster, &settings),
        )
        .ok();
    job.status.dashboard_url = "counter-bc9bc-head-svc.default.svc.cluster.local:8265".into();
    job.status.job_id = "counter-xw2z4".into();
    let submitter = ray_job::submitter::job(&job, &cluster.spec, Some("session_1"), &settings);
    world
        .post(
            "/apis/batch/v1/namespaces/default/jobs",
            &submitter.unwrap(),
        )
        .ok();
    let status = json!({"status": job.status.to_value()});
    let path = format!("{RAY_JOBS}/counter/status");
    let stored = world.merge(&path, &status).ok();
    assert_eq!(stored.json["status"]["rayClusterStatus"]["desiredCPU"], "0");
}
