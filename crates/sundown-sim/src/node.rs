//! A node as a value: places for pods, runs that behave as their command says, reports on the way.
//! What really happened is kept apart, so that the operator can be judged by it.
//!
//! Commands: `exit CODE SECONDS`, `forever`, `deaf` (does not hear SIGTERM), `fail-first SECONDS`
//! (the first run on this node fails, the others succeed). What starts Ray runs until somebody ends it;
//! what submits to Ray does that. Everything else ends well at once.

mod heads;
mod runs;

use core::net::Ipv4Addr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use sundown_model::node::{
    Answer, Call, Container, Ended, Image, Names, Pod, Query, Report, Run, State,
};
use sundown_model::{DeedOutcome, DeedRefusal, Question, Reply, Uid, What, node, ray};

use crate::ray::Ray;
use runs::Living;

const NOBODY: &str = "nobody is there";
const KILLED: i32 = 9;

/// The node of a world.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    pods: BTreeMap<Uid, Place>,
    reports: VecDeque<Report>,
    images: BTreeSet<Arc<str>>,
    names: Option<Arc<Names>>,
    /// How many pods were ever placed: their addresses.
    placed: u8,
    /// Runs of `fail-first` so far.
    failures: u32,
    pub(crate) ray: Ray,
    mood: Mood,
    flaws: Flaws,
    pub(crate) truth: Truth,
}

/// What is wrong with a node and with Ray on it, if a known bug was put back.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent flaws, one per known bug"
)]
pub(crate) struct Flaws {
    /// A submitter submits to whichever session there is.
    pub(crate) ignores_fence: bool,
    /// A job that is sent to one session is taken by whichever there is.
    pub(crate) ignores_intent: bool,
    /// A job that was told to stop is told of as stopped.
    pub(crate) believes_stop: bool,
    /// Whoever connects anew is not told what runs, and what runs already is started once more.
    pub(crate) starts_twice: bool,
    /// What is to be removed is only said to be.
    pub(crate) keeps_removed: bool,
    /// Whoever connects anew is told that all ended well.
    pub(crate) forgets_codes: bool,
}

/// What really happened on a node, whatever it forgot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Truth {
    pub(crate) started: BTreeSet<Run>,
    pub(crate) exits: BTreeMap<Run, i32>,
    /// Runs that were lost with the node.
    pub(crate) lost: BTreeSet<Run>,
    /// Pods that the node lost, whatever ran in them.
    pub(crate) lost_pods: BTreeSet<Uid>,
    /// Runs that began although they had begun before.
    pub(crate) doubled: Vec<Run>,
}

/// One pod on the node.
#[derive(Debug, Clone)]
struct Place {
    pod: Pod,
    living: BTreeMap<Arc<str>, Living>,
}

/// What a story does to its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// It dies with all that ran on it, and comes back empty.
    Dies,
    /// It cannot be reached.
    Away,
    /// It can be reached again.
    Back,
    /// Ray dies in every head and is started again in place.
    HeadsDie,
    /// Ray is from now on in this mood.
    Ray(Mood),
}

/// What Ray does with what it is asked and told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mood {
    #[default]
    Well,
    /// It answers nobody.
    Silent,
    /// It answers, and takes no job for now.
    Busy,
}

impl Node {
    pub(crate) fn new(flaws: Flaws) -> Self {
        Self {
            ray: Ray::new(flaws.believes_stop),
            flaws,
            ..Self::default()
        }
    }

    /// A new operator connects: whatever was under way is lost, and all pods are told first.
    pub(crate) fn connect(&mut self) {
        self.reports.clear();
        let mut all: Vec<Pod> = self.pods.values().map(|it| it.pod.clone()).collect();
        if self.flaws.forgets_codes {
            all.iter_mut().for_each(forget_codes);
        }
        if self.flaws.starts_twice {
            for pod in &mut all {
                pod.containers.clear();
            }
        }
        self.reports.push_back(Report::All(all));
    }

    /// Takes the next report that is under way.
    pub(crate) fn pop(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// When something happens by itself.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        let living = self.pods.values().flat_map(|it| it.living.values());
        let own = living.filter_map(Living::next_at).min();
        own.into_iter().chain(self.ray.next_at()).min()
    }

    /// Lets everything happen that is due.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        self.ray.tick(now);
        while self.submit_on(now) {
            self.ray.tick(now);
        }
        let due = self.pods.iter().flat_map(|(uid, place)| {
            let due = place.living.iter();
            let due = due.filter(|(_, it)| it.ends_at.is_some_and(|at| at <= now));
            due.map(|(name, it)| (uid.clone(), name.clone(), it.clone()))
        });
        for (uid, name, living) in due.collect::<Vec<_>>() {
            let at = living.ends_at.unwrap_or(now);
            self.end(&uid, &name, living.exit_code, at);
        }
    }

    /// Something befalls it.
    pub(crate) fn befall(&mut self, mishap: Mishap, now: Timestamp) {
        match mishap {
            Mishap::Dies => {
                for (uid, place) in std::mem::take(&mut self.pods) {
                    self.truth.lost_pods.insert(uid);
                    for living in place.living.into_values() {
                        self.ray.lose(&living.run);
                        self.truth.lost.insert(living.run);
                    }
                }
                self.names = None;
                self.connect();
            }
            Mishap::Away => self.reports.push_back(Report::Away {
                message: NOBODY.to_owned(),
            }),
            Mishap::Back => self.connect(),
            Mishap::HeadsDie => self.kill_heads(now),
            Mishap::Ray(mood) => self.mood = mood,
        }
    }

    /// Answers a question.
    pub(crate) fn answer(&self, question: &Question) -> Reply {
        match question {
            Question::Node(Query::Image { image }) => {
                let is_there = self.images.contains(image) || !image.starts_with("far/");
                let is = if is_there {
                    Image::Ready
                } else {
                    Image::Missing
                };
                Reply::Node(Ok(Answer::Image(is)))
            }
            Question::Node(Query::Probe { run, .. }) => {
                let place = self.pods.get(&run.pod);
                let runs = place.is_some_and(|it| it.living.contains_key(&run.container));
                let trouble = (!runs).then(|| "it does not run".to_owned());
                Reply::Node(Ok(Answer::Probe { trouble }))
            }
            Question::Ray(_) if self.mood == Mood::Silent => nobody_answers(question),
            Question::Ray(query) => Reply::Ray(self.ask_ray(query)),
        }
    }

    /// Carries out a deed.
    pub(crate) fn carry_out(&mut self, what: &What, now: Timestamp) -> DeedOutcome {
        let call = match what {
            What::Node(call) => call,
            What::Ray(_) if self.mood == Mood::Silent => return nobody_does(),
            What::Ray(call) => return self.tell_ray(call, now),
        };
        match call {
            Call::Prepare(sandbox) => {
                if !self.pods.contains_key(&sandbox.pod) {
                    self.placed = self.placed.wrapping_add(1);
                    let pod = Pod {
                        pod: sandbox.pod.clone(),
                        address: Some(Ipv4Addr::new(10, 0, 0, self.placed)),
                        containers: BTreeMap::new(),
                        lost: None,
                    };
                    let living = BTreeMap::new();
                    self.pods.insert(sandbox.pod.clone(), Place { pod, living });
                }
                self.tell(&sandbox.pod);
            }
            Call::Start(launch) => return self.start(launch, now),
            Call::Hook { command, .. } => {
                if command.first().is_some_and(|program| program == "fail") {
                    return crate::ray::refused(
                        node::Refused::FailedPreStopHook,
                        &command.join(" "),
                    );
                }
            }
            Call::Signal { run, signal } => self.signal(run, *signal, now),
            Call::Release { pod } => {
                if self.runs(pod) {
                    return refused(node::Refused::NotDone, "something of it runs");
                }
                if let Some(place) = self.pods.get_mut(pod) {
                    place.pod.lost = Some("it was released".to_owned());
                }
                self.tell(pod);
            }
            Call::Remove { pod } => {
                if let Some(place) = self.leave(pod) {
                    for living in place.living.into_values() {
                        self.ray.lose(&living.run);
                        self.truth.exits.insert(living.run, 128 + KILLED);
                    }
                }
                self.reports.push_back(Report::Removed { pod: pod.clone() });
            }
            Call::Pull { image } => {
                self.images.insert(image.clone());
                let (image, is) = (image.clone(), Image::Ready);
                self.reports.push_back(Report::Image { image, is });
            }
            Call::Names(names) => self.names = Some(names.clone()),
        }
        DeedOutcome::Done
    }

    fn leave(&mut self, pod: &Uid) -> Option<Place> {
        if self.flaws.keeps_removed {
            return None;
        }
        self.pods.remove(pod)
    }

    /// Whether Ray runs somewhere.
    pub(crate) fn has_heads(&self) -> bool {
        self.ray.heads().next().is_some()
    }

    /// The pods that are here.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &Uid> {
        self.pods.keys()
    }

    /// The pods that have a place in which something could run.
    pub(crate) fn placed(&self) -> impl Iterator<Item = &Uid> {
        let placed = self.pods.iter().filter(|(_, it)| it.pod.lost.is_none());
        placed.map(|(uid, _)| uid)
    }

    /// Whether something of a pod runs.
    pub(crate) fn runs(&self, pod: &Uid) -> bool {
        self.pods.get(pod).is_some_and(|it| !it.living.is_empty())
    }

    fn tell(&mut self, pod: &Uid) {
        if let Some(place) = self.pods.get(pod) {
            self.reports.push_back(Report::Pod(place.pod.clone()));
        }
    }
}

/// What is answered where no node and no Ray is.
pub(crate) fn nobody_answers(question: &Question) -> Reply {
    let message = NOBODY.to_owned();
    match question {
        Question::Ray(_) => Reply::Ray(Err(ray::Failure {
            kind: ray::FailureKind::Unreachable,
            message,
        })),
        Question::Node(_) => Reply::Node(Err(message)),
    }
}

/// What is done there.
pub(crate) fn nobody_does() -> DeedOutcome {
    refused(node::Refused::Unreachable, NOBODY)
}

fn refused(reason: node::Refused, message: &str) -> DeedOutcome {
    DeedOutcome::Refused(DeedRefusal::new(reason, message))
}

fn forget_codes(pod: &mut Pod) {
    for container in pod.containers.values_mut() {
        if let State::Ended(ended) = &mut container.state {
            ended.exit_code = 0;
        }
    }
}

fn container(attempt: u32, state: State, before: Option<&Container>) -> Container {
    let last = before.and_then(|it| match &it.state {
        State::Ended(ended) => Some(ended.clone()),
        State::Running { .. } => None,
    });
    Container {
        attempt,
        state,
        last,
    }
}

fn ended(exit_code: i32, started_at: Option<Timestamp>, finished_at: Timestamp) -> Ended {
    let signal = (exit_code > 128).then_some(exit_code - 128);
    let reason = if exit_code == 0 { "Completed" } else { "Error" };
    Ended {
        exit_code,
        signal,
        started_at,
        finished_at,
        reason: reason.to_owned(),
        message: String::new(),
    }
}
