//! Applies a whole file, starts a control plane again that is lost meanwhile, and knows at each moment what is there
//! already. How one object is applied is left to `apply`.

use std::path::Path;

use super::apply::{self, Applied, ApplyError, How, Role, Server};
use super::manifest::{self, Manifest};
use super::plane::Plane;
use super::remove;
use super::snapshot::uid;
use crate::complaint::Complaint;
use crate::kubectl::Kubectl;

/// How often the file is applied when the control plane is lost meanwhile.
const TRIES_MAX: usize = 3;

/// A file that is being applied.
#[derive(Debug)]
pub(super) struct Applying<'a> {
    file: &'a Path,
    manifest: &'a Manifest,
    /// Of objects that name none.
    namespace: &'a str,
    /// What is there, in the order of the file.
    pub(super) applied: Vec<Applied>,
    /// The object that is being applied.
    under_way: Option<String>,
    /// What was applied before the control plane was lost; then what is there already may be of this very run.
    before: Vec<Applied>,
    pub(super) is_repeated: bool,
}

/// What is told when a file was not applied to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stopped {
    pub(super) text: String,
    /// What this run made or changed.
    pub(super) objects: Vec<String>,
    /// The command that removes it.
    pub(super) remove: String,
}

impl<'a> Applying<'a> {
    pub(super) fn new(file: &'a Path, manifest: &'a Manifest, namespace: &'a str) -> Self {
        Self {
            file,
            manifest,
            namespace,
            applied: Vec::new(),
            under_way: None,
            before: Vec::new(),
            is_repeated: false,
        }
    }

    /// Applies everything. Cancelled, it still knows what was applied.
    pub(super) async fn run(&mut self, plane: &mut Plane) -> Result<(), Complaint> {
        let mut tries = 1;
        loop {
            match self.apply_once(plane).await {
                Ok(()) => return Ok(()),
                Err(ApplyError::Away(_)) if tries < TRIES_MAX => {
                    self.begin_again();
                    plane.join_again().await?;
                }
                Err(error) => return Err(error.into_complaint()),
            }
            tries += 1;
        }
    }

    async fn apply_once(&mut self, plane: &Plane) -> Result<(), ApplyError> {
        let server = Server {
            client: plane.client(),
            kubectl: plane.kubectl(),
            namespace: self.namespace,
        };
        let manifest = self.manifest;
        // A job that would be refused is refused before anything else is there.
        if let Some(job) = manifest.job {
            apply::check(&server, &manifest.objects[job]).await?;
        }
        for (index, object) in manifest.objects.iter().enumerate() {
            let role = match manifest.job {
                Some(job) if job == index => Role::Job,
                Some(_) | None => Role::Beside,
            };
            self.under_way = Some(manifest::name(object));
            match apply::apply(&server, object, role).await {
                Ok(applied) => self.note(applied),
                Err(ApplyError::Refused(complaint)) => {
                    let file = self.file.display();
                    let complaint = complaint.help(format!("in {file}, document {}", index + 1));
                    return Err(ApplyError::Refused(
                        self.refused(complaint, plane.kubectl()),
                    ));
                }
                Err(error @ ApplyError::Away(_)) => return Err(error),
            }
        }
        Ok(())
    }

    /// What was found as it should be may have been made by this run before the control plane was lost.
    fn note(&mut self, mut applied: Applied) {
        let same = |it: &&Applied| it.path == applied.path && uid(&it.value) == uid(&applied.value);
        if let Some(before) = self.before.iter().find(same)
            && applied.how == How::Unchanged
        {
            applied.how = before.how;
        }
        self.under_way = None;
        self.applied.push(applied);
    }

    fn begin_again(&mut self) {
        self.is_repeated = true;
        self.under_way = None;
        let made = std::mem::take(&mut self.applied).into_iter();
        let is_new = |it: &Applied| !self.before.iter().any(|old| old.path == it.path);
        let made: Vec<Applied> = made.filter(is_new).collect();
        self.before.extend(made);
    }

    /// What this run made or changed so far.
    fn made(&self) -> Vec<Applied> {
        let lost = self.before.iter();
        let lost = lost.filter(|old| !self.applied.iter().any(|it| it.path == old.path));
        let all = lost.chain(&self.applied);
        all.filter(|it| it.how != How::Unchanged).cloned().collect()
    }

    fn refused(&self, complaint: Complaint, kubectl: &Kubectl) -> Complaint {
        let made = self.made();
        if made.is_empty() {
            return complaint;
        }
        let (names, how) = (names(&made).join(", "), remove::command(kubectl, &made));
        complaint.help(format!(
            "applied before it, and kept: {names}; to remove: {how}"
        ))
    }

    /// What a user is told who does not wait until everything is applied.
    pub(super) fn stopped(&self, kubectl: &Kubectl) -> Stopped {
        let made = self.made();
        let kept = match made.len() {
            0 => "nothing was changed",
            _ => "what was applied is kept",
        };
        let open = self.under_way.iter();
        let open = open.map(|it| format!("; {it} may have been applied too"));
        Stopped {
            text: format!("stopped while applying; {kept}{}", open.collect::<String>()),
            objects: names(&made),
            remove: remove::command(kubectl, &made),
        }
    }
}

fn names(all: &[Applied]) -> Vec<String> {
    all.iter().map(|it| it.object.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, how: How) -> Applied {
        Applied {
            object: format!("configmap/{name}"),
            namespace: Some("n".to_owned()),
            how,
            path: format!("/{name}"),
            value: json!({"metadata": {"uid": name}}),
        }
    }

    fn check(change: impl Fn(&mut Applying<'_>), text: &str, remove: &str) {
        let manifest = Manifest {
            objects: Vec::new(),
            job: None,
            duplicates: Vec::new(),
        };
        let mut applying = Applying::new(Path::new("f"), &manifest, "n");
        change(&mut applying);
        let kubectl = Kubectl::of_data(Path::new("/d"));
        let stopped = applying.stopped(&kubectl);
        assert_eq!(stopped.text, format!("stopped while applying; {text}"));
        let expect = match remove {
            "" => String::new(),
            names => format!("kubectl --kubeconfig /d/kubeconfig delete -n n {names}"),
        };
        assert_eq!(stopped.remove, expect);
        let words: Vec<&str> = remove.split_whitespace().collect();
        assert_eq!(stopped.objects, words);
    }

    /// It was said that something stays, and neither what nor how it goes.
    #[test]
    fn who_stops_while_a_file_is_applied_is_told_what_stays_and_how_it_goes() {
        check(|_| {}, "nothing was changed", "");
        check(
            |it| {
                it.note(object("made", How::Created));
                it.note(object("changed", How::Configured));
                it.note(object("there", How::Unchanged));
                it.under_way = Some("job/j".to_owned());
            },
            "what was applied is kept; job/j may have been applied too",
            "configmap/made configmap/changed",
        );
    }

    #[test]
    fn what_was_made_before_the_control_plane_was_lost_is_still_of_this_run() {
        check(
            |it| {
                it.note(object("a", How::Created));
                it.note(object("b", How::Created));
                it.note(object("there", How::Unchanged));
                it.begin_again();
                it.note(object("a", How::Unchanged));
                it.note(object("there", How::Unchanged));
                assert!(it.is_repeated);
                assert_eq!(it.applied[0].how, How::Created);
                assert_eq!(it.applied[1].how, How::Unchanged);
            },
            "what was applied is kept",
            "configmap/b configmap/a",
        );
    }
}
