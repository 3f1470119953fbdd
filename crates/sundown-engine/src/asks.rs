//! Questions and their turn: of each port only so many are under way at once, and the oldest that waits is next.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use sundown_model::Port;

use crate::effect::EffectId;

/// The questions of all ports. One port that is slow or mute holds up no other.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Asks {
    by_port: BTreeMap<Port, Line>,
}

/// The questions of one port.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Line {
    under_way: usize,
    waiting: VecDeque<EffectId>,
}

impl Asks {
    /// Another question; it waits for its turn.
    pub(crate) fn wait(&mut self, port: Port, id: EffectId) {
        let line = self.by_port.entry(port).or_default();
        line.waiting.push_back(id);
    }

    /// The next question of a port that may leave, if there is room; from here on it is under way.
    pub(crate) fn next(&mut self, port: Port, max: usize) -> Option<EffectId> {
        let line = self.by_port.get_mut(&port)?;
        if line.under_way >= max {
            return None;
        }
        let id = line.waiting.pop_front()?;
        line.under_way += 1;
        Some(id)
    }

    /// A question that was under way has its answer, or will have none.
    pub(crate) fn end(&mut self, port: Port) {
        if let Some(line) = self.by_port.get_mut(&port) {
            line.under_way = line.under_way.saturating_sub(1);
        }
    }

    /// Takes all that wait out of their lines.
    pub(crate) fn take_waiting(&mut self) -> Vec<EffectId> {
        let lines = self.by_port.values_mut();
        lines
            .flat_map(|line| std::mem::take(&mut line.waiting))
            .collect()
    }
}
