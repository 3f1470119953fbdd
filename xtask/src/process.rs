//! Child processes: run to the end, with an error that names the command.
//!
//! What is run and what its output means is left to the callers.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How often a bounded child is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How often a child is looked at that has said all it will.
const SHORT_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Runs with our own output; fails unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("start {}", describe(command)))?;
    ensure!(
        status.success(),
        "{} ended with {status}",
        describe(command)
    );
    Ok(())
}

/// How long a quiet command may take. Generous: it bounds a hang, it measures nothing; pip needs minutes.
const QUIET_DURATION_MAX: Duration = Duration::from_mins(30);

/// How long the pipes of a child that was stopped are read for its last words.
const LAST_WORDS_DURATION_MAX: Duration = Duration::from_secs(5);

/// Runs quietly and returns what it printed; fails, with its messages, unless it succeeds.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    output_within(command, QUIET_DURATION_MAX)
}

/// The same for at most `limit`: what waits for something that never comes must not keep a gate.
pub(crate) fn output_within(command: &mut Command, limit: Duration) -> Result<String> {
    let ended = collect(command.stdin(Stdio::null()), b"", limit)?;
    if !ended.status.success() {
        let messages = String::from_utf8_lossy(&ended.stderr);
        bail!(
            "{} ended with {}:\n{}",
            describe(command),
            ended.status,
            messages.trim_end()
        );
    }
    String::from_utf8(ended.stdout).with_context(|| format!("read {}", describe(command)))
}

/// How a command ended and all that it said.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) succeeded: bool,
    pub(crate) said: String,
}

/// Runs quietly with this input; a failure is for the caller to judge.
pub(crate) fn output_of(command: &mut Command, input: &[u8]) -> Result<Done> {
    output_of_within(command, input, QUIET_DURATION_MAX)
}

/// The same for at most `limit`.
pub(crate) fn output_of_within(
    command: &mut Command,
    input: &[u8],
    limit: Duration,
) -> Result<Done> {
    let ended = collect(command.stdin(Stdio::piped()), input, limit)?;
    let words = [ended.stdout, ended.stderr].concat();
    Ok(Done {
        succeeded: ended.status.success(),
        said: String::from_utf8_lossy(&words).into_owned(),
    })
}

/// A child that ended, and what it wrote.
struct Ended {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Runs a command to its end, and stops it with all that it started if that takes too long.
fn collect(command: &mut Command, input: &[u8], limit: Duration) -> Result<Ended> {
    let started_at = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {}", describe(command)))?;
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        // A child that reads nothing has closed its end already, or keeps this thread until it ends.
        std::thread::spawn(move || stdin.write_all(&input));
    }
    let stdout = read_all(child.stdout.take().expect("piped above"));
    let stderr = read_all(child.stderr.take().expect("piped above"));
    let wait = |from: &mpsc::Receiver<Vec<u8>>| {
        let left = limit.saturating_sub(started_at.elapsed());
        from.recv_timeout(left).ok()
    };
    let (said, complained) = (wait(&stdout), wait(&stderr));
    let ended = await_end(&mut child, limit.saturating_sub(started_at.elapsed()))?;
    if let (Some(status), Some(stdout), Some(stderr)) = (ended, &said, &complained) {
        let (stdout, stderr) = (stdout.clone(), stderr.clone());
        return Ok(Ended {
            status,
            stdout,
            stderr,
        });
    }
    kill_tree(&mut child).with_context(|| format!("stop {}", describe(command)))?;
    let last = |so_far: Option<Vec<u8>>, from: mpsc::Receiver<Vec<u8>>| {
        let words = so_far.or_else(|| from.recv_timeout(LAST_WORDS_DURATION_MAX).ok());
        words.unwrap_or_default()
    };
    let words = [last(said, stdout), last(complained, stderr)].concat();
    bail!(
        "{} did not end within {limit:?}; it said:\n{}",
        describe(command),
        String::from_utf8_lossy(&words).trim_end()
    )
}

/// Reads a pipe to its end in the background.
fn read_all(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (send, read) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is told too.
        let _ = pipe.read_to_end(&mut bytes);
        let _ = send.send(bytes);
    });
    read
}

/// Waits for the end of a child whose pipes are closed, which comes at once as a rule.
fn await_end(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let started_at = Instant::now();
    loop {
        let status = child.try_wait().context("await child")?;
        if status.is_some() || started_at.elapsed() >= limit {
            return Ok(status);
        }
        sleep(SHORT_POLL_INTERVAL);
    }
}

/// Runs, hands over each line of output as it comes; fails unless it succeeds, and if nothing comes for
/// `silence_max`: what hangs must not keep a gate waiting for ever.
pub(crate) fn run_by_line(
    command: &mut Command,
    silence_max: Duration,
    mut take: impl FnMut(&str),
) -> Result<()> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {}", describe(command)))?;
    let stdout = child.stdout.take().expect("piped above");
    let (lines, read) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let all = BufReader::new(stdout).lines();
        all.into_iter().try_for_each(|line| lines.send(line))
    });
    let mut last = String::new();
    loop {
        match read.recv_timeout(silence_max) {
            Ok(line) => {
                last = line.with_context(|| format!("read {}", describe(command)))?;
                take(&last);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                kill_tree(&mut child).context("stop it")?;
                bail!(
                    "{} said nothing for {silence_max:?}; last was: {last}",
                    describe(command)
                );
            }
        }
    }
    // Every line was taken, so nothing was refused.
    let _ = reader.join();
    let status = child
        .wait()
        .with_context(|| format!("await {}", describe(command)))?;
    ensure!(
        status.success(),
        "{} ended with {status}",
        describe(command)
    );
    Ok(())
}

/// Kills a child with all that it started: the test that hangs is a child of cargo. Not by a process group:
/// one of its own would not hear the Ctrl-C of its terminal.
fn kill_tree(child: &mut Child) -> Result<()> {
    let below = descendants(child.id(), &parents()?);
    // From the top on, so that nothing starts anew what was just killed.
    child.kill()?;
    for pid in below {
        let pid = i32::try_from(pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        // One that is gone needs no signal.
        let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
    }
    child.wait()?;
    Ok(())
}

/// All processes below one, each after its parent.
fn descendants(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        let new: Vec<u32> = children
            .map(|(pid, _)| *pid)
            .filter(|pid| !found.contains(pid))
            .collect();
        found.extend(new);
        next += 1;
    }
    found.split_off(1)
}

/// The processes of this machine, each with its parent.
fn parents() -> Result<Vec<(u32, u32)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").context("list processes")? {
        let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        // It may end meanwhile.
        let status = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        found.extend(parent_of(&String::from_utf8_lossy(&status)).map(|parent| (pid, parent)));
    }
    Ok(found)
}

/// Reads `12 (name) S 7 …`; a name may hold anything, parentheses too.
fn parent_of(status: &str) -> Option<u32> {
    let (_, after) = status.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}

/// Runs quietly for at most `limit` and tells whether it succeeded by then.
pub(crate) fn succeeds_within(command: &mut Command, limit: Duration) -> Result<bool> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command
        .spawn()
        .with_context(|| format!("start {}", describe(command)))?;
    let started_at = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context("await child")? {
            return Ok(status.success());
        }
        if started_at.elapsed() > limit {
            child
                .kill()
                .with_context(|| format!("stop {}", describe(command)))?;
            child
                .wait()
                .with_context(|| format!("await {}", describe(command)))?;
            return Ok(false);
        }
        sleep(POLL_INTERVAL);
    }
}

/// Fails, with the way out, unless a program is on the PATH.
pub(crate) fn require(program: &str, way_out: &str) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    ensure!(is_there, "{program} is not on the PATH: {way_out}");
    Ok(())
}

fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program
        .file_name()
        .unwrap_or(program.as_os_str())
        .to_string_lossy();
    let arguments = command
        .get_args()
        .map(|argument| argument.to_string_lossy());
    let words: Vec<_> = std::iter::once(name).chain(arguments).collect();
    format!("`{}`", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_repeats_its_messages() {
        let error = output(Command::new("sh").args(["-c", "echo broken >&2; exit 3"]))
            .expect_err("it exits with 3");
        let text = format!("{error:#}");
        assert!(text.contains("`sh -c") && text.contains("broken"), "{text}");
    }

    /// `kubectl delete` waits for a week by itself: the gate stood still and said nothing.
    #[test]
    fn a_command_that_does_not_end_is_stopped_and_named_with_its_last_words() {
        let limit = Duration::from_secs(1);
        let script = "echo namespace deleted; echo waits >&2; sleep 600 & wait";
        let mut hangs = Command::new("sh");
        hangs.args(["-c", script]);
        let errors = [
            output_within(&mut hangs, limit).expect_err("it hangs"),
            output_of_within(&mut hangs, b"input", limit).expect_err("it hangs"),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(text.starts_with("`sh -c"), "{text}");
            let end = "did not end within 1s; it said:\nnamespace deleted\nwaits";
            assert!(text.ends_with(end), "{text}");
        }
    }

    #[test]
    fn a_command_that_closes_its_pipes_and_stays_is_stopped_too() {
        let mut hangs = Command::new("sh");
        hangs.args(["-c", "exec >&- 2>&-; exec sleep 600"]);
        let error = output_within(&mut hangs, Duration::from_secs(1)).expect_err("it hangs");
        assert!(
            error.to_string().contains("did not end within 1s"),
            "{error}"
        );
    }

    #[test]
    fn a_command_gets_its_input_and_tells_how_it_ended() {
        let mut cat = Command::new("sh");
        cat.args(["-c", "cat; exit 4"]);
        let long = vec![b'x'; 1 << 20];
        let done = output_of(&mut cat, &long).expect("cat works");
        assert!(!done.succeeded);
        assert_eq!(done.said.len(), long.len());
        assert!(
            output_of(&mut Command::new("true"), &long)
                .expect("true works")
                .succeeded
        );
    }

    #[test]
    fn lines_are_handed_over_in_order() {
        let mut lines = Vec::new();
        let patient = Duration::from_mins(1);
        let mut echo = Command::new("sh");
        let echo = echo.args(["-c", "echo a; echo b"]);
        run_by_line(echo, patient, |line| lines.push(line.to_owned())).expect("echo works");
        assert_eq!(lines, ["a", "b"]);
    }

    #[test]
    fn a_child_that_says_nothing_is_stopped_with_its_last_words() {
        let mut hangs = Command::new("sh");
        let hangs = hangs.args(["-c", "echo test a ...; exec sleep 60"]);
        let error = run_by_line(hangs, Duration::from_secs(1), |_| {}).expect_err("it hangs");
        let text = error.to_string();
        assert!(text.contains("said nothing for 1s"), "{text}");
    }

    /// Of a hanging `cargo test` only cargo was killed; the test went on and kept its target busy.
    #[test]
    fn what_a_silent_child_started_is_stopped_too() {
        let (mut read, write) = std::io::pipe().expect("make a pipe");
        let mut hangs = Command::new("sh");
        // Two levels below, and there before the silence begins; each that lives holds the pipe open.
        hangs.args(["-c", "sh -c 'echo here; exec sleep 600' & wait"]);
        hangs.stderr(write);
        let error = run_by_line(&mut hangs, Duration::from_secs(1), |_| {}).expect_err("it hangs");
        assert!(error.to_string().contains("said nothing"), "{error}");
        drop(hangs);
        let (end, ended) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = end.send(std::io::copy(&mut read, &mut std::io::sink()));
        });
        let ended = ended.recv_timeout(Duration::from_mins(3));
        ended
            .expect("all of them are gone")
            .expect("a pipe is read");
    }

    #[test]
    fn descendants_are_found_by_their_parents() {
        let parents = [(1, 0), (7, 5), (5, 1), (6, 1), (9, 7), (8, 7)];
        assert_eq!(descendants(5, &parents), [7, 9, 8]);
        assert!(descendants(6, &parents).is_empty());
        assert!(descendants(4, &[(4, 4)]).is_empty());
        assert_eq!(parent_of("12 (a) b) (c) S 7 12 12 0"), Some(7));
        assert_eq!(parent_of(""), None);
    }

    #[test]
    fn a_child_past_its_limit_is_stopped() {
        let in_time = succeeds_within(Command::new("sleep").arg("60"), Duration::ZERO);
        assert!(!in_time.expect("sleep starts"));
    }

    #[test]
    fn a_missing_program_is_named_with_the_way_out() {
        let error = require("no-such-program", "install it").expect_err("there is none");
        assert_eq!(
            error.to_string(),
            "no-such-program is not on the PATH: install it"
        );
    }
}
