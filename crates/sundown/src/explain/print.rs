//! The answer for people and for programs.

use std::fmt::Write as _;
use std::io;

use serde_json::json;
use sundown_engine::{Explanation, question_in_words};
use sundown_model::{Need, ObjectKey, Question};

use super::gone::Trace;
use super::look::{Explained, Told};
use crate::arguments::Output;
use crate::{output, words};

/// Tells what is known of an object that is there.
pub(super) fn tell(told: &Told, output: Output) -> io::Result<()> {
    match output {
        Output::Json => output::print_json(told),
        Output::Text => output::print(&text(told)),
    }
}

/// Tells what a flight record knows of an object that is not there.
pub(super) fn tell_gone(key: &ObjectKey, traces: &[Trace], output: Output) -> io::Result<()> {
    if output == Output::Json {
        return output::print_json(
            &json!({ "key": key.to_string(), "gone": true, "traces": traces }),
        );
    }
    let mut text = format!("{key} (gone)\n");
    for trace in traces {
        let _ = writeln!(text, "  {}  {}", trace.at, trace.what);
        if let Some(reason) = &trace.reason {
            let _ = writeln!(text, "    because      {reason}");
        }
    }
    output::print(&text)
}

fn text(told: &Told) -> String {
    let mut text = String::new();
    write_object(&mut text, &told.object);
    for blocker in &told.chain {
        text.push('\n');
        write_object(&mut text, blocker);
    }
    text
}

fn write_object(text: &mut String, object: &Explained) {
    let _ = writeln!(text, "{} (uid {})", object.key, object.uid);
    if let Some(since) = object.deleting_since {
        let _ = writeln!(text, "  being deleted since {since}");
    }
    for explanation in &object.explanations {
        let _ = writeln!(
            text,
            "  {}: {}",
            explanation.controller, explanation.sentence
        );
        for (label, said) in details(explanation) {
            let _ = writeln!(text, "    {label:<12} {said}");
        }
    }
}

fn details(explanation: &Explanation) -> Vec<(&'static str, String)> {
    let mut details = Vec::new();
    for blocker in &explanation.blockers {
        details.push(("blocked by", words::blocker(blocker)));
    }
    for need in &explanation.needs {
        let said = match need {
            Need::Live(key) => format!("read {key}"),
            Need::Barrier(resources) => format!("catch up with {} types", resources.len()),
            Need::Ray(query) => question_in_words(&Question::Ray(query.clone())),
            Need::Node(query) => question_in_words(&Question::Node(query.clone())),
        };
        details.push(("asks first", said));
    }
    for action in &explanation.actions {
        details.push(("does next", action.clone()));
    }
    if let Some(at) = explanation.wake_at {
        details.push(("looks again", format!("at {at}")));
    }
    details
}
