//! Takeovers of directories of the format before, interrupted at each step; in temporary directories.

use std::os::unix::fs::PermissionsExt as _;

use super::take_over::{TakeOver, locks_of_before};
use super::*;
use crate::{Disk, Options};

/// A data directory as the version before left it, with something of the user's beside.
fn of_before(path: &Path) {
    drop(Disk::open(path, Options::default()).unwrap());
    for entry in fs::read_dir(path.join(STATE)).unwrap() {
        let entry = entry.unwrap();
        fs::rename(entry.path(), path.join(entry.file_name())).unwrap();
    }
    fs::remove_dir(path.join(STATE)).unwrap();
    fs::write(path.join("format"), "sundown data format 1\n").unwrap();
    fs::create_dir_all(path.join("node/pods/uid")).unwrap();
    fs::write(path.join("identity.json"), "who").unwrap();
    fs::write(path.join("thesis.txt"), "mine").unwrap();
    fs::create_dir(path.join("port")).unwrap();
}

fn names(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap();
    let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_takeover_that_was_killed_after_any_step_is_finished_by_the_next_start() {
    let mut steps = 0;
    loop {
        let home = tempfile::tempdir().unwrap();
        let path = home.path();
        of_before(path);
        let held = hold(path).unwrap();
        let mut take_over = TakeOver::begin(&held).unwrap();
        let is_at_end = !(0..steps).all(|_| take_over.step().unwrap());
        drop(take_over);
        drop(held);
        // Looks do not disturb it; one in the midst of it refuses to guess.
        if let Err(error) = Disk::inspect(path) {
            assert!(
                error.to_string().contains("not finished"),
                "{steps}: {error}"
            );
        }
        drop(Disk::open(path, Options::default()).unwrap());
        assert_eq!(
            names(path),
            ["format", "port", "state", "thesis.txt"],
            "{steps}"
        );
        let inside = ["db", "high-water", "identity.json", "lock", "node"];
        assert_eq!(names(&path.join(STATE)), inside, "{steps}");
        assert!(path.join("state/node/pods/uid").is_dir());
        assert_eq!(
            fs::read_to_string(path.join("state/identity.json")).unwrap(),
            "who"
        );
        assert_eq!(fs::read_to_string(path.join("thesis.txt")).unwrap(), "mine");
        let format = fs::read_to_string(path.join("format")).unwrap();
        assert_eq!(format, "sundown data format 2\n");
        if is_at_end {
            break;
        }
        steps += 1;
    }
    assert_eq!(
        steps, 11,
        "mark, state, note, format, five entries, the end of the note"
    );
}

#[test]
fn a_directory_of_before_that_is_in_use_is_left_where_it_is() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path();
    of_before(path);
    let mode = || fs::metadata(path).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    let before = names(path);
    let control_plane = File::open(path.join("lock")).unwrap();
    control_plane.lock().unwrap();
    let refused = Disk::open(path, Options::default()).err();
    assert!(
        matches!(refused, Some(OpenError::InUse { .. })),
        "{refused:?}"
    );
    drop(control_plane);
    let node = File::open(path.join("node")).unwrap();
    node.lock().unwrap();
    let refused = Disk::open(path, Options::default()).err();
    let expect = Refusal::PodsRun;
    assert!(
        matches!(&refused, Some(OpenError::Refused { refusal, .. }) if *refusal == expect),
        "{refused:?}"
    );
    assert_eq!((names(path), mode()), (before, 0o755), "nothing is touched");
    assert_eq!(
        find(path).unwrap().as_deref(),
        Some(path),
        "its sockets are found"
    );
}

/// A process that only made the state for another one could make the start of that one fail.
#[test]
fn a_start_waits_for_those_who_hold_a_directory_for_a_moment_only() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path();
    assert!(!is_in_use(&path.join("not/there")));
    drop(Disk::open(path, Options::default()).unwrap());
    let mut preparing = Some(hold(path).unwrap());
    assert!(is_in_use(path), "or about to be");
    let held = hold_after(path, || drop(preparing.take())).unwrap();
    drop(held);
    assert!(!is_in_use(path));
    let disk = Disk::open(path, Options::default()).unwrap();
    assert!(is_in_use(path));
    let mut pause_count = 0;
    let refused = hold_after(path, || pause_count += 1).unwrap_err();
    assert!(matches!(refused, OpenError::InUse { pid: Some(_), .. }));
    assert_eq!(pause_count, 0, "a use is told at once");
    drop(disk);
    // As many looks as there may be, each right before a start.
    for _ in 0..3 {
        assert!(!is_in_use(path));
        drop(Disk::open(path, Options::default()).unwrap());
    }
}

/// A look and what was done after it were two steps, with a start between them.
#[test]
fn what_is_done_while_a_directory_is_free_comes_before_a_start_or_not_at_all() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path();
    let disk = Disk::open(path, Options::default()).unwrap();
    assert_eq!(while_free(path, || ()), None, "it is used");
    drop(disk);
    let start = while_free(path, || {
        let mut pause_count = 0;
        let held = hold_after(path, || pause_count += 1);
        (held.is_err(), pause_count > 0)
    });
    assert_eq!(start, Some((true, true)), "it waits");
    drop(Disk::open(path, Options::default()).unwrap());
    assert_eq!(while_free(&path.join("not/there"), || ()), None);
}

/// NFS refused the lock with EBADF: it asks for a descriptor that may write.
#[test]
fn locks_are_taken_by_descriptors_that_may_write() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path();
    let writes = |file: &File| {
        let flags = rustix::fs::fcntl_getfl(file).unwrap();
        flags & OFlags::RWMODE == OFlags::RDWR
    };
    of_before(path);
    let looked = Directory::look_at(path).unwrap();
    assert!(looked.lock.as_ref().is_some_and(writes));
    drop(looked);
    assert!(locks_of_before(path).unwrap().iter().any(writes));
    drop(Disk::open(path, Options::default()).unwrap());
    let looked = Directory::look_at(path).unwrap();
    assert!(looked.lock.as_ref().is_some_and(writes));
    let text = fs::read_to_string(path.join(STATE).join(LOCK)).unwrap();
    assert!(text.trim().parse::<u32>().is_ok(), "nothing is written");
}

/// A start that waited for a reset found the directory gone, and failed.
#[test]
fn a_directory_that_a_reset_takes_meanwhile_is_made_anew() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("data");
    drop(Disk::open(&path, Options::default()).unwrap());
    let mut reset = Hold::take(&path).unwrap().unwrap();
    // Its first step: those who come wait for it from now on.
    reset.directory.lock = None;
    let mut reset = Some(reset);
    let held = hold_after(&path, || {
        if let Some(reset) = reset.take() {
            reset.clear().unwrap();
        }
    });
    assert!(held.err().is_some_and(|error| error.is_missing()));
    drop(Disk::open(&path, Options::default()).unwrap());
    assert!(path.join(STATE).is_dir());
}

/// What is held by its descriptor may have become the user's since it was judged.
#[test]
fn a_reset_removes_nothing_of_a_directory_that_is_no_longer_ours() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path();
    drop(Disk::open(path, Options::default()).unwrap());
    let hold = Hold::take(path).unwrap().unwrap();
    fs::rename(path.join("format"), path.join("thesis.txt")).unwrap();
    let before = names(path);
    assert!(hold.clear().is_err());
    assert_eq!(names(path), before);
}

#[test]
fn a_reset_removes_what_is_ours_and_goes_on_when_it_was_interrupted() {
    for is_before in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path();
        if is_before {
            of_before(path);
        } else {
            drop(Disk::open(path, Options::default()).unwrap());
            fs::write(path.join("thesis.txt"), "mine").unwrap();
        }
        // Interrupted after its first step: nobody takes what is left for data.
        let mut interrupted = Hold::take(path).unwrap().unwrap();
        interrupted.directory.lock = None;
        let held = interrupted.directory.held.as_ref().unwrap();
        take_over(held).unwrap();
        held.disprove().unwrap();
        drop(interrupted);
        let again = Hold::take(path).unwrap().unwrap();
        again.clear().unwrap();
        let left = names(path);
        assert!(
            !left.iter().any(|it| it == STATE || it == "format"),
            "{left:?}"
        );
        assert_eq!(fs::read_to_string(path.join("thesis.txt")).unwrap(), "mine");
    }
}
