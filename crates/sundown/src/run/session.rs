//! A run that is under way: waits for whatever comes next, shows what follows from it, and carries out
//! what was decided.

mod end;
mod errands;
mod going;

use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::apply::Applied;
use super::cleanup::{self, Cleanup};
use super::interrupt::{Act, Interrupt, Sender};
use super::logs::{self, Line, Logs};
use super::order;
use super::outcome::{self, Outcome};
use super::plane::{self, Plane};
use super::progress::{self, Stage, State};
use super::screen::{Event, Screen};
use super::signals::Signals;
use super::snapshot::Snapshot;
use super::step::{self, Sight, Step};
use super::target::Target;
use super::watch::Watches;
use super::{GOING, STOPPED, trouble};
use crate::complaint::Complaint;
use crate::control::{Forwarded, Gone, Request};
use crate::objects::{Known, text};
use errands::{Answered, Errands};
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
pub(super) struct Session<'a> {
    plane: Plane,
    target: Target,
    applied: Vec<Applied>,
    beside: Beside,
    options: Options,
    screen: &'a mut Screen,
    signals: &'a mut Signals,
    errands: Errands,
    watches: Watches,
    logs: Logs,
    snapshot: Snapshot,
    interrupt: Interrupt,
    begun_at: Instant,
    /// When it is looked at the latest whether time alone has changed something.
    look_at: Instant,
    ended: Option<(Outcome, Instant)>,
    /// What was there of the job when the deletion was asked for.
    deleting: Vec<(Known, Value)>,
    /// The same, once the deletion was accepted.
    deleted: Option<Vec<(Known, Value)>>,
    /// Since when only others can let go what is left of the job.
    job_held_at: Option<Instant>,
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
    /// When the way to it was refused last.
    refused_at: Option<Instant>,
    /// Whether it was said that the logs are read.
    is_released: bool,
    /// Since when something cannot go on by itself.
    stuck_at: Option<Instant>,
    /// Whether it was said what to do about it.
    is_advised: bool,
    /// Whether it was said how the id of a job is told.
    is_asked_for_id: bool,
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

impl<'a> Session<'a> {
    pub(super) fn new(
        plane: Plane,
        target: Target,
        applied: Vec<Applied>,
        options: Options,
        screen: &'a mut Screen,
        signals: &'a mut Signals,
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
            errands: Errands::default(),
            watches,
            logs,
            snapshot: Snapshot::default(),
            interrupt: Interrupt::None,
            begun_at: Instant::now(),
            look_at: Instant::now(),
            ended: None,
            deleting: Vec::new(),
            deleted: None,
            job_held_at: None,
            last: None,
            told: Vec::new(),
            awaited_at: None,
            held_at: None,
            dashboard: None,
            refused_at: None,
            is_released: false,
            stuck_at: None,
            is_advised: false,
            is_asked_for_id: false,
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
        // What nobody reads is not made: but a run that is stopped looks on until all of it is gone.
        let is_behind = self.screen.is_behind();
        let looks_on = !is_behind || self.interrupt.is_stopping();
        tokio::select! {
            lines = self.logs.next(), if !is_behind => {
                self.print(&lines);
                self.logs.hear();
                // However much a job writes, time goes on.
                if !lines.is_empty() && Instant::now() < self.look_at {
                    return Ok(Turn::Goes);
                }
            }
            // A slow reader of ours makes no log silent.
            () = self.screen.room(), if is_behind => self.logs.hear(),
            seen = self.watches.next(), if looks_on => self.snapshot.take(seen),
            failed = self.beside.next() => self.tell_undeleted(failed),
            answered = self.errands.next() => {
                if let Some(complaint) = self.on_answer(answered) {
                    return Err(complaint);
                }
            }
            sender = self.signals.next() => {
                if let Some(code) = self.on_signal(sender) {
                    return Ok(Turn::Ends(code));
                }
            }
            gone = self.plane.gone() => match gone {
                Gone::Lost => {
                    if let Some(code) = self.join_again().await? {
                        return Ok(Turn::Ends(code));
                    }
                }
                Gone::Asked => return Err(self.told_to_end()),
            },
            () = sleep_until(self.look_at) => self.screen.tick(),
        }
        let pause = if self.screen.is_live() {
            FRAME
        } else {
            LOOK_INTERVAL
        };
        self.look_at = Instant::now() + pause;
        self.look()
    }

    fn print(&mut self, lines: &[Line]) {
        self.screen
            .hold(|screen| lines.iter().for_each(|line| print(screen, line)));
    }

    /// Somebody ended the control plane on purpose: this run does not start it again.
    fn told_to_end(&mut self) -> Complaint {
        self.screen.close();
        let complaint = plane_ended(&self.target.word(), self.plane.has_lost_its_data());
        complaint.at(self.plane.directory().display().to_string())
    }

    /// Some: somebody does not want to wait for it.
    async fn join_again(&mut self) -> Result<Option<ExitCode>, Complaint> {
        let (pid, url) = (self.plane.hello().pid, self.plane.hello().url.clone());
        let lost = Event::ControlPlane {
            state: "lost",
            pid,
            url: &url,
        };
        self.screen.tell(&lost);
        self.dashboard = None;
        loop {
            let sender = tokio::select! {
                joined = self.plane.join_again() => break joined?,
                sender = self.signals.next() => sender,
            };
            if let Some(code) = self.on_signal(sender) {
                return Ok(Some(code));
            }
        }
        let hello = self.plane.hello();
        self.screen.tell(&Event::ControlPlane {
            state: "back",
            pid: hello.pid,
            url: &hello.url,
        });
        self.logs.hear();
        Ok(None)
    }

    fn on_signal(&mut self, sender: Sender) -> Option<ExitCode> {
        let now = self.begun_at.elapsed();
        let is_going = self.deleted.is_some() || self.errands.is_deleting();
        let (interrupt, act) = self.interrupt.on_signal(sender, now, is_going);
        self.interrupt = interrupt;
        match act {
            Act::Ask => {
                let word = self.target.word();
                let question =
                    format!("press Ctrl-C again within 10s to delete {word} and its dependents");
                self.screen.ask(Some(question));
            }
            Act::Stop => {
                self.screen.ask(None);
                let text = format!(
                    "deleting {} and its dependents; press Ctrl-C again to exit without waiting",
                    self.target.word()
                );
                self.screen.tell(&Event::Note { text: &text });
            }
            Act::Warn => {
                self.screen.ask(None);
                self.screen.tell(&Event::Note { text: GOING });
            }
            Act::Leave => {
                self.screen.close();
                let text = self.left_behind();
                self.screen.tell(&Event::Note { text: &text });
                return Some(ExitCode::from(STOPPED));
            }
        }
        None
    }

    /// Shows what there is to see, and does what is next.
    fn look(&mut self) -> Result<Turn, Complaint> {
        if !self.snapshot.is_whole() {
            return Ok(Turn::Goes);
        }
        self.take_back_the_question();
        self.note_the_end();
        self.offer_dashboard();
        let parts = self.target.parts(&self.snapshot);
        if self.deleted.is_none() {
            self.logs.want(logs::wanted(&parts));
        }
        let cleanup = cleanup::of(&parts, self.plane.hello().deletes_finished);
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
        self.screen.show(&stages);
        self.advise(&stages);
        self.give_up_beside();
        let left = self.left_in_sight();
        let parts = self.target.parts(&self.snapshot);
        let sight = Sight {
            ended: self.ended.as_ref().map(|(_, at)| at.elapsed()),
            reading: self.logs.reading(&parts),
            is_held: !self.is_released && parts.is_held(),
            is_settled: matches!(cleanup, Cleanup::Settled { .. }),
            removes: self.options.removes,
            is_stopping: self.interrupt.is_stopping(),
            asks: self.errands.asks(),
            is_deleted: self.deleted.is_some(),
            left,
            beside: self.beside.left().len(),
            is_removing: self.beside.is_removing(),
        };
        match step::next(sight) {
            Step::Wait => {}
            Step::GiveUp => self.give_up(),
            Step::Release => self.errands.release(self.plane.client(), self.about()),
            Step::Delete => self.delete(),
            Step::Remove => self.remove_beside(),
            Step::Finish => return self.finish(cleanup).map(Turn::Ends),
        }
        Ok(Turn::Goes)
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
    fn advise(&mut self, stages: &[Stage]) {
        let stuck = stages.iter().find(|it| it.state == State::Stuck);
        let is_stuck = stuck.is_some() && self.ended.is_none();
        let now = Instant::now();
        self.stuck_at = is_stuck.then(|| self.stuck_at.unwrap_or(now));
        let is_long = self.stuck_at.is_some_and(|at| now - at >= STUCK_TIME);
        if is_long && !self.is_advised && !self.interrupt.is_stopping() {
            self.is_advised = true;
            let parts = self.target.parts(&self.snapshot);
            let cause = stuck.map_or("", |it| &it.text);
            let text = trouble::advice(&self.target, parts.job, cause, self.plane.kubectl());
            self.screen.tell(&Event::Note { text: &text });
        }
        let parts = self.target.parts(&self.snapshot);
        let how = progress::how_to_tell_id(&parts, self.plane.kubectl());
        if let Some(text) = how.filter(|_| !self.is_asked_for_id) {
            self.is_asked_for_id = true;
            self.screen.tell(&Event::Note { text: &text });
        }
    }

    fn take_back_the_question(&mut self) {
        if let Interrupt::Asked { at } = self.interrupt
            && self.begun_at.elapsed().saturating_sub(at) > super::interrupt::ANSWER_TIME_MAX
        {
            self.screen.ask(None);
        }
    }

    fn note_the_end(&mut self) {
        if self.ended.is_some() || self.deleted.is_some() || self.errands.is_deleting() {
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
    fn offer_dashboard(&mut self) {
        let parts = self.target.parts(&self.snapshot);
        let Some(head) = parts.head().filter(|head| trouble::is_ready(head)) else {
            return;
        };
        let address = text(head, "/status/podIP").to_owned();
        let open = self.dashboard.as_ref();
        if open.is_some_and(|it| it.address == address)
            || self.errands.is_opening()
            || !may_ask_again(self.refused_at.map(|at| at.elapsed()))
            || self.ended.is_some()
            || !self.options.offers_dashboard
        {
            return;
        }
        let request = Request::Forward {
            namespace: self.target.namespace.clone(),
            service: logs::head_service(&parts),
            port: 8265,
        };
        let state = self.plane.state().to_owned();
        self.errands.open(state, request, address);
    }

    /// Some: the run cannot come to its end.
    fn on_answer(&mut self, answered: Answered) -> Option<Complaint> {
        match answered {
            Answered::Released => self.is_released = true,
            Answered::Deleted(Ok(())) => self.note_the_deletion(),
            Answered::Deleted(Err(error)) => return Some(self.not_deleted(&error)),
            Answered::Opened(address, Some(open)) => {
                let url = open.url();
                self.screen.tell(&Event::Dashboard { url: &url });
                self.dashboard = Some(Dashboard { address, open });
            }
            // A later look tries again.
            Answered::Opened(_, None) | Answered::Broken => self.refused_at = Some(Instant::now()),
        }
        None
    }
}

/// Whether the way to a dashboard is asked for so long after it was refused: each refusal is news, after which it is looked.
fn may_ask_again(refused: Option<Duration>) -> bool {
    refused.is_none_or(|since| since >= LOOK_INTERVAL)
}

/// What is told when the control plane was ended on purpose, or with its data.
fn plane_ended(word: &str, has_lost_its_data: bool) -> Complaint {
    plane::ended(has_lost_its_data).help(if has_lost_its_data {
        format!("{word} and its pods ended with it")
    } else {
        format!(
            "{word} is kept; run the same file again to restart the control plane and follow it"
        )
    })
}

fn print(screen: &mut Screen, line: &Line) {
    let (source, text) = (&*line.source, &*line.text);
    if line.is_ours {
        let text = format!("{source}: {text}");
        return screen.tell(&Event::Note { text: &text });
    }
    screen.tell(&Event::Log { source, line: text });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It was asked for again at once, as often as the control plane could refuse it.
    #[test]
    fn a_dashboard_that_was_refused_is_not_asked_for_at_once() {
        assert!(may_ask_again(None));
        assert!(!may_ask_again(Some(Duration::ZERO)));
        assert!(!may_ask_again(Some(LOOK_INTERVAL / 2)));
        assert!(may_ask_again(Some(LOOK_INTERVAL)));
    }

    /// A job whose data directory was removed was told to stay.
    #[test]
    fn what_stays_is_told_only_where_something_stays() {
        let told = |is_lost| plane_ended("job/x", is_lost).text();
        assert!(told(false).contains("job/x is kept"), "{}", told(false));
        assert!(told(true).contains("ended with it"), "{}", told(true));
        assert!(!told(true).contains("kept"), "{}", told(true));
    }
}
