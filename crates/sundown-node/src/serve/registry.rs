//! What the node knows of its pods, and who waits for news. Readers get whole states; a reader that is
//! slow misses steps in between, never the last one.

mod table;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::hands::Hands;
use crate::network::Subnet;
use crate::spec::PodSpec;
use crate::state::{Change, PodState};
use crate::wire::Refusal;
use table::{Entry, Phase, Table};

/// All pods of the node.
#[derive(Debug)]
pub(super) struct Registry {
    table: Mutex<Table>,
    /// Wakes the watchers.
    changed: Condvar,
    /// Wakes who waits for the node's own end.
    idle: Condvar,
    subnet: Subnet,
}

/// Whether a pod has to be made.
pub(super) enum Reserved {
    Exists(PodState),
    New(Ipv4Addr),
}

/// What has to be removed.
pub(super) struct Removal {
    /// None: it was given back, and another pod may have it.
    pub(super) address: Option<Ipv4Addr>,
    pub(super) hands: Option<Arc<Hands>>,
}

/// Whether a container has to be started.
pub(super) enum Ordered {
    Known(PodState),
    New(Arc<Hands>),
}

impl Registry {
    /// The pods that an earlier node lost.
    pub(super) fn new(lost: BTreeMap<String, PodState>, subnet: Subnet) -> Self {
        Self {
            table: Mutex::new(Table::new(lost, subnet)),
            changed: Condvar::new(),
            idle: Condvar::new(),
            subnet,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the watchers, to look again.
    pub(super) fn notify(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Lets go of a table in which a pod has changed.
    fn tell(&self, table: MutexGuard<'_, Table>) {
        let has_clients = table.client_count > 0;
        drop(table);
        self.changed.notify_all();
        if !has_clients {
            self.idle.notify_all();
        }
    }

    /// Counts a client, unless the node is about to end: then it must look for the next one.
    pub(super) fn client_came(&self) -> bool {
        let mut table = self.lock();
        if table.is_ending {
            return false;
        }
        table.client_count += 1;
        let is_first = table.client_count == 1;
        drop(table);
        if is_first {
            self.idle.notify_all();
        }
        true
    }

    pub(super) fn client_left(&self) {
        let mut table = self.lock();
        table.client_count -= 1;
        let was_last = table.client_count == 0;
        drop(table);
        if was_last {
            self.idle.notify_all();
        }
    }

    /// Begins nothing new any more, if nothing runs.
    pub(super) fn begin_end(&self) -> Result<(), Refusal> {
        let mut table = self.lock();
        match table.busy_count() {
            0 => table.is_ending = true,
            pod_count => return Err(Refusal::HasPods { pod_count }),
        }
        Ok(())
    }

    /// Lets the node end.
    pub(super) fn end(&self) {
        self.lock().may_end = true;
        self.idle.notify_all();
    }

    /// Returns when there have been neither pods nor clients for this long, or at the word of one.
    pub(super) fn wait_until_idle(&self, idle: Duration) {
        let mut table = self.lock();
        let mut idle_since = Instant::now();
        while !table.may_end {
            if table.client_count > 0 || table.live_count() > 0 {
                let waited = self.idle.wait(table);
                table = waited.unwrap_or_else(PoisonError::into_inner);
                idle_since = Instant::now();
                continue;
            }
            let left = idle.saturating_sub(idle_since.elapsed());
            if left.is_zero() {
                break;
            }
            let waited = self.idle.wait_timeout(table, left);
            table = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        table.is_ending = true;
    }

    /// Every pod as it stands.
    pub(super) fn snapshot(&self) -> Vec<PodState> {
        let table = self.lock();
        let visible = table.pods.values().filter(|entry| entry.is_visible());
        visible.map(|entry| entry.state.clone()).collect()
    }

    /// Takes the name and an address for a new pod, unless it exists.
    pub(super) fn reserve(&self, spec: &PodSpec) -> Result<Reserved, Refusal> {
        let mut table = self.lock();
        loop {
            match table.pods.get(&spec.uid) {
                None => break,
                Some(entry) => match entry.phase {
                    Phase::Creating | Phase::Removing => table = wait_for(&spec.uid, table),
                    Phase::Live(_) | Phase::Lost | Phase::Released => {
                        return Ok(Reserved::Exists(entry.state.clone()));
                    }
                },
            }
        }
        if table.is_ending {
            return Err(Refusal::Ending);
        }
        let address = table.pick(self.subnet, spec.address)?;
        table.last_address = address;
        let state = PodState {
            uid: spec.uid.clone(),
            namespace: spec.namespace.clone(),
            name: spec.name.clone(),
            address,
            containers: BTreeMap::new(),
            lost: None,
        };
        let entry = Entry::new(state, Phase::Creating);
        table.pods.insert(spec.uid.clone(), entry);
        Ok(Reserved::New(address))
    }

    /// A reserved pod is there.
    pub(super) fn settle(&self, uid: &str, hands: Arc<Hands>) {
        self.change(uid, |entry| entry.phase = Phase::Live(hands));
    }

    /// A reserved pod could not be made.
    pub(super) fn abandon(&self, uid: &str) {
        let mut table = self.lock();
        table.forget(uid);
        self.tell(table);
    }

    /// Something of a pod has changed.
    pub(super) fn update(&self, uid: &str, update: impl FnOnce(&mut PodState)) {
        self.change(uid, |entry| {
            update(&mut entry.state);
            let containers = &entry.state.containers;
            let is_known = |(name, attempt): &(String, u32)| {
                containers
                    .get(name)
                    .is_some_and(|status| status.attempt >= *attempt)
            };
            entry.ordered.retain(|each| !is_known(each));
        });
    }

    /// A pod's processes are gone although nobody removed it.
    pub(super) fn lose(&self, uid: &str, lose: impl FnOnce(&mut PodState)) {
        self.change(uid, |entry| {
            if matches!(entry.phase, Phase::Live(_)) {
                entry.phase = Phase::Lost;
                lose(&mut entry.state);
            }
        });
    }

    fn change(&self, uid: &str, change: impl FnOnce(&mut Entry)) {
        let mut table = self.lock();
        table.change(uid, change);
        self.tell(table);
    }

    /// The hands of a pod whose processes live.
    pub(super) fn hands(&self, uid: &str) -> Result<Arc<Hands>, Refusal> {
        self.lock().hands(uid)
    }

    /// Notes that a container is to be started, unless it was.
    pub(super) fn order(&self, uid: &str, name: &str, attempt: u32) -> Result<Ordered, Refusal> {
        let mut table = self.lock();
        loop {
            let hands = table.hands(uid)?;
            let entry = table.pods.get_mut(uid).expect("it has hands");
            if let Some(status) = entry.state.containers.get(name) {
                if status.attempt >= attempt {
                    return Ok(Ordered::Known(entry.state.clone()));
                }
                if status.state.is_running() {
                    return Err(Refusal::StillRunning {
                        uid: uid.to_owned(),
                        container: name.to_owned(),
                        running: status.attempt,
                    });
                }
            }
            if !entry.ordered.iter().any(|(ordered, _)| ordered == name) {
                entry.ordered.insert((name.to_owned(), attempt));
                return Ok(Ordered::New(hands));
            }
            table = wait_for(uid, table);
        }
    }

    /// Waits until something was heard of a container's attempt.
    pub(super) fn heard(&self, uid: &str, name: &str, attempt: u32) -> Result<PodState, Refusal> {
        let mut table = self.lock();
        loop {
            let entry = table.pods.get(uid);
            let entry = entry.ok_or_else(|| Refusal::NoSuchPod {
                uid: uid.to_owned(),
            })?;
            let status = entry.state.containers.get(name);
            if status.is_some_and(|status| status.attempt >= attempt) {
                return Ok(entry.state.clone());
            }
            table.hands(uid)?;
            table = wait_for(uid, table);
        }
    }

    /// Takes a pod out of use; `None` if it is gone, at once or after somebody else's removal.
    pub(super) fn begin_removal(&self, uid: &str) -> Option<Removal> {
        let mut table = self.lock();
        loop {
            let entry = table.pods.get_mut(uid)?;
            if let Some(removal) = entry.begin_removal() {
                return Some(removal);
            }
            table = wait_for(uid, table);
        }
    }

    /// Takes a pod out of use of which nothing runs; `None` if there is nothing to end.
    pub(super) fn begin_release(&self, uid: &str) -> Result<Option<Removal>, Refusal> {
        let mut table = self.lock();
        loop {
            let Some(entry) = table.pods.get_mut(uid) else {
                return Ok(None);
            };
            if matches!(entry.phase, Phase::Released) {
                return Ok(None);
            }
            if let Some((container, running)) = entry.running() {
                return Err(Refusal::StillRunning {
                    uid: uid.to_owned(),
                    container,
                    running,
                });
            }
            if let Some(removal) = entry.begin_removal() {
                return Ok(Some(removal));
            }
            table = wait_for(uid, table);
        }
    }

    /// Only the records and logs of the pod are left.
    pub(super) fn finish_release(&self, uid: &str) {
        self.change(uid, |entry| {
            entry.phase = Phase::Released;
            let reason = "the pod has ended, and what it ran in with it";
            entry.state.lost.get_or_insert(reason.to_owned());
        });
    }

    /// A removal stopped half-way: the pod is lost and can be removed again.
    pub(super) fn fail_removal(&self, uid: &str, reason: &str) {
        self.change(uid, |entry| {
            entry.phase = Phase::Lost;
            entry.state.lost = Some(reason.to_owned());
        });
    }

    /// Nothing of the pod is left.
    pub(super) fn finish_removal(&self, uid: &str) {
        let mut table = self.lock();
        table.remove(uid);
        self.tell(table);
    }

    /// Waits for what changed after a revision, 0 for everything; `None` when the reader is gone or
    /// too far behind.
    pub(super) fn changes_after(
        &self,
        seen: u64,
        is_gone: impl Fn() -> bool,
    ) -> Option<(Vec<Change>, u64)> {
        let mut table = self.lock();
        loop {
            if is_gone() || (seen > 0 && seen < table.forgotten) {
                return None;
            }
            if table.revision > seen {
                return Some((table.changes_after(seen), table.revision));
            }
            let waited = self.changed.wait(table);
            table = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Waits for news of one pod.
///
/// # Assumes
/// It is in the table.
fn wait_for<'a>(uid: &str, table: MutexGuard<'a, Table>) -> MutexGuard<'a, Table> {
    let Some(news) = table.pods.get(uid).map(|entry| Arc::clone(&entry.news)) else {
        return table;
    };
    news.wait(table).unwrap_or_else(PoisonError::into_inner)
}
