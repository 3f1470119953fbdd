//! The flight record: every turn of an engine as one line, without the texts of objects, so that a life in
//! production can be lived again on a laptop. Files and rings are the shell's business.
//!
//! What a line shows is on one list, in `shown`; everything else is hidden by the serializer.

mod fields;
mod hiding;
mod shown;
mod veil;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::effect::Input;
use crate::engine::Engine;
use crate::sent::SentEffect;

pub use veil::Veil;

/// The form of the lines. A reader refuses what it does not know.
pub const FORMAT: u32 = 4;

/// One line of a flight record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "line")]
pub enum Record {
    /// The first line of a file: from here the flight can be flown again.
    Begin {
        format: u32,
        at: Timestamp,
        controllers: Vec<String>,
        checkpoint: Value,
    },
    /// What went in and what came out, at one instant.
    Turn {
        at: Timestamp,
        inputs: Vec<Input>,
        effects: Vec<SentEffect>,
    },
}

impl Record {
    /// The first line of a record of this engine, behind this veil.
    pub fn begin(engine: &Engine, at: Timestamp, veil: &Veil) -> Self {
        let controllers = engine.controllers().map(ToOwned::to_owned).collect();
        Self::Begin {
            format: FORMAT,
            at,
            controllers,
            checkpoint: engine.checkpoint_behind(veil),
        }
    }

    /// The line as it is written: one line of JSON, behind the veil of its record.
    pub fn line(&self, veil: &Veil) -> String {
        veil.over(self).to_string()
    }
}

/// How a second flight compares with the recorded one.
#[derive(Debug, Clone, PartialEq)]
pub enum Replayed {
    /// The engine did the same; what it did.
    Same {
        at: Timestamp,
        effects: Vec<SentEffect>,
    },
    /// The engine did something else: another version, or a defect in its determinism.
    Differs {
        at: Timestamp,
        recorded: Vec<SentEffect>,
        now: Vec<SentEffect>,
    },
}

/// Lives one recorded turn again.
///
/// Errors: the line is a beginning that does not fit this engine.
pub fn replay(engine: &mut Engine, record: Record) -> Result<Option<Replayed>, String> {
    match record {
        Record::Begin { format, .. } if format != FORMAT => Err(format!(
            "the record has format {format}, this version reads format {FORMAT}"
        )),
        Record::Begin { checkpoint, .. } => {
            engine
                .restore(&checkpoint)
                .map_err(|error| format!("checkpoint: {error}"))?;
            Ok(None)
        }
        Record::Turn {
            at,
            inputs,
            effects: recorded,
        } => {
            for input in inputs {
                engine.take(input, at);
            }
            let effects = std::iter::from_fn(|| engine.next(at));
            let effects: Vec<_> = effects.map(|it| SentEffect::from(&it)).collect();
            if is_same(&effects, &recorded) {
                return Ok(Some(Replayed::Same { at, effects }));
            }
            Ok(Some(Replayed::Differs {
                at,
                recorded,
                now: effects,
            }))
        }
    }
}

/// Whether effects are the same: what is hidden, and what was made of it, does not count.
fn is_same(one: &[SentEffect], other: &[SentEffect]) -> bool {
    first_difference(one, other).is_none()
}

/// Where effects first differ, in words; what is hidden, and what was made of it, does not count.
pub fn first_difference(recorded: &[SentEffect], now: &[SentEffect]) -> Option<String> {
    let veil = Veil::alike();
    difference("", &veil.over(recorded), &veil.over(now))
}

fn difference(at: &str, recorded: &Value, now: &Value) -> Option<String> {
    match (recorded, now) {
        (Value::Object(recorded), Value::Object(now)) => {
            let names: BTreeSet<_> = recorded.keys().chain(now.keys()).collect();
            let side = |map: &Map<String, Value>, name: &String| map.get(name).cloned();
            names.into_iter().find_map(|name| {
                let (recorded, now) = (side(recorded, name), side(now, name));
                let at = format!("{at}/{name}");
                difference(&at, &recorded.unwrap_or_default(), &now.unwrap_or_default())
            })
        }
        (Value::Array(recorded), Value::Array(now)) if recorded.len() == now.len() => {
            let mut pairs = recorded.iter().zip(now).enumerate();
            pairs.find_map(|(index, (recorded, now))| {
                difference(&format!("{at}/{index}"), recorded, now)
            })
        }
        _ => (recorded != now).then(|| format!("{at}: recorded {recorded}, now {now}")),
    }
}
