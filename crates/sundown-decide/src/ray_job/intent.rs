//! What is going to be submitted, to which session of which cluster: stored on the `RayJob` before it is
//! done, so that it is known after a crash, and after an edit of the spec. Of what the user submits, the
//! cluster is stored when the user names the job.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sundown_model::Object;

/// Where it is stored. An annotation, because upstream's definitions would prune a field.
pub const ANNOTATION_SUBMISSION: &str = "sundown.dev/submission";

/// One submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Intent {
    /// The name of the cluster, which each attempt has anew.
    pub(super) cluster: Arc<str>,
    /// The incarnation of the cluster: a successor of the same name is another one.
    pub(super) cluster_uid: Arc<str>,
    /// The session of Ray: a head that came back is another one. None of what the user submits: which session that
    /// goes to is not known.
    pub(super) session: Option<Arc<str>>,
    pub(super) submission_id: Arc<str>,
    /// What was answered before this instant was about something else.
    pub(super) stored_at: Timestamp,
}

impl Intent {
    /// The intent on an object; None if there is none that can be read.
    pub(super) fn of(object: &Object) -> Option<Self> {
        let all = object.field("/metadata/annotations")?;
        let text = all.get(ANNOTATION_SUBMISSION)?.as_str()?;
        serde_json::from_str(text).ok()
    }

    /// The patch that stores it.
    pub(super) fn patch(&self) -> Value {
        let text = json!(self).to_string();
        json!({"metadata": {"annotations": {ANNOTATION_SUBMISSION: text}}})
    }
}
