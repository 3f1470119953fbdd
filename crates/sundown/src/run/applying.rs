//! Applies a whole file, starts a control plane again that is lost meanwhile, and knows at each moment what is there
//! already. How one object is applied is left to `apply`.

use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use super::apply::{self, Applied, ApplyError, How, Role, Server};
use super::manifest::{self, Manifest};
use super::plane::{self, Plane};
use super::remove;
use super::snapshot::uid;
use crate::complaint::Complaint;
use crate::control::Gone;
use crate::kubectl::Kubectl;

/// How often the file is applied when the control plane is lost meanwhile.
const TRIES_MAX: usize = 3;
/// How long to wait for the word of a control plane that does not answer requests. One that ends says so before, and
/// one that was killed closes its socket; one that is up says nothing.
const WORD_TIME_MAX: Duration = Duration::from_secs(5);

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

    /// Applies everything and tells each object that is there. Cancelled, it still knows what was applied.
    pub(super) async fn run(
        &mut self,
        plane: &mut Plane,
        tell: &mut (dyn FnMut(&Applied) + Send),
    ) -> Result<(), Complaint> {
        let mut tries = 1;
        loop {
            let complaint = match self.apply_once(plane, tell).await {
                Ok(()) => return Ok(()),
                Err(ApplyError::Refused(complaint)) => {
                    self.under_way = None;
                    return Err(self.naming(complaint, plane.kubectl()));
                }
                Err(ApplyError::Away(complaint)) => complaint,
            };
            let gone = timeout(WORD_TIME_MAX, plane.gone()).await.ok();
            match after(gone, tries) {
                Next::Again => {}
                Next::Ended => {
                    let ended = plane::ended(plane.has_lost_its_data());
                    let ended = ended.at(plane.directory().display().to_string());
                    return Err(self.naming(ended, plane.kubectl()));
                }
                Next::GiveUp => return Err(self.naming(complaint, plane.kubectl())),
            }
            if let Err(complaint) = plane.join_again().await {
                return Err(self.naming(complaint, plane.kubectl()));
            }
            self.begin_again();
            tries += 1;
        }
    }

    async fn apply_once(
        &mut self,
        plane: &Plane,
        tell: &mut (dyn FnMut(&Applied) + Send),
    ) -> Result<(), ApplyError> {
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
                Ok(applied) => {
                    if let Some(news) = self.note(applied) {
                        tell(news);
                    }
                }
                Err(ApplyError::Refused(complaint)) => {
                    let file = self.file.display();
                    let complaint = complaint.help(format!("in {file}, document {}", index + 1));
                    return Err(ApplyError::Refused(complaint));
                }
                Err(error @ ApplyError::Away(_)) => return Err(error),
            }
        }
        Ok(())
    }

    /// What was found as it should be may have been made by this run before the control plane was lost. Some: it was not
    /// told before.
    fn note(&mut self, mut applied: Applied) -> Option<&Applied> {
        let same = |it: &&Applied| it.path == applied.path && uid(&it.value) == uid(&applied.value);
        let before = self.before.iter().find(same);
        let is_news = before.is_none() || applied.how != How::Unchanged;
        if let Some(before) = before.filter(|_| !is_news) {
            applied.how = before.how;
        }
        self.under_way = None;
        self.applied.push(applied);
        self.applied.last().filter(|_| is_news)
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

    /// With what is there although the file was not applied to its end.
    fn naming(&self, complaint: Complaint, kubectl: &Kubectl) -> Complaint {
        let made = self.made();
        let complaint = match &self.under_way {
            Some(it) => complaint.help(format!("{it} may have been applied")),
            None => complaint,
        };
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

/// What follows when a control plane did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Join it, or start it again.
    Again,
    /// It was told to end, and is not started again.
    Ended,
    GiveUp,
}

/// Decides by what it said, if anything, and by how often it did not answer.
fn after(gone: Option<Gone>, tries: usize) -> Next {
    match gone {
        Some(Gone::Asked) => Next::Ended,
        Some(Gone::Lost) | None if tries < TRIES_MAX => Next::Again,
        Some(Gone::Lost) | None => Next::GiveUp,
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

    /// One that `sundown down` had ended was started again.
    #[test]
    fn a_control_plane_that_was_told_to_end_is_not_started_again() {
        for (gone, tries, expect) in [
            (Some(Gone::Asked), 1, Next::Ended),
            (Some(Gone::Lost), 1, Next::Again),
            (Some(Gone::Lost), TRIES_MAX, Next::GiveUp),
            (None, 2, Next::Again),
            (None, TRIES_MAX, Next::GiveUp),
        ] {
            assert_eq!(after(gone, tries), expect, "{gone:?} {tries}");
        }
    }

    /// What had been made was named if the server refused the next object, and not if it went away.
    #[test]
    fn what_is_there_is_named_whatever_ends_the_run() {
        let manifest = Manifest {
            objects: Vec::new(),
            job: None,
            duplicates: Vec::new(),
        };
        let mut applying = Applying::new(Path::new("f"), &manifest, "n");
        assert!(applying.note(object("a", How::Created)).is_some());
        applying.begin_again();
        let again = applying.note(object("a", How::Unchanged));
        assert!(again.is_none(), "told twice");
        applying.under_way = Some("configmap/b".to_owned());
        let kubectl = Kubectl::of_data(Path::new("/d"));
        let told = applying.naming(plane::ended(false), &kubectl).text();
        let expect = "\
error: the control plane was stopped
  = help: configmap/b may have been applied
  = help: applied before it, and kept: configmap/a; \
to remove: kubectl --kubeconfig /d/kubeconfig delete -n n configmap/a
";
        assert_eq!(told, expect);
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
