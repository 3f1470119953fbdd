//! What a restart keeps, and who may not start.

use std::os::unix::fs::PermissionsExt;

use anyhow::Result;
use sundown_disk::{Disk, Keep, OpenError};
use sundown_store::Revision;

use crate::world::{World, config_maps, content, names, put, seen};

#[test]
fn keeps_objects_revisions_and_the_log() -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut world = World::open(home.path())?;
    world.fill()?;
    let before = seen(&world.store);
    drop(world);
    for _ in 0..3 {
        let world = World::open(home.path())?;
        assert_eq!(seen(&world.store), before);
    }
    let mut world = World::open(home.path())?;
    let events = world
        .store
        .events_after(&config_maps(), Revision::new(25))?;
    assert_eq!(events.count(), 5, "a watch resumes at its revision");
    world.commit(vec![put("later", "x")?])?;
    assert_eq!(world.store.revision(), Revision::new(31));
    Ok(())
}

#[test]
fn the_log_is_cut_with_the_window_and_the_floor_is_kept() -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut world = World::open(home.path())?;
    world.fill()?;
    let events: Vec<_> = {
        let mut next = world.store.clone();
        let transaction = sundown_store::Transaction {
            reads: Vec::new(),
            writes: vec![put("c", "x")?],
        };
        next.commit(&transaction, jiff::Timestamp::UNIX_EPOCH)?;
        next.events_since(world.store.revision()).cloned().collect()
    };
    world.disk.write(&events, Some(Revision::new(21)))?;
    world.disk.sync()?;
    drop(world);
    let world = World::open(home.path())?;
    assert_eq!(world.disk.summary().floor, Revision::new(20));
    assert_eq!(world.disk.summary().events, 11);
    let resumed = world.store.events_after(&config_maps(), Revision::new(20));
    assert_eq!(resumed?.count(), 11);
    let too_old = world.store.events_after(&config_maps(), Revision::new(19));
    assert!(too_old.is_err());
    Ok(())
}

#[test]
fn objects_are_readable_by_their_owner_only() -> Result<()> {
    let home = tempfile::tempdir()?;
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755))?;
    let _world = World::open(home.path())?;
    for path in [
        home.path(),
        &home.path().join("state"),
        &home.path().join("state/db"),
    ] {
        let mode = path.metadata()?.permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", path.display());
    }
    Ok(())
}

#[test]
fn refuses_a_second_instance_by_its_pid() -> Result<()> {
    let home = tempfile::tempdir()?;
    let first = World::open(home.path())?;
    let refused = World::open(home.path()).err();
    let ours = std::process::id();
    assert!(
        matches!(refused, Some(OpenError::InUse { pid: Some(pid), .. }) if pid == ours),
        "{refused:?}"
    );
    drop(first);
    World::open(home.path())?;
    Ok(())
}

#[test]
fn refuses_a_newer_format_by_name() -> Result<()> {
    let home = tempfile::tempdir()?;
    drop(World::open(home.path())?);
    std::fs::write(home.path().join("format"), "sundown data format 7\n")?;
    let refused = World::open(home.path()).err();
    assert!(
        matches!(refused, Some(OpenError::Newer { found: 7, .. })),
        "{refused:?}"
    );
    Ok(())
}

/// A start that is killed leaves one of these behind: half a database, a whole one that is not yet in
/// its place, the copy that it looked at.
#[test]
fn an_interrupted_first_start_begins_anew() -> Result<()> {
    for step in ["mark", "state", "building", "ready", "high-water"] {
        let home = tempfile::tempdir()?;
        drop(World::open(home.path())?);
        let state = home.path().join("state");
        std::fs::rename(home.path().join("format"), home.path().join("starting"))?;
        match step {
            "mark" => sundown_files::remove(home.path(), "state")?,
            "state" => {
                sundown_files::remove(home.path(), "state")?;
                std::fs::create_dir(&state)?;
            }
            "building" => {
                sundown_files::remove(&state, "db/keyspaces")?;
                std::fs::rename(state.join("db"), state.join("building"))?;
                std::fs::remove_file(state.join("high-water"))?;
            }
            "ready" => std::fs::rename(state.join("db"), state.join("ready"))?,
            _ => sundown_files::remove(&state, "db")?,
        }
        let mut world = World::open(home.path())?;
        assert_eq!(world.store.revision(), Revision::ZERO, "{step}");
        world.fill()?;
        drop(world);
        assert_eq!(names(home.path())?, ["format", "state"], "{step}");
        assert_eq!(names(&state)?, ["db", "high-water", "lock"], "{step}");
        assert_eq!(
            World::open(home.path())?.store.revision(),
            Revision::new(30)
        );
    }
    Ok(())
}

#[test]
fn an_interrupted_start_leaves_nothing_that_the_next_one_believes() -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut world = World::open(home.path())?;
    world.fill()?;
    let before = seen(&world.store);
    drop(world);
    for place in ["scratch", "building", "ready"] {
        std::fs::create_dir(home.path().join("state").join(place))?;
        std::fs::write(
            home.path().join("state").join(place).join("0.jnl"),
            "half a copy",
        )?;
        assert_eq!(seen(&World::open(home.path())?.store), before, "{place}");
        assert_eq!(
            names(&home.path().join("state"))?,
            ["db", "high-water", "lock"]
        );
    }
    // A database that was built whole takes its place when the start goes on.
    std::fs::rename(
        home.path().join("state/db"),
        home.path().join("state/ready"),
    )?;
    assert_eq!(seen(&World::open(home.path())?.store), before);
    Ok(())
}

/// Events and leases are seen before they are synced; what a power failure took of them must not
/// come again as something else.
#[test]
fn revisions_that_may_have_been_seen_and_lost_are_never_given_again() -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut world = World::open(home.path())?;
    world.fill()?;
    world.disk.relax()?;
    world.commit(vec![put("seen", "x")?])?;
    drop(world);
    assert!(
        !home.path().join("state/relaxed").exists(),
        "it ended by itself"
    );
    assert_eq!(
        World::open(home.path())?.store.revision(),
        Revision::new(31)
    );

    // Killed, but on the same start of the system: nothing is lost.
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id")?;
    std::fs::write(home.path().join("state/relaxed"), boot)?;
    assert_eq!(
        World::open(home.path())?.store.revision(),
        Revision::new(31)
    );

    std::fs::write(home.path().join("state/relaxed"), "before the power failed")?;
    let mut world = World::open(home.path())?;
    assert_eq!(world.store.revision(), Revision::new(1031));
    world.commit(vec![put("later", "x")?])?;
    let before = seen(&world.store);
    drop(world);
    let world = World::open(home.path())?;
    assert_eq!(seen(&world.store), before);
    assert_eq!(world.store.revision(), Revision::new(1032));
    let resumed = world
        .store
        .events_after(&config_maps(), Revision::new(25))?;
    assert_eq!(resumed.count(), 7, "a watch resumes over the gap");
    Ok(())
}

#[test]
fn a_look_changes_nothing_and_keeps_out_of_a_running_server() -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut world = World::open(home.path())?;
    world.fill()?;
    let before = seen(&world.store);
    let refused = Disk::inspect(home.path()).err();
    assert!(
        matches!(refused, Some(OpenError::InUse { pid: Some(_), .. })),
        "{refused:?}"
    );
    drop(world);
    let files = content(home.path())?;
    let (summary, store) = Disk::inspect(home.path())?;
    assert_eq!(seen(&store), before);
    assert_eq!((summary.objects, summary.events), (15, 30));
    assert_eq!(content(home.path())?, files);
    Ok(())
}
