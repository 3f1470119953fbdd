//! How the binary is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The binary executes itself twice for each pod. Linked to a fixed address it needs no relocations,
    // which are most of what its start costs.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
