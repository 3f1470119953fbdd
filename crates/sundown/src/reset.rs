//! `sundown reset`: ends everything of a data directory and removes what Sundown keeps in it, after asking.
//! Which directory that may be is decided by `sundown-disk`; what else lies in it stays and is told.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use sundown_disk::Hold;

use crate::arguments::{Output, Reset};
use crate::complaint::Complaint;
use crate::kubectl::Sundown;
use crate::{data, down, output};

/// The way in, which a control plane that was killed leaves behind.
const KUBECONFIG: &str = "kubeconfig";

/// What was done.
#[derive(Debug, Serialize)]
struct Told {
    data: PathBuf,
    removed: Vec<String>,
    kept: Vec<String>,
    environments: Option<PathBuf>,
}

/// Asks, ends, removes.
pub(crate) async fn run(arguments: &Reset, output: Output) -> Result<ExitCode, Complaint> {
    let told = arguments.place.data_dir.as_deref();
    let directory = data::directory(told)?;
    let commands = Sundown::of(told);
    // Looked at before anything is ended: who names another directory by mistake loses nothing.
    let Some(state) = data::find(&directory)? else {
        tell(&directory, Vec::new(), Vec::new(), output)?;
        return Ok(ExitCode::SUCCESS);
    };
    if !arguments.yes && !agrees(&directory, &commands)? {
        return Err(Complaint::new("nothing was removed").at(directory.display().to_string()));
    }
    down::end(&directory, &state, output).await?;
    let before = names(&directory);
    let hold = Hold::take(&directory).map_err(|error| data::refused(&error))?;
    if let Some(hold) = hold {
        remove_kubeconfig(&directory)?;
        hold.clear().map_err(|error| {
            let again = commands.command("reset");
            data::refused(&error).help(format!("`{again}` goes on where it stopped"))
        })?;
    }
    let kept = names(&directory);
    let removed = before.into_iter().filter(|name| !kept.contains(name));
    tell(&directory, removed.collect(), kept, output)?;
    Ok(ExitCode::SUCCESS)
}

/// What lies in a directory; nothing, if it is gone.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Only one of ours: a user may keep another under that name.
fn remove_kubeconfig(directory: &Path) -> Result<(), Complaint> {
    let file = directory.join(KUBECONFIG);
    if !sundown_embedded::is_own_kubeconfig(&file) {
        return Ok(());
    }
    fs::remove_file(&file).map_err(|error| {
        Complaint::new("not everything could be removed")
            .at(file.display().to_string())
            .because(&error)
    })
}

fn agrees(directory: &Path, commands: &Sundown) -> Result<bool, Complaint> {
    if !io::stdin().is_terminal() {
        return Err(Complaint::usage(
            "cannot ask for confirmation: standard input is not a terminal",
        )
        .help(format!(
            "to go ahead without a prompt: {}",
            commands.command("reset --yes")
        )));
    }
    let mut stderr = io::stderr();
    write!(
        stderr,
        "end everything that runs, and remove all objects, logs and credentials in {}? [y/N] ",
        directory.display()
    )?;
    stderr.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(is_yes(&line))
}

/// Whether an answer agrees.
fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&&*answer.trim().to_ascii_lowercase())
}

fn tell(
    directory: &Path,
    removed: Vec<String>,
    kept: Vec<String>,
    output: Output,
) -> io::Result<()> {
    let told = Told {
        data: directory.to_owned(),
        removed,
        kept,
        environments: data::environments().ok(),
    };
    if output == Output::Json {
        return output::print_json(&told);
    }
    let place = directory.display();
    let mut text = if told.removed.is_empty() {
        format!("there is no data in {place}\n")
    } else {
        format!("removed from {place}: {}\n", told.removed.join(", "))
    };
    if !told.kept.is_empty() {
        let _ = writeln!(text, "kept, not made by Sundown: {}", told.kept.join(", "));
    }
    if let Some(place) = &told.environments {
        let place = place.display();
        let _ = writeln!(text, "environments stay in {place} (see `sundown env`)");
    }
    output::print(&text)
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_a_clear_yes_is_one() {
        for answer in ["y\n", "YES\n", " yes "] {
            assert!(is_yes(answer), "{answer}");
        }
        for answer in ["", "\n", "n\n", "yeah\n"] {
            assert!(!is_yes(answer), "{answer}");
        }
    }
}
