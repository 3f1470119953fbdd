//! What a `RayJob` promises on real Ray while no control plane looks, or while the user interferes. The jobs
//! themselves note what becomes of them, in a directory that they share with us.

mod attempts;
mod away;
mod interactive;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::home::{Home, until};

const STATE: &str = "{.status.jobDeploymentStatus} {.status.jobStatus} {.status.reason}";

/// All of them, one after the other.
pub(super) fn all(binary: &Path) -> Result<()> {
    let mut home = Home::new(binary)?;
    home.while_up(|home| {
        away::all(home)?;
        attempts::all(home)?;
        interactive::all(home)
    })?;
    home.finish()
}

/// The directory that jobs share with us.
struct Counts {
    directory: PathBuf,
}

impl Counts {
    /// A new one with a script in it.
    fn with(home: &Home, name: &str, scripts: &[(&str, &str)]) -> Result<Self> {
        let directory = home.files().join(name);
        fs::create_dir(&directory).context("make a directory for counts")?;
        for (name, text) in scripts {
            fs::write(directory.join(name), text).with_context(|| format!("write {name}"))?;
        }
        Ok(Self { directory })
    }

    /// A manifest that mounts the directory.
    fn manifest(&self, text: &str) -> String {
        text.replace("COUNTS", &self.directory.display().to_string())
    }

    fn say_enough(&self) -> Result<()> {
        fs::write(self.directory.join("enough"), "").context("say that it is enough")
    }

    /// What a file holds; nothing if it is not there.
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.directory.join(name)).unwrap_or_default()
    }

    /// Waits until a file holds something, and says what.
    fn await_word(&self, name: &str) -> Result<String> {
        until(&format!("a job writes {name}"), || {
            Ok(!self.read(name).is_empty())
        })?;
        Ok(self.read(name))
    }
}
