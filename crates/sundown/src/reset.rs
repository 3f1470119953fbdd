//! `sundown reset`: ends everything of a data directory and removes what Sundown made in it, by the
//! names that Sundown gives, after asking. What stands under any other name stays and is told.

mod plan;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use sundown_disk::Hold;

use crate::arguments::{Output, Reset};
use crate::complaint::Complaint;
use crate::{data, down, output};

use plan::{Entry, Plan, Sort};

/// What was done.
#[derive(Debug, Serialize)]
struct Told {
    data: PathBuf,
    removed: Vec<String>,
    kept: Vec<String>,
    environments: PathBuf,
}

/// Asks, ends, removes.
pub(crate) async fn run(arguments: &Reset, output: Output) -> Result<ExitCode, Complaint> {
    let told = data::directory(arguments.place.data_dir.as_deref());
    let Ok(directory) = told.canonicalize() else {
        return say_nothing_there(&told, output);
    };
    // Looked at before anything is ended: who names another directory by mistake loses nothing.
    if plan(&directory)?.is_none() {
        return say_nothing_there(&directory, output);
    }
    if !arguments.yes && !agrees(&directory)? {
        return Err(Complaint::new("nothing was removed").at(directory.display().to_string()));
    }
    down::end(&directory, output).await?;
    let hold = Hold::take(&directory).map_err(|error| data::refused(&error))?;
    let Some(plan) = plan(&directory)? else {
        return say_nothing_there(&directory, output);
    };
    carry_out(&directory, &plan)?;
    drop(hold);
    // Only if nothing else is in it.
    let _ = fs::remove_dir(&directory);
    tell(&directory, &plan, output)?;
    Ok(ExitCode::SUCCESS)
}

/// What would be removed; None: the directory holds no data of ours.
fn plan(directory: &Path) -> Result<Option<Plan>, Complaint> {
    let failed = |error: &io::Error| {
        Complaint::new("the data directory cannot be read")
            .at(directory.display().to_string())
            .because(error)
    };
    let format = match fs::read_to_string(directory.join("format")) {
        Ok(format) => Some(format),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(&error)),
    };
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|error| failed(&error))?;
    let entries = entries(directory).map_err(|error| failed(&error))?;
    match plan::decide(directory, format.as_deref(), &entries, &mounts) {
        Ok(plan) => Ok(plan),
        Err(refusal) => Err(Complaint::new(refusal.to_string())
            .at(directory.display().to_string())
            .help("nothing was removed")),
    }
}

fn entries(directory: &Path) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // Of the entry itself, never of what a link leads to.
        let kind = entry.file_type()?;
        let sort = if kind.is_dir() {
            Sort::Directory
        } else if kind.is_symlink() {
            Sort::Link
        } else {
            Sort::File
        };
        let name = entry.file_name().to_string_lossy().into_owned();
        found.push(Entry { name, sort });
    }
    found.sort();
    Ok(found)
}

/// Removes exactly what the plan names.
fn carry_out(directory: &Path, plan: &Plan) -> Result<(), Complaint> {
    for entry in &plan.remove {
        let path = directory.join(&entry.name);
        let removed = match entry.sort {
            // Links inside are removed, not followed.
            Sort::Directory => remove_directory(&path),
            Sort::File => fs::remove_file(&path),
            Sort::Link => Ok(()),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Complaint::new("not everything could be removed")
                    .at(path.display().to_string())
                    .because(&error)
                    .help("`sundown reset` again goes on"));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// A container can take the rights to a directory from its owner, and a node that was killed could not
/// remove it. Whoever owns it can take them back.
fn remove_directory(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let_owner_in(directory)?;
            fs::remove_dir_all(directory)
        }
        removed => removed,
    }
}

/// Gives the owner all rights to a directory and those in it; links are not followed.
fn let_owner_in(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            let_owner_in(&entry.path())?;
        }
    }
    Ok(())
}

fn agrees(directory: &Path) -> Result<bool, Complaint> {
    if !io::stdin().is_terminal() {
        return Err(
            Complaint::usage("nobody can be asked: standard input is no terminal")
                .help("without asking: sundown reset --yes"),
        );
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
    Ok(plan::is_yes(&line))
}

fn say_nothing_there(directory: &Path, output: Output) -> Result<ExitCode, Complaint> {
    tell(directory, &Plan::default(), output)?;
    Ok(ExitCode::SUCCESS)
}

fn tell(directory: &Path, plan: &Plan, output: Output) -> io::Result<()> {
    let told = Told {
        data: directory.to_owned(),
        removed: plan.remove.iter().map(|it| it.name.clone()).collect(),
        kept: plan.keep.clone(),
        environments: data::environments(),
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
    let place = told.environments.display();
    let _ = writeln!(text, "environments stay in {place} (see `sundown env`)");
    output::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_let_in_to_what_is_theirs_and_to_nothing_behind_a_link() {
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let close = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o500));
        let home = tempfile::tempdir().unwrap();
        let (ours, other) = (home.path().join("ours"), home.path().join("other"));
        fs::create_dir_all(ours.join("a/b")).unwrap();
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&other, ours.join("a/link")).unwrap();
        for path in [&ours.join("a/b"), &ours.join("a"), &other] {
            close(path).unwrap();
        }
        let_owner_in(&ours).unwrap();
        assert_eq!(mode(&ours.join("a")), 0o700);
        assert_eq!(mode(&ours.join("a/b")), 0o700);
        assert_eq!(mode(&other), 0o500);
    }
}
