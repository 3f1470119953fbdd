//! Whether a path belongs to us: nobody but its owner and root may have the last word on what it leads to.
//! The judgement is a pure function of what was seen on the way from `/`.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// Whoever may write with this mode beside the owner.
const WRITE: u32 = 0o022;
/// Entries of such a directory are changed by their owners only.
const STICKY: u32 = 0o1000;
/// As many links as the kernel follows.
const LINK_COUNT_MAX: usize = 40;

/// In whose name this process acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Us {
    pub user: u32,
    /// How owners are shown who do not exist in our user namespace, root of the machine among them; None: all do.
    pub unmapped: Option<u32>,
}

/// What stands at one step of a path, itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// Anything that is neither of the others.
    File,
    Directory,
    Link,
}

/// One step on the way to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub path: PathBuf,
    pub sort: Sort,
    pub owner: u32,
    pub mode: u32,
    /// Whether its group has nobody but us: many systems give each user one, and let it write by default
    /// (a umask of 002).
    pub has_own_group: bool,
}

/// Why a path is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    /// Its owner could replace what we use at any moment.
    #[error("{} belongs to user {owner}, not to user {us}", path.display())]
    Owner { path: PathBuf, owner: u32, us: u32 },
    #[error("{} may be written by others: its mode is {mode:04o}", path.display())]
    Writable { path: PathBuf, mode: u32 },
}

/// Why nothing is known that would let us use a path.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error(transparent)]
    Distrust(#[from] Distrust),
    #[error("look at {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl Us {
    /// As the kernel sees this process.
    pub fn now() -> Self {
        let text = |file| fs::read_to_string(file).unwrap_or_default();
        let unmapped = (!maps_all(&text("/proc/self/uid_map")))
            .then(|| text("/proc/sys/kernel/overflowuid").trim().parse().ok());
        Self {
            user: rustix::process::geteuid().as_raw(),
            unmapped: unmapped.flatten(),
        }
    }

    /// Root can do everything anyway, so what belongs to it is as safe as what is ours.
    fn trusts(self, owner: u32) -> bool {
        owner == self.user || owner == 0
    }

    /// Whether an owner who is not shown is taken for root of the machine: any other user is shown in the
    /// same way, but could have made nothing above the first directory that is shared.
    fn takes_for_root(self, step: &Step, before: &[Step]) -> bool {
        let is_shared = |it: &Step| it.sort == Sort::Directory && it.mode & STICKY != 0;
        self.unmapped == Some(step.owner) && !before.iter().any(is_shared)
    }
}

/// Whether all users exist in a user namespace, by its table.
fn maps_all(table: &str) -> bool {
    // Without a table there are no user namespaces.
    table.is_empty() || table.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Judges the directories above a path, from `/` to the last of them that exists: whether nobody else can
/// replace what lies below. In a directory that is shared, such as `/tmp`, nobody can who does not own it.
pub fn judge(us: Us, above: &[Step]) -> Result<(), Distrust> {
    judge_all(us, above, false)
}

/// Judges a way whose last step may be what is used itself: that must not be shared.
fn judge_all(us: Us, way: &[Step], is_whole: bool) -> Result<(), Distrust> {
    for (index, step) in way.iter().enumerate() {
        let is_itself = is_whole && index + 1 == way.len();
        let is_root = !is_itself && us.takes_for_root(step, &way[..index]);
        if !us.trusts(step.owner) && !is_root {
            let path = step.path.clone();
            return Err(Distrust::Owner {
                path,
                owner: step.owner,
                us: us.user,
            });
        }
        let is_shared = step.sort == Sort::Directory && step.mode & STICKY != 0 && !is_itself;
        // The mode of a link says nothing.
        let may_be_open = step.sort != Sort::Link && !is_shared;
        let by_group = if step.has_own_group { 0o020 } else { 0 };
        let reach = reach(step, &way[..index]) & !by_group;
        if may_be_open && step.mode & reach != 0 {
            let (path, mode) = (step.path.clone(), step.mode & 0o7777);
            return Err(Distrust::Writable { path, mode });
        }
    }
    Ok(())
}

/// Who could write if a mode let them: what lies behind a directory that lets only its owner in is out of
/// reach for all others.
fn reach(step: &Step, before: &[Step]) -> u32 {
    let is_above = |it: &&Step| it.sort == Sort::Directory && step.path.starts_with(&it.path);
    let mut doors = before.iter().filter(is_above);
    // Closed to the group and to others at once: who enters as one of them may write as the other.
    if doors.any(|door| door.mode & 0o011 == 0) {
        0
    } else {
        WRITE
    }
}

/// Looks at every step from `/` to a path, links as themselves and then where they lead, up to the first
/// that does not exist.
pub fn way(path: &Path) -> io::Result<Vec<Step>> {
    Ok(walk(path)?.0)
}

/// The steps, and whether the last of them is the path itself.
fn walk(path: &Path) -> io::Result<(Vec<Step>, bool)> {
    let path = std::path::absolute(path)?;
    let mut rest: VecDeque<OsString> = parts(&path);
    let mut here = PathBuf::from("/");
    let mut found = vec![step(&here, &fs::symlink_metadata("/")?)];
    let mut link_count = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&part);
        let metadata = match fs::symlink_metadata(&next) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((found, false)),
            Err(error) => return Err(error),
        };
        found.push(step(&next, &metadata));
        if !metadata.is_symlink() {
            here = next;
            continue;
        }
        link_count += 1;
        if link_count > LINK_COUNT_MAX {
            return Err(rustix::io::Errno::LOOP.into());
        }
        let target = fs::read_link(&next)?;
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        for part in parts(&target).into_iter().rev() {
            rest.push_front(part);
        }
    }
    Ok((found, true))
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    parts.collect()
}

fn step(path: &Path, metadata: &Metadata) -> Step {
    let sort = if metadata.is_dir() {
        Sort::Directory
    } else if metadata.is_symlink() {
        Sort::Link
    } else {
        Sort::File
    };
    Step {
        path: path.to_owned(),
        sort,
        owner: metadata.uid(),
        mode: metadata.mode(),
        has_own_group: private_group() == Some(metadata.gid()),
    }
}

/// Our group, if this user is its only member.
fn private_group() -> Option<u32> {
    static FOUND: OnceLock<Option<u32>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let text = |file| fs::read_to_string(file).unwrap_or_default();
        let user = rustix::process::getuid().as_raw();
        let group = rustix::process::getgid().as_raw();
        is_private(&text("/etc/passwd"), &text("/etc/group"), user, group).then_some(group)
    })
}

/// Whether a group has this user as its only member, by the tables of accounts. A group that they do not
/// hold may have any members.
fn is_private(accounts: &str, groups: &str, user: u32, group: u32) -> bool {
    let number = |field: Option<&str>| field.and_then(|it| it.parse::<u32>().ok());
    let fields = |line: &'_ str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let accounts: Vec<Vec<String>> = accounts.lines().map(fields).collect();
    let at = |line: &[String], index: usize| number(line.get(index).map(String::as_str));
    let own = accounts.iter().find(|line| at(line, 2) == Some(user));
    let Some(name) = own.and_then(|line| line.first()) else {
        return false;
    };
    let has_others = |line: &&Vec<String>| at(line, 3) == Some(group) && at(line, 2) != Some(user);
    let mut of_group = groups
        .lines()
        .map(fields)
        .filter(|line| at(line, 2) == Some(group));
    let is_own = |line: Vec<String>| {
        let members = line.get(3).map_or("", String::as_str).split(',');
        members.filter(|it| !it.is_empty()).all(|it| it == name)
    };
    let mut is_there = false;
    let has_own_only = of_group.all(|line| {
        is_there = true;
        is_own(line)
    });
    is_there && has_own_only && !accounts.iter().any(|line| has_others(&line))
}

/// Whether a path, or the part of it that exists, belongs to us.
pub fn check(path: &Path) -> Result<(), TrustError> {
    let (way, is_whole) = walk(path).map_err(|source| TrustError::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(judge_all(Us::now(), &way, is_whole)?)
}

/// Whether a file that is open belongs to us, by what was asked of its descriptor.
pub fn own(path: &Path, metadata: &Metadata) -> Result<(), Distrust> {
    judge_all(Us::now(), &[step(path, metadata)], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Us = Us {
        user: 1000,
        unmapped: None,
    };

    #[test]
    fn a_group_is_private_if_the_tables_name_nobody_else() {
        let accounts =
            "root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/h:/bin/sh\nyou:x:1001:1001::/y:\n";
        let check = |accounts: &str, groups: &str| is_private(accounts, groups, 1000, 1000);
        assert!(check(accounts, "root:x:0:\nme:x:1000:\n"));
        assert!(check(accounts, "me:x:1000:me\n"));
        assert!(!check(accounts, "me:x:1000:me,you\n"));
        assert!(!check(accounts, "me:x:1000:\nteam:x:1000:you\n"));
        assert!(!check(accounts, "root:x:0:\n"), "it may have any members");
        let joined = format!("{accounts}them:x:1002:1000::/t:\n");
        assert!(
            !check(&joined, "me:x:1000:\n"),
            "it is another user's first group"
        );
        assert!(
            !is_private("", "me:x:1000:\n", 1000, 1000),
            "an account from elsewhere"
        );
        assert!(!check("", ""));
    }

    fn directory(path: &str, owner: u32, mode: u32) -> Step {
        let sort = Sort::Directory;
        let path = path.into();
        Step {
            path,
            sort,
            owner,
            mode,
            has_own_group: false,
        }
    }

    fn file(path: &str, owner: u32, mode: u32) -> Step {
        Step {
            sort: Sort::File,
            ..directory(path, owner, mode)
        }
    }

    fn link(path: &str, owner: u32) -> Step {
        Step {
            sort: Sort::Link,
            ..directory(path, owner, 0o777)
        }
    }

    #[test]
    fn a_group_of_our_own_may_write() {
        let ours = |mode| Step {
            has_own_group: true,
            ..directory("/h", 1000, mode)
        };
        assert_eq!(blamed(US, &[root(), ours(0o775)]), None);
        let blamed = blamed(US, &[root(), ours(0o777)]);
        assert_eq!(blamed.as_deref(), Some("mode of /h"));
    }

    fn blamed(us: Us, way: &[Step]) -> Option<String> {
        judge_all(us, way, true)
            .err()
            .map(|distrust| match distrust {
                Distrust::Owner { path, .. } => format!("owner of {}", path.display()),
                Distrust::Writable { path, .. } => format!("mode of {}", path.display()),
            })
    }

    fn root() -> Step {
        directory("/", 0, 0o755)
    }

    fn tmp() -> Step {
        directory("/tmp", 0, 0o1777)
    }

    fn check_all(us: Us, cases: &[(&[Step], Option<&str>)]) {
        for (way, expect) in cases {
            assert_eq!(blamed(us, way).as_deref(), *expect, "{way:?}");
        }
    }

    #[test]
    fn a_path_is_ours_if_only_we_and_root_can_change_where_it_leads() {
        let of = |owner, mode| directory("/d", owner, mode);
        let in_tmp = |owner| directory("/tmp/d", owner, 0o700);
        check_all(
            US,
            &[
                (&[root(), of(1000, 0o700)], None),
                (&[root(), of(0, 0o755)], None),
                (&[root(), of(1001, 0o700)], Some("owner of /d")),
                (&[root(), of(1000, 0o770)], Some("mode of /d")),
                (&[root(), tmp(), in_tmp(1000)], None),
                (&[root(), tmp(), in_tmp(1001)], Some("owner of /tmp/d")),
                (&[root(), tmp()], Some("mode of /tmp")),
                (&[root(), file("/f", 1000, 0o664)], Some("mode of /f")),
            ],
        );
        let as_root = Us { user: 0, ..US };
        check_all(
            as_root,
            &[(&[root(), of(1000, 0o700)], Some("owner of /d"))],
        );
        assert_eq!(
            judge(US, &[root(), tmp()]),
            Ok(()),
            "what lies below is safe"
        );
    }

    #[test]
    fn what_lies_behind_a_closed_door_is_out_of_reach_unless_a_link_leads_out() {
        let home = |mode| directory("/h", 1000, mode);
        let inside = |mode| directory("/h/d", 1000, mode);
        let outside = || directory("/d", 1000, 0o777);
        let cases: [(&[Step], _); 7] = [
            (&[home(0o700), inside(0o775)], None),
            (&[home(0o710), inside(0o775)], Some("mode of /h/d")),
            (&[home(0o710), inside(0o757)], Some("mode of /h/d")),
            (&[home(0o701), inside(0o770)], Some("mode of /h/d")),
            (
                &[home(0o700), link("/h/l", 1000), outside()],
                Some("mode of /d"),
            ),
            (
                &[root(), tmp(), link("/tmp/l", 1001)],
                Some("owner of /tmp/l"),
            ),
            (&[root(), tmp(), link("/tmp/l", 1000), inside(0o700)], None),
        ];
        check_all(US, &cases);
    }

    #[test]
    fn in_a_user_namespace_the_root_of_the_machine_has_no_name() {
        let way = [
            directory("/", 65534, 0o755),
            directory("/h", US.user, 0o700),
        ];
        let inside = Us {
            unmapped: Some(65534),
            ..US
        };
        check_all(US, &[(&way, Some("owner of /"))]);
        check_all(inside, &[(&way, None)]);
    }

    /// Every user who does not exist inside is shown alike: a neighbour passed for root.
    #[test]
    fn below_a_shared_directory_an_owner_without_a_name_is_not_root() {
        let inside = Us {
            unmapped: Some(65534),
            ..US
        };
        let shared = || directory("/tmp", 65534, 0o1777);
        let eve = directory("/tmp/eve", 65534, 0o755);
        let own = directory("/tmp/me", US.user, 0o700);
        check_all(
            inside,
            &[
                (&[root(), shared(), eve], Some("owner of /tmp/eve")),
                (&[root(), shared(), own], None),
            ],
        );
        let rules = [root(), directory("/rules", 65534, 0o755)];
        assert_eq!(judge_all(inside, &rules, false), Ok(()));
        assert!(
            judge_all(inside, &rules, true).is_err(),
            "what is used itself"
        );
    }

    #[test]
    fn the_table_of_users_says_whether_all_exist() {
        assert!(maps_all("         0          0 4294967295\n"));
        assert!(maps_all(""));
        assert!(!maps_all("         0       1000          1\n"));
    }

    #[test]
    fn links_are_seen_and_followed_and_what_is_missing_ends_the_way() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("a/b")).unwrap();
        std::os::unix::fs::symlink("a/../a/b", home.join("l")).unwrap();
        let seen = way(&home.join("l/missing/more")).unwrap();
        let names = seen
            .iter()
            .filter_map(|it| it.path.strip_prefix(&home).ok());
        let names: Vec<_> = names.map(|it| it.to_str().unwrap()).collect();
        assert_eq!(names, ["", "l", "a", "a", "a/b"]);
        check(&home.join("a/b")).unwrap();
    }
}
