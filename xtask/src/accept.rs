//! `cargo xtask accept LANE`: acceptance, the slow gate, one lane at a time.
//!
//! A lane stands in the table once it checks something; the landing gate is `ci`.

use anyhow::Result;

use crate::lane::{self, Lane};
use crate::{deny, peers, sim};

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
        name: "peers",
        about: "upstream's garbage collector does its work on our server",
        run: peers::run,
    },
];

/// Runs the lane that the arguments name.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    lane::run("lane", LANES, arguments)
}
