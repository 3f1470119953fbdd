//! One pod, its object and a node, both made of facts. Writes are applied, deeds are handed back.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sundown_model::node::{self, Call, Container, Ended, Report, State};
use sundown_model::{Action, Decision, DeedOutcome, Patch, Uid, What, Write};

use crate::pod::{Key, Pods, Reason};
use crate::testing::apply::merge;
use crate::testing::{A, Scene, a, at};

/// A pod and its node.
pub(super) struct Life {
    pub(super) scene: Scene<Pods>,
    pub(super) pod: A,
    pub(super) node: node::Pod,
    rv: u64,
}

/// A pod that is bound, with one container.
pub(super) fn a_pod() -> A {
    a("pod", "p")
        .with("/spec/nodeName", json!("sundown"))
        .with("/spec/restartPolicy", json!("Never"))
        .with(
            "/spec/containers",
            json!([{ "name": "main", "image": "i" }]),
        )
}

pub(super) fn uid() -> Uid {
    Uid::from("uid-p")
}

pub(super) fn run(attempt: u32) -> node::Run {
    node::Run {
        pod: uid(),
        container: "main".into(),
        attempt,
    }
}

impl Life {
    /// The pod is seen, the node is empty, the image is there.
    pub(super) fn of(pod: A) -> Self {
        let image = Report::Image {
            image: "i".into(),
            is: node::Image::Ready,
        };
        let scene = Scene::new(Pods::default()).seeing(&pod);
        let scene = scene.reported(Report::All(Vec::new())).reported(image);
        let node = node::Pod {
            pod: uid(),
            address: Some([10, 0, 0, 7].into()),
            containers: BTreeMap::new(),
            lost: None,
        };
        let rv = pod.build().rv().to_string().parse().unwrap();
        Self {
            scene,
            pod,
            node,
            rv,
        }
    }

    pub(super) fn key(&self) -> Key {
        Key::Pod(self.pod.key())
    }

    pub(super) fn decide(&self, seconds: i64) -> Decision<Reason> {
        self.scene.decide(&self.key(), seconds)
    }

    /// Decides, applies what is written, gives back what is done, and why.
    pub(super) fn turn(&mut self, seconds: i64) -> (Reason, Vec<Call>) {
        let decision = self.decide(seconds);
        let mut calls = Vec::new();
        for action in decision.actions {
            match action {
                Action::Api(write) => self.write(&write),
                Action::Do(deed) => {
                    let subject = deed.what.subject();
                    let scene = self.scene.clone();
                    self.scene = scene.done(subject, seconds, DeedOutcome::Done);
                    let What::Node(call) = deed.what else {
                        panic!("a pod only speaks to its node");
                    };
                    calls.push(call);
                }
                Action::Tell(_) => {}
            }
        }
        (decision.reason, calls)
    }

    fn write(&mut self, write: &Write) {
        let seen = self.pod.build().seen();
        match write {
            Write::Patch { at, patch, .. } => {
                assert_eq!(at, &seen, "writes to what it saw");
                let Patch::Merge(patch) = patch;
                merge(&mut self.pod.json, patch);
                self.change(|pod| pod);
            }
            Write::Finish { at } => {
                assert_eq!(at, &seen, "finishes what it saw");
                self.scene = self.scene.clone().seeing_the_end_of(&self.pod);
            }
            Write::Create(_) | Write::Delete { .. } => panic!("not a kubelet's: {write:?}"),
        }
    }

    /// Somebody changes the pod.
    pub(super) fn change(&mut self, how: impl FnOnce(A) -> A) {
        self.rv += 1;
        self.pod = how(self.pod.clone()).rv(self.rv);
        self.scene = self.scene.clone().seeing(&self.pod);
    }

    /// The pod is deleted, with an end of its grace period.
    pub(super) fn delete(&mut self, until: i64, grace: i64) {
        self.change(|pod| {
            pod.with("/metadata/deletionTimestamp", json!(at(until).to_string()))
                .with("/metadata/deletionGracePeriodSeconds", json!(grace))
        });
    }

    pub(super) fn report(&mut self) {
        let report = Report::Pod(self.node.clone());
        self.scene = self.scene.clone().reported(report);
    }

    pub(super) fn say(&mut self, report: Report) {
        self.scene = self.scene.clone().reported(report);
    }

    /// The node carries out one call and reports it.
    pub(super) fn carry_out(&mut self, call: &Call, seconds: i64) {
        match call {
            Call::Prepare(_) => self.report(),
            Call::Start(launch) => {
                let started_at = at(seconds);
                let state = State::Running { started_at };
                self.set(&launch.run, state);
            }
            Call::Release { .. } => {
                self.node.lost = Some("it was released".to_owned());
                self.report();
            }
            Call::Remove { .. } => self.say(Report::Removed { pod: uid() }),
            Call::Hook { .. } | Call::Signal { .. } | Call::Pull { .. } | Call::Names(_) => {}
        }
    }

    fn set(&mut self, run: &node::Run, state: State) {
        let before = self.node.containers.get(&run.container);
        let last = before.and_then(|it| match &it.state {
            State::Ended(ended) => Some(ended.clone()),
            State::Running { .. } => None,
        });
        let container = Container {
            attempt: run.attempt,
            state,
            last,
        };
        let name: Arc<str> = run.container.clone();
        self.node.containers.insert(name, container);
        self.report();
    }

    /// A run ends.
    pub(super) fn exits(&mut self, run: &node::Run, seconds: i64, exit_code: i32) {
        let ended = Ended {
            exit_code,
            signal: None,
            started_at: Some(at(0)),
            finished_at: at(seconds),
            reason: if exit_code == 0 { "Completed" } else { "Error" }.to_owned(),
            message: String::new(),
        };
        self.set(run, State::Ended(ended));
    }

    /// Goes on until nothing more is to be done at this instant; gives all that was done.
    pub(super) fn settle(&mut self, seconds: i64) -> Vec<Call> {
        let mut all = Vec::new();
        for _ in 0..20 {
            let before = self.pod.json.clone();
            let (_, calls) = self.turn(seconds);
            if calls.is_empty() && self.pod.json == before {
                return all;
            }
            for call in calls {
                self.carry_out(&call, seconds);
                all.push(call);
            }
        }
        panic!("it does not come to rest");
    }

    pub(super) fn status(&self, pointer: &str) -> Value {
        let status = self.pod.json.pointer(&format!("/status{pointer}"));
        status.cloned().unwrap_or_default()
    }

    pub(super) fn notes(&self, seconds: i64) -> Vec<String> {
        let actions = self.decide(seconds).actions.into_iter();
        let notes = actions.filter_map(|action| match action {
            Action::Tell(note) => Some(format!("{}: {}", note.reason, note.text())),
            Action::Api(_) | Action::Do(_) => None,
        });
        notes.collect()
    }
}

/// The starts among calls, as container and attempt.
pub(super) fn starts(calls: &[Call]) -> Vec<(String, u32)> {
    let starts = calls.iter().filter_map(|call| match call {
        Call::Start(launch) => Some((launch.run.container.to_string(), launch.run.attempt)),
        Call::Prepare(_)
        | Call::Hook { .. }
        | Call::Signal { .. }
        | Call::Release { .. }
        | Call::Remove { .. }
        | Call::Pull { .. }
        | Call::Names(_) => None,
    });
    starts.collect()
}

/// The signals among calls.
pub(super) fn signals(calls: &[Call]) -> Vec<i32> {
    let signals = calls.iter().filter_map(|call| match call {
        Call::Signal { signal, .. } => Some(*signal),
        Call::Prepare(_)
        | Call::Start(_)
        | Call::Hook { .. }
        | Call::Release { .. }
        | Call::Remove { .. }
        | Call::Pull { .. }
        | Call::Names(_) => None,
    });
    signals.collect()
}
