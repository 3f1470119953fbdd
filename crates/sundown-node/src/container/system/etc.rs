//! What containers see of the machine's `/etc`: a copy of what programs need, by a list, and of that only
//! what every user of the machine may read. Keys, accounts' passwords and the settings of the machine's own
//! services are not among it, also where root looks.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use crate::mounts::PAGE_BYTES;

/// Files and directories, whole; a star at the end stands for any rest of a name. Whatever is missing here
/// is found by a program that asks for it: add it unless it can hold a secret.
const LISTED: &[&str] = &[
    // Accounts, names and numbers.
    "passwd",
    "group",
    "nsswitch.conf",
    "host.conf",
    "gai.conf",
    "services",
    "protocols",
    "networks",
    "ethertypes",
    "rpc",
    "netconfig",
    "krb5.conf",
    "krb5.conf.d",
    // Certificates and the settings of libraries that use them; never private keys.
    "ssl/certs",
    "ssl/cert.pem",
    "ssl/openssl.cnf",
    "ca-certificates",
    "ca-certificates.conf",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "pki/tls/openssl.cnf",
    "pki/ca-trust",
    "pki/java",
    "crypto-policies",
    "gnutls",
    // Libraries and programs that have several providers.
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld-musl-*",
    "alternatives",
    "libnl-3",
    "libibverbs.d",
    "OpenCL",
    "vulkan",
    "glvnd",
    "odbcinst.ini",
    "openmpi",
    "openmpi-*",
    // Time and language.
    "localtime",
    "timezone",
    "default/locale",
    "locale.alias",
    "locale.conf",
    "locale.gen",
    // What the system is.
    "os-release",
    "lsb-release",
    "debian_version",
    "alpine-release",
    "arch-release",
    "centos-release",
    "fedora-release",
    "redhat-release",
    "system-release",
    // Shells and terminals.
    "profile",
    "profile.d",
    "bash.bashrc",
    "bashrc",
    "inputrc",
    "environment",
    "shells",
    "terminfo",
    "DIR_COLORS",
    // Becoming another user, which root may.
    "login.defs",
    "pam.conf",
    "pam.d",
    "security",
    // Languages and formats.
    "python*",
    "java*",
    "R",
    "perl",
    "pip.conf",
    "xdg/pip",
    "matplotlibrc",
    "mime.types",
    "mailcap",
    "magic",
    "magic.mime",
    "fonts",
    "ImageMagick-*",
    "papersize",
    "mtab",
];

/// Bounds for a machine whose directories are not what they usually are.
const FILE_BYTES_MAX: u64 = 8 << 20;
const BYTES_MAX: u64 = 32 << 20;
/// Larger files are bundles and tables, not settings that somebody wrote.
const SETTINGS_BYTES_MAX: u64 = 64 << 10;
pub(super) const ENTRY_COUNT_MAX: usize = 20_000;
const DEPTH_MAX: usize = 12;

/// How much of a path below `/etc` is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    All,
    /// Something below it is listed.
    Part,
    Nothing,
}

/// Whether a path below `/etc` is on the list, or lies below what is.
pub(super) fn lists(relative: &Path) -> bool {
    share(relative) == Share::All
}

fn share(relative: &Path) -> Share {
    let names: Vec<_> = relative.iter().map(|it| it.to_string_lossy()).collect();
    let mut found = Share::Nothing;
    for listed in LISTED {
        let mut wanted = listed.split('/');
        let is_same = names
            .iter()
            .all(|name| wanted.next().is_none_or(|one| matches(one, name)));
        match wanted.next() {
            None if is_same => return Share::All,
            Some(_) if is_same => found = Share::Part,
            None | Some(_) => {}
        }
    }
    found
}

fn matches(listed: &str, name: &str) -> bool {
    match listed.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => listed == name,
    }
}

/// Whether settings name a user in an address, as for a proxy or an index of packages behind a login.
fn has_login(text: &[u8]) -> bool {
    // Few files get further.
    if !text.contains(&b'@') {
        return false;
    }
    let text = String::from_utf8_lossy(text);
    let addresses = text.split("://").skip(1);
    let mut hosts =
        addresses.filter_map(|it| it.split(|c: char| c == '/' || c.is_whitespace()).next());
    hosts.any(|host| host.contains('@'))
}

/// What was copied so far.
#[derive(Debug, Default)]
struct Copied {
    bytes: u64,
    entry_count: usize,
}

/// Copies what is listed. What cannot be read is left out, and what is too much or holds a login is told.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut copied = Copied::default();
    copied.directory(from, to, Path::new(""), Share::Part)
}

impl Copied {
    fn directory(&mut self, from: &Path, to: &Path, below: &Path, of: Share) -> io::Result<()> {
        let Ok(entries) = fs::read_dir(from.join(below)) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            let relative = below.join(entry.file_name());
            // Most entries lie below something that is shown whole.
            let share = match of {
                Share::All => Share::All,
                Share::Part | Share::Nothing => share(&relative),
            };
            if share == Share::Nothing {
                continue;
            }
            self.entry_count += 1;
            let is_deep = relative.components().count() > DEPTH_MAX;
            if self.entry_count > ENTRY_COUNT_MAX || is_deep {
                let rest = from.join(&relative);
                eprintln!("node: {}: too many files, left out", rest.display());
                continue;
            }
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let target = to.join(&relative);
            if kind.is_symlink() {
                // Leads to what it leads to inside: the pod's own file system.
                if let Ok(leads_to) = fs::read_link(entry.path()) {
                    symlink(leads_to, target)?;
                }
            } else if kind.is_dir() {
                let is_open = entry
                    .metadata()
                    .is_ok_and(|it| it.permissions().mode() & 0o005 == 0o005);
                if is_open {
                    fs::DirBuilder::new().mode(0o755).create(target)?;
                    self.directory(from, to, &relative, share)?;
                }
            } else if kind.is_file() && share == Share::All {
                self.file(&entry.path(), &target)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(source) = open(from, flags, Mode::empty()).map(File::from) else {
            return Ok(());
        };
        let found = source.metadata()?;
        let mode = found.permissions().mode();
        if !found.is_file() || mode & 0o004 == 0 {
            return Ok(());
        }
        // Whole pages, as the file system in memory counts them.
        let taken = found.len().next_multiple_of(PAGE_BYTES);
        if found.len() > FILE_BYTES_MAX || self.bytes + taken > BYTES_MAX {
            eprintln!("node: {}: too large, left out", from.display());
            return Ok(());
        }
        self.bytes += taken;
        let mut content = Vec::new();
        if source
            .take(FILE_BYTES_MAX)
            .read_to_end(&mut content)
            .is_err()
        {
            return Ok(());
        }
        if found.len() < SETTINGS_BYTES_MAX && has_login(&content) {
            eprintln!("node: {}: names a login, left out", from.display());
            return Ok(());
        }
        let mut options = File::options();
        options.write(true).create_new(true).mode(mode & 0o755);
        options.open(to)?.write_all(&content)
    }
}

/// Makes files that each pod covers with its own.
pub(super) fn make_places(at: &Path, names: &[&str]) -> io::Result<()> {
    let paths: Vec<PathBuf> = names.iter().map(|name| at.join(name)).collect();
    paths
        .iter()
        .try_for_each(|path| File::create(path).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_need_is_listed_and_what_is_secret_is_not() {
        for (path, expected) in [
            ("passwd", Share::All),
            ("ssl", Share::Part),
            ("ssl/certs/a.pem", Share::All),
            ("ssl/private", Share::Nothing),
            ("ssl/private/key.pem", Share::Nothing),
            ("pki/tls", Share::Part),
            ("pki/tls/private", Share::Nothing),
            ("python3.11/sitecustomize.py", Share::All),
            ("java-17-openjdk/security", Share::All),
            ("default", Share::Part),
            ("default/useradd", Share::Nothing),
            ("passwd-", Share::Nothing),
            ("shadow", Share::Nothing),
            ("gshadow", Share::Nothing),
            ("sudoers.d/me", Share::Nothing),
            ("ssh/ssh_host_rsa_key", Share::Nothing),
            ("machine-id", Share::Nothing),
            ("NetworkManager", Share::Nothing),
            ("wireguard", Share::Nothing),
            ("kubernetes/admin.conf", Share::Nothing),
            ("krb5.keytab", Share::Nothing),
            ("crypttab", Share::Nothing),
        ] {
            assert_eq!(share(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_login_in_settings_is_seen() {
        assert!(has_login(b"index-url = https://user:word@host/simple\n"));
        assert!(has_login(
            b"extra-index-url =\n  https://a/simple\n  https://token@b\n"
        ));
        assert!(!has_login(
            b"index-url = https://host/simple/@scope\n# me@host\n"
        ));
    }

    #[test]
    fn only_what_everybody_may_read_is_copied() {
        let from = tempfile::tempdir().expect("a directory");
        let to = tempfile::tempdir().expect("a directory");
        let at = |name: &str| from.path().join(name);
        let write = |name: &str, mode: u32| {
            fs::create_dir_all(at(name).parent().expect("it has one")).expect("made");
            fs::write(at(name), name).expect("written");
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).expect("set");
        };
        write("passwd", 0o644);
        write("shadow", 0o644);
        write("ssl/certs/open.pem", 0o4755);
        write("ssl/certs/closed.pem", 0o640);
        write("ssl/private/key.pem", 0o644);
        write("fonts/inner/a", 0o644);
        fs::set_permissions(at("fonts/inner"), fs::Permissions::from_mode(0o700)).expect("set");
        symlink("../usr/share/zone", at("localtime")).expect("linked");
        copy(from.path(), to.path()).expect("copied");
        let is_there = |name: &str| to.path().join(name).symlink_metadata().is_ok();
        for name in ["passwd", "ssl/certs/open.pem", "localtime", "fonts"] {
            assert!(is_there(name), "{name}");
        }
        for name in [
            "shadow",
            "ssl/certs/closed.pem",
            "ssl/private",
            "fonts/inner",
        ] {
            assert!(!is_there(name), "{name}");
        }
        let mode = fs::metadata(to.path().join("ssl/certs/open.pem")).expect("there");
        assert_eq!(mode.permissions().mode() & 0o7777, 0o755);
        let link = fs::read_link(to.path().join("localtime")).expect("a link");
        assert_eq!(link, Path::new("../usr/share/zone"));
    }
}
