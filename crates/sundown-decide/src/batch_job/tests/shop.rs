//! A job, its pods and a server that is made of a map. After every write the controller may be one
//! that knows nothing, so that a death between any two writes is part of every test.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sundown_model::{Action, Decision, Patch, Write};

use crate::batch_job::{Jobs, Key, Reason};
use crate::testing::apply::merge;
use crate::testing::{A, Scene, a, a_job, at};

/// Where the job and its pods are.
pub(super) struct Shop {
    pub(super) job: A,
    pub(super) pods: BTreeMap<String, A>,
    /// All pods that were ever made.
    pub(super) made: Vec<String>,
    rv: u64,
}

/// A job of so many completions, as a server shows it.
pub(super) fn a_new_job(completions: i64, parallelism: i64) -> A {
    a_job()
        .with("/spec/completions", json!(completions))
        .with("/spec/parallelism", json!(parallelism))
        .with("/spec/backoffLimit", json!(6))
        .with("/spec/podReplacementPolicy", json!("TerminatingOrFailed"))
        .with("/spec/template/metadata/labels", json!({ "app": "x" }))
        .with(
            "/spec/template/spec",
            json!({ "restartPolicy": "Never", "containers": [{ "name": "main", "image": "i" }] }),
        )
}

impl Shop {
    pub(super) fn of(job: A) -> Self {
        Self {
            job,
            pods: BTreeMap::new(),
            made: Vec::new(),
            rv: 1,
        }
    }

    /// A controller that has just begun and sees what there is.
    pub(super) fn scene(&self) -> Scene<Jobs> {
        let scene = Scene::new(Jobs::default()).seeing(&self.job);
        self.pods.values().fold(scene, Scene::seeing)
    }

    pub(super) fn decide(&self, seconds: i64) -> Decision<Reason> {
        let key = Key::Job(self.job.key());
        self.scene().decide(&key, seconds)
    }

    /// Decides and applies at most so many writes; gives how many there were, and why.
    pub(super) fn turn(&mut self, seconds: i64, writes_max: usize) -> (usize, Reason) {
        let decision = self.decide(seconds);
        let writes = decision.actions.iter().filter_map(|action| match action {
            Action::Api(write) => Some(write.clone()),
            Action::Tell(_) | Action::Do(_) => None,
        });
        let writes: Vec<_> = writes.collect();
        for write in writes.iter().take(writes_max) {
            self.apply(write, seconds);
        }
        (writes.len(), decision.reason)
    }

    /// Goes on until nothing more is to be done at this instant, one write a life.
    pub(super) fn settle(&mut self, seconds: i64) -> Reason {
        for _ in 0..200 {
            let (writes, reason) = self.turn(seconds, 1);
            if writes == 0 {
                return reason;
            }
        }
        panic!("it does not come to rest");
    }

    fn apply(&mut self, write: &Write, seconds: i64) {
        self.rv += 1;
        match write {
            Write::Create(draft) => {
                let name = draft.key.name.to_string();
                assert!(!self.pods.contains_key(&name), "{name} is taken");
                let mut pod = a("pod", &name);
                let (uid, rv) = (format!("{name}-{}", self.made.len()), self.rv.to_string());
                pod.json = draft.body.clone();
                pod.json["metadata"]["uid"] = json!(uid);
                pod.json["metadata"]["resourceVersion"] = json!(rv);
                let created = json!(at(seconds).to_string());
                pod.json["metadata"]["creationTimestamp"] = created;
                self.made.push(name.clone());
                self.pods.insert(name, pod);
            }
            Write::Patch { at, patch, .. } => {
                let rv = self.rv;
                let Patch::Merge(patch) = patch;
                let name = at.key().name.to_string();
                let target = match self.pods.get_mut(&name) {
                    Some(pod) if at.key().resource.plural() == "pods" => pod,
                    Some(_) | None => &mut self.job,
                };
                assert_eq!(at, &target.build().seen(), "writes to what it saw");
                merge(&mut target.json, patch);
                *target = target.clone().rv(rv);
                self.sweep();
            }
            Write::Delete { at: seen, .. } => {
                let pod = self.pods.get_mut(&*seen.key().name).unwrap();
                assert_eq!(seen, &pod.build().seen(), "deletes what it saw");
                pod.json["metadata"]["deletionTimestamp"] = json!(at(seconds).to_string());
                *pod = pod.clone().rv(self.rv);
            }
            Write::Finish { .. } => panic!("not a job's: {write:?}"),
        }
    }

    /// What is marked, over and not held is gone.
    fn sweep(&mut self) {
        self.pods.retain(|_, pod| {
            let metadata = &pod.json["metadata"];
            let is_held = metadata["finalizers"]
                .as_array()
                .is_some_and(|list| !list.is_empty());
            let is_over = ["Succeeded", "Failed"]
                .iter()
                .any(|phase| pod.json["status"]["phase"] == *phase);
            metadata["deletionTimestamp"].is_null() || is_held || !is_over
        });
    }

    /// A pod goes on or ends.
    pub(super) fn phase(&mut self, name: &str, phase: &str, seconds: i64) {
        self.rv += 1;
        let pod = self.pods.get_mut(name).unwrap();
        pod.json["status"]["phase"] = json!(phase);
        if ["Succeeded", "Failed"].contains(&phase) {
            let ended = json!({ "exitCode": 0, "finishedAt": at(seconds).to_string() });
            pod.json["status"]["containerStatuses"] =
                json!([{ "name": "main", "state": { "terminated": ended }, "restartCount": 0 }]);
        }
        *pod = pod.clone().rv(self.rv);
        self.sweep();
    }

    pub(super) fn change(&mut self, how: impl FnOnce(A) -> A) {
        self.rv += 1;
        self.job = how(self.job.clone()).rv(self.rv);
    }

    /// The pods that are neither over nor going, by name.
    pub(super) fn active(&self) -> Vec<String> {
        let is_active = |pod: &A| {
            let phase = pod.json["status"]["phase"].as_str().unwrap_or("Pending");
            let goes = !pod.json["metadata"]["deletionTimestamp"].is_null();
            !goes && ["Pending", "Running"].contains(&phase)
        };
        let active = self.pods.iter().filter(|(_, pod)| is_active(pod));
        active.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn status(&self, pointer: &str) -> Value {
        let status = self.job.json.pointer(&format!("/status{pointer}"));
        status.cloned().unwrap_or_default()
    }

    /// The true conditions in their order.
    pub(super) fn conditions(&self) -> Vec<String> {
        let all = self.status("/conditions");
        let all = all.as_array().into_iter().flatten();
        let is_true = all.filter(|it| it["status"] == "True");
        let word = |it: &Value| format!("{}/{}", it["type"], it["reason"]).replace('"', "");
        is_true.map(word).collect()
    }
}
