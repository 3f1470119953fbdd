//! The clean-up of a run while it is under way: what is still to go, what it waits for, and what is left
//! when the user does not wait any longer.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::Session;
use crate::objects::{Known, text};
use crate::run::apply::Applied;
use crate::run::apply::How;
use crate::run::cleanup::{self, Cleanup};
use crate::run::patience::{self, Around};
use crate::run::progress::{Name, Stage, State};
use crate::run::remove::{self, Removal, Undeleted};
use crate::run::snapshot::uid;
use crate::run::step::Left;
use crate::run::waits::{self, Wait};

/// How long nothing may go before it is told what is waited for: most of it takes less.
const WAIT_TOLD_TIME: Duration = Duration::from_secs(3);

/// What the file holds beside the job.
#[derive(Debug)]
pub(super) struct Beside {
    /// What goes after the job, the first to go first.
    go: Vec<Applied>,
    /// What stays.
    pub(super) stay: Vec<Applied>,
    /// Its deletion, once that was begun.
    removal: Option<Removal>,
    /// How much was left when something went last.
    waited: Option<(usize, Instant)>,
}

impl Beside {
    pub(super) fn new(applied: &[Applied], job: &str, removes: bool) -> Self {
        let (go, mut stay) = remove::split(applied, Some(job));
        let mut beside = Self {
            go,
            stay: Vec::new(),
            removal: None,
            waited: None,
        };
        if !removes {
            stay.append(&mut beside.go);
        }
        // Told in the order of the file.
        stay.sort_by_key(|it| applied.iter().position(|other| other.path == it.path));
        beside.stay = stay;
        beside
    }

    /// What of it has to go and is waited for.
    pub(super) fn left(&self) -> &[Applied] {
        self.removal.as_ref().map_or(&self.go, Removal::left)
    }

    pub(super) fn is_removing(&self) -> bool {
        self.removal.is_some()
    }

    /// All of it that goes.
    pub(super) fn go(&self) -> &[Applied] {
        &self.go
    }

    /// What of it is still there and is waited for no longer.
    pub(super) fn failed(&self) -> &[Undeleted] {
        self.removal.as_ref().map_or(&[], Removal::failed)
    }

    /// Returns when one more of it is gone, was seen again, or does not go. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Undeleted> {
        match &mut self.removal {
            Some(removal) => removal.next().await,
            None => std::future::pending().await,
        }
    }

    fn is_named(&self, uid: &str) -> bool {
        self.go.iter().any(|it| self::uid(&it.value) == uid)
    }
}

impl Session<'_> {
    /// The job, and with `--rm` everything that was applied.
    fn roots(&self) -> BTreeSet<String> {
        let mut roots = BTreeSet::from([self.target.uid.clone()]);
        roots.extend(
            self.beside
                .left()
                .iter()
                .map(|it| uid(&it.value).to_owned()),
        );
        roots
    }

    /// What is there of the job and of all that it owns.
    pub(super) fn left_of_job(&self) -> Vec<(Known, &Value)> {
        let root = BTreeSet::from([self.target.uid.clone()]);
        let mut left = self.snapshot.descendants(&root);
        left.retain(|(_, it)| !self.beside.is_named(uid(it)));
        left
    }

    /// How it stands about that.
    pub(super) fn left_in_sight(&mut self) -> Left {
        let of_job = self.left_of_job();
        let is_empty = of_job.is_empty();
        let is_held = patience::are_held(of_job.iter().map(|it| it.1));
        let now = Instant::now();
        self.job_held_at = is_held.then(|| self.job_held_at.unwrap_or(now));
        match self.job_held_at {
            _ if is_empty => Left::Nothing,
            None => Left::Going,
            Some(at) => Left::Held(now.saturating_duration_since(at)),
        }
    }

    /// Gives up what stands beside the job and only others could let go, for too long.
    pub(super) fn give_up_beside(&mut self) {
        let Some(mut removal) = self.beside.removal.take() else {
            return;
        };
        let of_job: Vec<&Value> = self.left_of_job().iter().map(|it| it.1).collect();
        let around = Around {
            snapshot: Some(&self.snapshot),
            of_job: &of_job,
        };
        let failed = removal.give_up(around, Instant::now());
        self.beside.removal = Some(removal);
        for it in failed {
            self.tell_undeleted(Some(it));
        }
    }

    /// What of the job is there and is waited for no longer.
    pub(super) fn undeleted_of_job(&self) -> Vec<Undeleted> {
        let of_job = self.left_of_job().into_iter();
        let undeleted = of_job.map(|(kind, it)| {
            let object = format!("{}/{}", kind.word(), text(it, "/metadata/name"));
            let why = Wait::of(it).in_words(&object);
            let applied = Applied {
                object,
                namespace: Some(self.target.namespace.clone()),
                how: How::Created,
                path: String::new(),
                value: it.clone(),
            };
            Undeleted { applied, why }
        });
        undeleted.collect()
    }

    /// What is there and goes by itself: the job, what it owns, and what the rest of the file owns.
    pub(super) fn owned(&self) -> Vec<(Known, &Value)> {
        let mut owned = self.snapshot.descendants(&self.roots());
        owned.retain(|(_, it)| !self.beside.is_named(uid(it)));
        owned
    }

    /// All that is to go and is there, as kubectl names it, and how much that is. Each object counts once.
    pub(super) fn left(&self) -> (Vec<String>, usize) {
        let left = self.owned();
        let mut names = cleanup::kept(&left);
        let beside = self.beside.left();
        names.extend(beside.iter().map(|it| it.object.clone()));
        (names, left.len() + beside.len())
    }

    /// What is left by a user who does not wait any longer. Before anything was seen it is all that was applied.
    pub(super) fn left_behind(&self) -> String {
        let (mut names, _) = if self.snapshot.is_whole() {
            self.left()
        } else {
            let all = self.applied.iter().map(|it| it.object.clone());
            (all.collect(), 0)
        };
        if self.snapshot.is_whole() {
            let failed = self.beside.failed().iter().map(|it| &it.applied);
            let others = failed.chain(&self.beside.stay);
            names.extend(others.map(|it| it.object.clone()));
        }
        if names.is_empty() {
            return "nothing is left".to_owned();
        }
        format!("not deleted: {}", names.join(", "))
    }

    /// Begins to delete what stands beside the job.
    pub(super) fn remove_beside(&mut self) {
        let all = self.beside.go.clone();
        self.beside.removal = Some(Removal::begin(self.plane.clients(), all));
    }

    /// How far the clean-up is.
    pub(super) fn clean_up(&mut self, cleanup: &Cleanup) -> Stage {
        let is = |state, text: String| Stage::new(Name::CleanUp, state, text);
        if self.deleted.is_some() {
            return match self.left().1 {
                0 => is(State::Done, "deleted".to_owned()),
                left => is(State::Active, self.going(left)),
            };
        }
        match (self.ended.is_some(), cleanup) {
            (false, _) => is(State::Waiting, String::new()),
            (true, _) if self.options.removes => {
                is(State::Active, "deleting applied objects".to_owned())
            }
            (true, Cleanup::Goes(text)) => is(State::Active, text.clone()),
            (true, Cleanup::Settled { .. }) => {
                is(State::Done, "deletion policy applied".to_owned())
            }
        }
    }

    /// What goes, and after a moment what it waits for.
    fn going(&mut self, left: usize) -> String {
        let now = Instant::now();
        let since = match self.beside.waited {
            Some((before, at)) if before == left => at,
            Some(_) | None => now,
        };
        self.beside.waited = Some((left, since));
        let count = cleanup::going_count(left);
        match self.waits_for() {
            Some(wait) if now - since >= WAIT_TOLD_TIME => format!("{count}; {wait}"),
            Some(_) | None => count,
        }
    }

    fn waits_for(&self) -> Option<String> {
        let named = |(kind, it): &(Known, &Value)| {
            format!("{}/{}", kind.word(), text(it, "/metadata/name"))
        };
        let of_job = self.left_of_job();
        if !of_job.is_empty() {
            return waits::told(of_job.iter().map(|it| (named(it), it.1)));
        }
        let seen: Vec<(&Applied, &Value)> = self.beside.removal.as_ref()?.seen().collect();
        let roots: BTreeSet<String> = seen.iter().map(|it| uid(it.1).to_owned()).collect();
        let owned = self.snapshot.descendants(&roots);
        let owned = owned.iter().filter(|(_, it)| !roots.contains(uid(it)));
        let all = owned.map(|it| (named(it), it.1));
        waits::told(all.chain(seen.iter().map(|(it, seen)| (it.object.clone(), *seen))))
    }
}
