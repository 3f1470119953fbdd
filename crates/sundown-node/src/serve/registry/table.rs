//! The table behind the registry: what is known of each pod, without locks and without waiting.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::{Arc, Condvar};

use super::Removal;
use crate::network::Subnet;
use crate::serve::hands::Hands;
use crate::state::{Change, PodState};
use crate::wire::Refusal;

/// Removals that are remembered for watchers. One that is further behind is cut off and lists anew.
const REMOVED_COUNT_MAX: usize = 4096;

/// All pods, and who is there.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) revision: u64,
    pub(super) pods: BTreeMap<String, Entry>,
    pub(super) removed: VecDeque<(u64, String)>,
    /// Everything up to here has left `removed`.
    pub(super) forgotten: u64,
    pub(super) last_address: Ipv4Addr,
    pub(super) client_count: usize,
    /// Nothing new is begun any more.
    pub(super) is_ending: bool,
    /// Whoever asked for the end has been answered.
    pub(super) may_end: bool,
}

/// One pod.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) state: PodState,
    pub(super) revision: u64,
    pub(super) phase: Phase,
    /// Containers that were ordered and of which nothing was heard yet.
    pub(super) ordered: BTreeSet<(String, u32)>,
    /// Wakes who waits for this pod, and nobody else: many start at once.
    pub(super) news: Arc<Condvar>,
}

/// Where the pod itself stands.
#[derive(Debug)]
pub(super) enum Phase {
    Creating,
    Live(Arc<Hands>),
    /// Its init is gone; its link and its files may be there.
    Lost,
    /// Only records and logs are left of it, and its address is not its own any more.
    Released,
    Removing,
}

impl Table {
    /// The pods that an earlier node lost.
    pub(super) fn new(lost: BTreeMap<String, PodState>, subnet: Subnet) -> Self {
        let entries = lost.into_iter().map(|(uid, state)| {
            let mut entry = Entry::new(state, Phase::Released);
            entry.revision = 1;
            (uid, entry)
        });
        Self {
            revision: 1,
            pods: entries.collect(),
            removed: VecDeque::new(),
            forgotten: 0,
            last_address: subnet.bridge,
            client_count: 0,
            is_ending: false,
            may_end: false,
        }
    }

    /// Changes a pod, if it is there, and makes the change one that watchers see.
    pub(super) fn change(&mut self, uid: &str, change: impl FnOnce(&mut Entry)) {
        self.revision += 1;
        if let Some(entry) = self.pods.get_mut(uid) {
            change(entry);
            entry.revision = self.revision;
            entry.news.notify_all();
        }
    }

    /// Takes a pod out of which no watcher has heard, or is about to.
    pub(super) fn forget(&mut self, uid: &str) {
        if let Some(entry) = self.pods.remove(uid) {
            entry.news.notify_all();
        }
    }

    /// Takes a pod out and remembers that it was there.
    pub(super) fn remove(&mut self, uid: &str) {
        self.revision += 1;
        self.forget(uid);
        self.removed.push_back((self.revision, uid.to_owned()));
        if self.removed.len() > REMOVED_COUNT_MAX
            && let Some((forgotten, _)) = self.removed.pop_front()
        {
            self.forgotten = forgotten;
        }
    }

    /// Pods that need the node.
    pub(super) fn live_count(&self) -> usize {
        let is_live = |entry: &&Entry| !matches!(entry.phase, Phase::Lost | Phase::Released);
        self.pods.values().filter(is_live).count()
    }

    /// Pods that would lose something if the node ended: all but those whose every run has ended.
    pub(super) fn busy_count(&self) -> usize {
        let is_busy = |entry: &&Entry| match entry.phase {
            Phase::Creating | Phase::Removing => true,
            Phase::Live(_) => !entry.ordered.is_empty() || !entry.state.has_ended(),
            Phase::Lost | Phase::Released => false,
        };
        self.pods.values().filter(is_busy).count()
    }

    /// The hands of a pod whose processes live.
    pub(super) fn hands(&self, uid: &str) -> Result<Arc<Hands>, Refusal> {
        match self.pods.get(uid).map(|entry| &entry.phase) {
            Some(Phase::Live(hands)) => Ok(Arc::clone(hands)),
            _ => Err(Refusal::NoSuchPod {
                uid: uid.to_owned(),
            }),
        }
    }

    /// An address for a new pod: the wanted one if it is free, else the next free one.
    pub(super) fn pick(
        &self,
        subnet: Subnet,
        wanted: Option<Ipv4Addr>,
    ) -> Result<Ipv4Addr, Refusal> {
        let is_taken = |address: Ipv4Addr| {
            let holders = self.pods.values();
            let mut holders = holders.filter(|entry| !matches!(entry.phase, Phase::Released));
            holders.any(|entry| entry.state.address == address)
        };
        let refuse = |address: Ipv4Addr, why: &str| Refusal::Address {
            address,
            why: why.to_owned(),
        };
        match wanted {
            Some(address) if !subnet.offers(address) => {
                Err(refuse(address, "not in the node's network"))
            }
            Some(address) if is_taken(address) => Err(refuse(address, "taken by another pod")),
            Some(address) => Ok(address),
            None => subnet
                .next_free(self.last_address, is_taken)
                .ok_or_else(|| refuse(subnet.bridge, "in a network without a free address")),
        }
    }

    /// What changed after a revision; every pod after revision 0.
    pub(super) fn changes_after(&self, seen: u64) -> Vec<Change> {
        let removed = self.removed.iter().filter(|(at, _)| seen > 0 && *at > seen);
        let removed = removed.map(|(_, uid)| Change::Removed { uid: uid.clone() });
        let pods = self.pods.values();
        let pods = pods.filter(|entry| entry.is_visible() && entry.revision > seen);
        removed
            .chain(pods.map(|entry| Change::Pod(entry.state.clone())))
            .collect()
    }
}

impl Entry {
    /// A pod of which no watcher has heard.
    pub(super) fn new(state: PodState, phase: Phase) -> Self {
        Self {
            state,
            revision: 0,
            phase,
            ordered: BTreeSet::new(),
            news: Arc::default(),
        }
    }

    /// A run that has not ended, or of whose start nothing was heard.
    pub(super) fn running(&self) -> Option<(String, u32)> {
        let mut running = self.state.containers.iter();
        let running = running.find(|(_, status)| status.state.is_running());
        let running = running.map(|(name, status)| (name.clone(), status.attempt));
        running.or_else(|| self.ordered.first().cloned())
    }

    /// Takes the pod out of use; `None` while somebody else makes or removes it.
    pub(super) fn begin_removal(&mut self) -> Option<Removal> {
        let hands = match &self.phase {
            Phase::Creating | Phase::Removing => return None,
            Phase::Live(hands) => Some(Arc::clone(hands)),
            Phase::Lost | Phase::Released => None,
        };
        let holds_address = !matches!(self.phase, Phase::Released);
        let address = holds_address.then_some(self.state.address);
        self.phase = Phase::Removing;
        Some(Removal { address, hands })
    }

    /// A pod that is still being made has not been promised to anybody.
    pub(super) fn is_visible(&self) -> bool {
        !matches!(self.phase, Phase::Creating)
    }
}
