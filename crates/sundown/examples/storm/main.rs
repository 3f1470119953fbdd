//! Storms on `sundown up`: `storm kill BINARY ROUNDS SEED` ends it with kill -9 at seeded moments and
//! looks for every acknowledged write; `storm api BINARY ETCD KUBE_APISERVER COUNT` measures it beside
//! the real one; `storm node BINARY PYTHON` measures pods and Ray. Called by `cargo xtask accept kill`,
//! `cargo xtask bench` and by hand.
#![allow(
    clippy::print_stdout,
    reason = "a command line tool: its output is the product"
)]

mod api;
mod kill;
mod node;
mod plane;
mod server;

use anyhow::{Result, bail};

use plane::{Kind, Plane};

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["kill", binary, rounds, seed] => {
            kill::run(binary.as_ref(), rounds.parse()?, seed.parse()?).await
        }
        ["api", binary, etcd, server, count] => {
            let ours = Kind::Ours {
                binary: binary.into(),
            };
            let upstream = Kind::Upstream {
                etcd: etcd.into(),
                server: server.into(),
            };
            api::run([Plane::new(ours)?, Plane::new(upstream)?], count.parse()?).await
        }
        ["node", binary, python] => node::run(binary.as_ref(), python.as_ref()).await,
        _ => bail!(
            "usage: storm kill BINARY ROUNDS SEED | storm api BINARY ETCD KUBE_APISERVER COUNT | \
             storm node BINARY PYTHON"
        ),
    }
}
