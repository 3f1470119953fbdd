//! What lies beyond the API server, as long as no story needs it: nobody is there.

use sundown_model::{DeedOutcome, DeedRefusal, Question, Reply, ray};

const NOBODY: &str = "nobody is there";

pub(crate) fn nobody_answers(question: &Question) -> Reply {
    let message = NOBODY.to_owned();
    match question {
        Question::Ray(_) => Reply::Ray(Err(ray::Failure {
            kind: ray::FailureKind::Unreachable,
            message,
        })),
        Question::Node(_) => Reply::Node(Err(message)),
    }
}

pub(crate) fn nobody_does() -> DeedOutcome {
    DeedOutcome::Refused(DeedRefusal {
        reason: "Unreachable".to_owned(),
        message: NOBODY.to_owned(),
    })
}
