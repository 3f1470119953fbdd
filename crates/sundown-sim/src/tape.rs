//! A flight recorder in a world. What it records is flown again at once, by a second engine that knows
//! no more than the record tells, so that what a record hides is shown to decide nothing.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use sundown_engine::flight::{Record, Veil, first_difference, replay};
use sundown_engine::{Effect, Engine, Input, SentEffect};
use sundown_model::{DeedOutcome, Reply, Report, node, ray};

use crate::scenario::Scenario;
use crate::world::World;

/// After how many inputs a new file begins, from a checkpoint.
const FILE_LENGTH: usize = 150;
/// How many probes find trouble before all is well.
const TROUBLES: usize = 3;

/// What was recorded of a life.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    pub lines: Vec<String>,
    /// Where the second engine did something else.
    pub differences: Vec<String>,
}

/// Records a life, and flies it again while it is lived. If there is a marker, everything that pods, the
/// node and Ray say in their own words holds it.
pub fn record(scenario: &Scenario, marker: Option<&'static str>) -> Recording {
    let mut world = World::new(scenario, None);
    world.tape = Some(Tape::new(marker));
    world.run(&mut |_, _| {});
    world.tape.map(|it| it.recording).unwrap_or_default()
}

/// The recorder.
#[derive(Debug, Clone)]
pub(crate) struct Tape {
    veil: Veil,
    marker: Option<&'static str>,
    /// An engine that has seen nothing, and the one that flies again.
    engines: Option<(Engine, Engine)>,
    input_count: usize,
    trouble_count: usize,
    recording: Recording,
}

impl Tape {
    fn new(marker: Option<&'static str>) -> Self {
        Self {
            veil: Veil::new(mark),
            marker,
            engines: None,
            input_count: 0,
            trouble_count: 0,
            recording: Recording::default(),
        }
    }

    /// An operator begins, or a file does.
    pub(crate) fn begin(&mut self, fresh: Engine, engine: &Engine, now: Timestamp) {
        let line = Record::begin(engine, now, &self.veil).line(&self.veil);
        let mut second = fresh.clone();
        let replayed = read(&line).and_then(|begin| replay(&mut second, begin));
        self.differences(replayed.err());
        self.recording.lines.push(line);
        self.engines = Some((fresh, second));
    }

    /// Puts the marker into what others say.
    pub(crate) fn mark(&mut self, input: &mut Input) {
        if let Some(marker) = self.marker {
            self.trouble_count += usize::from(say(input, marker, self.trouble_count < TROUBLES));
        }
    }

    /// The engine took something.
    pub(crate) fn took(&mut self, input: &Input, now: Timestamp) {
        let turn = Record::Turn {
            at: now,
            inputs: vec![input.clone()],
            effects: Vec::new(),
        };
        let line = turn.line(&self.veil);
        self.input_count += 1;
        match (read(&line), &mut self.engines) {
            (Ok(Record::Turn { inputs, .. }), Some((_, second))) => {
                for input in inputs {
                    second.take(input, now);
                }
            }
            (read, _) => self.differences(Some(format!("{line}: {read:?}"))),
        }
        self.recording.lines.push(line);
    }

    /// The engine was asked for an effect.
    pub(crate) fn gave(&mut self, effect: Option<&Effect>, engine: &Engine, now: Timestamp) {
        let effects: Vec<_> = effect.map(SentEffect::from).into_iter().collect();
        let Some((fresh, second)) = &mut self.engines else {
            return;
        };
        let again = second.next(now);
        let again: Vec<_> = again.iter().map(SentEffect::from).collect();
        let difference = first_difference(&effects, &again);
        self.recording
            .differences
            .extend(difference.map(|it| format!("{now}: {it}")));
        let is_full = self.input_count >= FILE_LENGTH;
        if effects.is_empty() && is_full {
            let fresh = fresh.clone();
            self.input_count = 0;
            self.begin(fresh, engine, now);
        } else if !effects.is_empty() {
            let turn = Record::Turn {
                at: now,
                inputs: Vec::new(),
                effects,
            };
            self.recording.lines.push(turn.line(&self.veil));
        }
    }

    fn differences(&mut self, found: Option<String>) {
        self.recording.differences.extend(found);
    }
}

fn read(line: &str) -> Result<Record, String> {
    serde_json::from_str(line).map_err(|error| error.to_string())
}

/// A mark that is the same in every run. A recorder that writes files has one with a key.
fn mark(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |mark: u64, byte| {
        (mark ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Puts a marker into what pods, the node and Ray say; true if a probe found trouble by it.
fn say(input: &mut Input, marker: &str, is_troubled: bool) -> bool {
    let said = |text: &mut String| {
        text.push(' ');
        text.push_str(marker);
    };
    match input {
        Input::Answered { reply, .. } => match reply {
            Reply::Ray(Ok(ray::Answer::Job(Some(job)))) => said(&mut job.message),
            Reply::Ray(Err(failure)) => said(&mut failure.message),
            Reply::Node(Ok(node::Answer::Probe { trouble })) => {
                if is_troubled {
                    *trouble = Some(marker.to_owned());
                }
                return is_troubled;
            }
            Reply::Node(Err(text)) => said(text),
            Reply::Ray(Ok(ray::Answer::Job(None) | ray::Answer::Session { .. }))
            | Reply::Node(Ok(node::Answer::Image(_))) => {}
        },
        Input::Done { outcome, .. } => match outcome {
            DeedOutcome::Refused(refusal) if !refusal.quote.is_empty() => said(&mut refusal.quote),
            DeedOutcome::Unknown { message } => said(message),
            DeedOutcome::Done | DeedOutcome::Refused(_) => {}
        },
        Input::Reported(Report::Node(report)) => match report {
            node::Report::All(pods) => pods.iter_mut().for_each(|pod| last_words(pod, marker)),
            node::Report::Pod(pod) => last_words(pod, marker),
            node::Report::Away { message } => said(message),
            node::Report::Removed { .. } | node::Report::Image { .. } => {}
        },
        Input::Discovered { .. }
        | Input::Listed { .. }
        | Input::Watched { .. }
        | Input::Got { .. }
        | Input::Positions { .. }
        | Input::Wrote { .. }
        | Input::Lead(_)
        | Input::Brake(_) => {}
    }
    false
}

/// What containers leave behind when they end.
fn last_words(pod: &mut node::Pod, marker: &str) {
    for container in pod.containers.values_mut() {
        let state = match &mut container.state {
            node::State::Ended(ended) => Some(ended),
            node::State::Running { .. } => None,
        };
        for ended in state.into_iter().chain(container.last.as_mut()) {
            marker.clone_into(&mut ended.message);
        }
    }
}
