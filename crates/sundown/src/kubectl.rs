//! The commands that users are told to run: each names the API server or the data directory that it is meant for.
//! Pasted without that, a command goes to whatever cluster the user's own kubeconfig points at, or to the control plane
//! of another data directory. Pure.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::data;

/// Makes the commands for one API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kubectl {
    /// None: the one that kubectl uses by itself.
    kubeconfig: Option<PathBuf>,
}

impl Kubectl {
    /// For the control plane of a data directory.
    pub(crate) fn of_data(directory: &Path) -> Self {
        Self::with(Some(&data::kubeconfig(directory)))
    }

    /// For the API server of a kubeconfig; without one for that of the user's settings.
    pub(crate) fn with(kubeconfig: Option<&Path>) -> Self {
        Self {
            kubeconfig: kubeconfig.map(Path::to_owned),
        }
    }

    /// A command of kubectl; without a namespace for objects of the whole server.
    pub(crate) fn command(&self, verb: &str, namespace: Option<&str>, rest: &[&str]) -> String {
        let mut words = vec!["kubectl".to_owned()];
        words.extend(self.place());
        words.push(verb.to_owned());
        words.extend(place_in(namespace));
        words.extend(rest.iter().map(|it| quoted(it).into_owned()));
        words.join(" ")
    }

    /// The command that explains an object.
    pub(crate) fn explain(&self, object: &str, namespace: &str) -> String {
        let mut words = vec!["sundown explain".to_owned(), quoted(object).into_owned()];
        words.extend(self.place());
        words.extend(place_in(Some(namespace)));
        words.join(" ")
    }

    fn place(&self) -> Option<String> {
        let path = self.kubeconfig.as_ref()?.display().to_string();
        Some(format!("--kubeconfig {}", quoted(&path)))
    }
}

/// Makes the commands of `sundown` itself for one data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sundown {
    /// None: the one that every command of this user takes.
    data_dir: Option<PathBuf>,
}

impl Sundown {
    /// `told`: what `--data-dir` says. A directory that a variable names is found by the command that is pasted, too.
    pub(crate) fn of(told: Option<&Path>) -> Self {
        let absolute = |it: &Path| std::path::absolute(it).unwrap_or_else(|_| it.to_owned());
        Self {
            data_dir: told.map(absolute),
        }
    }

    /// A command, by its words.
    pub(crate) fn command(&self, words: &str) -> String {
        let place = self.data_dir.iter();
        let place = place.map(|it| format!(" --data-dir {}", quoted(&it.display().to_string())));
        format!("sundown {words}{}", place.collect::<String>())
    }
}

fn place_in(namespace: Option<&str>) -> Option<String> {
    namespace.map(|it| format!("-n {}", quoted(it)))
}

/// A word as a shell reads it: names of roles may hold anything, and so may paths.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:=,@%+".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_its_kubeconfig_and_its_namespace() {
        let kubectl = Kubectl::of_data(Path::new("/d"));
        assert_eq!(
            kubectl.command("delete", Some("team"), &["rayjob/train"]),
            "kubectl --kubeconfig /d/kubeconfig delete -n team rayjob/train"
        );
        assert_eq!(
            kubectl.command("api-resources", None, &[]),
            "kubectl --kubeconfig /d/kubeconfig api-resources"
        );
        assert_eq!(
            kubectl.explain("rayjob/train", "team"),
            "sundown explain rayjob/train --kubeconfig /d/kubeconfig -n team"
        );
        let of_the_user = Kubectl::with(None).command("get", Some("team"), &["pods"]);
        assert_eq!(of_the_user, "kubectl get -n team pods");
    }

    /// Pasted, `sundown down --delete` deleted the clusters and jobs of the default data directory.
    #[test]
    fn a_command_names_the_data_directory_that_was_told() {
        let told = |place| Sundown::of(place).command("down --delete");
        assert_eq!(told(None), "sundown down --delete");
        let place = Path::new("/tmp/x y");
        assert_eq!(
            told(Some(place)),
            "sundown down --delete --data-dir '/tmp/x y'"
        );
        let relative = told(Some(Path::new("x")));
        assert!(relative.contains(" --data-dir /"), "{relative}");
    }

    #[test]
    fn what_a_shell_would_take_apart_is_quoted() {
        let kubectl = Kubectl::of_data(Path::new("/my data"));
        assert_eq!(
            kubectl.command("delete", None, &["clusterrole/a;b$(c)", "x'y", ""]),
            r"kubectl --kubeconfig '/my data/kubeconfig' delete 'clusterrole/a;b$(c)' 'x'\''y' ''"
        );
    }
}
