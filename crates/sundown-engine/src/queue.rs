//! The queue of one controller: which keys are to be decided, which wait for an answer, and when
//! the rest wants to be looked at again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::backoff::retry_after;
use crate::effect::EffectId;
use crate::lapse::{Lapse, Patience};

/// Failures that are further apart are not in a row.
const ROW_GAP_MAX: SignedDuration = SignedDuration::from_mins(3);

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound = "K: Clone + Ord + Serialize + serde::de::DeserializeOwned")]
pub(crate) struct Queue<K: Ord> {
    ready: VecDeque<K>,
    #[serde(with = "pairs")]
    items: BTreeMap<K, Item>,
    timers: BTreeSet<(Timestamp, K)>,
    #[serde(with = "pairs")]
    waiting: BTreeMap<EffectId, BTreeSet<K>>,
    /// Keys in a pause after a failure that the next try may mend; nothing is decided on it.
    #[serde(skip)]
    mending: BTreeSet<K>,
    /// No part of what is saved.
    #[serde(skip)]
    patience: Patience,
    /// How often a key had to wait because an effect failed; for metrics, and no part of what is saved.
    #[serde(skip)]
    failure_count: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Item {
    queued: bool,
    /// Touched while waiting: decide again when the answers are in.
    dirty: bool,
    /// Held back by a brake.
    parked: bool,
    waits: BTreeSet<EffectId>,
    /// Decisions in a row of which an effect failed. Needs do not end the row, what was done does: a decision
    /// that asks first would else never be known to fail.
    failures: u32,
    /// When the last of them failed.
    #[serde(default)]
    failed_at: Option<Timestamp>,
    /// What came of the effects of the last decision so far.
    #[serde(default)]
    last: LastDecision,
    /// Not to be decided before, because of failures.
    not_before: Option<Timestamp>,
    due_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum LastDecision {
    /// Nothing, or what was asked is known.
    #[default]
    Unharmed,
    /// Something was done, and nothing failed.
    Done,
    /// One effect failed: the other ones of the decision count no more.
    Failed,
}

/// How an effect ended for the keys that wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// What was asked is known; nothing was done.
    Known,
    /// Something was done.
    Done,
    /// Wait before the next try; at least this many seconds if the server said so.
    Badly { retry_after_seconds: Option<u32> },
}

/// Whether a key waits after a failure that a read may heal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    Always,
    /// Only if a decision before it failed, too: another writer was faster, and the next decision knows what
    /// it wrote.
    IfRepeated,
}

impl Item {
    /// An effect failed: a longer wait than after the decision before, and at least as long as the server
    /// asked for. However many effects of one decision fail, that is one failure: a connection that breaks
    /// under twenty of them must not cost a minute.
    fn fail(&mut self, failure: Failure, patience: Patience, now: Timestamp) {
        let before = std::mem::replace(&mut self.last, LastDecision::Failed);
        let counts_each = patience.lapse == Some(Lapse::CountsEachEffect);
        if self.failed_at.is_some_and(|at| is_far(at, now)) {
            self.failures = 0;
        }
        if before != LastDecision::Failed || counts_each {
            self.failures += 1;
        }
        self.failed_at = Some(now);
        if failure.pause == Pause::IfRepeated && self.failures == 1 {
            return;
        }
        let own = retry_after(patience.first, now, self.failures);
        let asked = failure
            .retry_after_seconds
            .map_or(Timestamp::MIN, |seconds| {
                let wait = SignedDuration::from_secs(i64::from(seconds));
                now.saturating_add(wait).unwrap_or(Timestamp::MAX)
            });
        self.not_before = self.not_before.max(Some(own.max(asked)));
    }

    /// An effect did what it was to do.
    fn succeed(&mut self) {
        if self.last == LastDecision::Unharmed {
            self.last = LastDecision::Done;
        }
    }
}

/// Whether two failures are too far apart to be in a row: pauses grow to a minute.
fn is_far(before: Timestamp, after: Timestamp) -> bool {
    after.duration_since(before) > ROW_GAP_MAX
}

/// How an effect failed.
#[derive(Debug, Clone, Copy)]
struct Failure {
    pause: Pause,
    retry_after_seconds: Option<u32>,
}

impl<K: Clone + Ord> Queue<K> {
    pub(crate) fn new(patience: Patience) -> Self {
        Self {
            patience,
            mending: BTreeSet::new(),
            ready: VecDeque::new(),
            items: BTreeMap::new(),
            timers: BTreeSet::new(),
            waiting: BTreeMap::new(),
            failure_count: 0,
        }
    }

    /// What was saved, with the limits of this one.
    pub(crate) fn successor(&self, saved: Self) -> Self {
        Self {
            patience: self.patience,
            failure_count: self.failure_count,
            ..saved
        }
    }

    /// Wants a key to be decided as soon as nothing is under way for it.
    pub(crate) fn touch(&mut self, key: K) {
        if self.admit(&key) {
            self.ready.push_back(key);
        }
    }

    /// The same, before all others: facts are forgotten in the order in which they came, so that a key whose
    /// answer waits behind thousands of others would find it forgotten, and ask for ever.
    fn touch_first(&mut self, key: K) {
        if self.admit(&key) {
            self.ready.push_front(key);
        }
    }

    /// Whether a key that is touched now has to be put into the line.
    fn admit(&mut self, key: &K) -> bool {
        let item = self.items.entry(key.clone()).or_default();
        if !item.waits.is_empty() {
            item.dirty = true;
            return false;
        }
        let is_new = item.not_before.is_none() && !item.queued;
        item.queued |= is_new;
        is_new
    }

    /// Takes the next key that is to be decided.
    pub(crate) fn pop(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        let item = self.items.get_mut(&key).expect("a ready key has an item");
        item.queued = false;
        item.dirty = false;
        item.parked = false;
        item.last = LastDecision::Unharmed;
        Some(key)
    }

    /// Lets a key wait for the answer to an effect.
    pub(crate) fn wait(&mut self, key: &K, id: EffectId) {
        self.items.entry(key.clone()).or_default().waits.insert(id);
        self.waiting.entry(id).or_default().insert(key.clone());
    }

    /// Notes when a decision wants to be made again, and whether a brake holds its actions.
    pub(crate) fn settle(&mut self, key: &K, wake_at: Option<Timestamp>, parked: bool) {
        let item = self.items.entry(key.clone()).or_default();
        item.parked = parked;
        // What waits for an instant may only wait for its next try: a status that is written once a second at most and
        // comes to nothing each time would else never be known to fail in a row.
        let ends_row = wake_at.is_none() || self.patience.lapse == Some(Lapse::WaitsEndRows);
        if item.waits.is_empty() && ends_row {
            item.failures = 0;
        }
        self.set_timer(key, wake_at);
        self.drop_if_idle(key);
    }

    /// Ends an effect for all keys that wait for it.
    pub(crate) fn resolve(&mut self, id: EffectId, how: Resolved, now: Timestamp) {
        // Backwards, as each is put before the last one.
        for key in self.waiting.remove(&id).into_iter().flatten().rev() {
            let item = self.items.get_mut(&key).expect("a waiting key has an item");
            item.waits.remove(&id);
            match how {
                Resolved::Known => {}
                Resolved::Done => item.succeed(),
                Resolved::Badly {
                    retry_after_seconds,
                } => {
                    let pause = Pause::Always;
                    let failure = Failure {
                        pause,
                        retry_after_seconds,
                    };
                    item.fail(failure, self.patience, now);
                    self.failure_count += 1;
                }
            }
            if !item.waits.is_empty() {
                continue;
            }
            if item.last == LastDecision::Done {
                item.failures = 0;
            }
            if let Some(at) = item.not_before {
                self.set_timer(&key, Some(at));
            } else if how == Resolved::Known {
                self.touch_first(key);
            } else {
                self.touch(key);
            }
        }
    }

    /// Lets nobody who waits for this effect decide at once when all answers are in.
    pub(crate) fn pause(&mut self, id: EffectId, how: Pause, now: Timestamp) {
        for key in self.waiting.get(&id).into_iter().flatten() {
            let item = self.items.get_mut(key).expect("a waiting key has an item");
            let failure = Failure {
                pause: how,
                retry_after_seconds: None,
            };
            item.fail(failure, self.patience, now);
            self.failure_count += 1;
            if item.not_before.is_some() {
                self.mending.insert(key.clone());
            }
        }
    }

    /// Notes for everyone who waits for an effect that it did what it was to do; they wait on.
    pub(crate) fn note_done(&mut self, id: EffectId) {
        for key in self.waiting.get(&id).into_iter().flatten() {
            let item = self.items.get_mut(key).expect("a waiting key has an item");
            item.succeed();
        }
    }

    /// Lets everyone who waits for one effect wait for another instead.
    pub(crate) fn transfer(&mut self, from: EffectId, to: EffectId) {
        for key in self.waiting.remove(&from).unwrap_or_default() {
            let item = self.items.get_mut(&key).expect("a waiting key has an item");
            item.waits.remove(&from);
            self.wait(&key, to);
        }
    }

    /// Whether some key waits for an effect.
    pub(crate) fn waits_for(&self, id: EffectId) -> bool {
        self.waiting.contains_key(&id)
    }

    /// Makes every key ready whose time has come.
    pub(crate) fn fire(&mut self, now: Timestamp) {
        while let Some((at, key)) = self.timers.first().cloned() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            let item = self.items.get_mut(&key).expect("a timed key has an item");
            item.due_at = None;
            // A pause that another effect of this key earned meanwhile goes on.
            item.not_before = item.not_before.filter(|until| *until > now);
            if item.not_before.is_none() {
                self.mending.remove(&key);
            }
            self.touch(key);
        }
    }

    /// Makes everything ready that a brake held back.
    pub(crate) fn unpark(&mut self) {
        let parked = self.items.iter().filter(|(_, item)| item.parked);
        for key in parked.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.touch(key);
        }
    }

    /// How many keys could be decided at once.
    pub(crate) fn ready_count(&self) -> usize {
        self.ready.len()
    }

    /// How often a key had to wait because an effect failed.
    pub(crate) fn failure_count(&self) -> u64 {
        self.failure_count
    }

    /// Whether something could be decided at once.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next instant at which a key becomes ready by itself.
    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// When the first key goes on that waits after a conflict or a lost answer.
    pub(crate) fn mends_at(&self) -> Option<Timestamp> {
        let paused = self.mending.iter().filter_map(|key| self.items.get(key));
        paused.filter_map(|item| item.not_before).min()
    }

    fn set_timer(&mut self, key: &K, at: Option<Timestamp>) {
        let item = self.items.get_mut(key).expect("a timer belongs to an item");
        if let Some(old) = item.due_at.take() {
            self.timers.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            item.due_at = Some(at);
            self.timers.insert((at, key.clone()));
        }
    }

    fn drop_if_idle(&mut self, key: &K) {
        let idle = self.items.get(key).is_some_and(|item| {
            !item.queued && !item.parked && item.waits.is_empty() && item.due_at.is_none()
        });
        if idle {
            self.items.remove(key);
        }
    }
}

/// JSON has only text keys, so maps travel as lists of pairs.
mod pairs {
    use super::{BTreeMap, Deserialize, Serialize};

    pub(super) fn serialize<K: Serialize, V: Serialize, S: serde::Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Ord + Deserialize<'de>,
        V: Deserialize<'de>,
        D: serde::Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(deserializer)?
            .into_iter()
            .collect())
    }
}
