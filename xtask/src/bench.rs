//! `cargo xtask bench NAME`: benchmarks, each with its budget; never part of a gate's verdict.
//!
//! A benchmark stands in the table once it measures something.

mod api;
mod node;
mod start;

use anyhow::Result;

use crate::lane::{self, Lane};

const BENCHES: &[Lane] = &[
    Lane {
        name: "api",
        about: "durable writes, watches, lists and starts, beside a real kube-apiserver with etcd",
        run: api::run,
    },
    Lane {
        name: "node",
        about: "pods and Ray heads on this machine, a head beside `ray start` by hand",
        run: node::run,
    },
    Lane {
        name: "start",
        about: "from nothing to the first answered list, and memory at rest",
        run: start::run,
    },
];

/// Runs the benchmark that the arguments name.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    lane::run("benchmark", BENCHES, arguments)
}
