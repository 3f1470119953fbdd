//! Why an object is not accepted: one text, in the words that users of the kinds know.

/// What is wrong with an object. The first thing that is found, except where all are told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

pub(crate) type Validated = Result<(), Invalid>;

/// Refuses with a text if something is wrong.
pub(crate) fn refuse_if(is_wrong: bool, text: impl FnOnce() -> String) -> Validated {
    if is_wrong {
        Err(Invalid(text()))
    } else {
        Ok(())
    }
}

/// A list of texts as Go prints one.
pub(crate) fn go_list(texts: &[String]) -> String {
    format!("[{}]", texts.join(" "))
}
