//! The stages as tables: what the server shows, and what a person sees.

use std::path::Path;

use serde_json::{Value, json};

use super::super::snapshot::{Seen, Snapshot};
use super::super::target::Target;
use super::*;

/// What is there, beside the job itself.
#[derive(Default)]
struct World(Snapshot);

fn a_target(kind: Known) -> Target {
    Target {
        kind,
        namespace: "default".into(),
        name: "n".into(),
        uid: "u".into(),
    }
}

fn pod(name: &str, owner: &str, part: &str, status: &Value) -> Value {
    json!({
        "metadata": {"name": name, "uid": name, "ownerReferences": [{"uid": owner}],
                     "labels": {"ray.io/node-type": part}},
        "spec": {"containers": [{"name": "c", "image": "rayproject/ray:2.52.0"}]},
        "status": status,
    })
}

fn running() -> Value {
    json!({"containerStatuses": [{"name": "c", "state": {"running": {}}}]})
}

fn ready() -> Value {
    let mut status = running();
    status["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    status
}

fn waiting(reason: &str, message: &str) -> Value {
    let waiting = json!({"reason": reason, "message": message});
    json!({"containerStatuses": [{"name": "c", "state": {"waiting": waiting}}]})
}

impl World {
    fn with(mut self, kind: Known, object: Value) -> Self {
        self.0.take(Seen::Put(kind, object));
        self
    }

    fn ray(status: &Value) -> Self {
        let job = json!({"metadata": {"name": "n", "uid": "u"}, "spec": {}, "status": status});
        Self::default().with(Known::RayJob, job)
    }

    fn cluster(self, workers: u64) -> Self {
        let groups = json!([{"replicas": workers}]);
        let cluster =
            json!({"metadata": {"name": "c", "uid": "c"}, "spec": {"workerGroupSpecs": groups}});
        self.with(Known::RayCluster, cluster)
    }

    fn pod(self, name: &str, part: &str, status: &Value) -> Self {
        self.with(Known::Pod, pod(name, "c", part, status))
    }

    fn stages(&self, kind: Known) -> Vec<Stage> {
        stages(&a_target(kind).parts(&self.0))
    }

    fn stage(&self, name: Name) -> (State, String) {
        let mut all = self.stages(Known::RayJob).into_iter();
        let one = all.find(|it| it.name == name).unwrap();
        (one.state, one.text)
    }

    fn check(&self, kind: Known, expect: &[(State, &str)]) {
        let found = self.stages(kind);
        let found: Vec<_> = found.iter().map(|it| (it.state, &*it.text)).collect();
        assert_eq!(found, expect);
    }
}

const IMAGE: &str = "rayproject/ray:2.52.0";
use State::{Active, Done, Failed, Stuck, Waiting};

#[test]
fn a_new_ray_job_waits() {
    let stages = [
        (Waiting, ""),
        (Waiting, ""),
        (Waiting, ""),
        (Waiting, ""),
        (Waiting, ""),
    ];
    World::ray(&json!({})).check(Known::RayJob, &stages);
}

#[test]
fn a_ray_job_comes_from_its_environment_to_its_job() {
    let begun =
        json!({"rayClusterName": "c", "jobDeploymentStatus": "Initializing", "jobId": "n-1"});
    World::ray(&begun)
        .cluster(2)
        .pod(
            "h",
            "head",
            &waiting("ContainerCreating", "installing 30 packages"),
        )
        .check(
            Known::RayJob,
            &[
                (Active, "rayproject/ray:2.52.0: installing 30 packages"),
                (Active, "head h waiting for its environment"),
                (Waiting, "0 of 2 ready"),
                (Waiting, ""),
                (Waiting, ""),
            ],
        );
    World::ray(&begun)
        .cluster(2)
        .pod("h", "head", &running())
        .pod("w", "worker", &ready())
        .check(
            Known::RayJob,
            &[
                (Done, IMAGE),
                (Active, "head h starting"),
                (Active, "1 of 2 ready"),
                (Waiting, ""),
                (Waiting, ""),
            ],
        );
    let runs = json!({"rayClusterName": "c", "jobDeploymentStatus": "Running", "jobId": "n-1", "jobStatus": "RUNNING"});
    World::ray(&runs)
        .cluster(0)
        .pod("h", "head", &ready())
        .check(
            Known::RayJob,
            &[
                (Done, IMAGE),
                (Done, "head h is ready"),
                (Done, "no workers requested"),
                (Done, "n-1"),
                (Active, "RUNNING"),
            ],
        );
}

#[test]
fn what_cannot_go_on_by_itself_is_told_with_its_reason() {
    let begun = json!({"rayClusterName": "c", "jobDeploymentStatus": "Initializing"});
    let mut crashed = waiting("CrashLoopBackOff", "back-off");
    crashed["containerStatuses"][0]["restartCount"] = json!(1);
    crashed["containerStatuses"][0]["lastState"] = json!({"terminated": {"exitCode": 1}});
    World::ray(&begun)
        .cluster(0)
        .pod("h", "head", &crashed)
        .check(
            Known::RayJob,
            &[
                (Done, IMAGE),
                (Stuck, "pod h, container c: CrashLoopBackOff: exit code 1"),
                (Done, "no workers requested"),
                (Waiting, ""),
                (Waiting, ""),
            ],
        );
    let unknown = waiting("ErrImagePull", "nothing stands for it");
    World::ray(&begun)
        .cluster(0)
        .pod("h", "head", &unknown)
        .check(
            Known::RayJob,
            &[
                (Stuck, "ErrImagePull: nothing stands for it"),
                (Active, "head h waiting for its environment"),
                (Done, "no workers requested"),
                (Waiting, ""),
                (Waiting, ""),
            ],
        );
}

#[test]
fn a_ray_job_that_has_ended_says_how() {
    let ended = |status: &str, deployment: &str, reason: &str| json!({"jobStatus": status, "jobDeploymentStatus": deployment, "reason": reason, "jobId": "n-1"});
    let cases = [
        (
            ended("SUCCEEDED", "Complete", ""),
            Done,
            "n-1",
            Done,
            "SUCCEEDED",
        ),
        (
            ended("STOPPED", "Complete", ""),
            Done,
            "n-1",
            Failed,
            "STOPPED",
        ),
        (
            ended("FAILED", "Failed", "AppFailed"),
            Done,
            "n-1",
            Failed,
            "FAILED, AppFailed",
        ),
        (
            ended("", "Failed", "DeadlineExceeded"),
            Failed,
            "not submitted",
            Failed,
            "DeadlineExceeded",
        ),
    ];
    for (status, submission, id, job, text) in cases {
        let stages = [
            (Done, ""),
            (Done, "ended"),
            (Done, "ended"),
            (submission, id),
            (job, text),
        ];
        World::ray(&status).check(Known::RayJob, &stages);
    }
}

#[test]
fn a_job_counts_its_pods() {
    let job = |spec: Value, status: Value| {
        let job = json!({"metadata": {"name": "n", "uid": "u"}, "spec": spec, "status": status});
        World::default().with(Known::Job, job)
    };
    let complete = json!([{"type": "Complete", "status": "True"}]);
    let failed = json!([{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]);
    let cases = [
        (json!({}), json!({}), (Waiting, ""), (Waiting, "")),
        (
            json!({}),
            json!({"active": 1}),
            (Waiting, "1 active"),
            (Waiting, ""),
        ),
        (
            json!({"completions": 3}),
            json!({"active": 1, "succeeded": 2}),
            (Active, "2 of 3 succeeded, 1 active"),
            (Active, "running"),
        ),
        (
            json!({}),
            json!({"failed": 1}),
            (Active, "1 failed"),
            (Active, "failed; retrying"),
        ),
        (
            json!({}),
            json!({"succeeded": 1, "conditions": complete}),
            (Done, "1 succeeded"),
            (Done, "complete"),
        ),
        (
            json!({}),
            json!({"failed": 1, "conditions": failed}),
            (Done, "1 failed"),
            (Failed, "BackoffLimitExceeded"),
        ),
    ];
    for (spec, status, pods, own) in cases {
        let environment = if own.0 == Done || own.0 == Failed {
            Done
        } else {
            Waiting
        };
        job(spec, status).check(Known::Job, &[(environment, ""), pods, own]);
    }
}

/// A Job was told to run before what it runs in was told to be there, in one start of five.
#[test]
fn a_job_runs_when_its_pods_have_begun_and_not_before() {
    let job = json!({"metadata": {"name": "n", "uid": "u"}, "spec": {}, "status": {"active": 2}});
    let with = |pods: &[&Value]| {
        let mut world = World::default().with(Known::Job, job.clone());
        for (number, status) in pods.iter().enumerate() {
            world = world.with(Known::Pod, pod(&format!("p{number}"), "u", "", status));
        }
        world
    };
    let creating = waiting("ContainerCreating", "");
    let (before, pending) = ((Waiting, "2 active"), json!({"phase": "Pending"}));
    with(&[]).check(Known::Job, &[(Waiting, ""), before, (Waiting, "")]);
    with(&[&pending]).check(Known::Job, &[(Waiting, ""), before, (Waiting, "")]);
    with(&[&creating]).check(Known::Job, &[(Active, IMAGE), before, (Waiting, "")]);
    let runs = [(Done, IMAGE), (Active, "2 active"), (Active, "running")];
    with(&[&running()]).check(Known::Job, &runs);
    // The image of the second is there, since the first has begun with it.
    with(&[&running(), &creating]).check(Known::Job, &runs);
    with(&[&running(), &pending]).check(Known::Job, &runs);
}

#[test]
fn what_is_stopped_is_no_longer_under_way() {
    let stages = vec![
        Stage::new(Name::Cluster, Done, "head h is ready"),
        Stage::new(Name::Job, Active, "RUNNING"),
    ];
    let mut found = stopped(stages);
    add_address(&mut found, "http://127.0.0.1:1");
    let cluster = "dashboard http://127.0.0.1:1, head h is ready";
    assert_eq!(found[0], Stage::new(Name::Cluster, Done, cluster));
    assert_eq!(found[1], Stage::new(Name::Job, Waiting, "stopped"));
}

#[test]
fn what_cannot_be_made_is_shown_with_its_cause() {
    let begun = json!({"rayClusterName": "c", "jobDeploymentStatus": "Initializing"});
    let refused = |job: &Value, why: &str| {
        let cluster = json!({"metadata": {"name": "c", "uid": "c"}, "status": {"reason": why},
                             "spec": {"workerGroupSpecs": [{"replicas": 1}]}});
        World::ray(job).with(Known::RayCluster, cluster)
    };
    refused(&begun, "Failed to create head Pod").check(
        Known::RayJob,
        &[
            (Waiting, ""),
            (Stuck, "Failed to create head Pod"),
            (Waiting, "0 of 1 ready"),
            (Waiting, ""),
            (Waiting, ""),
        ],
    );
    let world = refused(&begun, "quota").pod("h", "head", &ready());
    let found = world.stage(Name::Workers);
    assert_eq!(found, (Stuck, "0 of 1 ready; quota".to_owned()));
    let job = json!({"jobDeploymentStatus": "Initializing", "message": "no cluster: quota"});
    let found = World::ray(&job).stage(Name::Cluster);
    assert_eq!(found, (Stuck, "no cluster: quota".to_owned()));
    let job = json!({"rayClusterName": "c", "jobDeploymentStatus": "Running",
                     "message": "no submitter: quota"});
    let found = World::ray(&job).cluster(0).stage(Name::Submission);
    assert_eq!(found, (Stuck, "no submitter: quota".to_owned()));
}

/// Both were told in turn, every few seconds.
#[test]
fn an_image_that_is_not_there_is_told_once() {
    let began = json!({"rayClusterName": "c", "jobDeploymentStatus": "Initializing"});
    let stage = |reason: &str, message: &str| {
        let world = World::ray(&began).cluster(0);
        let world = world.pod("h", "head", &waiting(reason, message));
        world.stage(Name::Environment)
    };
    let pulled = "failed to pull image \"x\": nothing stands for x";
    let first = stage("ErrImagePull", pulled);
    let next = stage(
        "ImagePullBackOff",
        "Back-off pulling image \"x\": ErrImagePull: nothing stands for x",
    );
    assert_eq!(
        first,
        (Stuck, "ErrImagePull: nothing stands for x".to_owned())
    );
    assert_eq!(first, next);
}

/// Nothing was told at all.
#[test]
fn a_job_says_which_cluster_it_waits_for() {
    let job = json!({"metadata": {"name": "n", "uid": "u"},
        "spec": {"clusterSelector": {"ray.io/cluster": "c"}},
        "status": {"rayClusterName": "c", "jobDeploymentStatus": "Initializing"}});
    let world = || World::default().with(Known::RayJob, job.clone());
    let (state, text) = world().stage(Name::Cluster);
    assert_eq!(state, Stuck);
    let expect = "raycluster/c (from clusterSelector) not found; create it to continue";
    assert_eq!(text, expect);
    let (state, text) = world().cluster(0).stage(Name::Cluster);
    assert_eq!((state, &*text), (Active, "c: waiting for the head pod"));
}

/// Its stage had failed, which is not stuck: no advice was given, and it waited without end.
#[test]
fn a_job_whose_cluster_has_failed_is_stuck() {
    let cluster = json!({"metadata": {"name": "c", "uid": "c"},
        "status": {"state": "failed", "reason": "no such group"}});
    let stage = |status: &Value| {
        let world = World::ray(status).with(Known::RayCluster, cluster.clone());
        world.stage(Name::Cluster)
    };
    let begun = json!({"rayClusterName": "c", "jobDeploymentStatus": "Initializing"});
    let text = "raycluster/c failed: no such group; fix it to continue".to_owned();
    assert_eq!(stage(&begun), (Stuck, text));
    let over = json!({"rayClusterName": "c", "jobDeploymentStatus": "Failed"});
    assert_eq!(stage(&over), (Failed, "no such group".to_owned()));
}

/// It was stuck all the time it worked, with advice on that.
#[test]
fn a_job_that_is_wider_than_the_node_is_at_work() {
    let spec = json!({"completions": 4});
    let job = json!({"metadata": {"name": "n", "uid": "u"}, "spec": spec, "status": {"active": 3, "succeeded": 1}});
    let unplaced = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "Insufficient cpu"}]});
    let mut ended = running();
    ended["phase"] = json!("Succeeded");
    let pods = |all: &[&Value]| {
        let mut world = World::default().with(Known::Job, job.clone());
        for (number, status) in all.iter().enumerate() {
            world = world.with(Known::Pod, pod(&format!("p{number}"), "u", "", status));
        }
        let mut stages = world.stages(Known::Job).into_iter();
        let found = stages.find(|it| it.name == Name::Pods).unwrap();
        (found.state, found.text)
    };
    let works = "1 of 4 succeeded, 3 active, 2 waiting for room".to_owned();
    let found = pods(&[&ended, &running(), &unplaced, &unplaced]);
    assert_eq!(found, (Active, works));
    // Nothing of it works that would make room.
    let (state, text) = pods(&[&ended, &unplaced, &unplaced]);
    assert_eq!(state, Stuck);
    assert!(text.ends_with("Unschedulable: Insufficient cpu"), "{text}");
}

/// Its cluster was told as done.
#[test]
fn of_a_job_that_is_refused_nothing_was_begun() {
    let status = json!({"jobDeploymentStatus": "ValidationFailed", "reason": "ValidationFailed"});
    World::ray(&status).check(
        Known::RayJob,
        &[
            (Waiting, ""),
            (Waiting, ""),
            (Waiting, ""),
            (Failed, "not submitted"),
            (Failed, "ValidationFailed"),
        ],
    );
}

#[test]
fn who_submits_a_job_is_told_where_its_id_goes() {
    let job = json!({"metadata": {"name": "n", "uid": "u"}, "spec": {"submissionMode": "InteractiveMode"},
        "status": {"jobDeploymentStatus": "Waiting"}});
    let world = World::default().with(Known::RayJob, job);
    let (state, text) = world.stage(Name::Submission);
    assert_eq!(state, Active);
    assert!(text.contains("spec.jobId"), "{text}");
    let (target, kubectl) = (a_target(Known::RayJob), Kubectl::of_data(Path::new("/d")));
    let told = how_to_tell_id(&target.parts(&world.0), &kubectl).unwrap();
    let command = "kubectl --kubeconfig /d/kubeconfig patch -n default rayjob/n --type=merge \
                   -p '{\"spec\":{\"jobId\":\"ID\"}}'";
    assert!(told.ends_with(command), "{told}");
    let world = World::ray(&json!({"jobDeploymentStatus": "Waiting"}));
    assert_eq!(how_to_tell_id(&target.parts(&world.0), &kubectl), None);
}
