//! `sundown env`: the environments that stand for images.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;
use sundown_node::environment::{
    Entry, Environments, MakeError, Progress, Removal, Rules, size_in_words,
};

use crate::arguments::{Env, EnvCommand, Output};
use crate::complaint::Complaint;
use crate::{data, output};

/// Lists, makes or prunes.
pub(crate) async fn run(arguments: &Env, output: Output) -> Result<ExitCode, Complaint> {
    let file = data::image_rules(arguments.image_rules.as_deref())?;
    let rules = Rules::read(&file)
        .map_err(|error| Complaint::of(&error).help("correct the file, or move it away"))?;
    // Tools start elsewhere, and are told where to put it.
    let directory = std::path::absolute(data::environments()?)?;
    let data = data::directory(None)?;
    let hidden = data::hidden(&data, &directory);
    let environments = Environments::new(directory, rules)
        .limited(data::environment_limits()?)
        .hiding(hidden);
    match &arguments.what {
        None | Some(EnvCommand::List) => list(&environments, output),
        Some(EnvCommand::Make { image }) => make(&environments, image, output).await,
        Some(EnvCommand::Prune { names, all }) => prune(&environments, names, *all, output),
    }
}

fn all(environments: &Environments) -> Result<Vec<Entry>, Complaint> {
    let place = data::environments()?.display().to_string();
    environments.list().map_err(|error| {
        Complaint::new("the environments cannot be listed")
            .at(place)
            .because(&error)
    })
}

fn list(environments: &Environments, output: Output) -> Result<ExitCode, Complaint> {
    let found = all(environments)?;
    match output {
        Output::Json => output::print_json(&found)?,
        Output::Text => output::print(&in_words(&found, &data::environments()?))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn in_words(found: &[Entry], place: &Path) -> String {
    if found.is_empty() {
        return format!("no environments in {}\n", place.display());
    }
    let widest = found.iter().map(|it| it.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for it in found {
        let _ = writeln!(text, "{:widest$}  {}", it.name, about(it));
    }
    text
}

fn about(it: &Entry) -> String {
    if it.is_being_made {
        return "is being made".to_owned();
    }
    if !it.is_ours {
        return "not made by Sundown: left alone".to_owned();
    }
    if !it.is_whole {
        return "not finished: `sundown env prune` removes it".to_owned();
    }
    let mut text = format!("Python {}, {}", it.python, it.requirements.join(" "));
    if let Some(bytes) = it.bytes {
        let _ = write!(text, ", {}", size_in_words(bytes));
    }
    if it.is_of_another_index() {
        let _ = write!(text, ", from {}", it.sources.join(", "));
    }
    if !it.is_current {
        let _ = write!(
            text,
            "; no new pod gets it: `sundown env prune {}` removes it",
            it.name
        );
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
            Output::Text => output::tell(&progress.step),
            Output::Json => {
                output::print_json(&json!({ "event": "progress", "step": progress.step }))
            }
        };
        // Whoever does not read it any more still wants the environment.
        drop(told);
    };
    let made = environments.make(image, &mut tell).await;
    let made = made.map_err(|error| {
        let complaint = Complaint::of(&error).at(image.to_owned());
        match error {
            MakeError::Failed { .. } => complaint.help(
                "packages come from where pip or uv get them: their settings and the network decide",
            ),
            MakeError::NoPython { .. }
            | MakeError::NoWheel { .. }
            | MakeError::Full(_)
            | MakeError::Foreign { .. }
            | MakeError::Io { .. }
            | MakeError::Unavailable(_) => complaint,
        }
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
            Removal::Foreign => pruned.foreign.push(name),
        }
    }
    if names.is_empty() {
        let foreign = found.iter().filter(|it| !it.is_ours);
        pruned.foreign.extend(foreign.map(|it| it.name.clone()));
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
    /// Not made by Sundown.
    foreign: Vec<String>,
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
        for name in &self.foreign {
            let _ = writeln!(text, "left {name} alone: it was not made by Sundown");
        }
        text
    }
}

/// Which environments go: all, the named ones, or those that were never finished; what is not ours is
/// named to be told so.
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
    let is_named = |it: &Entry| names.contains(&it.name);
    let is_victim =
        |it: &&Entry| is_named(it) || (it.is_ours && names.is_empty() && (is_all || !it.is_whole));
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
            sources: Vec::new(),
            bytes: None,
            is_ours: name != "thesis",
            is_whole,
            is_current: true,
            is_being_made: false,
        };
        let found = [
            entry("broken", false),
            entry("ray", true),
            entry("thesis", false),
        ];
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
                foreign: Vec::new(),
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
        let foreign = Pruned {
            foreign: names(&["thesis"]),
            ..Pruned::default()
        };
        assert_eq!(
            foreign.in_words(),
            "nothing to remove\nleft thesis alone: it was not made by Sundown\n"
        );
    }
}
