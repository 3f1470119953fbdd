//! A full disk, played by the limit on the size of files. It holds for a whole process, so the test
//! runs in a child of its own, where the signal of the limit is ignored.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sundown_disk::AppendError;
use sundown_testing::BOUND;

use crate::world::{World, put, seen};

const CHILD: &str = "SUNDOWN_TEST_FULL_DISK";
const LIMIT_BYTES: u64 = 2 * 1024 * 1024;
/// Shorter than what the child has, so that it can say what it waited for.
const RECOVERY_TIME_MAX: Duration = BOUND.checked_div(2).expect("not by zero");

#[test]
fn a_full_disk_refuses_writes_and_recovers() -> Result<()> {
    if let Some(home) = std::env::var_os(CHILD) {
        return fill_and_recover(home.as_ref());
    }
    let home = tempfile::tempdir()?;
    // fjall makes the first journal long in advance; the second start has a short one.
    drop(World::open(home.path())?);
    drop(World::open(home.path())?);
    let mut again = Command::new("sh");
    again
        .args(["-c", r#"trap "" XFSZ; exec "$@""#, "sh"])
        .arg(std::env::current_exe()?)
        .args(["--exact", "full::a_full_disk_refuses_writes_and_recovers"])
        .env(CHILD, home.path());
    let done = sundown_testing::output(&mut again)?;
    ensure!(done.status.success(), "{done:?}");
    Ok(())
}

fn fill_and_recover(home: &std::path::Path) -> Result<()> {
    let mut world = World::open(home)?;
    let unlimited = getrlimit(Resource::Fsize);
    setrlimit(
        Resource::Fsize,
        Rlimit {
            current: Some(LIMIT_BYTES),
            ..unlimited
        },
    )?;
    let mut number = 0;
    let refused = loop {
        number += 1;
        ensure!(number < 1000, "the limit does not hold");
        let writes = vec![put(&format!("a-{number}"), &"x".repeat(20_000))?];
        if let Err(error) = world.commit(writes) {
            break error;
        }
    };
    ensure!(matches!(refused, AppendError::Full(_)), "{refused:?}");
    let before = seen(&world.store);
    let again = world.commit(vec![put("b", "x")?]);
    ensure!(matches!(again, Err(AppendError::Full(_))), "{again:?}");
    setrlimit(Resource::Fsize, unlimited)?;
    let begun_at = std::time::Instant::now();
    while let Err(error) = world.commit(vec![put("b", "x")?]) {
        ensure!(matches!(error, AppendError::Full(_)), "{error:?}");
        let waited = begun_at.elapsed();
        ensure!(
            waited < RECOVERY_TIME_MAX,
            "waited {waited:?} for room to be found again"
        );
        std::thread::yield_now();
    }
    let after = seen(&world.store);
    ensure!(after.1.len() == before.1.len() + 1);
    drop(world);
    let world = World::open(home).context("after the full disk")?;
    ensure!(seen(&world.store) == after);
    Ok(())
}
