//! `cargo xtask accept LANE`: acceptance, the slow gate, one lane at a time.
//!
//! A lane stands in the table once it checks something; the landing gate is `ci`.

use anyhow::Result;

use crate::lane::{self, Lane};
use crate::{deny, hostile, kill, oracle, peers, ray, sim, yaml};

const LANES: &[Lane] = &[
    Lane {
        name: "advisories",
        about: "known security advisories of dependencies, where their database can be reached",
        run: deny::advisories,
    },
    Lane {
        name: "fuzz",
        about: "the simulator with 5,000 seeds",
        run: || sim::run(&["--seeds".to_owned(), "5000".to_owned()]),
    },
    Lane {
        name: "oracle",
        about: "the request script on a real kube-apiserver and on ours; fails on drift",
        run: oracle::run,
    },
    Lane {
        name: "record",
        about: "writes the transcripts of the real kube-apiserver anew",
        run: oracle::record,
    },
    Lane {
        name: "facts",
        about: "writes anew what the real kube-apiserver serves and the columns of its Tables",
        run: oracle::facts,
    },
    Lane {
        name: "kill",
        about: "kill -9 in a write storm, 200 seeded moments: every acknowledged write is there",
        run: kill::accept,
    },
    Lane {
        name: "hostile",
        about: "pods, manifests, other users and directories that mean harm, with root and without",
        run: hostile::run,
    },
    Lane {
        name: "ray",
        about: "the examples on real Ray, two at once, four clusters, and without root",
        run: ray::accept,
    },
    Lane {
        name: "node",
        about: "kill -9 of control plane, client and node while a RayJob runs; pods that behave badly",
        run: ray::accept_node,
    },
    Lane {
        name: "promises",
        about: "RayJobs on real Ray whose control plane sleeps, whose cluster is deleted, whose driver is a client",
        run: ray::accept_promises,
    },
    Lane {
        name: "peers",
        about: "upstream's garbage collector, every kind by protobuf alone, an operator in Go, helm and a leader election",
        run: peers::run,
    },
    Lane {
        name: "yaml",
        about: "kubectl reads several hundred documents as recorded, and so do we",
        run: yaml::run,
    },
    Lane {
        name: "record-yaml",
        about: "writes anew what kubectl reads of these documents",
        run: yaml::record,
    },
];

/// Runs the lane that the arguments name.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    lane::run("lane", LANES, arguments)
}
