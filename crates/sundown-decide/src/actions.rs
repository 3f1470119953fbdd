//! Actions, written in one place: writes that are guarded by what was seen, and words to people.

use std::sync::Arc;

use serde_json::{Value, json};
use sundown_model::{Action, Draft, Note, Object, Part, Patch, Propagation, Write};

/// Makes an object.
pub(crate) fn create(draft: Draft) -> Action {
    Action::Api(Write::Create(Arc::new(draft)))
}

/// Deletes exactly what was seen.
pub(crate) fn delete(object: &Object, how: Propagation) -> Action {
    let at = object.seen();
    Action::Api(Write::Delete { at, how })
}

/// Ends the grace period of a pod whose processes have ended.
pub(crate) fn finish(pod: &Object) -> Action {
    Action::Api(Write::Finish { at: pod.seen() })
}

/// Patches exactly what was seen.
pub(crate) fn patch(object: &Object, part: Part, patch: Value) -> Action {
    Action::Api(Write::Patch {
        at: object.seen(),
        part,
        patch: Patch::Merge(patch),
    })
}

/// Writes these fields of a status.
pub(crate) fn set_status(object: &Object, fields: &Value) -> Action {
    patch(object, Part::Status, json!({ "status": fields }))
}

/// Leaves an object with all finalizers but this one.
pub(crate) fn without_finalizer(object: &Object, name: &str) -> Action {
    let kept = object.finalizers().iter().map(|it| &**it);
    let kept: Vec<&str> = kept.filter(|it| *it != name).collect();
    set_metadata(object, "finalizers", json!(kept))
}

/// Leaves an object with this list in its metadata.
pub(crate) fn set_metadata(object: &Object, field: &str, list: Value) -> Action {
    // A merge patch removes a field by null; an empty list would stay as an empty list.
    let list = Some(list).filter(|it| *it != json!([]));
    patch(object, Part::Main, json!({ "metadata": { field: list } }))
}

/// Tells people something about an object.
pub(crate) fn note(about: &Object, reason: &str, message: String) -> Action {
    Action::Tell(word(about, reason, message))
}

/// Warns people about an object.
pub(crate) fn warning(about: &Object, reason: &str, message: String) -> Action {
    quoting(about, reason, message, String::new())
}

/// A warning that ends with what a program said, word for word.
pub(crate) fn quoting(about: &Object, reason: &str, message: String, quote: String) -> Action {
    Action::Tell(Note {
        warning: true,
        quote,
        ..word(about, reason, message)
    })
}

/// What [`note`] tells, for a draft to tell once it is made.
pub(crate) fn word(about: &Object, reason: &str, message: String) -> Note {
    Note {
        about: about.key().clone(),
        uid: about.uid().clone(),
        warning: false,
        reason: reason.into(),
        message,
        quote: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::a;

    #[test]
    fn a_finalizer_goes_alone_and_the_last_one_leaves_no_empty_list() {
        let patched = |finalizers: Value| {
            let object = a("pod", "p").with("/metadata/finalizers", finalizers);
            let action = without_finalizer(&object.build(), "mine");
            let Action::Api(Write::Patch { patch, part, .. }) = action else {
                panic!("no patch: {action:?}")
            };
            assert_eq!(part, Part::Main);
            let Patch::Merge(patch) = patch;
            patch
        };
        let left = |list: Value| json!({ "metadata": { "finalizers": list } });
        assert_eq!(patched(json!(["a", "mine", "b"])), left(json!(["a", "b"])));
        assert_eq!(patched(json!(["mine"])), left(Value::Null));
    }

    #[test]
    fn a_warning_quotes_after_its_own_words() {
        let pod = a("pod", "p").build();
        let said = quoting(&pod, "Failed", "It said: ".to_owned(), "no".to_owned());
        let Action::Tell(note) = said else {
            panic!("no note: {said:?}")
        };
        assert!(note.warning && note.text() == "It said: no", "{note:?}");
        assert_eq!((&note.about, &note.uid), (pod.key(), pod.uid()));
    }
}
