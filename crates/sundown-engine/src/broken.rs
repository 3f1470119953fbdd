//! What the engine is told about an effect that broke: whoever carried it out panicked. One place for
//! every shell, so that the simulator breaks effects as production would.

use sundown_model::Outcome;

use crate::effect::{Effect, Failure, Input, WatchEvent};

/// The answer to an effect that broke. Each of them waits before it is tried again, alone for its key.
///
/// The words of the panic are no part of it: they may hold what the effect held, and the log has them.
/// None: nobody waits for an answer.
pub fn broken(effect: &Effect) -> Option<Input> {
    let message = in_words(effect.name());
    let failure = || Failure {
        message: message.clone(),
        expired: false,
    };
    Some(match effect {
        Effect::Unwatch { .. } => return None,
        Effect::Discover { id } => Input::Discovered {
            id: *id,
            result: Err(failure()),
        },
        Effect::List { id, .. } => Input::Listed {
            id: *id,
            result: Err(failure()),
        },
        Effect::Watch { id, .. } => Input::Watched {
            id: *id,
            event: WatchEvent::Closed { expired: false },
        },
        Effect::Get { id, .. } => Input::Got {
            id: *id,
            result: Err(failure()),
        },
        Effect::Barrier { id, .. } => Input::Positions {
            id: *id,
            result: Err(failure()),
        },
        // It may have left before.
        Effect::Write { id, .. } => Input::Wrote {
            id: *id,
            outcome: Outcome::Unknown,
        },
        Effect::Ask { id, question } => Input::Answered {
            id: *id,
            reply: question.broken(message),
        },
        Effect::Do { id, deed, .. } => Input::Done {
            id: *id,
            outcome: deed.what.broken(message),
        },
    })
}

fn in_words(name: &str) -> String {
    format!("Sundown panicked at this ({name}) and tries again; a bug, and its log says where")
}
