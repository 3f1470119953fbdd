//! Runs the tests by name, a few at a time, first as the present user and, if that is root, once more
//! as an unprivileged one. Prints what the usual harness prints.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::Instant;

/// A name and what it runs.
pub(crate) type Test = (&'static str, fn() -> anyhow::Result<()>);

/// Set in the run as an unprivileged user.
const UNPRIVILEGED: &str = "SUNDOWN_NODE_TEST_UNPRIVILEGED";

/// Has an account everywhere and owns nothing.
const NOBODY: u32 = 65534;

/// Nodes at once; each test has its own.
const PARALLEL: usize = 3;

/// Runs the tests whose names contain one of the arguments, all without arguments.
pub(crate) fn run(tests: &[Test]) -> ExitCode {
    let filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|each| !each.starts_with('-'))
        .collect();
    let is_chosen =
        |name: &str| filters.is_empty() || filters.iter().any(|each| name.contains(each));
    let chosen: Vec<&Test> = tests.iter().filter(|(name, _)| is_chosen(name)).collect();
    let user = rustix::process::geteuid();
    println!("\nrunning {} tests as user {}", chosen.len(), user.as_raw());
    let begun_at = Instant::now();
    let failed = run_all(&chosen);
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    println!("failed: {failed:?}");
    println!(
        "test result: {word}. {} passed; {} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.1}s",
        chosen.len() - failed.len(),
        failed.len(),
        tests.len() - chosen.len(),
        begun_at.elapsed().as_secs_f32(),
    );
    let again =
        !user.is_root() || std::env::var_os(UNPRIVILEGED).is_some() || run_unprivileged(&filters);
    if failed.is_empty() && again {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run_all(chosen: &[&Test]) -> Vec<String> {
    let queue = Mutex::new(chosen.iter());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().next();
                    let Some((name, test)) = next else { return };
                    let result = catch_unwind(AssertUnwindSafe(|| run_named(name, *test)));
                    match &result {
                        Ok(Ok(())) => println!("test {name} ... ok"),
                        Ok(Err(error)) => println!("test {name} ... FAILED\n  {error:?}"),
                        Err(_) => println!("test {name} ... FAILED (panic)"),
                    }
                    if !matches!(result, Ok(Ok(()))) {
                        failed.lock().unwrap().push((*name).to_owned());
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap()
}

/// On a thread that is named after the test, as the usual harness does.
fn run_named(name: &str, test: fn() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    let ended = thread.spawn(test)?.join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Most users are not root, so everything is tried again as one of them.
fn run_unprivileged(filters: &[String]) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    // The target directory may be out of reach for others.
    let copy = directory.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let mut command = Command::new(&copy);
    command
        .args(filters)
        .env(UNPRIVILEGED, "1")
        .uid(NOBODY)
        .gid(NOBODY);
    command.current_dir("/");
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            println!("skipped as an unprivileged user: {error}");
            true
        }
    }
}
