//! The control plane sleeps, as with a laptop that is closed: across the deadline of one job and across the
//! deletion of another, both on a cluster that they share, and beyond the time that it has for stopping them. Each is
//! stopped afterwards, as Ray says.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::super::home::{Home, until};
use super::super::kills::control_plane;
use super::{Counts, STATE};

/// It sleeps for this long at least, and until this long after the time for stopping both jobs is over.
const ASLEEP: Duration = Duration::from_mins(2);
const OVER: Duration = Duration::from_secs(20);
/// How long it is tried to stop a job (`Limits::stop`).
const STOP_TIME: Duration = Duration::from_mins(1);
/// Ray gives a job three seconds to end; what still beats after this was not told to.
const HEARD_AFTER: Duration = Duration::from_secs(10);
const STILL: Duration = Duration::from_secs(3);
/// The control plane may be faster than we are in stopping it.
const TRIES: usize = 4;
const DEADLINE: Duration = Duration::from_mins(2);

pub(super) fn all(home: &mut Home) -> Result<()> {
    let scripts = [
        ("beat.py", include_str!("beat.py")),
        ("ask.py", include_str!("ask.py")),
    ];
    let counts = Counts::with(home, "away", &scripts)?;
    home.create("shared", &counts.manifest(include_str!("shared.yaml")))?;
    for number in 1..=TRIES {
        home.create("deleted", &job(&format!("deleted-{number}"), "beat"))?;
    }
    for number in 1..=TRIES {
        counts.await_word(&format!("deleted-{number}"))?;
    }
    let deadline = format!("  activeDeadlineSeconds: {}\n", DEADLINE.as_secs());
    home.create("late", &(job("late", "beat") + &deadline))?;
    counts.await_word("late")?;
    // Its deadline counts from before this, so that the time for stopping it is over by then at the latest.
    let over_at = Instant::now() + DEADLINE + STOP_TIME;
    home.look();
    let (asleep, deleted) = asleep_at_deletion(home, &counts)?;
    let left = (over_at + OVER).saturating_duration_since(Instant::now());
    sleep(ASLEEP.max(left));
    for name in [&deleted, "late"] {
        ensure!(counts.beats_on(name), "{name} ended while no one looked");
    }
    let over = Instant::now().saturating_duration_since(over_at).as_secs();
    ensure!(over > 0, "the time for stopping late is not over");
    println!("{deleted} and late ran on while the control plane slept");
    println!("the time for stopping late was over for {over} s");
    drop(asleep);
    until("the jobs that are over stand still", || {
        Ok(!counts.beats_on(&deleted) && !counts.beats_on("late"))
    })?;
    home.until_told("rayjob/late", STATE, "Failed STOPPED DeadlineExceeded")?;
    home.create("asker", &job("asker", "ask"))?;
    let told: Value = serde_json::from_str(&counts.await_word("told")?)?;
    for name in [&deleted, "late"] {
        let status = &told[format!("python /counts/beat.py {name}")];
        ensure!(status == "STOPPED", "Ray says {status} of {name}: {told}");
    }
    println!("Ray says: {told}");
    home.kubectl(&["delete", "rayjobs,rayclusters", "--all", "--timeout=120s"])?;
    Ok(())
}

fn job(name: &str, script: &str) -> String {
    let text = include_str!("job.yaml").replace("SCRIPT", script);
    text.replace("NAME", name)
}

/// Deletes a job and puts the control plane to sleep before Ray hears of it; which job that is.
fn asleep_at_deletion(home: &Home, counts: &Counts) -> Result<(Asleep, String)> {
    let proxy = Proxy::start(home)?;
    let process = control_plane(home).context("find the control plane")?;
    for number in 1..=TRIES {
        let name = format!("deleted-{number}");
        let asleep = proxy.delete_and_sleep(&name, process)?;
        sleep(HEARD_AFTER);
        if counts.beats_on(&name) {
            return Ok((asleep, name));
        }
        println!("{name}: Ray was told before the control plane slept; once more");
    }
    anyhow::bail!("the control plane was always faster")
}

impl Counts {
    /// Whether a job is alive.
    fn beats_on(&self, name: &str) -> bool {
        let before = self.read(name).len();
        sleep(STILL);
        self.read(name).len() > before
    }
}

/// A process that stands still until this is dropped.
struct Asleep(Pid);

impl Asleep {
    fn new(process: u32) -> Result<Self> {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        let process = process.context("a process has an id")?;
        kill_process(process, Signal::STOP).context("put the control plane to sleep")?;
        Ok(Self(process))
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// A way to the API server without TLS, so that a request is answered within a millisecond.
struct Proxy {
    child: Child,
    socket: std::path::PathBuf,
}

impl Proxy {
    fn start(home: &Home) -> Result<Self> {
        let socket = home.files().join("proxy");
        let child = Command::new("kubectl")
            .env("KUBECONFIG", home.data().join("kubeconfig"))
            .args(["proxy", "--reject-methods=^$", "--unix-socket"])
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("start kubectl proxy")?;
        let proxy = Self { child, socket };
        until("kubectl proxy listens", || {
            Ok(UnixStream::connect(&proxy.socket).is_ok())
        })?;
        Ok(proxy)
    }

    fn delete_and_sleep(&self, name: &str, process: u32) -> Result<Asleep> {
        let mut stream = UnixStream::connect(&self.socket).context("reach kubectl proxy")?;
        stream.set_read_timeout(Some(Duration::from_mins(1)))?;
        let path = format!("/apis/ray.io/v1/namespaces/default/rayjobs/{name}");
        let request =
            format!("DELETE {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).context("delete")?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).context("read the answer")?;
        let asleep = Asleep::new(process)?;
        let answer = String::from_utf8_lossy(&answer);
        ensure!(answer.ends_with("200"), "DELETE answered {answer}");
        Ok(asleep)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.socket);
    }
}
