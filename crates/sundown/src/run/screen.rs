//! What a run shows: lines for people, a live region on a terminal, or one JSON object per line.
//!
//! The region is drawn by hand with plain ANSI: no crate for it is among our dependencies, and it is
//! a handful of lines. Logs go to standard output, everything else to standard error, so that a
//! pipe gets the logs alone.

mod draw;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal as _};
use std::time::Instant;

use serde::Serialize;

use super::apply::Applied;
use super::logs::{self, Incomplete};
use super::outcome::Outcome;
use super::progress::{Name, Stage, State};
use writer::{Order, Stream, Writer};

use crate::arguments::Output;
use crate::complaint::Complaint;
use crate::output;
use crate::terminal::{Colours, log_line, one_line};

/// One thing that happened, with the names that programs read.
#[derive(Debug, Serialize)]
#[serde(
    tag = "event",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub(super) enum Event<'a> {
    ControlPlane {
        state: &'static str,
        pid: u32,
        url: &'a str,
    },
    Applied(&'a Applied),
    Stage(&'a Stage),
    Log {
        source: &'a str,
        line: &'a str,
    },
    /// Logs that did not come to their end, so that nobody waits for them any more.
    LogsIncomplete {
        logs: &'a [Incomplete],
    },
    Dashboard {
        url: &'a str,
    },
    Note {
        text: &'a str,
    },
    Result {
        object: &'a str,
        #[serde(flatten)]
        outcome: &'a Outcome,
    },
    /// What stays, and what of it goes later.
    Kept {
        objects: &'a [String],
        #[serde(skip_serializing_if = "Option::is_none")]
        later: Option<&'a str>,
        /// The command that removes it.
        #[serde(skip_serializing_if = "Option::is_none")]
        remove: Option<&'a str>,
    },
    Removed {
        objects: &'a [String],
        count: usize,
        /// Whether nothing of the file stays.
        #[serde(skip)]
        is_all: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Live,
    Plain,
    Json,
}

/// Where a run is shown.
#[derive(Debug)]
pub(super) struct Screen {
    mode: Mode,
    has_colours: bool,
    /// How lines of logs are made harmless; None: they are printed as they are.
    cleans: Option<Colours>,
    stages: Vec<Stage>,
    since: BTreeMap<Name, Instant>,
    sources: BTreeSet<String>,
    /// Lines of the region that are on the terminal now.
    drawn: usize,
    turn: usize,
    question: Option<String>,
    /// Whether the region is left out for a moment.
    is_held: bool,
    writer: Writer,
}

impl Screen {
    /// `is_raw`: logs are printed as they are on a terminal, too.
    pub(super) fn new(output: Output, is_raw: bool) -> io::Result<Self> {
        let is_terminal = io::stderr().is_terminal() && io::stdout().is_terminal();
        let is_dumb = std::env::var_os("TERM").is_none_or(|it| it == "dumb");
        let mode = match output {
            Output::Json => Mode::Json,
            Output::Text if is_terminal && !is_dumb => Mode::Live,
            Output::Text => Mode::Plain,
        };
        // As no-color.org asks: any value that is not empty.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
        let colours = if no_color || is_dumb {
            Colours::Dropped
        } else {
            Colours::Kept
        };
        let order = match mode {
            Mode::Live => Order::Strict,
            Mode::Plain | Mode::Json => Order::Overtaking,
        };
        Ok(Self {
            mode,
            has_colours: mode == Mode::Live && !no_color,
            cleans: (io::stdout().is_terminal() && !is_raw).then_some(colours),
            stages: Vec::new(),
            since: BTreeMap::new(),
            sources: BTreeSet::new(),
            drawn: 0,
            turn: 0,
            question: None,
            is_held: false,
            writer: Writer::to(io::stdout(), io::stderr(), order)?,
        })
    }

    /// Whether somebody watches, so that it is worth moving.
    pub(super) fn is_live(&self) -> bool {
        self.mode == Mode::Live
    }

    /// Whether its readers are so far behind that nothing more should be shown.
    pub(super) fn is_behind(&self) -> bool {
        self.writer.is_behind()
    }

    /// Returns when they are not. Cancel-safe.
    pub(super) async fn room(&self) {
        self.writer.room().await;
    }

    /// Returns when all that was shown is written. Cancel-safe.
    pub(super) async fn written(&self) {
        self.writer.done().await;
    }

    /// Returns when all that was told on standard error is written. Cancel-safe.
    pub(super) async fn told(&self) {
        self.writer.told().await;
    }

    /// Why logs could not be written, unless their reader just left.
    pub(super) fn failure(&self) -> Option<String> {
        self.writer.failure()
    }

    /// Tells why the run ends without success.
    pub(super) fn complain(&mut self, complaint: &Complaint) {
        let output = match self.mode {
            Mode::Json => Output::Json,
            Mode::Live | Mode::Plain => Output::Text,
        };
        self.writer.write(Stream::Err, complaint.to_tell(output));
    }

    /// Does several things with one drawing of the region.
    pub(super) fn hold(&mut self, what: impl FnOnce(&mut Self)) {
        self.erase();
        self.is_held = true;
        what(self);
        self.is_held = false;
        self.draw();
    }

    /// Tells one thing.
    pub(super) fn tell(&mut self, event: &Event<'_>) {
        if self.mode == Mode::Json {
            self.writer.write(Stream::Out, output::json_to_print(event));
            return;
        }
        match event {
            Event::Log { source, line } => {
                self.sources.insert((*source).to_owned());
                let (source, line) = match self.cleans {
                    Some(colours) => (one_line(source), log_line(line, colours)),
                    None => ((*source).to_owned(), (*line).into()),
                };
                let line = if self.sources.len() > 1 {
                    format!("[{source}] {line}\n")
                } else {
                    format!("{line}\n")
                };
                self.erase();
                self.writer.write(Stream::Out, line);
                self.draw();
            }
            other => {
                if let Some(words) = in_words(other) {
                    self.say(&words);
                }
            }
        }
    }

    /// A line for people, above the region.
    fn say(&mut self, words: &str) {
        self.erase();
        self.writer.write(Stream::Err, output::lines_to_tell(words));
        self.draw();
    }

    /// Shows the stages; without a terminal only what changed.
    pub(super) fn show(&mut self, stages: &[Stage]) {
        if self.stages == stages {
            return;
        }
        let before = std::mem::replace(&mut self.stages, stages.to_vec());
        for stage in stages {
            if stage.state == State::Active || stage.state == State::Stuck {
                self.since.entry(stage.name).or_insert_with(Instant::now);
            }
        }
        let is_news = |it: &&Stage| !before.contains(it) && it.state != State::Waiting;
        match self.mode {
            Mode::Live => {
                self.erase();
                self.draw();
            }
            Mode::Plain => {
                for stage in stages.iter().filter(is_news) {
                    self.say(&draw::plain(stage));
                }
            }
            Mode::Json => {
                for stage in stages.iter().filter(is_news) {
                    self.tell(&Event::Stage(stage));
                }
            }
        }
    }

    /// Asks something below the region, or takes the question back.
    pub(super) fn ask(&mut self, question: Option<String>) {
        if self.question == question {
            return;
        }
        self.erase();
        self.question = question;
        self.draw();
    }

    /// Moves what moves, unless nobody can see it.
    pub(super) fn tick(&mut self) {
        if self.mode != Mode::Live || self.writer.is_behind() {
            return;
        }
        self.turn += 1;
        self.erase();
        self.draw();
    }

    /// Leaves the region as it is; what comes next is written below it.
    pub(super) fn close(&mut self) {
        self.question = None;
        self.erase();
        self.draw();
        self.stages.clear();
        self.drawn = 0;
    }

    fn erase(&mut self) {
        if self.drawn == 0 {
            return;
        }
        let lines = std::mem::take(&mut self.drawn);
        self.writer
            .write(Stream::Err, format!("\x1b[{lines}A\r\x1b[J"));
    }

    fn draw(&mut self) {
        if self.mode != Mode::Live || self.is_held {
            return;
        }
        let width = rustix::termios::tcgetwinsize(io::stderr());
        let width = width.map_or(80, |size| usize::from(size.ws_col)).max(20);
        let pen = draw::Pen {
            width,
            has_colours: self.has_colours,
            turn: self.turn,
        };
        let mut lines = Vec::new();
        for stage in &self.stages {
            let elapsed = self.since.get(&stage.name).map(Instant::elapsed);
            let is_open = matches!(stage.state, State::Active | State::Stuck);
            lines.push(pen.line(stage, elapsed.filter(|_| is_open)));
        }
        lines.extend(self.question.as_ref().map(|it| pen.question(it)));
        let mut text = String::new();
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn = lines.len();
        self.writer.write(Stream::Err, text);
    }
}

/// An event for people; None: it is told in another way.
fn in_words(event: &Event<'_>) -> Option<String> {
    match event {
        Event::ControlPlane { state, pid, url } => Some(match *state {
            "lost" => "lost connection to the control plane; restarting it".to_owned(),
            state => format!("control plane {state}: process {pid}, {url}"),
        }),
        Event::Applied(applied) => {
            let how = match applied.how {
                super::apply::How::Created => "created",
                super::apply::How::Configured => "configured",
                super::apply::How::Unchanged => "unchanged",
            };
            Some(format!("{} {how}", one_line(&applied.object)))
        }
        Event::LogsIncomplete { logs } => Some(logs::in_words(logs)),
        Event::Dashboard { url } => Some(format!("dashboard: {url}")),
        Event::Note { text } => Some(one_line(text)),
        Event::Result { object, outcome } if outcome.exit_code == 0 => {
            Some(format!("{} {}", one_line(object), outcome.word))
        }
        Event::Kept {
            objects,
            later,
            remove,
        } => {
            let later = later.map_or(String::new(), |later| format!(" ({later})"));
            let remove = remove.map_or(String::new(), |it| format!("; to remove: {it}"));
            let kept = || one_line(&format!("kept: {}{later}{remove}", objects.join(", ")));
            (!objects.is_empty()).then(kept)
        }
        Event::Removed {
            objects,
            count,
            is_all,
        } if *count > 0 => {
            let objects = objects.join(", ");
            let plural = if *count == 1 { "" } else { "s" };
            let rest = if *is_all { "; nothing is left" } else { "" };
            Some(one_line(&format!(
                "removed: {objects} ({count} object{plural}){rest}"
            )))
        }
        // A failure is told as a complaint, stages and logs in their own ways.
        Event::Result { .. } | Event::Stage(_) | Event::Log { .. } | Event::Removed { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_names_objects_is_one_line() {
        let objects = ["rayjob/x\nworkers: done".to_owned()];
        let events = [
            Event::Note {
                text: "x-head: stuck\ncluster: done",
            },
            Event::Kept {
                objects: &objects,
                later: Some("later\nworkers: done"),
                remove: Some("kubectl\nworkers: done"),
            },
            Event::Removed {
                objects: &objects,
                count: 1,
                is_all: true,
            },
        ];
        for event in events {
            let words = in_words(&event).unwrap();
            assert!(!words.contains('\n'), "{words:?}");
        }
    }
}
