//! How a stage looks on a line. Pure, so that it can be tested without a terminal.

use std::time::Duration;

use super::super::progress::{Stage, State};
use crate::terminal::one_line;

const TURNS: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What a line is drawn with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pen {
    pub(super) width: usize,
    pub(super) has_colours: bool,
    pub(super) turn: usize,
}

/// A stage where nothing moves.
pub(super) fn plain(stage: &Stage) -> String {
    let word = match stage.state {
        State::Waiting => "waiting",
        State::Active => "",
        State::Stuck => "stuck: ",
        State::Done => "done",
        State::Failed => "failed",
    };
    let text = one_line(&stage.text);
    let name = stage.name.as_str();
    match (stage.state, text.is_empty()) {
        (State::Active | State::Stuck, _) => format!("{name}: {word}{text}"),
        (_, true) => format!("{name}: {word}"),
        (_, false) => format!("{name}: {word}: {text}"),
    }
}

impl Pen {
    /// A stage in the live region.
    pub(super) fn line(self, stage: &Stage, elapsed: Option<Duration>) -> String {
        let (mark, colour) = match stage.state {
            State::Waiting => ("·", "2"),
            State::Active => (TURNS[self.turn % TURNS.len()], "36"),
            State::Stuck => ("!", "33"),
            State::Done => ("✓", "32"),
            State::Failed => ("✗", "31"),
        };
        let time = elapsed.filter(|it| it.as_secs() > 0).map(in_words);
        let time = time.map_or(String::new(), |time| format!(" {time}"));
        let room = self.width.saturating_sub(16 + time.chars().count() + 1);
        let text = cut(&one_line(&stage.text), room);
        let name = format!("{:<11}", stage.name.as_str());
        let faint = stage.state == State::Waiting;
        let name = if faint { self.paint("2", &name) } else { name };
        let line = format!(
            "{} {name}  {text}{}",
            self.paint(colour, mark),
            self.paint("2", &time)
        );
        line.trim_end().to_owned()
    }

    /// What is asked, below the stages.
    pub(super) fn question(self, question: &str) -> String {
        let text = cut(&one_line(question), self.width.saturating_sub(1));
        self.paint("33", &text)
    }

    fn paint(self, colour: &str, text: &str) -> String {
        if self.has_colours && !text.is_empty() {
            format!("\x1b[{colour}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds => format!("{}m{:02}s", seconds / 60, seconds % 60),
    }
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::progress::Name;
    use super::*;

    #[test]
    fn lines_fit_the_terminal_and_colours_only_paint() {
        let stage = Stage::new(
            Name::Cluster,
            State::Active,
            "head\n x-head\r \x1b[2Jstarts slowly",
        );
        let pen = Pen {
            width: 40,
            has_colours: false,
            turn: 0,
        };
        let line = pen.line(&stage, Some(Duration::from_secs(75)));
        assert_eq!(line, "⠋ cluster      head x-head^M ^[… 1m15s");
        assert!(line.chars().count() < 40);
        let coloured = Pen {
            has_colours: true,
            ..pen
        };
        assert!(
            coloured
                .line(&stage, None)
                .starts_with("\x1b[36m⠋\x1b[0m cluster")
        );
    }

    #[test]
    fn without_a_terminal_a_stage_is_a_sentence() {
        let cases = [
            (State::Waiting, "", "workers: waiting"),
            (State::Active, "1 of 2 ready", "workers: 1 of 2 ready"),
            (State::Stuck, "no room", "workers: stuck: no room"),
            (State::Done, "", "workers: done"),
            (State::Failed, "why", "workers: failed: why"),
        ];
        for (state, text, expect) in cases {
            assert_eq!(plain(&Stage::new(Name::Workers, state, text)), expect);
        }
    }
}
