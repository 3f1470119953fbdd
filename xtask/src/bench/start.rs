//! From nothing to the first answered list, in process and over HTTPS, and what is resident at rest: in
//! memory, and on a new data directory with all that a node has.
//!
//! Both starts are ours; a peer joins when there is one to run.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::sundown::{self, Profile};
use crate::{process, workspace};

/// How many starts are measured; the median is told.
const STARTS: usize = 11;
/// Long enough for every controller to have looked around and come to rest.
const REST: Duration = Duration::from_secs(1);

/// Measures and prints.
pub(crate) fn run() -> Result<()> {
    let binary = sundown::build(Profile::Release)?;
    let in_memory = measure(&binary, &["--ephemeral"])?;
    let on_disk = measure(&binary, &[])?;
    let example = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "sundown-embedded",
        "--example",
        "start",
    ];
    let in_process = process::output(&mut workspace::cargo(&example)?)?;
    println!(
        "start to first LIST, in process   {} ms (budget 50)",
        in_process.trim()
    );
    for (place, figures) in [("in memory", in_memory), ("new data directory", on_disk)] {
        let Figures { start, resident } = figures;
        println!("start to first LIST, over HTTPS, {place:<18} {start:.1} ms (budget 50)");
        println!("resident at rest, {place:<18}                {resident:.1} MB (budget 30)");
    }
    println!("medians; {STARTS} starts of the binary, 21 in process");
    Ok(())
}

/// The medians of several starts: milliseconds, megabytes.
struct Figures {
    start: f64,
    resident: f64,
}

fn measure(binary: &Path, place: &[&str]) -> Result<Figures> {
    let mut starts = Vec::new();
    let mut resident = Vec::new();
    for _ in 0..STARTS {
        let (start, kilobytes) = once(binary, place)?;
        starts.push(start);
        resident.push(kilobytes);
    }
    Ok(Figures {
        start: median(starts),
        resident: median(resident) / 1000.0,
    })
}

/// Starts the binary, reads what it says of its start, and its memory at rest.
fn once(binary: &Path, place: &[&str]) -> Result<(f64, f64)> {
    let home = tempfile::tempdir().context("make a directory for it")?;
    let mut child = Command::new(binary)
        .args(["up", "--output", "json"])
        .args(place)
        .arg("--kubeconfig")
        .arg(home.path().join("kubeconfig"))
        .env("SUNDOWN_DATA", home.path().join("data"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("start sundown up")?;
    let stdout = child.stdout.take().context("stdout is piped")?;
    let mut line = String::new();
    BufReader::new(stdout)
        .read_line(&mut line)
        .context("read its first line")?;
    sleep(REST);
    let status = fs::read_to_string(format!("/proc/{}/status", child.id()));
    child.kill().context("end sundown up")?;
    child.wait().context("await its end")?;
    let start = number_after(&line, "\"start_ms\":").context("start_ms in its first line")?;
    let resident = number_after(&status.context("read its memory")?, "VmRSS:");
    Ok((start, resident.context("VmRSS in its status")?))
}

/// The number that follows a word; enough JSON for one figure.
fn number_after(text: &str, word: &str) -> Option<f64> {
    let rest = text.split_once(word)?.1.trim_start();
    let end = rest
        .find(|it: char| !it.is_ascii_digit() && it != '.')
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
