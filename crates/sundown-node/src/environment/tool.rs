//! Tools of the host: Python, pip and uv as they are found and started. They start in `/` and with the
//! user's own settings alone, because the working directory may be a checkout of other people: a
//! `json.py`, a `uv.toml` or a `.python-version` in it must neither run nor decide anything here.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// Python's own word for: neither its variables, nor the working directory, nor the packages in the
/// user's home.
pub(super) const ISOLATED: &str = "-I";

/// Of a project that the user works in, and none of our business.
const OF_PROJECT: [&str; 11] = [
    "PWD",
    "OLDPWD",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYENV_DIR",
    "UV_PROJECT",
    "UV_PROJECT_ENVIRONMENT",
    "UV_WORKING_DIR",
    "UV_WORKING_DIRECTORY",
    "UV_ENV_FILE",
    "UV_PYTHON",
];

/// Would install something else than was asked for, or to another place, or from source.
const OF_OTHER_INSTALLS: [&str; 14] = [
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_PYTHON",
    "PIP_REQUIREMENT",
    "PIP_EDITABLE",
    "PIP_NO_BINARY",
    "PIP_ONLY_BINARY",
    "PIP_DRY_RUN",
    "UV_SYSTEM_PYTHON",
    "UV_BREAK_SYSTEM_PACKAGES",
    "UV_NO_BINARY",
    "UV_NO_BINARY_PACKAGE",
];

/// How variables end that name a file or a directory.
const ENDS_OF_PATHS: [&str; 9] = [
    "_DIR",
    "_FILE",
    "_HOME",
    "_ROOT",
    "_CERT",
    "_LOG",
    "_SRC",
    "_CONSTRAINT",
    "_FIND_LINKS",
];

/// The variables of this process that tools get.
pub(super) fn variables_of_host() -> Vec<(OsString, OsString)> {
    variables(std::env::vars_os())
}

/// Where a tool is, by the PATH of this process.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = directories(&path).into_iter();
    places
        .find(|it| it.join(name).is_file())
        .map(|it| it.join(name))
}

/// The directories of a PATH. An entry that is empty or relative means the working directory, so it
/// does not count.
pub(super) fn directories(path: &OsStr) -> Vec<PathBuf> {
    let all = std::env::split_paths(path);
    all.filter(|it| it.is_absolute()).collect()
}

/// How long a tool may take to say what it is. A loaded machine needs seconds for it; what takes longer would
/// hold up the pods that wait for it.
pub(super) const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// A tool did not end within its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Silent;

/// What a tool prints; None: it cannot be started, or fails. One that does not end is killed.
pub(super) async fn answer(
    command: &mut Command,
    time_max: Duration,
) -> Result<Option<Vec<u8>>, Silent> {
    let output = timeout(time_max, command.output()).await;
    let output = output.map_err(|_| Silent)?.ok();
    let output = output.filter(|it| it.status.success());
    Ok(output.map(|it| it.stdout))
}

/// A call of a tool that knows nothing of the working directory.
pub(super) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir("/")
        .env_clear()
        .envs(variables_of_host())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// What tools get of these variables.
fn variables(host: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let host = host.into_iter();
    let kept = host.filter_map(|(name, value)| {
        let value = value_for_tools(&name, value)?;
        Some((name, value))
    });
    kept.collect()
}

fn value_for_tools(name: &OsStr, value: OsString) -> Option<OsString> {
    // A name that is no text is of none of these.
    let Some(text) = name.to_str() else {
        return Some(value);
    };
    if text == "PATH" {
        return std::env::join_paths(directories(&value)).ok();
    }
    let is_dropped = text.starts_with("PYTHON")
        || OF_PROJECT.contains(&text)
        || OF_OTHER_INSTALLS.contains(&text)
        || (names_a_path(text) && !is_absolute(&value));
    (!is_dropped).then_some(value)
}

/// Whether a variable of pip, uv and what they build on names files.
fn names_a_path(name: &str) -> bool {
    if ["HOME", "TMPDIR", "TEMP", "TMP", "NETRC"].contains(&name) {
        return true;
    }
    let families = ["PIP_", "UV_", "XDG_", "PYENV_", "SSL_"];
    families.iter().any(|start| name.starts_with(start))
        && ENDS_OF_PATHS.iter().any(|end| name.ends_with(end))
}

/// Absolute as a whole: also all entries of a list, and what is an address anyway.
fn is_absolute(value: &OsStr) -> bool {
    let mut words = value
        .as_bytes()
        .split(|byte| byte.is_ascii_whitespace() || *byte == b',')
        .filter(|word| !word.is_empty());
    words.all(|word| word.starts_with(b"/") || word.windows(3).any(|it| it == b"://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(variables_of_host: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(name, value): &(&str, &str)| ((*name).into(), (*value).into());
        let text = |it: OsString| it.to_string_lossy().into_owned();
        let kept = variables(variables_of_host.iter().map(own)).into_iter();
        kept.map(|(name, value)| (text(name), text(value)))
            .collect()
    }

    #[test]
    fn entries_of_path_that_mean_the_working_directory_do_not_count() {
        for (path, expect) in [
            ("/usr/bin:/bin", &["/usr/bin", "/bin"][..]),
            (":/bin", &["/bin"]),
            ("/bin:", &["/bin"]),
            (".:/bin:bin:../x:./y", &["/bin"]),
            ("", &[]),
        ] {
            let expect: Vec<PathBuf> = expect.iter().map(PathBuf::from).collect();
            assert_eq!(directories(OsStr::new(path)), expect, "{path:?}");
        }
    }

    #[test]
    fn tools_get_the_users_settings_and_none_of_a_project() {
        let kept = [
            ("HOME", "/home/me"),
            ("LANG", "C"),
            ("PIP_INDEX_URL", "https://index.example/simple"),
            ("PIP_FIND_LINKS", "/opt/wheels https://index.example/files"),
            ("PIP_CONFIG_FILE", "/home/me/pip.conf"),
            ("UV_DEFAULT_INDEX", "https://index.example/simple"),
            ("UV_INDEX_ACME_PASSWORD", "word"),
            ("UV_CACHE_DIR", "/var/cache/uv"),
            ("PYENV_ROOT", "/home/me/.pyenv"),
            ("SSL_CERT_FILE", "/etc/ssl/cert.pem"),
        ];
        let dropped = [
            ("PYTHONPATH", "/home/me/checkout"),
            ("PYTHONSTARTUP", "/home/me/checkout/x.py"),
            ("PYTHONHOME", "/x"),
            ("PWD", "/home/me/checkout"),
            ("VIRTUAL_ENV", "/home/me/checkout/.venv"),
            ("UV_PROJECT", "/home/me/checkout"),
            ("UV_WORKING_DIR", "/home/me/checkout"),
            ("UV_PYTHON", "./python"),
            ("UV_CONFIG_FILE", "uv.toml"),
            ("UV_FIND_LINKS", "/opt/wheels,wheels"),
            ("UV_CACHE_DIR", ".cache"),
            ("PIP_CONFIG_FILE", "./pip.conf"),
            ("PIP_FIND_LINKS", "wheels"),
            ("PIP_CACHE_DIR", ".cache"),
            ("PIP_EDITABLE", "/home/me/checkout"),
            ("PIP_TARGET", "/home/me/checkout"),
            ("PYENV_DIR", "/home/me/checkout"),
            ("XDG_CONFIG_HOME", "config"),
            ("TMPDIR", "tmp"),
        ];
        let all: Vec<(&str, &str)> = kept.iter().chain(&dropped).copied().collect();
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let expect: Vec<(String, String)> = kept.iter().map(own).collect();
        assert_eq!(left(&all), expect);
        assert_eq!(
            left(&[("PATH", ".:/usr/bin::bin:/bin")]),
            [("PATH".to_owned(), "/usr/bin:/bin".to_owned())]
        );
    }
}
