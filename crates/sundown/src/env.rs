//! `sundown env`: the environments that stand for images.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;
use sundown_node::environment::{Entry, Environments, Progress, Removal, Rules};

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
        } else if it.is_being_made {
            "is being made".to_owned()
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
    let mut pruned = Pruned::default();
    for name in victims(&found, names, is_all)? {
        let removal = environments.remove(&name).map_err(|error| {
            Complaint::new("an environment cannot be removed")
                .at(name.clone())
                .because(&error)
        })?;
        match removal {
            Removal::Removed | Removal::NotThere => pruned.removed.push(name),
            Removal::BeingMade => pruned.being_made.push(name),
        }
    }
    match output {
        Output::Json => output::print_json(&pruned)?,
        Output::Text => output::print(&pruned.in_words())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What was pruned.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pruned {
    removed: Vec<String>,
    being_made: Vec<String>,
}

impl Pruned {
    fn in_words(&self) -> String {
        let mut text = match &self.removed[..] {
            [] if self.being_made.is_empty() => "nothing to remove\n".to_owned(),
            [] => String::new(),
            removed => format!("removed {}\n", removed.join(", ")),
        };
        for name in &self.being_made {
            let _ = writeln!(text, "kept {name}: it is being made");
        }
        text
    }
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
            is_being_made: false,
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

    #[test]
    fn what_is_being_made_is_kept_and_said() {
        let names = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect();
        let told = |removed, being_made| {
            let pruned = Pruned {
                removed: names(removed),
                being_made: names(being_made),
            };
            pruned.in_words()
        };
        assert_eq!(told(&[], &[]), "nothing to remove\n");
        assert_eq!(told(&["a", "b"], &[]), "removed a, b\n");
        assert_eq!(told(&[], &["c"]), "kept c: it is being made\n");
        assert_eq!(
            told(&["a"], &["c"]),
            "removed a\nkept c: it is being made\n"
        );
    }
}
