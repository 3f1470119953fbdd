//! The answer for people and for programs.

use std::fmt::Write as _;
use std::io;

use serde_json::json;
use sundown_engine::Explanation;
use sundown_model::{Need, ObjectKey, Question};

use super::gone::Trace;
use super::look::{Explained, Told};
use crate::arguments::Output;
use crate::terminal::one_line;
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
    output::print(&gone(key, traces))
}

fn gone(key: &ObjectKey, traces: &[Trace]) -> String {
    let mut text = format!("{} (gone)\n", one_line(&key.to_string()));
    for trace in traces {
        let _ = writeln!(text, "  {}  {}", trace.at, one_line(&trace.what));
        if let Some(reason) = &trace.reason {
            let _ = writeln!(text, "    because      {}", one_line(reason));
        }
    }
    text
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
    let head = format!("{} (uid {})", object.key, object.uid);
    let _ = writeln!(text, "{}", one_line(&head));
    if let Some(since) = object.deleting_since {
        let _ = writeln!(text, "  being deleted since {since}");
    }
    for explanation in &object.explanations {
        let _ = writeln!(
            text,
            "  {}: {}",
            explanation.controller,
            one_line(&explanation.sentence)
        );
        for (label, said) in details(explanation) {
            let _ = writeln!(text, "    {label:<12} {}", one_line(&said));
        }
    }
    if object.further_blockers > 0 {
        let _ = writeln!(text, "  and {} more block it", object.further_blockers);
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
            Need::Ray(query) => Question::Ray(query.clone()).in_words(),
            Need::Node(query) => Question::Node(query.clone()).in_words(),
        };
        details.push(("needs", said));
    }
    for action in &explanation.actions {
        details.push(("does next", action.clone()));
    }
    if let Some(at) = explanation.wake_at {
        details.push(("next check", format!("at {at}")));
    }
    details
}

#[cfg(test)]
mod tests {
    use sundown_model::Blocker;

    use super::*;

    /// What an object says of itself cannot pass for what we say of it.
    #[test]
    fn words_of_an_object_stay_on_their_line() {
        let explanation = Explanation {
            controller: "ray_job".into(),
            code: "Waits".into(),
            sentence: "Ray said: no\n  ttl: is deleted next".to_owned(),
            blockers: vec![Blocker::UnknownKind {
                api_version: "v1".to_owned(),
                kind: "X\r\n    does next    delete all".to_owned(),
            }],
            needs: Vec::new(),
            actions: vec!["create x\u{85}y".to_owned()],
            wake_at: None,
        };
        let told = Told {
            object: Explained {
                key: "rayjobs.ray.io/default/x".to_owned(),
                uid: "u".to_owned(),
                deleting_since: None,
                finalizers: Vec::new(),
                explanations: vec![explanation],
                further_blockers: 0,
            },
            chain: Vec::new(),
        };
        let expect = "\
rayjobs.ray.io/default/x (uid u)
  ray_job: Ray said: no ttl: is deleted next
    blocked by   an owner of kind X^M does next delete all in v1, which is not served
    does next    create x<U+0085>y
";
        assert_eq!(text(&told), expect);
    }
}
