//! Flies a recorded flight again, turn by turn, and says whether the engine does the same.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use sundown_driver::{Flight, controllers::Selection, read_flight};
use sundown_engine::flight::{Record, Replayed, replay};
use sundown_engine::{Config, Engine, Input, SentEffect};

use crate::arguments::Output;
use crate::complaint::Complaint;
use crate::{output, ray, words};

/// How a flight went, compared with the record.
#[derive(Debug, Default)]
struct Tally {
    turns: usize,
    same: usize,
}

/// Flies it again; exit code 1 if anything differs.
pub(crate) fn run(path: &Path, output: Output) -> Result<ExitCode, Complaint> {
    let flight = read_flight(path).map_err(|error| {
        Complaint::of(&error)
            .help("name a file that a control plane with --flight-record DIR wrote, or DIR")
    })?;
    let place = path.display().to_string();
    let mut tally = Tally::default();
    let mut engine = None;
    for record in &flight.records {
        step(record, &mut engine, &mut tally, output)
            .map_err(|complaint| complaint.at(place.clone()))?;
    }
    tell_end(&flight, &tally, output)?;
    if tally.turns == tally.same {
        return Ok(ExitCode::SUCCESS);
    }
    let different = tally.turns - tally.same;
    Err(Complaint::new(format!(
        "{different} of {} turns differ from the record",
        tally.turns
    ))
    .at(place)
    .help("replay it with the version that recorded it, and with the variables that Ray's controllers had")
    .help("if it still differs, report a bug"))
}

fn step(
    record: &Record,
    engine: &mut Option<Engine>,
    tally: &mut Tally,
    output: Output,
) -> Result<(), Complaint> {
    if let Record::Begin { controllers, .. } = record {
        *engine = Some(engine_of(controllers)?);
    }
    let engine = engine.as_mut().ok_or_else(|| {
        Complaint::new("the flight has no beginning")
            .help("replay the whole file, from its first line")
    })?;
    let replayed = replay(engine, record.clone()).map_err(Complaint::new)?;
    match (record, replayed) {
        (Record::Turn { inputs, .. }, Some(replayed)) => {
            tally.turns += 1;
            tally.same += usize::from(matches!(replayed, Replayed::Same { .. }));
            tell_turn(tally.turns, inputs, &replayed, output)
        }
        (
            Record::Begin {
                at, controllers, ..
            },
            _,
        ) => tell_begin(*at, controllers, output),
        (Record::Turn { .. }, None) => Ok(()),
    }
}

/// An engine with the controllers of a record.
pub(crate) fn engine_of(controllers: &[String]) -> Result<Engine, Complaint> {
    let selection = Selection::only(controllers.iter().map(String::as_str));
    let selection = selection.map_err(|error| {
        Complaint::of(&error).help("replay it with the version that recorded it")
    })?;
    Ok(selection.engine_with_node(Config::default(), &ray::config()?))
}

fn tell_begin(
    at: jiff::Timestamp,
    controllers: &[String],
    output: Output,
) -> Result<(), Complaint> {
    match output {
        Output::Text => {
            let names = controllers.join(", ");
            output::print(&format!("{at}  a record begins, with {names}\n"))?;
        }
        Output::Json => output::print_json(&json!({ "begin": at, "controllers": controllers }))?,
    }
    Ok(())
}

fn tell_turn(
    number: usize,
    inputs: &[Input],
    replayed: &Replayed,
    output: Output,
) -> Result<(), Complaint> {
    let (Replayed::Same { at, .. } | Replayed::Differs { at, .. }) = replayed;
    let said = |effects: &[SentEffect]| effects.iter().map(words::effect).collect::<Vec<_>>();
    let seen: Vec<_> = inputs.iter().map(words::input).collect();
    let (done, recorded) = match replayed {
        Replayed::Same { effects, .. } => (said(effects), None),
        Replayed::Differs { recorded, now, .. } => (said(now), Some(said(recorded))),
    };
    if output == Output::Json {
        let turn = json!({
            "turn": number, "at": at, "inputs": seen, "effects": done, "recorded": recorded,
            "same": recorded.is_none(),
        });
        return Ok(output::print_json(&turn)?);
    }
    let mut text = format!("{at}  turn {number}\n");
    let mut lines = |mark: &str, said: &[String]| {
        for line in said {
            let _ = writeln!(text, "  {mark} {line}");
        }
    };
    lines("<", &seen);
    lines(">", &done);
    if let Some(recorded) = recorded {
        lines("! recorded:", &recorded);
    }
    Ok(output::print(&text)?)
}

fn tell_end(flight: &Flight, tally: &Tally, output: Output) -> Result<(), Complaint> {
    if output == Output::Json {
        let end = json!({ "turns": tally.turns, "same": tally.same, "cut_off": flight.cut_off });
        return Ok(output::print_json(&end)?);
    }
    let mut text = format!(
        "\n{} turns, {} the same as recorded\n",
        tally.turns, tally.same
    );
    for path in &flight.cut_off {
        let _ = writeln!(
            text,
            "{}: the last line was cut off and is left out",
            path.display()
        );
    }
    Ok(output::print(&text)?)
}
