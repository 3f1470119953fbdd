//! What a crate depends on, read from `cargo tree --prefix none`.

use std::collections::BTreeSet;

/// Crates that bring a clock, threads, files, sockets, randomness, logging or an async runtime.
const BANNED: &[&str] = &[
    "chrono",
    "fjall",
    "getrandom",
    "h2",
    "hyper",
    "kube",
    "libc",
    "log",
    "memmap2",
    "mio",
    "native-tls",
    "nix",
    "num_cpus",
    "openssl",
    "parking_lot",
    "polling",
    "rand",
    "rayon",
    "redis",
    "reqwest",
    "ring",
    "rustix",
    "rustls",
    "smol",
    "socket2",
    "tempfile",
    "time",
    "tower",
    "tracing",
    "walkdir",
];

/// Families of such crates.
const BANNED_PREFIXES: &[&str] = &[
    "async-",
    "crossbeam",
    "futures",
    "hyper-",
    "kube-client",
    "kube-runtime",
    "rand_",
    "tokio",
];

/// The banned crates in the dependency tree of a pure crate.
pub(super) fn impure(name: &str, tree: &str) -> Vec<String> {
    names(tree)
        .into_iter()
        .filter(|dependency| is_banned(dependency))
        .map(|dependency| format!("{name}: pure, but depends on {dependency}"))
        .collect()
}

/// The crates out of `forbidden` in the dependency tree of a crate.
pub(super) fn forbidden(name: &str, tree: &str, forbidden: &[&str]) -> Vec<String> {
    names(tree)
        .into_iter()
        .filter(|dependency| forbidden.contains(dependency))
        .map(|dependency| format!("{name}: must know no embedded server, but reaches {dependency}"))
        .collect()
}

fn is_banned(dependency: &str) -> bool {
    BANNED.contains(&dependency)
        || BANNED_PREFIXES
            .iter()
            .any(|prefix| dependency.starts_with(prefix))
}

/// The names, each once.
fn names(tree: &str) -> BTreeSet<&str> {
    tree.lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}
