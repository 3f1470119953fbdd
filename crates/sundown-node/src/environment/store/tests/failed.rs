//! Makings that fail: what was there before is there again.

use super::*;

/// A making that failed left the one before aside, where nothing finds it but a prune.
#[tokio::test]
async fn a_making_that_fails_leaves_the_environment_of_before_in_its_place() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    let wanted = ray(&environments, Some((3, 99))).await;
    let before = Mark {
        sources: None,
        ..a_mark(&wanted, home.path())
    };
    mark::begin(&wanted.path)?;
    mark::finish(&wanted.path, &before)?;
    let identity = |path: &Path| anyhow::Ok(fs::metadata(path)?.ino());
    let (inode, image) = (identity(&wanted.path)?, "rayproject/ray:2.52.0-py399");
    for _ in 0..2 {
        let made = environments.make(image, &mut |_| {}).await;
        assert!(matches!(made, Err(MakeError::NoPython { .. })), "{made:?}");
        let [entry] = &environments.list()?[..] else {
            panic!("not one");
        };
        assert!(entry.is_whole && entry.path == wanted.path);
        assert_eq!(identity(&wanted.path)?, inode);
    }
    Ok(())
}

/// The mark is written last, and could not be: the installer stands a directory in its way.
#[tokio::test]
async fn an_environment_that_cannot_be_finished_leaves_the_one_of_before_in_its_place() -> Result<()>
{
    let home = tempfile::tempdir()?;
    let environments = in_directory(&home.path().join("cache"));
    fs::create_dir(home.path().join("cache"))?;
    let uv = home.path().join("uv");
    let script = format!(
        "#!/bin/sh\nfor it in {}/ray-*; do mkdir -p \"$it/sundown.json.new\"; done\n",
        home.path().join("cache").display()
    );
    sundown_testing::write_program(&uv, &script)?;
    assert!(environments.installer.set(Installer::Uv(uv)).is_ok());
    let wanted = ray(&environments, None).await;
    let before = Mark {
        sources: None,
        ..a_mark(&wanted, home.path())
    };
    mark::begin(&wanted.path)?;
    mark::finish(&wanted.path, &before)?;
    let inode = fs::metadata(&wanted.path)?.ino();
    let image = "rayproject/ray:2.52.0";
    let made = environments.make(image, &mut |_| {}).await;
    let Err(MakeError::Io { what, .. }) = &made else {
        panic!("it cannot be finished: {made:?}");
    };
    assert!(what.starts_with("finish "), "{what}");
    assert_eq!(fs::metadata(&wanted.path)?.ino(), inode);
    let [entry] = &environments.list()?[..] else {
        panic!("not one");
    };
    assert!(entry.is_whole && entry.path == wanted.path);
    Ok(())
}
