//! What the log says of decisions: one line for every write and every deed that leaves, with whose it is and
//! why; a warning where one was refused or lacks a grant. Never the whole of them: they hold what manifests hold.

use std::sync::Arc;

use sundown_engine::{Effect, EffectId, Input, Tally};
use sundown_model::{DeedOutcome, Outcome, RefusalReason, Why};

/// What was decided and is being done.
#[derive(Debug)]
pub(crate) struct Decided {
    id: EffectId,
    by: String,
    why: Arc<Why>,
    words: String,
}

/// Something leaves; what was decided, if it changes the world.
pub(crate) fn leaves(effect: &Effect) -> Option<Decided> {
    let (id, what) = (effect.id(), effect.name());
    let Some(decided) = decided(effect) else {
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
        let Self { id, by, why, words } = self;
        let code = &*why.code;
        match input {
            // That another writer was faster is no news, and the words of the API server may hold what
            // manifests hold.
            Input::Wrote {
                outcome: Outcome::Refused(refusal),
                ..
            } if is_final(refusal.reason) => {
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

fn decided(effect: &Effect) -> Option<Decided> {
    let (Effect::Write { id, by, why, .. } | Effect::Do { id, by, why, .. }) = effect else {
        return None;
    };
    Some(Decided {
        id: *id,
        by: by.clone(),
        why: Arc::clone(why),
        words: effect.deed_in_words()?,
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
