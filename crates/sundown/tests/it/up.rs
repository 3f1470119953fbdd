//! A control plane from its start to its end, and the two commands that look at it.

use std::path::Path;
use std::process::Output;

use anyhow::Result;
use serde_json::Value;

use crate::process::{Up, call, stderr, stdout, sundown};

fn explain(home: &Path, up: &Up, arguments: &[&str]) -> Result<Output> {
    let mut command = sundown(home, &["explain", "--kubeconfig", up.kubeconfig()]);
    sundown_testing::output(command.args(arguments))
}

#[test]
fn leaves_nothing_behind() -> Result<()> {
    let home = tempfile::tempdir()?;
    let up = Up::start(home.path(), &[])?;
    assert!(up.started["start_ms"].as_f64() > Some(0.0));
    let kubeconfig = Path::new(up.kubeconfig()).to_owned();
    assert!(kubeconfig.starts_with(home.path().join(".local/state/sundown-ephemeral")));
    assert!(kubeconfig.exists());
    assert_eq!(up.terminate()?, Some(0));
    assert!(!kubeconfig.exists());
    Ok(())
}

/// `cargo xtask demo` found the process of the control plane after `down` and `reset` on a fresh machine: they had
/// waited for the end of its connection.
#[test]
fn down_returns_when_the_process_has_ended() -> Result<()> {
    let home = tempfile::tempdir()?;
    for _ in 0..5 {
        let mut up = Up::start_durable(home.path(), &[])?;
        let down = call(home.path(), &["down"])?;
        assert!(down.status.success(), "{}", stderr(&down));
        assert!(up.has_ended()?, "the process of `sundown up` is there");
    }
    Ok(())
}

#[test]
fn a_control_plane_whose_data_directory_is_removed_says_so_and_ends() -> Result<()> {
    let home = tempfile::tempdir()?;
    let (data, said) = (home.path().join("data"), home.path().join("said"));
    let mut command = sundown(home.path(), &["up", "--node=false", "-o", "json"]);
    command.arg("--data-dir").arg(&data);
    command.stderr(std::fs::File::create(&said)?);
    let up = Up::spawn(command, &[])?;
    sundown_files::remove(home.path(), "data")?;
    assert_eq!(up.end()?, Some(1));
    let said: Value = serde_json::from_str(&std::fs::read_to_string(&said)?)?;
    assert_eq!(
        said["error"],
        "the data directory is gone, and the control plane ends"
    );
    assert_eq!(
        said["causes"][0],
        "it was removed while the control plane ran"
    );
    assert!(!data.exists(), "nothing was made there again");
    Ok(())
}

/// A kubeconfig elsewhere stayed, and let in to the data wherever they were moved.
#[test]
fn a_control_plane_whose_data_directory_is_moved_leaves_no_kubeconfig_elsewhere() -> Result<()> {
    let home = tempfile::tempdir()?;
    let (data, kubeconfig) = (home.path().join("data"), home.path().join("elsewhere"));
    let mut command = sundown(home.path(), &["up", "--node=false", "-o", "json"]);
    command.arg("--data-dir").arg(&data);
    command.arg("--kubeconfig").arg(&kubeconfig);
    command.stderr(std::process::Stdio::null());
    let up = Up::spawn(command, &[])?;
    assert!(kubeconfig.exists());
    std::fs::rename(&data, home.path().join("moved"))?;
    assert_eq!(up.end()?, Some(1));
    assert!(!kubeconfig.exists());
    Ok(())
}

/// A port that was found free and taken then was told with the help `--port 0`, which was what was asked for.
#[test]
fn comes_back_at_the_port_of_the_last_time_if_that_is_free() -> Result<()> {
    let home = tempfile::tempdir()?;
    let url = |up: &Up| up.started["url"].as_str().unwrap_or_default().to_owned();
    let first = Up::start_durable(home.path(), &[])?;
    let before = url(&first);
    assert_eq!(first.terminate()?, Some(0));
    let again = Up::start_durable(home.path(), &[])?;
    assert_eq!(url(&again), before);
    assert_eq!(again.terminate()?, Some(0));
    let address = before.trim_start_matches("https://");
    let _taken = std::net::TcpListener::bind(address)?;
    let other = Up::start_durable(home.path(), &[])?;
    assert_ne!(url(&other), before);
    Ok(())
}

#[test]
fn takes_the_controllers_that_it_is_given() -> Result<()> {
    let home = tempfile::tempdir()?;
    let up = Up::start(home.path(), &["--controllers=ttl,owner_gc"])?;
    assert_eq!(
        up.started["controllers"],
        serde_json::json!(["owner_gc", "ttl"])
    );
    let arguments = ["--controllers=*", "--enable-garbage-collector=false"];
    let up = Up::start(home.path(), &arguments)?;
    let running = up.started["controllers"].to_string();
    assert!(!running.contains("owner_gc"), "{running}");
    Ok(())
}

#[test]
fn explains_what_is_there_and_says_what_is_not() -> Result<()> {
    let home = tempfile::tempdir()?;
    let up = Up::start(home.path(), &[])?;
    let output = explain(home.path(), &up, &["namespaces/default"])?;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(
        said.contains("owner_gc: no owner, so the collector never touches it"),
        "{said}"
    );

    let output = explain(home.path(), &up, &["namespace/default", "-o", "json"])?;
    let json: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(json["key"], "namespaces/default");
    assert_eq!(json["explanations"][0]["code"], "NoOwners");

    let output = explain(home.path(), &up, &["jobs/report", "-n", "team-a"])?;
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("error: jobs.batch/team-a/report is not there"),
        "{said}"
    );

    let output = explain(home.path(), &up, &["jbos/report"])?;
    assert_eq!(output.status.code(), Some(2));
    Ok(())
}

/// Such a file was taken for that of a data directory, and its directory refused.
#[test]
fn a_file_called_kubeconfig_may_lie_anywhere() -> Result<()> {
    let home = tempfile::tempdir()?;
    let up = Up::start(home.path(), &[])?;
    let project = home.path().join("project");
    std::fs::create_dir(&project)?;
    std::fs::write(project.join("notes"), "the user's")?;
    let kubeconfig = project.join("kubeconfig");
    std::fs::copy(up.kubeconfig(), &kubeconfig)?;
    let kubeconfig = kubeconfig.to_string_lossy().into_owned();
    let arguments = ["explain", "namespaces/default", "--kubeconfig", &kubeconfig];
    let output = call(home.path(), &arguments)?;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    Ok(())
}

#[test]
fn a_recorded_flight_is_flown_again() -> Result<()> {
    let home = tempfile::tempdir()?;
    let record = home.path().join("flight");
    let record = record.to_str().unwrap_or_default();
    let up = Up::start(home.path(), &["--flight-record", record])?;
    assert_eq!(up.terminate()?, Some(0));
    let output = call(home.path(), &["sim", "--replay", record])?;
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", stderr(&output));
    assert!(said.contains("the same as recorded"), "{said}");
    assert!(said.contains("> #1 ask what is served"), "{said}");
    Ok(())
}

/// Commands use the kubeconfig of the data directory, wherever else one was asked for.
#[test]
fn a_kubeconfig_elsewhere_does_not_hide_the_control_plane() -> Result<()> {
    let home = tempfile::tempdir()?;
    let elsewhere = home.path().join("config");
    let place = elsewhere.display().to_string();
    let up = Up::start_durable(home.path(), &["--kubeconfig", &place])?;
    assert_eq!(up.kubeconfig(), place);
    let own = home.path().join(".local/state/sundown/kubeconfig");
    assert_eq!(std::fs::read(&own)?, std::fs::read(&elsewhere)?);
    let output = sundown_testing::output(&mut sundown(home.path(), &["status"]))?;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains(&place), "{}", stdout(&output));
    assert_eq!(up.terminate()?, Some(0));
    assert!(!own.exists() && !elsewhere.exists());
    Ok(())
}
