//! One TLS stack, once. A second one would come in silently with a feature of some dependency.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Result, ensure};

/// Other ways to speak TLS, or other providers of its cryptography.
const OTHERS: [&str; 6] = [
    "aws-lc-rs",
    "aws-lc-sys",
    "boring-sys",
    "native-tls",
    "openssl",
    "openssl-sys",
];

#[test]
fn there_is_one_tls_stack() -> Result<()> {
    let tree = ["tree", "--package", "sundown", "--edges", "normal"];
    let mut cargo = Command::new(env!("CARGO"));
    let words = ["--prefix", "none", "--format", "{p}", "--offline"];
    let output = sundown_testing::output(cargo.args(tree).args(words))?;
    ensure!(output.status.success(), "cargo tree: {output:?}");
    let tree = String::from_utf8(output.stdout)?;
    let crates: BTreeSet<_> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?))
        })
        .collect();
    let named = |name: &str| crates.iter().filter(|(it, _)| *it == name).count();
    for other in OTHERS {
        assert_eq!(named(other), 0, "{other} is a second TLS stack");
    }
    for ours in [
        "rustls",
        "ring",
        "hyper-rustls",
        "tokio-rustls",
        "rustls-webpki",
    ] {
        assert_eq!(named(ours), 1, "{ours} is there once");
    }
    Ok(())
}
