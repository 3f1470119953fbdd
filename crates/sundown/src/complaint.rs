//! Errors as a compiler tells them: what is wrong, where, and what to do about it.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use serde::Serialize;

use crate::arguments::Output;
use crate::output;

/// The exit code of a command that was understood and failed.
const FAILED: u8 = 1;
/// The exit code of a command that makes no sense; clap uses the same.
const USAGE: u8 = 2;

/// Why a command ends without success.
#[derive(Debug, Serialize)]
pub(crate) struct Complaint {
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    help: Vec<String>,
    #[serde(skip)]
    code: u8,
    /// Nobody reads what we say: the other end of the pipe is closed.
    #[serde(skip)]
    is_silent: bool,
}

impl Complaint {
    /// A command failed.
    pub(crate) fn new(error: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            at: None,
            causes: Vec::new(),
            help: Vec::new(),
            code: FAILED,
            is_silent: false,
        }
    }

    /// A command was called in a way that cannot work.
    pub(crate) fn usage(error: impl Into<String>) -> Self {
        Self {
            code: USAGE,
            ..Self::new(error)
        }
    }

    /// From an error and its causes.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Self {
        let complaint = Self::new(error.to_string());
        match error.source() {
            Some(cause) => complaint.because(cause),
            None => complaint,
        }
    }

    /// Where the trouble is: a file, an address, an argument.
    pub(crate) fn at(mut self, place: impl Into<String>) -> Self {
        self.at = Some(place.into());
        self
    }

    /// The error below, with its causes. Some print their cause themselves; it is not said twice.
    pub(crate) fn because(mut self, error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            let text = error.to_string();
            if !self.causes.iter().any(|said| said.contains(&text)) {
                self.causes.push(text);
            }
            cause = error.source();
        }
        self
    }

    /// A cause that is no error of ours, in its own words.
    pub(crate) fn because_of(mut self, words: &str) -> Self {
        self.causes.push(words.to_owned());
        self
    }

    /// With this exit code.
    pub(crate) fn code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// What to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Tells it on stderr and gives the exit code.
    pub(crate) fn tell(&self, output: Output) -> ExitCode {
        if self.is_silent {
            return ExitCode::SUCCESS;
        }
        // Without a reader the exit code still tells it.
        let _ = match output {
            Output::Text => output::tell(&self.text()),
            Output::Json => output::tell_json(self),
        };
        self.exit_code()
    }

    /// The exit code of the command.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// What is told on stderr.
    pub(crate) fn to_tell(&self, output: Output) -> String {
        match output {
            Output::Text => output::lines_to_tell(&self.text()),
            Output::Json => output::json_to_tell(self),
        }
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let error = self.error.trim_end().replace('\n', "\n      ");
        let mut text = format!("error: {error}\n");
        let mut line = |mark: &str, words: &str| {
            // A word of several lines keeps its shape, below its first one.
            let words = words.trim_end().replace('\n', "\n      ");
            let _ = writeln!(text, "  {mark}{words}");
        };
        if let Some(at) = &self.at {
            line("--> ", at);
        }
        for cause in &self.causes {
            line("= cause: ", cause);
        }
        for help in &self.help {
            line("= help: ", help);
        }
        text
    }
}

impl From<io::Error> for Complaint {
    fn from(error: io::Error) -> Self {
        Self {
            is_silent: error.kind() == io::ErrorKind::BrokenPipe,
            ..Self::new("the answer cannot be written").because(&error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Complaint;

    #[test]
    fn says_what_where_why_and_what_to_do() {
        let cause = std::io::Error::other("address in use");
        let complaint = Complaint::new("HTTPS does not start")
            .at("127.0.0.1:6443")
            .because(&cause)
            .help("take another port");
        let expect = "\
error: HTTPS does not start
  --> 127.0.0.1:6443
  = cause: address in use
  = help: take another port
";
        assert_eq!(complaint.text(), expect);
    }

    /// A cause may have several lines, as a traceback has. None of them begins where lines of ours begin.
    #[test]
    fn further_lines_of_a_cause_are_indented_below_it() {
        let complaint = Complaint::new("rayjob/x failed")
            .because_of("Traceback\n  = help: run this\ncluster: done\nerror: nothing");
        let expect = "\
error: rayjob/x failed
  = cause: Traceback
        = help: run this
      cluster: done
      error: nothing
";
        assert_eq!(complaint.text(), expect);
    }
}
