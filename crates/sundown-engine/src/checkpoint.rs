//! The engine's whole state as data, so that a flight record can begin anywhere in a life.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::{Engine, State};
use crate::flight::Veil;

/// A saved engine.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    state: State,
    /// The queues, by the names of their controllers.
    slots: Vec<(String, Value)>,
}

impl Engine {
    /// Saves everything that the next step depends on.
    pub fn checkpoint(&self) -> Value {
        serde_json::to_value(self.saved(None))
            .expect("the engine's state is plain data with text keys")
    }

    /// The same, as it may stand in a flight record.
    pub(crate) fn checkpoint_behind(&self, veil: &Veil) -> Value {
        veil.over(&self.saved(Some(veil)))
    }

    fn saved(&self, veil: Option<&Veil>) -> Saved {
        let slots = self.slots.iter();
        let slots = slots.map(|slot| (slot.name().to_owned(), slot.save(veil)));
        Saved {
            state: self.state.clone(),
            slots: slots.collect(),
        }
    }

    /// Goes on from a checkpoint. Controllers rebuild their own state from the cache and
    /// from what the ports reported.
    ///
    /// Errors: the checkpoint is of another form, or of an engine with other controllers.
    pub fn restore(&mut self, checkpoint: &Value) -> Result<(), serde_json::Error> {
        let saved = Saved::deserialize(checkpoint)?;
        if saved.slots.len() != self.slots.len() {
            let (there, here) = (saved.slots.len(), self.slots.len());
            let message = format!("{there} controllers were saved, {here} run here");
            return Err(serde::de::Error::custom(message));
        }
        self.state = saved.state;
        for slot in &mut self.slots {
            let (_, queue) = saved
                .slots
                .iter()
                .find(|(name, _)| name == slot.name())
                .ok_or_else(|| serde::de::Error::custom(format!("no queue of {}", slot.name())))?;
            slot.load(queue, &self.state.cache, &self.state.facts)?;
        }
        Ok(())
    }
}
