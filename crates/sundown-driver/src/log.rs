//! What the log says of decisions: one line for every write and every deed that leaves, with whose it is and
//! why; a warning where one was refused or lacks a grant. Never the whole of them: they hold what manifests hold.

use std::sync::Arc;

use sundown_engine::{Effect, EffectId, Input, Tally};
use sundown_model::{DeedOutcome, Outcome, RefusalReason, Why, Write};

/// What was decided and is being done.
#[derive(Debug)]
pub(crate) struct Decided {
    id: EffectId,
    by: String,
    why: Arc<Why>,
    words: String,
    /// Whether it makes something new.
    makes: bool,
}

/// Something leaves; what was decided, if it changes the world.
pub(crate) fn leaves(effect: &Effect) -> Option<Decided> {
    let (id, what) = (effect.id(), effect.name());
    let Some(decided) = decided(effect).filter(|_| !is_event(effect)) else {
        tracing::debug!(?id, what, "start");
        return None;
    };
    let Decided { by, why, words, .. } = &decided;
    let (code, sentence) = (&*why.code, &*why.sentence);
    tracing::info!(
        ?id,
        controller = by,
        reason = code,
        because = sentence,
        "{words}"
    );
    Some(decided)
}

impl Decided {
    /// The answer came.
    pub(crate) fn answered(&self, input: &Input) {
        let Self {
            id, by, why, words, ..
        } = self;
        let code = &*why.code;
        match input {
            // That another writer was faster is no news, and the words of the API server may hold what
            // manifests hold. What could not be made (a quota, a namespace that goes) its controller tells the
            // user by an Event.
            Input::Wrote {
                outcome: Outcome::Refused(refusal),
                ..
            } if is_final(refusal.reason) && !self.makes => {
                let refused = refusal.reason;
                tracing::warn!(?id, controller = by, reason = code, ?refused, "{words}");
            }
            // What a port refuses is told to the user by an Event.
            Input::Done {
                outcome: DeedOutcome::Refused(refusal),
                ..
            } => {
                let refused = refusal.reason;
                tracing::info!(?id, controller = by, reason = code, %refused, "{words}");
            }
            _ => {}
        }
    }
}

fn is_final(reason: RefusalReason) -> bool {
    match reason {
        RefusalReason::Forbidden | RefusalReason::Invalid => true,
        RefusalReason::NotFound
        | RefusalReason::Conflict
        | RefusalReason::AlreadyExists
        | RefusalReason::Busy => false,
    }
}

/// An Event is what was said of a decision already.
fn is_event(effect: &Effect) -> bool {
    matches!(effect, Effect::Write { ty, .. } if ty.resource.group().is_empty() && ty.resource.plural() == "events")
}

fn decided(effect: &Effect) -> Option<Decided> {
    let (Effect::Write { id, by, why, .. } | Effect::Do { id, by, why, .. }) = effect else {
        return None;
    };
    Some(Decided {
        id: *id,
        by: by.clone(),
        why: Arc::clone(why),
        words: effect.deed_in_words()?,
        makes: matches!(
            effect,
            Effect::Write {
                write: Write::Create(_),
                ..
            }
        ),
    })
}

/// What was counted inside of the engine.
pub(crate) fn tally(tally: &Tally) {
    for (by, words) in &tally.ungranted {
        tracing::warn!(
            controller = by,
            "{words}: no grant covers it; a bug in Sundown"
        );
    }
}
