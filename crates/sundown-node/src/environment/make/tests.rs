//! How tools are called, what they say, and what is made of it.

use super::*;

#[test]
fn lines_of_pip_and_uv_are_told_in_short() {
    let cases = [
        (
            "  Downloading ray-2.52.0-cp311.whl (72.2 MB)",
            Some("Downloading ray-2.52.0-cp311.whl (72.2 MB)"),
        ),
        (
            "Installing collected packages: a, b, c",
            Some("installing 3 packages"),
        ),
        (
            "Installed 38 packages in 1.2s",
            Some("Installed 38 packages in 1.2s"),
        ),
        ("Collecting ray", None),
    ];
    for (line, expected) in cases {
        assert_eq!(step(line).as_deref(), expected);
    }
}

#[test]
fn a_package_without_a_wheel_is_named() {
    let pip = "ERROR: Could not find a version that satisfies the requirement docopt>=0.6.2 (from \
               num2words) (from versions: none)\nERROR: No matching distribution found for \
               docopt>=0.6.2\n";
    let uv = "error: No solution found when resolving dependencies\n  cause: Because docopt==0.6.2 has \
              no usable wheels and only docopt<=0.6.2 is available, we can conclude that ...\n\nhint: \
              Wheels are required for `docopt` because building from source is disabled";
    let of_python = "cause: Because ray==2.9.0 has no wheels with a matching Python version tag (e.g., \
                     `cp313`) and you require ray[default]==2.9.0";
    let offline = format!("Failed to establish a new connection: refused\n{pip}");
    let unknown = "Because nonsense was not found in the package registry and you require nonsense";
    for (said, expect) in [
        (pip, Some("docopt>=0.6.2")),
        (uv, Some("docopt")),
        (of_python, Some("ray==2.9.0")),
        (&*offline, None),
        (unknown, None),
        ("No space left on device", None),
    ] {
        assert_eq!(without_wheel(said).as_deref(), expect, "{said}");
    }
}

/// pip builds what lies in a directory or behind an address, whatever it is told about wheels.
#[test]
fn only_what_is_at_an_index_or_is_a_wheel_is_installed() {
    for (requirement, expect) in [
        ("numpy", true),
        ("ray[default]==2.52.0", true),
        ("numpy>=1,<3; python_version < '3.13'", true),
        ("/opt/wheels/acme-1.0-py3-none-any.whl", true),
        (
            "acme @ https://files.example/acme-1.0-py3-none-any.whl#sha256=1",
            true,
        ),
        ("./checkout", false),
        ("/home/me/checkout", false),
        ("~/checkout", false),
        (".", false),
        ("-e .", false),
        ("-r requirements.txt", false),
        ("--index-url=https://a.example/x.whl", false),
        ("git+https://git.example/acme", false),
        ("acme @ https://files.example/acme-1.0.tar.gz", false),
        ("https://files.example/acme.zip", false),
        ("https://files.example/acme.WHL", false),
    ] {
        assert_eq!(is_of_index(requirement), expect, "{requirement}");
    }
}

/// Another process would make an environment where a removal still goes on.
#[tokio::test]
async fn work_apart_holds_the_lock_to_its_end_though_its_caller_gave_up() {
    let lock = Arc::new(tempfile::tempfile().unwrap());
    let (begun, begins) = std::sync::mpsc::channel();
    let (end, ends) = std::sync::mpsc::channel::<()>();
    let held = Arc::downgrade(&lock);
    let is_held = held.clone();
    let mut work = Box::pin(apart(&lock, move || {
        begun.send(()).unwrap();
        let _ = ends.recv();
        is_held.upgrade().is_some()
    }));
    let waker = std::task::Waker::noop();
    let polled = work
        .as_mut()
        .poll(&mut std::task::Context::from_waker(waker));
    assert!(polled.is_pending());
    begins.recv_timeout(sundown_testing::BOUND).unwrap();
    drop(work);
    drop(lock);
    assert!(held.upgrade().is_some());
    drop(end);
    let gone = sundown_testing::eventually("the end of the work", || held.upgrade().is_none());
    gone.await.unwrap();
}

#[tokio::test]
async fn a_tool_that_fails_is_told_with_its_last_lines() {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "for i in $(seq 40); do echo line $i; done; echo why >&2; exit 3",
    ]);
    let error = run(command, &mut |_| {}).await.unwrap_err().to_string();
    assert!(
        error.contains("exit status: 3") && error.contains("line 40"),
        "{error}"
    );
    assert!(!error.contains("line 5\n"), "{error}");
}

/// The first line that was no text was taken for the end, and the tool died of writing the next one.
#[tokio::test]
async fn a_line_that_is_no_text_is_told_as_far_as_it_is() {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        r"printf 'caf\351\r\n'; echo why || exit 4; printf 'without end'; exit 3",
    ]);
    let error = run(command, &mut |_| {}).await.unwrap_err().to_string();
    assert!(
        error.ends_with("exit status: 3:\ncaf\u{fffd}\nwhy\nwithout end"),
        "{error:?}"
    );
}
