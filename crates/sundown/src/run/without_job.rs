//! The end of a run with `--rm` whose file holds nothing to follow: what was applied goes. A control plane that is lost
//! meanwhile is started again; one that was told to end is not.

use std::process::ExitCode;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::apply::Applied;
use super::interrupt::{Act, Interrupt, Sender};
use super::patience::Around;
use super::plane::{self, Plane};
use super::remove::{self, Removal, Undeleted};
use super::screen::{Event, Screen};
use super::signals::Signals;
use super::{GOING, STOPPED, waits};
use crate::complaint::Complaint;
use crate::control::Gone;
use crate::kubectl::Kubectl;

/// How long an object may take to go before it is told what it waits for.
const WAIT_TOLD_TIME: Duration = Duration::from_secs(3);

/// How often it is looked whether an object was waited for too long.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A removal that is under way.
pub(super) struct Removing<'a> {
    plane: Plane,
    go: Vec<Applied>,
    stay: Vec<Applied>,
    removal: Removal,
    interrupt: Interrupt,
    /// When it is told what is waited for.
    told_at: Instant,
    look_at: Instant,
    screen: &'a mut Screen,
    signals: &'a mut Signals,
}

impl<'a> Removing<'a> {
    /// Begins to delete what was applied.
    pub(super) fn begin(
        plane: Plane,
        applied: &[Applied],
        screen: &'a mut Screen,
        signals: &'a mut Signals,
    ) -> Self {
        let (go, stay) = remove::split(applied, None);
        Self {
            removal: Removal::begin(plane.clients(), go.clone()),
            plane,
            go,
            stay,
            interrupt: Interrupt::None,
            told_at: Instant::now() + WAIT_TOLD_TIME,
            look_at: Instant::now() + LOOK_INTERVAL,
            screen,
            signals,
        }
    }

    /// Until all of it is gone.
    pub(super) async fn run(mut self) -> Result<ExitCode, Complaint> {
        while !self.removal.left().is_empty() {
            tokio::select! {
                failed = self.removal.next() => self.take(failed),
                sender = self.signals.next() => {
                    if let Some(code) = self.on_signal(sender) {
                        return Ok(code);
                    }
                }
                gone = self.plane.gone() => match gone {
                    Gone::Lost => {
                        if let Some(code) = self.join_again().await? {
                            return Ok(code);
                        }
                    }
                    Gone::Asked => {
                        let complaint = plane::ended(self.plane.has_lost_its_data());
                        return Err(self.with_left(complaint));
                    }
                },
                () = sleep_until(self.told_at) => self.tell_wait(),
                () = sleep_until(self.look_at) => self.look(),
            }
        }
        self.tell_end();
        match (self.interrupt, remove::complaint(self.removal.failed())) {
            (Interrupt::Stopping, _) => Ok(ExitCode::from(STOPPED)),
            (Interrupt::None | Interrupt::Asked { .. }, Some(complaint)) => Err(complaint),
            (Interrupt::None | Interrupt::Asked { .. }, None) => Ok(ExitCode::SUCCESS),
        }
    }

    fn take(&mut self, failed: Option<Undeleted>) {
        if let Some(failed) = failed {
            self.screen.tell(&Event::Note {
                text: &failed.in_words(),
            });
        }
        self.told_at = Instant::now() + WAIT_TOLD_TIME;
    }

    fn look(&mut self) {
        let now = Instant::now();
        self.look_at = now + LOOK_INTERVAL;
        for failed in self.removal.give_up(Around::default(), now) {
            self.take(Some(failed));
        }
    }

    /// Some: the user does not want to wait for it.
    fn on_signal(&mut self, sender: Sender) -> Option<ExitCode> {
        let (next, act) = self.interrupt.on_signal(sender, Duration::ZERO, true);
        self.interrupt = next;
        if act == Act::Leave {
            let text = format!("not deleted: {}", names(&self.left()).join(", "));
            self.screen.tell(&Event::Note { text: &text });
            return Some(ExitCode::from(STOPPED));
        }
        self.screen.tell(&Event::Note { text: GOING });
        None
    }

    /// Some: the user does not want to wait for it.
    async fn join_again(&mut self) -> Result<Option<ExitCode>, Complaint> {
        self.tell_plane("lost");
        loop {
            let sender = tokio::select! {
                joined = self.plane.join_again() => {
                    joined.map_err(|complaint| self.with_left(complaint))?;
                    break;
                }
                sender = self.signals.next() => sender,
            };
            if let Some(code) = self.on_signal(sender) {
                return Ok(Some(code));
            }
        }
        self.tell_plane("back");
        self.told_at = Instant::now() + WAIT_TOLD_TIME;
        Ok(None)
    }

    fn tell_plane(&mut self, state: &'static str) {
        let hello = self.plane.hello();
        self.screen.tell(&Event::ControlPlane {
            state,
            pid: hello.pid,
            url: &hello.url,
        });
    }

    fn tell_wait(&mut self) {
        // Told once for each state of it.
        self.told_at += Duration::from_hours(1);
        let seen = self.removal.seen();
        let seen = seen.map(|(it, seen)| (it.object.clone(), seen));
        if let Some(text) = waits::told(seen) {
            self.screen.tell(&Event::Note { text: &text });
        }
    }

    /// All that was to go and is there.
    fn left(&self) -> Vec<Applied> {
        let mut left = self.removal.left().to_vec();
        left.extend(remove::undeleted(self.removal.failed()));
        left
    }

    fn with_left(&self, complaint: Complaint) -> Complaint {
        let complaint = complaint.at(self.plane.directory().display().to_string());
        if self.plane.has_lost_its_data() {
            return complaint;
        }
        naming(complaint, &self.left(), self.plane.kubectl())
    }

    fn tell_end(&mut self) {
        let failed = remove::undeleted(self.removal.failed());
        let (kept, undeleted) = (names(&self.stay), names(&failed));
        let mut gone = names(&self.go);
        gone.retain(|it| !undeleted.contains(it));
        self.screen.tell(&Event::Removed {
            objects: &gone,
            count: gone.len(),
            is_all: kept.is_empty() && undeleted.is_empty(),
        });
        if !kept.is_empty() {
            self.screen.tell(&Event::Kept {
                objects: &kept,
                later: None,
                remove: None,
            });
        }
        if !failed.is_empty() {
            self.screen.tell(&Event::Kept {
                objects: &undeleted,
                later: None,
                remove: Some(&remove::command(self.plane.kubectl(), &failed)),
            });
        }
    }
}

/// With what is left, and how it goes.
fn naming(complaint: Complaint, left: &[Applied], kubectl: &Kubectl) -> Complaint {
    let (names, how) = (names(left).join(", "), remove::command(kubectl, left));
    complaint
        .help(format!("not deleted: {names}"))
        .help(format!(
            "to remove, when a control plane is running again: {how}"
        ))
}

fn names(all: &[Applied]) -> Vec<String> {
    all.iter().map(|it| it.object.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::run::apply::How;

    /// Nothing was said: it asked for ever at an address where nothing listened.
    #[test]
    fn what_is_left_is_named_with_the_command_that_removes_it() {
        let left = Applied {
            object: "configmap/held".to_owned(),
            namespace: Some("team".to_owned()),
            how: How::Created,
            path: String::new(),
            value: Value::Null,
        };
        let kubectl = Kubectl::of_data(Path::new("/d"));
        let told = naming(plane::ended(false), &[left], &kubectl).text();
        let expect = "\
error: the control plane was stopped
  = help: not deleted: configmap/held
  = help: to remove, when a control plane is running again: \
kubectl --kubeconfig /d/kubeconfig delete -n team configmap/held
";
        assert_eq!(told, expect);
    }
}
