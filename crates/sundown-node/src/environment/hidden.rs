//! What pods must not see of the host, though an interpreter's library may lie around it: a Python that
//! was built with the home directory as its prefix would show all of it to every pod.

use std::path::{Path, PathBuf};

/// Directories that no pod may see, each with what it is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hidden(Vec<(&'static str, PathBuf)>);

impl Hidden {
    /// Of these; links in them are followed.
    pub fn new(directories: impl IntoIterator<Item = (&'static str, PathBuf)>) -> Self {
        let all = directories.into_iter();
        Self(all.map(|(what, path)| (what, real(&path))).collect())
    }

    /// What pods would see if they saw this directory; in words.
    pub(super) fn revealed_by(&self, directory: &Path) -> Option<String> {
        let directory = real(directory);
        let (what, path) = first_below(&directory, &self.0)?;
        let path = path.display();
        Some(format!("{} holds {what} {path}", directory.display()))
    }
}

/// The first of them that is this directory or lies in it.
fn first_below<'a>(
    directory: &Path,
    hidden: &'a [(&'static str, PathBuf)],
) -> Option<&'a (&'static str, PathBuf)> {
    hidden.iter().find(|(_, path)| path.starts_with(directory))
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use anyhow::Result;

    use super::*;

    #[test]
    fn a_prefix_may_lie_in_the_home_directory_but_not_around_what_is_hidden() {
        let hidden = [
            ("the home directory", PathBuf::from("/home/me")),
            ("the data directory", "/home/me/.local/state/sundown".into()),
            (
                "the cache of environments",
                "/home/me/.cache/sundown/environments".into(),
            ),
            ("the configuration", "/home/me/.config/sundown".into()),
        ];
        for (prefix, expect) in [
            ("/", Some("the home directory")),
            ("/home", Some("the home directory")),
            ("/home/me", Some("the home directory")),
            ("/home/me/.local", Some("the data directory")),
            ("/home/me/.local/state/sundown", Some("the data directory")),
            ("/home/me/.cache/sundown", Some("the cache of environments")),
            ("/home/me/.config", Some("the configuration")),
            ("/home/me/.pyenv/versions/3.11.7", None),
            ("/home/me/.local/share/uv/python/cpython-3.11.9-linux", None),
            ("/home/me/.cache/sundown/environments/ray-2.52.0-py3", None),
            ("/home/me/miniconda3", None),
            ("/home/mercury", None),
            ("/opt/python", None),
        ] {
            let told = first_below(Path::new(prefix), &hidden).map(|(what, _)| *what);
            assert_eq!(told, expect, "{prefix}");
        }
    }

    #[test]
    fn a_link_around_the_home_directory_is_seen_through() -> Result<()> {
        let world = tempfile::tempdir()?;
        let home = world.path().join("real/home");
        std::fs::create_dir_all(&home)?;
        std::os::unix::fs::symlink(world.path().join("real"), world.path().join("link"))?;
        let hidden = Hidden::new([("the home directory", home)]);
        let told = hidden.revealed_by(&world.path().join("link"));
        assert!(told.is_some_and(|it| it.contains("holds the home directory")));
        assert_eq!(
            hidden.revealed_by(&world.path().join("real/home/python")),
            None
        );
        Ok(())
    }
}
