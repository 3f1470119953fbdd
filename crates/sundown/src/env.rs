//! `sundown env`: the environments that stand for images.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use serde_json::json;
use sundown_node::environment::{Entry, Environments, Progress, Rules};

use crate::arguments::{Env, EnvCommand, Output};
use crate::complaint::Complaint;
use crate::{data, output};

/// Lists, makes or prunes.
pub(crate) async fn run(arguments: &Env, output: Output) -> Result<ExitCode, Complaint> {
    let file = data::image_rules(arguments.image_rules.as_deref());
    let rules = Rules::read(&file)
        .map_err(|error| Complaint::of(&error).help("correct the file, or move it away"))?;
    let environments = Environments::new(data::environments(), rules);
    match &arguments.what {
        None | Some(EnvCommand::List) => list(&environments, output),
        Some(EnvCommand::Make { image }) => make(&environments, image, output).await,
        Some(EnvCommand::Prune { names, all }) => prune(&environments, names, *all, output),
    }
}

fn all(environments: &Environments) -> Result<Vec<Entry>, Complaint> {
    environments.list().map_err(|error| {
        Complaint::new("the environments cannot be listed")
            .at(data::environments().display().to_string())
            .because(&error)
    })
}

fn list(environments: &Environments, output: Output) -> Result<ExitCode, Complaint> {
    let found = all(environments)?;
    match output {
        Output::Json => output::print_json(&found)?,
        Output::Text => output::print(&in_words(&found))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn in_words(found: &[Entry]) -> String {
    if found.is_empty() {
        return format!("no environments in {}\n", data::environments().display());
    }
    let widest = found.iter().map(|it| it.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for it in found {
        let what = if it.is_whole {
            format!("Python {}, {}", it.python, it.requirements.join(" "))
        } else {
            "not finished: `sundown env prune` removes it".to_owned()
        };
        let _ = writeln!(text, "{:widest$}  {what}", it.name);
    }
    text
}

async fn make(
    environments: &Environments,
    image: &str,
    output: Output,
) -> Result<ExitCode, Complaint> {
    let mut tell = |progress: Progress| {
        let told = match output {
            Output::Text => writeln!(std::io::stderr(), "{}", progress.step),
            Output::Json => {
                output::print_json(&json!({ "event": "progress", "step": progress.step }))
            }
        };
        // Whoever does not read it any more still wants the environment.
        drop(told);
    };
    let made = environments.make(image, &mut tell).await;
    let made = made.map_err(|error| {
        Complaint::of(&error).at(image.to_owned()).help(
            "packages come from where pip or uv get them: their settings and the network decide",
        )
    })?;
    match output {
        Output::Json => {
            output::print_json(&json!({ "event": "ready", "image": image, "binds": made.binds }))?;
        }
        Output::Text => output::print(&format!("{image} is ready\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn prune(
    environments: &Environments,
    names: &[String],
    is_all: bool,
    output: Output,
) -> Result<ExitCode, Complaint> {
    let found = all(environments)?;
    let victims = victims(&found, names, is_all)?;
    for name in &victims {
        environments.remove(name).map_err(|error| {
            Complaint::new("an environment cannot be removed")
                .at(name.clone())
                .because(&error)
        })?;
    }
    match output {
        Output::Json => output::print_json(&json!({ "removed": victims }))?,
        Output::Text if victims.is_empty() => output::print("nothing to remove\n")?,
        Output::Text => output::print(&format!("removed {}\n", victims.join(", ")))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Which environments go: all, the named ones, or those that were never finished.
fn victims(found: &[Entry], names: &[String], is_all: bool) -> Result<Vec<String>, Complaint> {
    let missing = names
        .iter()
        .find(|name| found.iter().all(|it| it.name != **name));
    if let Some(name) = missing {
        return Err(
            Complaint::usage(format!("there is no environment {name:?}"))
                .help("their names: sundown env list"),
        );
    }
    let is_victim =
        |it: &&Entry| is_all || names.contains(&it.name) || (names.is_empty() && !it.is_whole);
    Ok(found
        .iter()
        .filter(is_victim)
        .map(|it| it.name.clone())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prunes_what_was_never_finished_unless_told_otherwise() {
        let entry = |name: &str, is_whole| Entry {
            name: name.to_owned(),
            path: name.into(),
            requirements: Vec::new(),
            python: String::new(),
            is_whole,
        };
        let found = [entry("broken", false), entry("ray", true)];
        let chosen = |names: &[&str], is_all| {
            let names: Vec<String> = names.iter().map(|&it| it.to_owned()).collect();
            victims(&found, &names, is_all).ok()
        };
        assert_eq!(chosen(&[], false).unwrap(), ["broken"]);
        assert_eq!(chosen(&["ray"], false).unwrap(), ["ray"]);
        assert_eq!(chosen(&[], true).unwrap(), ["broken", "ray"]);
        assert!(chosen(&["/"], false).is_none());
    }
}
