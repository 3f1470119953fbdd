//! The examples of the repository, run as a user would run them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::home::Home;
use crate::workspace;

/// An example, how it ends and what it says.
struct Example {
    file: &'static str,
    code: i32,
    says: &'static [&'static str],
}

const EXAMPLES: &[Example] = &[
    Example {
        file: "hello.yaml",
        code: 0,
        says: &["squares [1, 4] on 2 nodes"],
    },
    Example {
        file: "submitter.yaml",
        code: 0,
        says: &["nodes 2"],
    },
    Example {
        file: "failing.yaml",
        code: 1,
        says: &["about to fail", "exit code 3"],
    },
    Example {
        file: "variables.yaml",
        code: 0,
        says: &["variable good evening"],
    },
    Example {
        file: "working-dir.yaml",
        code: 0,
        says: &["working directory 42"],
    },
    Example {
        file: "packages.yaml",
        code: 0,
        says: &["cowsay 6.1"],
    },
    Example {
        file: "script.yaml",
        code: 0,
        says: &["counted 10"],
    },
    Example {
        file: "stages.yaml",
        code: 0,
        says: &["first workers, then the cluster, then me"],
    },
    Example {
        file: "resources.yaml",
        code: 0,
        // 30 % of 1Gi. What Ray chooses for the worker depends on the machine.
        says: &[
            "head has 1 CPU and an object store of 307 MiB",
            "worker has 1 CPU and an object store of",
        ],
    },
    Example {
        file: "batch.yaml",
        code: 0,
        says: &["this is batch-"],
    },
];

/// Where an example is.
pub(super) fn path(file: &str) -> PathBuf {
    workspace::root().join("examples").join(file)
}

/// Runs one example and looks that nothing stays.
pub(super) fn one(home: &mut Home, file: &str) -> Result<()> {
    let example = EXAMPLES.iter().find(|it| it.file == file);
    let example = example.with_context(|| format!("{file} is no example"))?;
    let going = home.run(&path(example.file))?;
    home.wait(going)?.expect(example.code, example.says)?;
    home.ensure_no_objects()
}

/// Runs every example, one after the other.
pub(super) fn all(home: &mut Home) -> Result<()> {
    for example in EXAMPLES {
        one(home, example.file)?;
    }
    Ok(())
}

/// Two jobs, both on the default ports.
pub(super) fn two_at_once(home: &mut Home) -> Result<()> {
    let first = home.run(&path("submitter.yaml"))?;
    let second = home.run(&path("variables.yaml"))?;
    home.wait(first)?.expect(0, &["nodes 2"])?;
    home.wait(second)?.expect(0, &["variable good evening"])?;
    home.ensure_no_objects()
}

/// Four clusters of head and worker; each runs a task on both of its nodes.
pub(super) fn four_clusters(home: &mut Home) -> Result<()> {
    let mut going = Vec::new();
    for number in 1..=4 {
        let file = renamed("hello.yaml", &format!("hello-{number}"), home.files())?;
        going.push(home.run(&file)?);
    }
    for it in going {
        home.wait(it)?.expect(0, &["squares [1, 4] on 2 nodes"])?;
    }
    home.ensure_no_objects()
}

/// An example under another name.
fn renamed(file: &str, name: &str, into: &Path) -> Result<PathBuf> {
    let text = fs::read_to_string(path(file)).with_context(|| format!("read {file}"))?;
    let (plain, _) = file.split_once('.').unwrap_or((file, ""));
    // Also what begins with it: two jobs must not share what one of them cleans up.
    let text = text.replace(&format!("name: {plain}"), &format!("name: {name}"));
    let path = into.join(format!("{name}.yaml"));
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_example_is_run() {
        let files = fs::read_dir(path("")).unwrap();
        let files: BTreeSet<String> = files
            .map(|it| it.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        let known = EXAMPLES.iter().map(|it| it.file.to_owned()).collect();
        assert_eq!(files, known);
    }
}
