//! What a client is told once: that a kind is stored and nothing acts on it. The answer to each request
//! would repeat it in the log of every operator that creates such objects.
//!
//! All other warnings are about the request itself and are told each time, as upstream does.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use sundown_api::{User, is_about_server};

/// So many notices are remembered, of eight bytes each; then all of them are told once more.
const NOTICES_MAX: usize = 4096;

/// The notices that were given, by user, user agent and text.
#[derive(Debug, Default)]
pub(crate) struct Notices(Mutex<BTreeSet<u64>>);

impl Notices {
    /// Takes out of the warnings what this client was told before.
    pub(crate) fn keep_new(&self, user: &User, agent: Option<&str>, warnings: &mut Vec<String>) {
        warnings.retain(|text| !is_about_server(text) || self.is_new(user, agent, text));
    }

    fn is_new(&self, user: &User, agent: Option<&str>, text: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        (&user.name, agent, text).hash(&mut hasher);
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if given.len() >= NOTICES_MAX {
            given.clear();
        }
        given.insert(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = "Pod is stored, but no controller of this server acts on it yet";
    const JOB: &str = "Job is stored, but no controller of this server acts on it yet";

    fn told(notices: &Notices, name: &str, agent: &str, warnings: &[&str]) -> Vec<String> {
        let user = User {
            name: name.to_owned(),
            ..User::anonymous()
        };
        let mut warnings = warnings.iter().map(|&text| text.to_owned()).collect();
        notices.keep_new(&user, Some(agent), &mut warnings);
        warnings
    }

    #[test]
    fn a_client_is_told_once_per_kind_that_nothing_acts_on_it() {
        let notices = Notices::default();
        assert_eq!(told(&notices, "a", "op/1", &[POD]), [POD]);
        assert_eq!(told(&notices, "a", "op/1", &[POD]), [""; 0]);
        assert_eq!(told(&notices, "a", "op/1", &[JOB]), [JOB], "another kind");
        assert_eq!(told(&notices, "b", "op/1", &[POD]), [POD], "another user");
        assert_eq!(
            told(&notices, "a", "kubectl/1", &[POD]),
            [POD],
            "another program"
        );
    }

    #[test]
    fn warnings_about_the_request_are_told_each_time() {
        let notices = Notices::default();
        let about = "unknown field \"spec.x\"";
        assert_eq!(told(&notices, "a", "op/1", &[about, POD]), [about, POD]);
        assert_eq!(told(&notices, "a", "op/1", &[about, POD]), [about]);
    }

    #[test]
    fn clients_without_number_fill_no_memory() {
        let notices = Notices::default();
        for number in 0..3 * NOTICES_MAX {
            told(&notices, "a", &number.to_string(), &[POD]);
        }
        let count = notices.0.lock().map(|given| given.len());
        assert!(count.is_ok_and(|count| count <= NOTICES_MAX));
    }
}
