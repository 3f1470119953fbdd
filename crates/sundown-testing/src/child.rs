//! Child processes that are awaited with a bound: their end, all that they say, or line by line.

use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::BOUND;
use crate::wait::UnderWay;

/// Between two looks at a child: the kernel tells a parent of it by a signal only.
const PAUSE: Duration = Duration::from_millis(5);

/// Runs a command to its end and gives all that it said, as [`Command::output`] does.
///
/// Errors: the bound is reached; the child is killed, and the error holds what it had said.
pub fn output(command: &mut Command) -> Result<Output> {
    let what = format!("the end of {command:?}");
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
    let stdout = collect(child.stdout.take().context("stdout is piped")?);
    let stderr = collect(child.stderr.take().context("stderr is piped")?);
    let ended = end(&mut child, &what);
    // Whoever inherited the pipe may hold it open longer than the child lives.
    let (stdout, stderr) = (stdout.recv_timeout(BOUND), stderr.recv_timeout(BOUND));
    let (stdout, stderr) = (stdout.unwrap_or_default(), stderr.unwrap_or_default());
    let said = || [&*stdout, &*stderr].concat();
    let status = ended.with_context(|| String::from_utf8_lossy(&said()).into_owned())?;
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

/// Writes a program that can be executed at once. A child of ours writes it: a file that this process has
/// open for writing is busy (ETXTBSY) as long as a child that another test forks meanwhile has it, too.
pub fn write_program(path: &Path, text: &str) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"printf %s "$2" > "$1" && chmod 755 "$1""#, "sh"]);
    let written = output(shell.arg(path).arg(text))?;
    let said = String::from_utf8_lossy(&written.stderr);
    ensure!(written.status.success(), "write {}: {said}", path.display());
    Ok(())
}

/// Waits for the end of a child.
///
/// Errors: the bound is reached; the child is killed.
pub fn end(child: &mut Child, what: &str) -> Result<ExitStatus> {
    let _under_way = UnderWay::begin(what);
    let begun_at = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begun_at.elapsed() > BOUND {
            child.kill()?;
            child.wait()?;
            bail!("waited {BOUND:?} for {what}");
        }
        thread::sleep(PAUSE);
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (all, whole) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is as much as there is.
        let _ = pipe.read_to_end(&mut bytes);
        let _ = all.send(bytes);
    });
    whole
}

/// The lines of a child, read as they come, so that the child never waits for its reader.
#[derive(Debug)]
pub struct Lines(Receiver<String>);

impl Lines {
    /// Reads from a pipe until its end.
    pub fn of(stdout: ChildStdout) -> Self {
        let (lines, read) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        Self(read)
    }

    /// The next line; None at the end.
    ///
    /// Errors: the bound is reached; the error names what was waited for.
    pub fn next(&self, what: &str) -> Result<Option<String>> {
        let _under_way = UnderWay::begin(what);
        match self.0.recv_timeout(BOUND) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => bail!("waited {BOUND:?} for {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_command_said_is_given_with_its_end() -> Result<()> {
        let output = output(Command::new("sh").args(["-c", "echo a; echo b >&2; exit 3"]))?;
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(
            (&*output.stdout, &*output.stderr),
            (&b"a\n"[..], &b"b\n"[..])
        );
        Ok(())
    }

    #[test]
    fn a_program_is_written_as_it_is_and_can_be_executed() -> Result<()> {
        let name = format!("sundown-test-program-{}", std::process::id());
        let program = std::env::temp_dir().join(name);
        write_program(&program, "#!/bin/sh\necho \"it's %s $1\"\n")?;
        let said = output(Command::new(&program).arg("me"));
        std::fs::remove_file(&program)?;
        assert_eq!(said?.stdout, b"it's %s me\n");
        Ok(())
    }

    #[test]
    fn lines_come_in_their_order_and_end() -> Result<()> {
        let mut child = Command::new("sh")
            .args(["-c", "echo a; echo b"])
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = Lines::of(child.stdout.take().context("stdout is piped")?);
        assert_eq!(lines.next("a")?.as_deref(), Some("a"));
        assert_eq!(lines.next("b")?.as_deref(), Some("b"));
        assert_eq!(lines.next("the end")?, None);
        assert!(end(&mut child, "the end")?.success());
        Ok(())
    }
}
