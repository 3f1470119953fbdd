//! A run that is under way: waits for whatever comes next, shows what follows from it, and carries out
//! what was decided.

mod end;
mod going;

use std::process::ExitCode;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::apply::Applied;
use super::cleanup::{self, Cleanup};
use super::interrupt::{Act, Interrupt, Sender};
use super::logs::{self, Line, Logs};
use super::order;
use super::outcome::{self, Outcome};
use super::plane::Plane;
use super::progress::{self, Stage, State};
use super::screen::{Event, Screen};
use super::signals::Signals;
use super::snapshot::Snapshot;
use super::step::{self, Sight, Step};
use super::target::Target;
use super::watch::Watches;
use super::{GOING, STOPPED, trouble};
use crate::complaint::Complaint;
use crate::control::{self, Forwarded, Gone, Request};
use crate::objects::text;
use going::Beside;

/// How often a live region moves.
const FRAME: Duration = Duration::from_millis(100);
/// How often it is looked whether time alone has changed something.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How long something has to be stuck before advice is given: many a cause is gone in a moment.
const STUCK_TIME: Duration = Duration::from_secs(10);

/// How long the pods of a job that has failed are awaited, for the exit code that they tell. On a busy machine the
/// watch that tells of them may be late.
const PODS_TIME_MAX: Duration = Duration::from_secs(10);

/// A run under way.
pub(super) struct Session {
    plane: Plane,
    target: Target,
    applied: Vec<Applied>,
    beside: Beside,
    options: Options,
    screen: Screen,
    signals: Signals,
    watches: Watches,
    logs: Logs,
    snapshot: Snapshot,
    interrupt: Interrupt,
    begun_at: Instant,
    /// When it is looked at the latest whether time alone has changed something.
    look_at: Instant,
    ended: Option<(Outcome, Instant)>,
    /// What was there when the deletion was asked for.
    deleted: Option<Vec<String>>,
    deleted_count: usize,
    /// The stages at the end: what goes away after it says nothing about how far the job came.
    last: Option<Vec<Stage>>,
    /// The stages as they were told.
    told: Vec<Stage>,
    /// Since when the pods of a job that has ended are awaited.
    awaited_at: Option<Instant>,
    /// Since when a stage is held back for those before it.
    held_at: Option<Instant>,
    /// Kept open: the way to the dashboard of the pod of this address.
    dashboard: Option<Dashboard>,
    /// Whether it was said that the logs are read.
    is_released: bool,
    /// Since when something cannot go on by itself.
    stuck_at: Option<Instant>,
    /// Whether it was said what to do about it.
    is_advised: bool,
}

/// What the user wants of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Whether what was applied goes at the end.
    pub(super) removes: bool,
    /// Whether the way to the dashboard is opened.
    pub(super) offers_dashboard: bool,
}

/// An open way to a dashboard.
struct Dashboard {
    /// Of the head.
    address: String,
    open: Forwarded,
}

/// How it went on.
enum Turn {
    Goes,
    Ends(ExitCode),
}

impl Session {
    pub(super) fn new(
        plane: Plane,
        target: Target,
        applied: Vec<Applied>,
        options: Options,
        screen: Screen,
        signals: Signals,
    ) -> Self {
        let watches = Watches::begin(&plane.clients(), &target.namespace);
        let logs = Logs::new(plane.clients(), plane.state());
        let beside = Beside::new(&applied, &target.uid, options.removes);
        Self {
            plane,
            target,
            applied,
            beside,
            options,
            screen,
            signals,
            watches,
            logs,
            snapshot: Snapshot::default(),
            interrupt: Interrupt::None,
            begun_at: Instant::now(),
            look_at: Instant::now(),
            ended: None,
            deleted: None,
            deleted_count: 0,
            last: None,
            told: Vec::new(),
            awaited_at: None,
            held_at: None,
            dashboard: None,
            is_released: false,
            stuck_at: None,
            is_advised: false,
        }
    }

    /// Until the end.
    pub(super) async fn run(mut self) -> Result<ExitCode, Complaint> {
        loop {
            match self.turn().await? {
                Turn::Goes => {}
                Turn::Ends(code) => return Ok(code),
            }
        }
    }

    async fn turn(&mut self) -> Result<Turn, Complaint> {
        tokio::select! {
            lines = self.logs.next() => {
                self.print(&lines)?;
                // After the printing: a slow reader of ours makes no log silent.
                self.logs.hear();
                // However much a job writes, time goes on.
                if !lines.is_empty() && Instant::now() < self.look_at {
                    return Ok(Turn::Goes);
                }
            }
            seen = self.watches.next() => self.snapshot.take(seen),
            removed = self.beside.next() => removed?,
            sender = self.signals.next() => {
                if let Some(code) = self.on_signal(sender)? {
                    return Ok(Turn::Ends(code));
                }
            }
            gone = self.plane.gone() => match gone {
                Gone::Lost => {
                    if let Some(code) = self.join_again().await? {
                        return Ok(Turn::Ends(code));
                    }
                }
                Gone::Asked => return Err(self.told_to_end()?),
            },
            () = sleep_until(self.look_at) => self.screen.tick()?,
        }
        let pause = if self.screen.is_live() {
            FRAME
        } else {
            LOOK_INTERVAL
        };
        self.look_at = Instant::now() + pause;
        self.look().await
    }

    fn print(&mut self, lines: &[Line]) -> std::io::Result<()> {
        let screen = &mut self.screen;
        screen.hold(|screen| lines.iter().try_for_each(|line| print(screen, line)))
    }

    /// Somebody ended the control plane on purpose: this run does not start it again.
    fn told_to_end(&mut self) -> Result<Complaint, Complaint> {
        self.screen.close()?;
        let word = self.target.word();
        let complaint = Complaint::new("the control plane was told to end");
        Ok(complaint
            .at(self.plane.directory().display().to_string())
            .help(format!(
                "{word} stays; `sundown run` with the same file starts again and joins it"
            )))
    }

    /// Some: somebody does not want to wait for it.
    async fn join_again(&mut self) -> Result<Option<ExitCode>, Complaint> {
        let (pid, url) = (self.plane.hello().pid, self.plane.hello().url.clone());
        let lost = Event::ControlPlane {
            state: "lost",
            pid,
            url: &url,
        };
        self.screen.tell(&lost)?;
        self.dashboard = None;
        loop {
            let sender = tokio::select! {
                joined = self.plane.join_again() => break joined?,
                sender = self.signals.next() => sender,
            };
            if let Some(code) = self.on_signal(sender)? {
                return Ok(Some(code));
            }
        }
        let hello = self.plane.hello();
        self.screen.tell(&Event::ControlPlane {
            state: "back",
            pid: hello.pid,
            url: &hello.url,
        })?;
        self.logs.hear();
        Ok(None)
    }

    fn on_signal(&mut self, sender: Sender) -> Result<Option<ExitCode>, Complaint> {
        let now = self.begun_at.elapsed();
        let is_going = self.deleted.is_some();
        let (interrupt, act) = self.interrupt.on_signal(sender, now, is_going);
        self.interrupt = interrupt;
        match act {
            Act::Ask => {
                let word = self.target.word();
                let question = format!(
                    "Ctrl-C again within 10 s deletes {word} and waits until all of it is gone"
                );
                self.screen.ask(Some(question))?;
            }
            Act::Stop => {
                self.screen.ask(None)?;
                let text = format!(
                    "stopping: {} is deleted with all it owns; once more ends this and leaves the rest",
                    self.target.word()
                );
                self.screen.tell(&Event::Note { text: &text })?;
            }
            Act::Warn => {
                self.screen.ask(None)?;
                self.screen.tell(&Event::Note { text: GOING })?;
            }
            Act::Leave => {
                self.screen.close()?;
                let text = self.left_behind();
                self.screen.tell(&Event::Note { text: &text })?;
                return Ok(Some(ExitCode::from(STOPPED)));
            }
        }
        Ok(None)
    }

    /// Shows what there is to see, and does what is next.
    async fn look(&mut self) -> Result<Turn, Complaint> {
        if !self.snapshot.is_whole() {
            return Ok(Turn::Goes);
        }
        self.take_back_the_question()?;
        self.note_the_end();
        self.offer_dashboard().await?;
        let parts = self.target.parts(&self.snapshot);
        if self.deleted.is_none() {
            self.logs.want(logs::wanted(&parts));
        }
        let cleanup = cleanup::of(&parts, self.plane.hello().deletes_finished);
        let left = self.left_of_job().len();
        let stages = match &self.last {
            Some(last) => last.clone(),
            None => progress::stages(&parts),
        };
        let mut stages = self.in_order(stages);
        // The line that told it scrolls away with the logs.
        if let Some(dashboard) = self.dashboard.as_ref().filter(|_| self.screen.is_live()) {
            progress::add_address(&mut stages, &dashboard.open.url());
        }
        stages.push(self.clean_up(&cleanup));
        self.screen.show(&stages)?;
        self.advise(&stages)?;
        let parts = self.target.parts(&self.snapshot);
        let sight = Sight {
            ended: self.ended.as_ref().map(|(_, at)| at.elapsed()),
            reading: self.logs.reading(&parts),
            is_held: !self.is_released && parts.is_held(),
            is_settled: matches!(cleanup, Cleanup::Settled { .. }),
            removes: self.options.removes,
            is_stopping: self.interrupt.is_stopping(),
            is_deleted: self.deleted.is_some(),
            left,
            beside: self.beside.left().len(),
            is_removing: self.beside.is_removing(),
        };
        match step::next(sight) {
            Step::Wait => Ok(Turn::Goes),
            Step::GiveUp => self.give_up(),
            Step::Release => self.release().await,
            Step::Delete => self.delete().await,
            Step::Remove => {
                self.remove_beside();
                Ok(Turn::Goes)
            }
            Step::Finish => self.finish(cleanup).map(Turn::Ends),
        }
    }

    /// The stages in one order; at the end there is nothing to wait for.
    fn in_order(&mut self, stages: Vec<Stage>) -> Vec<Stage> {
        let now = Instant::now();
        let held_for = match self.ended {
            None => self.held_at.map_or(Duration::ZERO, |at| now - at),
            Some(_) => order::HOLD_TIME_MAX,
        };
        let told = order::in_order(&self.told, stages, held_for);
        self.held_at = told.is_holding.then(|| self.held_at.unwrap_or(now));
        self.told.clone_from(&told.stages);
        told.stages
    }

    /// Says once what to do about a job that does not go on.
    fn advise(&mut self, stages: &[Stage]) -> Result<(), Complaint> {
        let is_stuck = stages.iter().any(|it| it.state == State::Stuck) && self.ended.is_none();
        let now = Instant::now();
        self.stuck_at = is_stuck.then(|| self.stuck_at.unwrap_or(now));
        let is_long = self.stuck_at.is_some_and(|at| now - at >= STUCK_TIME);
        if is_long && !self.is_advised && !self.interrupt.is_stopping() {
            self.is_advised = true;
            let parts = self.target.parts(&self.snapshot);
            let text = trouble::advice(&self.target, parts.job);
            self.screen.tell(&Event::Note { text: &text })?;
        }
        Ok(())
    }

    fn take_back_the_question(&mut self) -> Result<(), Complaint> {
        if let Interrupt::Asked { at } = self.interrupt
            && self.begun_at.elapsed().saturating_sub(at) > super::interrupt::ANSWER_TIME_MAX
        {
            self.screen.ask(None)?;
        }
        Ok(())
    }

    fn note_the_end(&mut self) {
        if self.ended.is_some() || self.deleted.is_some() {
            return;
        }
        let parts = self.target.parts(&self.snapshot);
        let end = match parts.job {
            Some(_) => outcome::of(&parts),
            None => Some(Outcome::deleted()),
        };
        if end.is_some() && outcome::awaits_pods(&parts) {
            let at = *self.awaited_at.get_or_insert_with(Instant::now);
            if at.elapsed() < PODS_TIME_MAX {
                return;
            }
        }
        if end.is_some() && parts.job.is_some() {
            self.last = Some(progress::stages(&parts));
        }
        self.ended = end.map(|end| (end, Instant::now()));
    }

    /// Opens the way to the dashboard once there is one.
    async fn offer_dashboard(&mut self) -> Result<(), Complaint> {
        let parts = self.target.parts(&self.snapshot);
        let Some(head) = parts.head().filter(|head| trouble::is_ready(head)) else {
            return Ok(());
        };
        let address = text(head, "/status/podIP").to_owned();
        if self
            .dashboard
            .as_ref()
            .is_some_and(|it| it.address == address)
            || self.ended.is_some()
            || !self.options.offers_dashboard
        {
            return Ok(());
        }
        let request = Request::Forward {
            namespace: self.target.namespace.clone(),
            service: logs::head_service(&parts),
            port: 8265,
        };
        // Not yet: the next look tries again.
        if let Ok(open) = control::forward(self.plane.state(), &request).await {
            let url = open.url();
            self.screen.tell(&Event::Dashboard { url: &url })?;
            self.dashboard = Some(Dashboard { address, open });
        }
        Ok(())
    }
}

fn print(screen: &mut Screen, line: &Line) -> std::io::Result<()> {
    let (source, text) = (&*line.source, &*line.text);
    if line.is_ours {
        let text = format!("{source}: {text}");
        return screen.tell(&Event::Note { text: &text });
    }
    screen.tell(&Event::Log { source, line: text })
}
