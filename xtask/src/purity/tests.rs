//! The purity gate is proven by deliberate violations: each must be found.

use std::fs;
use std::process::{Command, Output};

use super::*;

/// The violations in one source, without their places.
fn paths_in(source: &str) -> Vec<String> {
    let strip = |violation: String| violation.split('`').nth(1).unwrap_or_default().to_owned();
    paths::check("sample.rs", source)
        .into_iter()
        .map(strip)
        .collect()
}

#[test]
fn every_impure_path_is_found() {
    let samples = [
        ("use std::fs;", "std::fs"),
        ("use std::{collections::BTreeMap, env};", "std::env"),
        (
            "use std::{io::{self, Write}, net::{TcpStream}};",
            "std::net::TcpStream",
        ),
        ("use ::std::thread;", "std::thread"),
        ("use std::process as p;", "std::process"),
        ("use std::path::Path;", "std::path::Path"),
        ("use std::os::fd::OwnedFd;", "std::os::fd::OwnedFd"),
        ("use std::time::{Duration, Instant};", "std::time::Instant"),
        (
            "use std::time::SystemTime as Clock;",
            "std::time::SystemTime",
        ),
        (
            "use std::sync::atomic::AtomicU64;",
            "std::sync::atomic::AtomicU64",
        ),
        ("use std::sync::{Arc, Mutex};", "std::sync::Mutex"),
        ("use std::sync as s; type T = s::RwLock<u8>;", "s::RwLock"),
        ("use std as other;", "std"),
        ("use std::*;", "std::*"),
        ("use std::collections::*;", "std::collections::*"),
        ("fn f() { let m: HashMap<u8, u8>; }", "HashMap"),
        (
            "fn f() { std::collections::HashSet::<u8>::new(); }",
            "std::collections::HashSet",
        ),
        ("fn f() { std::fs::read(name); }", "std::fs::read"),
        (
            "fn f() { let now = jiff::Timestamp::now(); }",
            "jiff::Timestamp::now",
        ),
        ("fn f() { let now = Zoned::now(); }", "Zoned::now"),
        ("fn f() { rand::thread_rng(); }", "rand::thread_rng"),
        ("fn f() { fastrand::Rng::new(); }", "fastrand::Rng::new"),
        ("thread_local! { static X: u8 = 0; }", "thread_local!"),
        ("fn f() { println!(); }", "println!"),
        ("fn f() { eprintln!(); }", "eprintln!"),
        ("use std::io; fn f() { io::stdout(); }", "io::stdout"),
        ("async fn f() {}", "async"),
        ("#[cfg(test)] mod tests { use std::fs; }", "std::fs"),
    ];
    for (source, path) in samples {
        assert_eq!(paths_in(source), [path], "in: {source}");
    }
}

#[test]
fn pure_code_and_prose_pass() {
    let source = r#"
        //! Not std::fs, not Instant::now().
        use std::collections::{BTreeMap, BTreeSet};
        use std::{fmt, sync::Arc, time::Duration};
        /* HashMap */
        fn f<'a>(now: Timestamp) -> impl Iterator<Item = u8> + use<'a> {
            let text = "std::env::var";
            print(pod.stdin != other);
            self.now.max(now)
        }
    "#;
    assert_eq!(paths_in(source), Vec::<String>::new());
}

#[test]
fn a_violation_names_file_line_and_reason() {
    let found = paths::check("crates/x/src/lib.rs", "//! Docs.\n\nuse std::fs;\n");
    assert_eq!(
        found,
        ["crates/x/src/lib.rs:3: `std::fs` is not pure: no file system"]
    );
}

#[test]
fn sources_and_tests_of_pure_crates_are_judged() {
    assert!(is_judged("crates/sundown-model/src/lib.rs"));
    assert!(is_judged("crates/sundown-decide/src/ttl/tests.rs"));
    assert!(is_judged("crates/sundown-sim/tests/it/main.rs"));
    assert!(!is_judged(
        "crates/sundown-model/tests/compile_fail/unguarded_delete.rs"
    ));
    assert!(!is_judged("crates/sundown-model/build.rs"));
    assert!(!is_judged("crates/sundown-driver/src/lib.rs"));
}

#[test]
fn every_impure_dependency_is_found() {
    let tree = "sundown-model v0.1.0 (/somewhere)\nserde v1.0.0\ntokio v1.52.0\nmio v1.0.0\n\
                tokio v1.52.0 (*)\nasync-trait v0.1.0 (proc-macro)\ntokio-rustls v0.26.0\n\
                randomize v1.0.0\ngetrandom v0.4.0\nfjall v3.0.0\nkube v5.0.0\nkube-core v5.0.0";
    let found = tree::impure("sundown-model", tree);
    let names: Vec<_> = found
        .iter()
        .filter_map(|line| line.rsplit(' ').next())
        .collect();
    let expect = [
        "async-trait",
        "fjall",
        "getrandom",
        "kube",
        "mio",
        "tokio",
        "tokio-rustls",
    ];
    assert_eq!(names, expect);
}

#[test]
fn an_edge_to_the_embedded_server_is_found() {
    let tree = "sundown-driver v0.1.0 (/somewhere)\nsundown-engine v0.1.0 (/somewhere)\n\
                sundown-store v0.1.0 (/somewhere)\n";
    assert_eq!(
        tree::forbidden("sundown-driver", tree, EMBEDDED_SERVER),
        ["sundown-driver: must know no embedded server, but reaches sundown-store"]
    );
}

#[test]
fn weakened_lints_are_found() {
    let root = "limit = 70\nlist = [\n    { path = \"a\" },\n]\n";
    assert!(lints::template(root, "# More.\nlimit = 70\nlist = []\n").is_empty());
    assert_eq!(lints::template(root, "limit = 700\n").len(), 1);
    assert!(lints::clippy_toml("sundown-sim", "a", "a").is_none());
    assert!(lints::clippy_toml("sundown-sim", "b", "a").is_some());
    let header = "//! Docs.\n#![deny(clippy::wildcard_enum_match_arm)]\n";
    assert!(lints::lib_rs("sundown-sim", header).is_none());
    assert!(
        lints::lib_rs(
            "sundown-sim",
            "// #![deny(clippy::wildcard_enum_match_arm)]"
        )
        .is_some()
    );
}

#[test]
fn a_new_crate_must_be_put_in_a_list() {
    assert_eq!(
        unlisted(&["sundown-sim".to_owned(), "sundown".to_owned()]).len(),
        0
    );
    assert_eq!(unlisted(&["sundown-new".to_owned()]).len(), 1);
}

/// A crate of its own with the lints of a pure crate, removed at the end.
struct Sample {
    directory: tempfile::TempDir,
}

impl Sample {
    fn new(name: &str, lib: &str) -> Self {
        let name = format!("sundown-purity-{name}");
        let kept = tempfile::tempdir().expect("make a directory");
        let directory = kept.path();
        fs::create_dir(directory.join("src")).expect("make the sample");
        let manifest = format!(
            "[package]\nname = \"{name}\"\nedition = \"2024\"\n[workspace]\n\
             [lints.clippy]\ndisallowed_methods = \"deny\"\ndisallowed_types = \"deny\"\n"
        );
        fs::write(directory.join("Cargo.toml"), manifest).expect("write the manifest");
        fs::write(directory.join("src/lib.rs"), lib).expect("write the source");
        fs::copy(template_path(), directory.join("clippy.toml")).expect("copy the template");
        Self { directory: kept }
    }

    fn clippy(&self) -> Output {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Command::new(cargo)
            .args(["clippy", "--quiet", "--offline"])
            .current_dir(self.directory.path())
            .env("CARGO_TARGET_DIR", self.directory.path().join("target"))
            .output()
            .expect("run clippy")
    }
}

#[test]
fn clippy_refuses_a_clock_in_a_pure_crate() {
    let lib = "pub fn f() -> std::time::Instant { std::time::Instant::now() }\n";
    let output = Sample::new("clock", lib).clippy();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{messages}");
    assert!(messages.contains("pure: time is an argument"), "{messages}");
}

#[test]
fn clippy_lets_a_pure_crate_pass() {
    let output = Sample::new("pure", "pub fn f(now: u64) -> u64 { now }\n").clippy();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
