//! Runs of containers: how they begin, hear signals and end.

use jiff::{SignedDuration, Timestamp};
use sundown_model::node::{Launch, Run, State};
use sundown_model::{DeedOutcome, Uid, node};

use super::heads::Role;
use super::{KILLED, Node, container, ended, refused};

/// A run that goes on.
#[derive(Debug, Clone)]
pub(super) struct Living {
    pub(super) run: Run,
    started_at: Timestamp,
    /// None: until somebody ends it.
    pub(super) ends_at: Option<Timestamp>,
    pub(super) exit_code: i32,
    is_deaf: bool,
    pub(super) role: Role,
}

impl Living {
    /// When it does something by itself.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        match &self.role {
            Role::Nothing | Role::Head | Role::Worker => self.ends_at,
            Role::Submitter(submitter) => submitter.next_at(),
        }
    }
}

impl Node {
    pub(super) fn start(&mut self, launch: &Launch, now: Timestamp) -> DeedOutcome {
        let run = &launch.run;
        let Some(place) = self.pods.get_mut(&run.pod) else {
            return refused(node::Refused::NoSuchPod, "the pod has no place here");
        };
        let before = place.pod.containers.get(&run.container);
        let is_done = before.is_some_and(|it| it.attempt >= run.attempt);
        if is_done && !self.flaws.starts_twice {
            // Done already stays done.
            self.tell(&run.pod.clone());
            return DeedOutcome::Done;
        }
        if !self.truth.started.insert(run.clone()) {
            self.truth.doubled.push(run.clone());
        }
        let is_first = self.failures == 0;
        let words: Vec<&str> = launch.command.iter().map(String::as_str).collect();
        if let ["fail-first", _] = words[..] {
            self.failures += 1;
        }
        let living = living(launch, &words, is_first, now);
        if matches!(living.role, Role::Head) {
            self.ray.begin(run);
        }
        let state = State::Running { started_at: now };
        let container = container(run.attempt, state, before);
        place
            .pod
            .containers
            .insert(run.container.clone(), container);
        place.living.insert(run.container.clone(), living);
        self.tell(&run.pod.clone());
        self.tick(now);
        DeedOutcome::Done
    }

    pub(super) fn signal(&mut self, run: &Run, signal: i32, now: Timestamp) {
        let place = self.pods.get(&run.pod);
        let living = place.and_then(|it| it.living.get(&run.container));
        let hears = living.is_some_and(|it| it.run == *run && (!it.is_deaf || signal == KILLED));
        if hears {
            self.end(&run.pod.clone(), &run.container.clone(), 128 + signal, now);
        }
    }

    pub(super) fn end(&mut self, uid: &Uid, name: &str, exit_code: i32, at: Timestamp) {
        let Some(place) = self.pods.get_mut(uid) else {
            return;
        };
        let Some(living) = place.living.remove(name) else {
            return;
        };
        if let Some(it) = place.pod.containers.get_mut(name) {
            it.state = State::Ended(ended(exit_code, Some(living.started_at), at));
        }
        self.ray.lose(&living.run);
        self.truth.exits.insert(living.run, exit_code);
        self.tell(uid);
    }
}

fn living(launch: &Launch, words: &[&str], is_first: bool, now: Timestamp) -> Living {
    let after = |seconds: &str| {
        let seconds = seconds.parse().unwrap_or(0);
        now.saturating_add(SignedDuration::from_secs(seconds)).ok()
    };
    let role = Role::of(launch, now);
    let (ends_at, exit_code, is_deaf) = match *words {
        ["exit", code, seconds] => (after(seconds), code.parse().unwrap_or(1), false),
        ["fail-first", seconds] => (after(seconds), i32::from(is_first), false),
        ["forever"] => (None, 0, false),
        ["deaf"] => (None, 0, true),
        // A head is busy, and takes all of its grace.
        _ if matches!(role, Role::Head) => (None, 0, true),
        _ if !matches!(role, Role::Nothing) => (None, 0, false),
        _ => (Some(now), 0, false),
    };
    Living {
        run: launch.run.clone(),
        started_at: now,
        ends_at,
        exit_code,
        is_deaf,
        role,
    }
}
