//! The kubeconfig of a running server: written when it starts, removed when it ends. A file that is
//! not ours is never touched.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use sundown_server::write_private;

/// Every kubeconfig of ours begins like this; one that other tools have added to does not stay so.
const BEGINNING: &str = "apiVersion: v1\nkind: Config\ncurrent-context: sundown\n";

/// Whether a file is a kubeconfig of Sundown, as a control plane that was killed leaves it.
pub fn is_own_kubeconfig(path: &Path) -> bool {
    let is_file = path.symlink_metadata().is_ok_and(|it| it.is_file());
    is_file && std::fs::read_to_string(path).is_ok_and(|text| text.starts_with(BEGINNING))
}

/// Why the kubeconfig was not written.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// The file there is of somebody else.
    #[error("{} is there already and not a kubeconfig of sundown", path.display())]
    Foreign { path: PathBuf },
    /// The file or its directory cannot be made.
    #[error("write the kubeconfig {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// A kubeconfig on disk; removed when dropped, unless it is to be kept.
pub(crate) struct KubeconfigFile {
    pub(crate) path: PathBuf,
    pub(crate) is_kept: bool,
    content: String,
}

impl KubeconfigFile {
    pub(crate) fn write(path: &Path, content: String) -> Result<Self, KubeconfigError> {
        let failed = |source| KubeconfigError::Write {
            path: path.to_owned(),
            source,
        };
        match std::fs::read_to_string(path) {
            Ok(present) if !present.is_empty() && !present.starts_with(BEGINNING) => {
                return Err(KubeconfigError::Foreign {
                    path: path.to_owned(),
                });
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        if let Some(directory) = path.parent() {
            let mut private = std::fs::DirBuilder::new();
            private.recursive(true).mode(0o700);
            private.create(directory).map_err(failed)?;
        }
        write_private(path, &content).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            is_kept: false,
            content,
        })
    }
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // Another server may have taken the place since; its file stays.
        let is_ours = std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.content);
        if is_ours && let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "remove the kubeconfig");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BEGINNING, KubeconfigError, KubeconfigFile};

    #[test]
    fn never_touches_a_file_of_somebody_else() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("config");
        std::fs::write(
            &path,
            "apiVersion: v1\nkind: Config\ncurrent-context: work\n",
        )?;
        let written = KubeconfigFile::write(&path, BEGINNING.to_owned());
        assert!(matches!(written, Err(KubeconfigError::Foreign { .. })));
        assert!(std::fs::read_to_string(&path)?.contains("work"));
        Ok(())
    }

    #[test]
    fn stays_if_it_is_to_be_kept() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("config");
        let content = format!("{BEGINNING}    server: https://127.0.0.1:4711\n");
        let mut file = KubeconfigFile::write(&path, content)?;
        file.is_kept = true;
        drop(file);
        assert!(super::is_own_kubeconfig(&path));
        Ok(())
    }

    #[test]
    fn goes_with_its_server_unless_another_took_its_place() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("new/config");
        let first = KubeconfigFile::write(&path, format!("{BEGINNING}first"))?;
        let second = KubeconfigFile::write(&path, format!("{BEGINNING}second"))?;
        drop(first);
        assert!(std::fs::read_to_string(&path)?.ends_with("second"));
        drop(second);
        assert!(!path.exists());
        Ok(())
    }
}
