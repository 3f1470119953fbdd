//! Logs of two files that grow, rotate and go, read whole, from the end, and along.

use std::fs;
use std::io::Write as _;
use std::time::Duration;

use super::*;

const AT: &str = "1970-01-01T00:00:01.000000000Z";

struct World {
    _home: tempfile::TempDir,
    paths: NodePaths,
    run: ContainerKey,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let paths = NodePaths::new(home.path()).unwrap();
        let run = ContainerKey {
            uid: "u".to_owned(),
            container: "c".to_owned(),
            attempt: 0,
        };
        fs::create_dir_all(paths.pod("u").log("c", 0).parent().unwrap()).unwrap();
        Self {
            _home: home,
            paths,
            run,
        }
    }

    fn write(&self, text: &str) {
        let path = self.paths.pod("u").log("c", 0);
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        let mut file = file.unwrap();
        for line in text.split_inclusive('\n') {
            write!(file, "{AT} stdout F {line}").unwrap();
        }
    }

    fn rotate(&self) {
        let path = self.paths.pod("u").log("c", 0);
        fs::rename(&path, path.with_extension("log.1")).unwrap();
    }

    fn open(&self, options: &LogOptions) -> LogReader {
        LogReader::open(&self.paths, &self.run, options).unwrap()
    }
}

fn drain(reader: &mut LogReader) -> String {
    let mut all = Vec::new();
    while let Some(text) = reader.read().unwrap() {
        all.extend(text);
    }
    String::from_utf8(all).unwrap()
}

fn last(lines: u64) -> LogOptions {
    LogOptions {
        tail_lines: Some(lines),
        ..LogOptions::default()
    }
}

fn following() -> LogOptions {
    LogOptions {
        follow: true,
        ..LogOptions::default()
    }
}

#[test]
fn a_rotated_log_is_read_whole_and_its_tail_from_both_files() {
    let world = World::new();
    assert_eq!(drain(&mut world.open(&LogOptions::default())), "");
    world.write("1\n2\n3\n");
    world.rotate();
    world.write("4\n5\n");
    assert_eq!(
        drain(&mut world.open(&LogOptions::default())),
        "1\n2\n3\n4\n5\n"
    );
    assert_eq!(drain(&mut world.open(&last(0))), "");
    assert_eq!(drain(&mut world.open(&last(1))), "5\n");
    assert_eq!(drain(&mut world.open(&last(2))), "4\n5\n");
    assert_eq!(drain(&mut world.open(&last(3))), "3\n4\n5\n");
    assert_eq!(drain(&mut world.open(&last(9))), "1\n2\n3\n4\n5\n");
}

#[test]
fn one_that_does_not_follow_ends_where_the_log_ended() {
    let world = World::new();
    world.write("1\n");
    let mut reader = world.open(&LogOptions::default());
    world.write("2\n");
    assert_eq!(drain(&mut reader), "1\n");
}

#[test]
fn one_that_follows_goes_on_over_rotations() {
    let world = World::new();
    let mut reader = world.open(&following());
    assert_eq!(drain(&mut reader), "");
    world.write("1\n");
    assert_eq!(drain(&mut reader), "1\n");
    world.write("2\n");
    world.rotate();
    world.write("3\n");
    assert_eq!(drain(&mut reader), "2\n3\n");
    world.write("4\n");
    world.rotate();
    world.write("5\n");
    world.rotate();
    world.write("6\n");
    assert_eq!(
        drain(&mut reader),
        "4\n5\n6\n",
        "its own file is gone by now"
    );
    assert_eq!(drain(&mut reader), "");
}

#[test]
fn a_tail_that_follows_begins_at_the_tail() {
    let world = World::new();
    world.write("1\n2\n");
    let mut reader = world.open(&LogOptions {
        follow: true,
        ..last(1)
    });
    world.write("3\n");
    assert_eq!(drain(&mut reader), "2\n3\n");
}

#[test]
fn bytes_that_are_enough_end_it() {
    let world = World::new();
    world.write("1234567\n");
    let mut reader = world.open(&LogOptions {
        bytes_max: Some(3),
        ..following()
    });
    assert_eq!(drain(&mut reader), "123");
    assert!(reader.is_full());
}

/// The decision alone: nothing is read by such a name.
#[test]
fn names_that_lead_elsewhere_are_refused() {
    let world = World::new();
    for (uid, container) in [("..", "c"), ("u", "../c"), ("", "c"), ("u/../..", "c")] {
        let run = ContainerKey {
            uid: uid.to_owned(),
            container: container.to_owned(),
            attempt: 0,
        };
        let opened = LogReader::open(&world.paths, &run, &LogOptions::default());
        assert!(opened.is_err(), "{run:?}");
    }
}

#[tokio::test]
async fn a_change_wakes_those_who_follow() {
    let world = World::new();
    let mut changes = world.open(&following()).changes().unwrap();
    let nothing = tokio::time::timeout(Duration::from_millis(1), changes.changed()).await;
    assert!(nothing.is_err(), "nothing has changed");
    world.write("1\n");
    let woken = sundown_testing::within("a change", changes.changed()).await;
    assert!(woken.unwrap().unwrap());
}
