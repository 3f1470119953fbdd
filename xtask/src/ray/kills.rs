//! kill -9 of the control plane, of `sundown run` and of the node while one job runs: it runs once, its
//! end is told truly, and nothing is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::home::{Going, Home};
use crate::process;

const CONTROL_PLANE_KILLS: u32 = 200;
const CLIENT_KILLS: u32 = 20;
/// One seed for ever, so that a red lane means a change.
const SEED: u64 = 20_261_116;
/// Between two kills, at most; long enough to be up again sometimes, short enough to meet every step.
const PAUSE_MILLISECONDS_MAX: u64 = 1_500;
const WAIT_MAX: Duration = Duration::from_mins(5);
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Kills the control plane and, now and then, its client; the job ends when there were enough.
pub(super) fn of_control_plane_and_client(binary: &Path) -> Result<()> {
    let mut home = Home::new(binary)?;
    let counts = Counts::new(home.files())?;
    let file = counts.job(home.files())?;
    let mut going = home.run(&file)?;
    let mut random = Random(SEED);
    let (mut planes, mut clients) = (0, 0);
    let started_at = Instant::now();
    while planes < CONTROL_PLANE_KILLS {
        ensure!(
            started_at.elapsed() < Duration::from_mins(30),
            "{planes} kills in half an hour: a control plane does not come up"
        );
        sleep(Duration::from_millis(random.below(PAUSE_MILLISECONDS_MAX)));
        if let Some(ended) = going.child.try_wait().context("look at sundown run")? {
            let ended = format!("sundown run ended with {ended} after {planes} kills");
            anyhow::bail!("{ended}:\n{}", home.wait(going)?.said);
        }
        if let Some(process) = control_plane(&home) {
            kill(process)?;
            planes += 1;
        }
        if clients * (CONTROL_PLANE_KILLS / CLIENT_KILLS) < planes && clients < CLIENT_KILLS {
            going.child.kill().context("kill sundown run")?;
            going.child.wait().context("await sundown run")?;
            clients += 1;
            going = home.run(&file)?;
        }
    }
    println!("{planes} kills of the control plane, {clients} of sundown run");
    counts.say_enough()?;
    home.wait(going)?.expect(0, &[])?;
    counts.expect_runs(&["begun", "one submission", "ended"])?;
    home.ensure_no_objects()?;
    home.finish()
}

/// Kills the node, and all pods with it: the job is lost, told as such, and not run again.
pub(super) fn of_node(binary: &Path) -> Result<()> {
    let mut home = Home::new(binary)?;
    let counts = Counts::new(home.files())?;
    let file = counts.job(home.files())?;
    let mut going = home.run(&file)?;
    counts.await_begun(&mut going)?;
    let node = process_with("__node-serve", home.data()).context("find the node")?;
    kill(node)?;
    println!("killed the node, process {node}");
    home.wait(going)?.expect(1, &["lost"])?;
    counts.expect_runs(&["begun"])?;
    home.ensure_no_objects()?;
    home.finish()
}

/// What a job says about itself, in a directory that it shares with us.
struct Counts {
    directory: PathBuf,
}

impl Counts {
    fn new(files: &Path) -> Result<Self> {
        let directory = files.join("counts");
        fs::create_dir(&directory).context("make a directory for counts")?;
        Ok(Self { directory })
    }

    /// A job that notes each run, waits until it is told that it is enough, and notes how many jobs its
    /// cluster was ever given.
    fn job(&self, into: &Path) -> Result<PathBuf> {
        let text = include_str!("counting.yaml");
        let text = text.replace("COUNTS", &self.directory.display().to_string());
        let path = into.join("counting.yaml");
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }

    fn say_enough(&self) -> Result<()> {
        fs::write(self.directory.join("enough"), "").context("say that it is enough")
    }

    fn await_begun(&self, going: &mut Going) -> Result<()> {
        let started_at = Instant::now();
        while self.runs().is_empty() {
            let ended = going.child.try_wait().context("look at sundown run")?;
            ensure!(ended.is_none(), "sundown run ended before the job began");
            ensure!(started_at.elapsed() < WAIT_MAX, "the job does not begin");
            sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    fn runs(&self) -> Vec<String> {
        let text = fs::read_to_string(self.directory.join("runs")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn expect_runs(&self, expected: &[&str]) -> Result<()> {
        let runs = self.runs();
        ensure!(runs == expected, "the job noted {runs:?}, not {expected:?}");
        println!("the job noted {runs:?}");
        Ok(())
    }
}

/// The control plane of the data directory, if one is up.
pub(super) fn control_plane(home: &Home) -> Option<u32> {
    process_with("up", home.data())
}

/// The process of the binary that was started with this word and this directory.
fn process_with(word: &str, directory: &Path) -> Option<u32> {
    let directory = directory.display().to_string();
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|id| {
        let arguments = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        let mut words = arguments.split('\0');
        words.nth(1) == Some(word) && words.any(|it| it.contains(&directory))
    })
}

fn kill(process: u32) -> Result<()> {
    process::run(Command::new("kill").args(["-9", &process.to_string()]))
}

/// Enough chance for moments: a linear congruence.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
