//! The command that submits: upstream's text, with a fence on the session before the submission.
//!
//! The fence: a head that was lost and came back is another session of Ray, which knows nothing of what
//! the one before it ran. A submitter that was made for one session must not start the job again in the
//! next. So, right before it submits, it asks the dashboard which session it talks to, and ends with
//! exit code 75 if it is not the one in its environment. What remains open is the time between the
//! answer and the submission, in which a head would have to be lost and be back.
//!
//! The runtime environment may hold secrets, and every user of a machine reads the command lines of all
//! processes. So it comes in a variable, which only the same user reads, and Ray reads it from a pipe.

use std::fmt::Write;

use serde_json::{Value, json};

use super::SubmitError;
use crate::constants::{ENV_RUNTIME_ENV, ENV_SESSION, PORT_DASHBOARD};
use crate::json::{compact, shell_quoted, shell_word};
use crate::ray_job::{RayJob, runtime_env};
use crate::settings::Settings;
use crate::version::Version;

/// The first version that takes metadata.
const METADATA_SINCE: Version = Version(2, 6, 0);

/// Where a submitter finds the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// Behind a service, from a pod of its own.
    Dashboard(&'a str),
    /// In the same pod.
    Sidecar,
}

/// What a shell runs, and what it has to find in its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// For a shell that knows process substitution, such as bash.
    pub text: String,
    /// The value of `ENV_RUNTIME_ENV`, as it stands in a manifest.
    pub runtime_env: Option<String>,
}

/// The text that a shell runs to submit a job and follow its log.
///
/// With `is_fenced` it submits only to the session that its environment names.
pub fn submit_command(
    job: &RayJob,
    target: Target<'_>,
    is_fenced: bool,
    settings: &Settings,
) -> Result<Submission, SubmitError> {
    let address = address(job, target)?;
    let runtime_env = runtime_env(&job.spec.runtime_env_yaml)?;
    let health = match target {
        Target::Dashboard(_) => address.clone(),
        Target::Sidecar => format!("http://localhost:{}", sidecar_port(job)),
    };
    let checks_first = match target {
        Target::Dashboard(_) => true,
        Target::Sidecar => settings.gates.sidecar_submitter_restart,
    };
    let id = shell_word(&job.status.job_id);
    let submit = submit(job, &address, runtime_env.is_some(), checks_first)?;
    let fence = if is_fenced {
        fence(&address)
    } else {
        String::new()
    };
    let mut text = wait_until_healthy(&health, &address);
    let address = shell_word(&address);
    if checks_first {
        let _ = write!(
            text,
            "if ! ray job status --address {address} {id} >/dev/null 2>&1 ; then {fence}{submit} fi ; \
             ray job logs --address {address} --follow {id}"
        );
    } else {
        let _ = write!(text, "{fence}{submit}");
    }
    Ok(Submission {
        text,
        runtime_env: runtime_env.map(|env| in_manifest(&Value::Object(env))),
    })
}

/// Errors: it is no address. It stands in programs inside of the text, so nothing may be in it that means
/// something to a shell or to Python.
fn address(job: &RayJob, target: Target<'_>) -> Result<String, SubmitError> {
    let address = match target {
        Target::Dashboard(url) if url.starts_with("http://") => url.to_owned(),
        Target::Dashboard(url) => format!("http://{url}"),
        Target::Sidecar => format!("http://127.0.0.1:{}", sidecar_port(job)),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]%".contains(c);
    if address.chars().all(is_plain) {
        Ok(address)
    } else {
        Err(SubmitError::Address(address))
    }
}

/// JSON that is the same in YAML, which is what Ray reads from files; and a dollar that the node or the
/// kubelet does not take for the start of a variable.
fn in_manifest(env: &Value) -> String {
    let mut text = String::new();
    for c in compact(env).chars() {
        match c {
            '$' => text.push_str("$$"),
            // Not printable by the rules of YAML, while JSON takes it as it is.
            c if c.is_control() => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            other => text.push(other),
        }
    }
    text
}

fn sidecar_port(job: &RayJob) -> i64 {
    let own = job
        .spec
        .cluster
        .as_ref()
        .and_then(|cluster| cluster.head.template.port("dashboard"));
    own.unwrap_or(PORT_DASHBOARD.into())
}

fn wait_until_healthy(base: &str, address: &str) -> String {
    format!(
        "until python -c \"import urllib.request; r=urllib.request.urlopen('{base}/api/gcs_healthz', \
         timeout=10); exit(0 if b'success' in r.read() else 1)\" >/dev/null 2>&1 ; do echo \"Waiting for \
         Ray Dashboard GCS to become healthy at {address} ...\" ; sleep 2 ; done ; "
    )
}

fn fence(address: &str) -> String {
    format!(
        "python -c \"import json,os,sys,urllib.request; want=os.environ['{ENV_SESSION}']; \
         got=json.load(urllib.request.urlopen('{address}/api/version', timeout=10)).get('session_name'); \
         got == want or (print('not submitted: this is session', got, 'and not', want, \
         file=sys.stderr), sys.exit(75))\" ; "
    )
}

fn submit(
    job: &RayJob,
    address: &str,
    has_runtime_env: bool,
    returns_at_once: bool,
) -> Result<String, SubmitError> {
    let spec = &job.spec;
    let mut text = format!("ray job submit --address {}", shell_word(address));
    if returns_at_once {
        text.push_str(" --no-wait");
    }
    let mut add = |flag: &str, value: &str| {
        let _ = write!(text, " {flag} {value}");
    };
    if has_runtime_env {
        // `printf` is a part of the shell: no process has the value among its words.
        let from_pipe = format!("<(printf %s \"${ENV_RUNTIME_ENV}\")");
        add("--runtime-env", &from_pipe);
    }
    if !spec.metadata.is_empty() {
        check_version(job)?;
        add(
            "--metadata-json",
            &shell_quoted(&compact(&json!(spec.metadata))),
        );
    }
    if !job.status.job_id.is_empty() {
        add("--submission-id", &shell_word(&job.status.job_id));
    }
    for (flag, count) in [
        ("--entrypoint-num-cpus", spec.entrypoint_cpus),
        ("--entrypoint-num-gpus", spec.entrypoint_gpus),
    ] {
        if count > 0.0 {
            add(flag, &format!("{count:.6}"));
        }
    }
    if !spec.entrypoint_resources.is_empty() {
        add(
            "--entrypoint-resources",
            &shell_quoted(&spec.entrypoint_resources),
        );
    }
    let _ = write!(text, " -- {} ;", spec.entrypoint.trim());
    Ok(text)
}

/// Refuses metadata where the version is known to be too old for it.
fn check_version(job: &RayJob) -> Result<(), SubmitError> {
    let given = job
        .spec
        .cluster
        .as_ref()
        .map_or("", |cluster| &*cluster.ray_version);
    if given.is_empty() || job.selects_cluster() {
        return Ok(());
    }
    let Some((version, is_release)) = Version::semantic(given) else {
        return Err(SubmitError::Version(given.to_owned()));
    };
    let is_enough = version > METADATA_SINCE || (version == METADATA_SINCE && is_release);
    if is_enough {
        Ok(())
    } else {
        Err(SubmitError::OldVersion)
    }
}
