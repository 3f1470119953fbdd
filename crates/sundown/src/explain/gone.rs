//! Why an object went, from a flight record: what was written to it, by whom and why, and when it
//! was seen to go.

use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;
use sundown_driver::read_flight;
use sundown_engine::flight::{Record, replay};
use sundown_engine::{Effect, Engine, Input, SentEffect, WatchEvent};
use sundown_model::ObjectKey;

use crate::complaint::Complaint;
use crate::sim::engine_of;
use crate::words;

/// How many of the last traces are told.
const TRACES_MAX: usize = 10;

/// Something that happened to the object.
#[derive(Debug, Serialize)]
pub(super) struct Trace {
    pub(super) at: Timestamp,
    pub(super) what: String,
    /// What the controller said when it did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

/// The last things that a record tells of an object, in their order.
pub(super) fn traces(directory: &Path, key: &ObjectKey) -> Result<Vec<Trace>, Complaint> {
    let flight = read_flight(directory).map_err(|error| Complaint::of(&error))?;
    let mut engine = None;
    let mut traces = Vec::new();
    for record in flight.records {
        match &record {
            Record::Begin { controllers, .. } => engine = Some(engine_of(controllers)?),
            Record::Turn {
                at,
                inputs,
                effects,
            } => {
                traces.extend(seen(*at, inputs, key));
                traces.extend(written(*at, inputs, effects, key, engine.as_ref()));
            }
        }
        if let Some(engine) = &mut engine {
            replay(engine, record).map_err(Complaint::new)?;
        }
    }
    Ok(traces.split_off(traces.len().saturating_sub(TRACES_MAX)))
}

fn seen(at: Timestamp, inputs: &[Input], key: &ObjectKey) -> Vec<Trace> {
    let went = inputs.iter().filter(|input| match input {
        Input::Watched {
            event: WatchEvent::Deleted(object),
            ..
        } => object.key() == key,
        _ => false,
    });
    let trace = |_| Trace {
        at,
        what: "was deleted".to_owned(),
        reason: None,
    };
    went.map(trace).collect()
}

fn written(
    at: Timestamp,
    inputs: &[Input],
    effects: &[SentEffect],
    key: &ObjectKey,
    engine: Option<&Engine>,
) -> Vec<Trace> {
    let mut traces = Vec::new();
    for effect in effects {
        let Effect::Write { by, write, .. } = effect else {
            continue;
        };
        if write.key() == key {
            traces.push(Trace {
                at,
                what: format!("{by}: {}", words::change(write)),
                reason: engine.and_then(|engine| reason(engine, inputs, at, key, by)),
            });
        }
    }
    traces
}

/// Takes the turn's inputs into a copy of the engine and asks it, before it acts on them.
fn reason(
    engine: &Engine,
    inputs: &[Input],
    at: Timestamp,
    key: &ObjectKey,
    by: &str,
) -> Option<String> {
    let mut engine = engine.clone();
    for input in inputs {
        engine.take(input.clone(), at);
    }
    let explanations = engine.explain(key, at);
    let said = explanations.into_iter().find(|it| it.controller == *by);
    said.map(|explanation| explanation.sentence)
}
