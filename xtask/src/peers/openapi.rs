//! `/openapi/v2` read by Go: what gnostic makes of the protobuf and of the JSON is the same, and kubectl's
//! models come out of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use sundown_kinds::crd::{ray_cluster, ray_job};

use crate::control_plane::ControlPlane;
use crate::{process, workspace};

/// Asks with the definitions of the chart and those of Ray in place: a control plane without a node
/// installs none.
pub(super) fn run(binary: &Path) -> Result<()> {
    process::require("go", "install Go 1.26 or later (https://go.dev/dl)")?;
    let program = workspace::cache()?.join("peers/openapi");
    fs::create_dir_all(program.parent().context("it has a directory")?)?;
    println!("peers: building the reader of OpenAPI");
    process::run(
        Command::new("go")
            .current_dir(workspace::root().join("xtask/peers/openapi"))
            .env("CGO_ENABLED", "0")
            .args(["build", "-o"])
            .arg(&program)
            .arg("."),
    )?;
    let plane = ControlPlane::start(binary)?;
    let definitions = workspace::root().join("xtask/peers/chart/crds");
    plane.ask(&["create", "-f", &definitions.display().to_string()])?;
    for (name, definition) in [("ray-jobs", ray_job()), ("ray-clusters", ray_cluster())] {
        plane.ask(&["create", "-f", &plane.manifest(name, &definition)?])?;
    }
    let said = process::output(Command::new(&program).env("KUBECONFIG", plane.kubeconfig()))?;
    println!("peers: OpenAPI v2: {}", said.trim_end());
    Ok(())
}
