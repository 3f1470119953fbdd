//! What a decision says about an object, in words and as data. `sundown explain` prints it.

use jiff::Timestamp;
use serde::Serialize;
use sundown_model::{
    Action, Blocker, Deed, Need, Note, Part, Propagation, Question, What, Write, node, ray,
};

/// What one controller thinks of an object.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub controller: &'static str,
    pub code: &'static str,
    pub sentence: String,
    pub blockers: Vec<Blocker>,
    /// What it would ask first.
    pub needs: Vec<Need>,
    /// What it does next, in words.
    pub actions: Vec<String>,
    /// When it looks again, if nothing happens before.
    pub wake_at: Option<Timestamp>,
}

pub(crate) fn action_in_words(action: &Action) -> String {
    match action {
        Action::Api(Write::Create(draft)) => format!("create {}", draft.key),
        Action::Api(Write::Patch { at, part, .. }) => match part {
            Part::Main => format!("patch {}", at.key()),
            Part::Status => format!("patch the status of {}", at.key()),
            Part::Finalize => format!("finalize {}", at.key()),
            Part::Binding => format!("bind {} to its node", at.key()),
        },
        Action::Api(Write::Delete { at, how }) => match how {
            Propagation::Background => format!("delete {}", at.key()),
            Propagation::Foreground => format!("delete {} after its dependents", at.key()),
            Propagation::Orphan => format!("delete {} and keep its dependents", at.key()),
        },
        Action::Api(Write::Finish { at }) => format!("finish the deletion of {}", at.key()),
        Action::Tell(Note { about, reason, .. }) => format!("report {reason} on {about}"),
        Action::Do(deed) => deed_in_words(deed),
    }
}

/// What a deed does, without what it carries.
pub fn deed_in_words(deed: &Deed) -> String {
    let about = &deed.about;
    match &deed.what {
        What::Ray(ray::Call::Submit { job, .. }) => {
            format!("submit job {} of {about}", job.submission_id)
        }
        What::Ray(ray::Call::Stop { submission_id, .. }) => {
            format!("stop job {submission_id} of {about}")
        }
        What::Node(node::Call::Prepare(_)) => format!("make room for {about}"),
        What::Node(node::Call::Start(launch)) => {
            format!("start container {} of {about}", launch.run.container)
        }
        What::Node(node::Call::Hook { run, .. }) => {
            format!(
                "run the last command of container {} of {about}",
                run.container
            )
        }
        What::Node(node::Call::Signal { run, signal }) => {
            format!(
                "send signal {signal} to container {} of {about}",
                run.container
            )
        }
        What::Node(node::Call::Release { .. }) => format!("end what {about} ran in"),
        What::Node(node::Call::Remove { .. }) => format!("remove the processes of {about}"),
        What::Node(node::Call::Pull { image }) => format!("make the environment {image}"),
        What::Node(node::Call::Names(names)) => format!("announce {} names", names.len()),
    }
}

/// What a question asks.
pub fn question_in_words(question: &Question) -> String {
    match question {
        Question::Ray(ray::Query::Session { at }) => format!("ask {} for its session", at.0),
        Question::Ray(ray::Query::Job { at, submission_id }) => {
            format!("ask {} about job {submission_id}", at.0)
        }
        Question::Node(node::Query::Probe { run, .. }) => {
            format!("probe container {}", run.container)
        }
        Question::Node(node::Query::Image { image }) => format!("look for an environment {image}"),
    }
}
