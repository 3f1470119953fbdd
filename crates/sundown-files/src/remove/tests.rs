//! Removals, each in a fresh temporary directory; what must never go lies in a second one, behind a link.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;

/// More than any stack or limit of descriptors takes.
const DEEP: usize = 70_000;
/// What the process of a test has open itself leaves some of them.
const DESCRIPTOR_COUNT_MAX: u64 = 48;
/// Says that this process is the child of a test.
const CHILD: &str = "SUNDOWN_TEST_REMOVE";

/// Makes directories inside of each other; only the deepest is held.
fn nest(parent: &Path, depth: usize, mode: u32) {
    let mut here: OwnedFd = fs::File::open(parent).unwrap().into();
    for _ in 0..depth {
        rustix::fs::mkdirat(&here, "d", Mode::RWXU).unwrap();
        let next = open(here.as_fd(), Path::new("d")).unwrap();
        rustix::fs::fchmod(&here, Mode::from_raw_mode(mode)).unwrap();
        here = next;
    }
    rustix::fs::mknodat(&here, "file", FileType::RegularFile, Mode::RUSR, 0).unwrap();
}

/// Runs one test of this file again, in a process of its own.
fn in_child(program: &[&str], test: &str) {
    let mut command = Command::new(program.first().copied().unwrap_or("env"));
    command.args(program.iter().skip(1));
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("remove::tests::{test}"), "--nocapture"]);
    let output = command.env(CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

#[test]
fn any_depth_goes_with_a_few_descriptors() {
    if !is_child() {
        return in_child(&[], "any_depth_goes_with_a_few_descriptors");
    }
    let limit = Rlimit {
        current: Some(DESCRIPTOR_COUNT_MAX),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    // In memory where that is possible: on a slow disk so many take minutes.
    let memory = Path::new("/dev/shm");
    let home = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir());
    let home = home.unwrap();
    fs::create_dir(home.path().join("doomed")).unwrap();
    nest(&home.path().join("doomed"), DEEP, 0o700);
    remove(home.path(), "doomed").unwrap();
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn directories_that_their_owner_may_not_enter_go_too() {
    let is_root = rustix::process::geteuid().is_root();
    if is_root && !is_child() {
        let ids = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let program = [&["setpriv"], &ids[..]].concat();
        return in_child(
            &program,
            "directories_that_their_owner_may_not_enter_go_too",
        );
    }
    let home = tempfile::tempdir().unwrap();
    let doomed = home.path().join("doomed");
    // Deeper than what is open at once: directories without rights are moved up as well.
    for mode in [0o000, 0o500, 0o100] {
        fs::create_dir(&doomed).unwrap();
        nest(&doomed, 3 * DEPTH_MAX, mode);
        remove(home.path(), "doomed").unwrap_or_else(|error| panic!("{mode:o}: {error}"));
        assert!(!doomed.exists());
    }
}

#[test]
fn links_go_and_what_they_lead_to_stays() {
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let doomed = home.path().join("doomed");
    fs::create_dir_all(doomed.join("a/b")).unwrap();
    fs::create_dir(other.path().join("kept")).unwrap();
    fs::write(other.path().join("kept/file"), "mine").unwrap();
    symlink(other.path(), doomed.join("directory")).unwrap();
    symlink(other.path().join("kept/file"), doomed.join("a/file")).unwrap();
    symlink("..", doomed.join("a/b/up")).unwrap();
    let before = fs::metadata(other.path().join("kept")).unwrap();
    remove(home.path(), "doomed").unwrap();
    assert!(!doomed.exists());
    assert_eq!(fs::read(other.path().join("kept/file")).unwrap(), b"mine");
    let after = fs::metadata(other.path().join("kept")).unwrap();
    assert_eq!((after.ino(), after.mtime()), (before.ino(), before.mtime()));

    symlink(other.path(), home.path().join("link")).unwrap();
    let error = remove(home.path(), "link/kept").unwrap_err().to_string();
    assert!(error.contains("behind a link"), "{error}");
    assert!(other.path().join("kept/file").exists());
    remove(home.path(), "link").unwrap();
    assert!(other.path().join("kept/file").exists());
}

/// Why this machine lets us mount nothing in namespaces of our own; None: it does.
fn namespaces_refused(program: &[&str]) -> Option<String> {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).args(["mount", "--bind"]);
    match command.args([place.path(), place.path()]).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn a_mount_is_left_alone_and_named() {
    if !is_child() {
        let program = ["unshare", "--user", "--map-root-user", "--mount"];
        if let Some(said) = namespaces_refused(&program) {
            eprintln!("skipped, there are no namespaces here: {said}");
            return;
        }
        return in_child(&program, "a_mount_is_left_alone_and_named");
    }
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mount = home.path().join("doomed/a/mount");
    fs::create_dir_all(&mount).unwrap();
    fs::write(other.path().join("file"), "mine").unwrap();
    let bound = Command::new("mount")
        .arg("--bind")
        .args([other.path(), &mount])
        .status();
    assert!(bound.unwrap().success());
    let error = remove(home.path(), "doomed").unwrap_err().to_string();
    assert!(
        error.contains(&format!("{} is a mount", mount.display())),
        "{error}"
    );
    assert_eq!(fs::read(other.path().join("file")).unwrap(), b"mine");
    assert!(
        Command::new("umount")
            .arg(&mount)
            .status()
            .unwrap()
            .success()
    );
    remove(home.path(), "doomed").unwrap();
    assert_eq!(fs::read(other.path().join("file")).unwrap(), b"mine");
}

#[test]
fn wide_directories_files_and_what_is_missing() {
    let home = tempfile::tempdir().unwrap();
    let doomed = home.path().join("doomed");
    fs::create_dir(&doomed).unwrap();
    for number in 0..3_000 {
        fs::write(doomed.join(format!("file-{number}")), "").unwrap();
        if number % 3 == 0 {
            fs::create_dir(doomed.join(format!("directory-{number}"))).unwrap();
        }
    }
    // The names that deep directories get are not free.
    fs::create_dir_all(doomed.join(".removing-1/full")).unwrap();
    fs::write(doomed.join(".removing-2"), "").unwrap();
    nest(&doomed, 5 * DEPTH_MAX, 0o700);
    fs::write(home.path().join("kept"), "").unwrap();
    remove(home.path(), "doomed").unwrap();
    remove(home.path(), "doomed").unwrap();
    remove(home.path(), "doomed/not/there").unwrap();
    remove(&home.path().join("nowhere"), "doomed").unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    remove(home.path(), "file").unwrap();
    let left = fs::read_dir(home.path()).unwrap();
    let left: Vec<_> = left.map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["kept"]);
}

/// A process that wrote faster than we removed kept the removal going for ever.
#[test]
fn a_directory_that_is_filled_again_and_again_is_given_up_and_named() {
    let home = tempfile::tempdir().unwrap();
    let doomed = home.path().join("doomed");
    fs::create_dir_all(doomed.join("busy")).unwrap();
    let parent = fs::File::open(home.path()).unwrap();
    // Writes at the worst moment, as often as is asked for.
    let filled_again = |count_max: usize| {
        let count = std::cell::Cell::new(0);
        let remove_empty = move |parent: BorrowedFd<'_>, name: &CStr| {
            if name == c"busy" && count.get() < count_max {
                count.set(count.get() + 1);
                let directory = open(parent, Path::new("busy"))?;
                rustix::fs::mkdirat(&directory, "late", Mode::RWXU)?;
            }
            remove_directory(parent, name)
        };
        remove_tree(parent.as_fd(), c"doomed", &doomed, &remove_empty)
    };
    let error = filled_again(REFILL_COUNT_MAX + 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::DirectoryNotEmpty);
    let expect = format!("{} is filled again", doomed.join("busy").display());
    assert!(error.to_string().starts_with(&expect), "{error}");
    filled_again(REFILL_COUNT_MAX).unwrap();
    assert!(!doomed.exists());
}

#[test]
fn only_what_we_did_not_move_there_counts_as_filled_again() {
    let mut refills = Refills::default();
    for _ in 0..REFILL_COUNT_MAX {
        refills = refills.next(7).unwrap();
    }
    // The first was ours.
    refills = refills.next(7).unwrap();
    assert_eq!(refills.next(7), None);
    assert_eq!(refills.next(8).unwrap().count, 0);
}

/// The names are judged before anything is opened, so that a wrong rule would find nothing to remove.
#[test]
fn only_plain_names_inside_are_taken() {
    let home = tempfile::tempdir().unwrap();
    let root = Root::open(home.path()).unwrap();
    for name in ["", ".", "..", "a/..", "a/../b", "/nowhere/at/all"] {
        let refused = root.remove(Path::new(name)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{name}");
    }
}

/// As long as nothing is moved up; deep ones are for one removal at a time.
#[test]
fn two_removals_of_the_same_do_not_disturb_each_other() {
    let root = tempfile::tempdir().unwrap();
    let removes = || remove(root.path(), "here").map_err(|error| error.to_string());
    for depth in [1, 4, DEPTH_MAX - 1] {
        for _ in 0..20 {
            let here = root.path().join("here");
            for wide in 0..20 {
                fs::create_dir_all(here.join(format!("{wide}"))).unwrap();
            }
            nest(&here, depth, 0o700);
            let both = std::thread::scope(|scope| {
                let all = [scope.spawn(removes), scope.spawn(removes)];
                all.map(|it| it.join().unwrap())
            });
            assert_eq!(both, [Ok(()), Ok(())], "{depth} levels");
            assert!(!here.exists());
        }
    }
}
