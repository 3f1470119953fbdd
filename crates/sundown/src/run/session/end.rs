//! How a run comes to its end: what is let go and deleted, what is told of it, and the exit code.

use std::collections::BTreeSet;
use std::process::ExitCode;

use serde_json::Value;
use sundown_model::path::part;

use super::Session;
use super::errands::About;
use crate::complaint::Complaint;
use crate::objects::Known;
use crate::run::apply::Applied;
use crate::run::cleanup::{self, Cleanup};
use crate::run::outcome::Outcome;
use crate::run::remove::{self, Undeleted};
use crate::run::screen::Event;
use crate::run::snapshot::uid;
use crate::run::{STOPPED, progress};
use crate::terminal::one_line;

impl Session<'_> {
    /// Nothing comes of some logs: whoever reads this shall know what is missing.
    pub(super) fn give_up(&mut self) {
        let parts = self.target.parts(&self.snapshot);
        // What is about to be deleted cannot be read any more when somebody has read this.
        let kubectl = Some(self.plane.kubectl()).filter(|_| !self.options.removes);
        let logs = self.logs.give_up(&parts, kubectl);
        self.screen.tell(&Event::LogsIncomplete { logs: &logs });
    }

    /// Which job it is on the server.
    pub(super) fn about(&self) -> About {
        let collection = self.target.kind.path(Some(&self.target.namespace));
        About {
            path: format!("{collection}/{}", part(&self.target.name)),
            uid: self.target.uid.clone(),
        }
    }

    pub(super) fn delete(&mut self) {
        let owned = self.owned().into_iter();
        self.deleting = owned.map(|(kind, it)| (kind, it.clone())).collect();
        self.errands.delete(self.plane.clients(), self.about());
    }

    /// The server has accepted it.
    pub(super) fn note_the_deletion(&mut self) {
        let parts = self.target.parts(&self.snapshot);
        let last = self.last.take();
        self.last = last.or_else(|| Some(progress::stopped(progress::stages(&parts))));
        self.deleted = Some(std::mem::take(&mut self.deleting));
    }

    /// The server refuses to delete the job: the result is told before.
    pub(super) fn not_deleted(&mut self, error: &kube::Error) -> Complaint {
        self.tell_result();
        let text = self.left_behind();
        self.screen.tell(&Event::Note { text: &text });
        let code = self.ended.as_ref().map_or(1, |(end, _)| end.exit_code);
        let complaint = Complaint::new(format!("cannot delete {}", self.target.word()));
        complaint.because(error).code(code.max(1))
    }

    /// Some object beside the job does not go; the others do.
    pub(super) fn tell_undeleted(&mut self, failed: Option<Undeleted>) {
        if let Some(failed) = failed {
            self.screen.tell(&Event::Note {
                text: &failed.in_words(),
            });
        }
    }

    fn tell_result(&mut self) {
        self.screen.close();
        if let Some((end, _)) = &self.ended {
            self.screen.tell(&Event::Result {
                object: &self.target.word(),
                outcome: end,
            });
        }
    }

    pub(super) fn finish(&mut self, cleanup: Cleanup) -> Result<ExitCode, Complaint> {
        let deleted = self.deleted.take();
        let held = match deleted {
            Some(_) => self.undeleted_of_job(),
            None => Vec::new(),
        };
        for it in &held {
            self.tell_undeleted(Some(it.clone()));
        }
        self.tell_result();
        let undeleted: Vec<Undeleted> = held.iter().chain(self.beside.failed()).cloned().collect();
        let failed = remove::undeleted(&undeleted);
        match (deleted, cleanup) {
            (Some(deleted), _) => {
                let (names, count) = self.removed(&deleted, &failed);
                self.screen.tell(&Event::Removed {
                    objects: &names,
                    count,
                    is_all: self.beside.stay.is_empty() && failed.is_empty(),
                });
                // What stays with `--rm` was there before this run.
                self.tell_kept(&self.beside.stay.clone(), !self.options.removes);
                self.tell_kept(&failed, true);
            }
            (None, Cleanup::Settled { mut kept, later }) => {
                kept.extend(names_of(&self.beside.stay));
                self.screen.tell(&Event::Kept {
                    objects: &kept,
                    later: later.as_deref(),
                    remove: None,
                });
            }
            (None, Cleanup::Goes(_)) => {}
        }
        let end = self.ended.as_ref().map(|(end, _)| end);
        if self.interrupt.is_stopping() {
            return Ok(ExitCode::from(STOPPED));
        }
        result(&self.target.word(), end, &undeleted)
    }

    /// What was deleted and is gone, as kubectl names it, and how much that is.
    fn removed(&self, deleted: &[(Known, Value)], failed: &[Applied]) -> (Vec<String>, usize) {
        let roots = failed.iter().map(|it| uid(&it.value).to_owned());
        let stays = self.snapshot.descendants(&roots.collect());
        let stays: BTreeSet<&str> = stays.into_iter().map(|(_, it)| uid(it)).collect();
        let gone = deleted.iter().filter(|(_, it)| !stays.contains(uid(it)));
        let gone: Vec<(Known, &Value)> = gone.map(|(kind, it)| (*kind, it)).collect();
        let mut beside = names_of(self.beside.go());
        let failed = names_of(failed);
        beside.retain(|it| !failed.contains(it));
        let count = gone.len() + beside.len();
        let mut names = cleanup::kept(&gone);
        names.append(&mut beside);
        (names, count)
    }

    /// Names what stays, with the command that removes it if that is this run's to remove.
    fn tell_kept(&mut self, kept: &[Applied], is_ours: bool) {
        if kept.is_empty() {
            return;
        }
        let how = remove::command(self.plane.kubectl(), kept);
        self.screen.tell(&Event::Kept {
            objects: &names_of(kept),
            later: None,
            remove: Some(&*how).filter(|_| is_ours),
        });
    }
}

/// What the run ends with: the result of the job counts before what could not be deleted.
fn result(word: &str, end: Option<&Outcome>, failed: &[Undeleted]) -> Result<ExitCode, Complaint> {
    let undeleted = remove::complaint(failed);
    let Some(end) = end.filter(|end| end.exit_code != 0) else {
        return undeleted.map_or(Ok(ExitCode::SUCCESS), Err);
    };
    let reason = match &*end.reason {
        "" => String::new(),
        reason => format!(": {}", one_line(reason)),
    };
    let complaint = Complaint::new(format!("{word} {}{reason}", end.word)).code(end.exit_code);
    let causes = end.causes.iter();
    Err(causes.fold(complaint, |complaint, cause| complaint.because_of(cause)))
}

fn names_of(all: &[Applied]) -> Vec<String> {
    all.iter().map(|it| it.object.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::apply::How;

    /// An object that was held hid that the job had failed, and its exit code.
    #[test]
    fn the_result_of_a_job_counts_before_what_could_not_be_deleted() {
        let held = Undeleted {
            applied: Applied {
                object: "configmap/held".to_owned(),
                namespace: Some("default".to_owned()),
                how: How::Created,
                path: String::new(),
                value: Value::Null,
            },
            why: "held".to_owned(),
        };
        let ended = |exit_code| Outcome {
            word: if exit_code == 0 {
                "succeeded"
            } else {
                "failed"
            },
            exit_code,
            reason: String::new(),
            causes: Vec::new(),
        };
        let told = |code: u8, failed: &[Undeleted]| {
            let result = result("job/x", Some(&ended(code)), failed);
            result.err().map(|it| (it.text(), it.exit_code()))
        };
        assert!(told(0, &[]).is_none());
        let (text, code) = told(3, std::slice::from_ref(&held)).unwrap();
        assert!(text.starts_with("error: job/x failed\n"), "{text}");
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(3)));
        let (text, code) = told(0, &[held]).unwrap();
        assert!(
            text.starts_with("error: cannot delete configmap/held\n"),
            "{text}"
        );
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(1)));
    }
}
