//! What a restart keeps, and who may not start.

use anyhow::Result;
use sundown_disk::OpenError;
use sundown_store::Revision;

use crate::world::{World, config_maps, put, seen};

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
    sundown_disk::Keep::append(&mut world.disk, &events, Some(Revision::new(21)))?;
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

#[test]
fn an_interrupted_first_start_begins_anew() -> Result<()> {
    let home = tempfile::tempdir()?;
    drop(World::open(home.path())?);
    std::fs::write(home.path().join("creating"), "")?;
    std::fs::remove_file(home.path().join("format"))?;
    assert_eq!(World::open(home.path())?.store.revision(), Revision::ZERO);
    Ok(())
}
