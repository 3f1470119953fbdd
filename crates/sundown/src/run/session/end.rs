//! How a run comes to its end: what is let go and deleted, what is told of it, and the exit code.

use std::process::ExitCode;

use http::Method;
use serde_json::{Value, json};
use sundown_decide::ray_job::ANNOTATION_READER;
use sundown_model::path::part;
use tokio::time::sleep;

use super::{LOOK_INTERVAL, Session, Turn};
use crate::complaint::Complaint;
use crate::run::apply::Applied;
use crate::run::cleanup::Cleanup;
use crate::run::screen::Event;
use crate::run::{STOPPED, progress, remove};
use crate::terminal::one_line;
use crate::{data, objects};

impl Session {
    /// Nothing comes of some logs: whoever reads this shall know what is missing.
    pub(super) fn give_up(&mut self) -> Result<Turn, Complaint> {
        let parts = self.target.parts(&self.snapshot);
        let logs = self.logs.give_up(&parts, self.options.removes);
        self.screen.tell(&Event::LogsIncomplete { logs: &logs })?;
        Ok(Turn::Goes)
    }

    /// The logs are read: what the job ran on may go. Unanswered, it goes a moment later by itself.
    pub(super) async fn release(&mut self) -> Result<Turn, Complaint> {
        let metadata = json!({
            "uid": self.target.uid, "annotations": { ANNOTATION_READER: Value::Null },
        });
        let (client, path) = (self.plane.client(), self.path());
        let body = json!({ "metadata": metadata });
        if let Err(error) = objects::send(&client, Method::PATCH, &path, &body).await {
            tracing::debug!(%error, "say that the logs are read");
        }
        self.is_released = true;
        Ok(Turn::Goes)
    }

    /// Where the job is on the server.
    fn path(&self) -> String {
        let collection = self.target.kind.path(Some(&self.target.namespace));
        format!("{collection}/{}", part(&self.target.name))
    }

    pub(super) async fn delete(&mut self) -> Result<Turn, Complaint> {
        let (names, count) = self.left();
        self.deleted_count = count;
        match remove::delete(&self.plane.client(), &self.path(), &self.target.uid).await {
            Ok(()) => {
                let parts = self.target.parts(&self.snapshot);
                let last = self.last.take();
                self.last = last.or_else(|| Some(progress::stopped(progress::stages(&parts))));
                self.deleted = Some(names);
                Ok(Turn::Goes)
            }
            // Nobody answered: the control plane is on its way back, and it is asked again.
            Err(error) if objects::code(&error).is_none() => {
                sleep(LOOK_INTERVAL).await;
                Ok(Turn::Goes)
            }
            Err(error) => Err(
                Complaint::new(format!("{} is not deleted", self.target.word())).because(&error),
            ),
        }
    }

    pub(super) fn finish(&mut self, cleanup: Cleanup) -> Result<ExitCode, Complaint> {
        let word = self.target.word();
        if let Some((end, _)) = &self.ended {
            self.screen.close()?;
            self.screen.tell(&Event::Result {
                object: &word,
                outcome: end,
            })?;
        }
        self.screen.close()?;
        match self.deleted.take() {
            Some(names) => {
                let kept: Vec<String> = names_of(&self.beside.stay);
                self.screen.tell(&Event::Removed {
                    objects: &names,
                    count: self.deleted_count,
                    is_all: kept.is_empty(),
                })?;
                if !kept.is_empty() {
                    let kubeconfig = data::kubeconfig(self.plane.directory());
                    let how = remove::command(&kubeconfig, &self.beside.stay);
                    self.screen.tell(&Event::Kept {
                        objects: &kept,
                        later: None,
                        // What stays with `--rm` was there before this run.
                        remove: Some(&*how).filter(|_| !self.options.removes),
                    })?;
                }
            }
            None => {
                if let Cleanup::Settled { mut kept, later } = cleanup {
                    kept.extend(names_of(&self.beside.stay));
                    self.screen.tell(&Event::Kept {
                        objects: &kept,
                        later: later.as_deref(),
                        remove: None,
                    })?;
                }
            }
        }
        self.result()
    }

    fn result(&self) -> Result<ExitCode, Complaint> {
        if self.interrupt.is_stopping() {
            return Ok(ExitCode::from(STOPPED));
        }
        let Some((end, _)) = &self.ended else {
            return Ok(ExitCode::SUCCESS);
        };
        if end.exit_code == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        let reason = match &*end.reason {
            "" => String::new(),
            reason => format!(": {}", one_line(reason)),
        };
        let what = format!("{} {}{reason}", self.target.word(), end.word);
        let complaint = Complaint::new(what).code(end.exit_code);
        let causes = end.causes.iter();
        Err(causes.fold(complaint, |complaint, cause| complaint.because_of(cause)))
    }
}

fn names_of(all: &[Applied]) -> Vec<String> {
    all.iter().map(|it| it.object.clone()).collect()
}
