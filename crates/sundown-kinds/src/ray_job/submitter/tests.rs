//! The text of the command, and the Job around it.

use serde_json::{Value, json};

use super::*;
use crate::ray_cluster::RayCluster;
use crate::testing::{a_cluster, a_job};

const A: &str = "http://demo-head-svc.ns.svc.cluster.local:8265";

fn submitted(changes: &[(&str, Value)]) -> Result<Submission, SubmitError> {
    let job = a_job(changes);
    let target = Target::Dashboard(&job.status.dashboard_url);
    submit_command(&job, target, false, &Settings::default())
}

fn command(changes: &[(&str, Value)]) -> Result<String, SubmitError> {
    submitted(changes).map(|it| it.text)
}

fn wait(base: &str, address: &str) -> String {
    format!(
        "until python -c \"import urllib.request; r=urllib.request.urlopen('{base}/api/gcs_healthz', \
         timeout=10); exit(0 if b'success' in r.read() else 1)\" >/dev/null 2>&1 ; do echo \"Waiting for \
         Ray Dashboard GCS to become healthy at {address} ...\" ; sleep 2 ; done ;"
    )
}

/// The part that differs from job to job.
fn submission(changes: &[(&str, Value)]) -> String {
    let text = command(changes).unwrap();
    let (_, rest) = text.split_once("; then ").unwrap();
    rest.split_once(" fi ; ").unwrap().0.to_owned()
}

fn made(changes: &[(&str, Value)]) -> Value {
    let RayCluster { spec, .. } = a_cluster(&[]);
    job(
        &a_job(changes),
        &spec,
        Some("session_1"),
        &Settings::default(),
    )
    .unwrap()
}

#[test]
fn a_submitter_waits_checks_submits_and_follows() {
    let wait = wait(A, A);
    assert_eq!(
        command(&[]).unwrap(),
        format!(
            "{wait} if ! ray job status --address {A} counter-bc9bc >/dev/null 2>&1 ; then ray job \
             submit --address {A} --no-wait --submission-id counter-bc9bc -- python count.py ; fi ; ray \
             job logs --address {A} --follow counter-bc9bc"
        )
    );
}

#[test]
fn a_sidecar_submits_and_stays_unless_it_may_be_restarted() {
    let port = "/spec/rayClusterSpec/headGroupSpec/template/spec/containers/0/ports";
    let job = a_job(&[(port, json!([{"name": "dashboard", "containerPort": 9999}]))]);
    let mut settings = Settings::default();
    let here = "http://127.0.0.1:9999";
    let wait = wait("http://localhost:9999", here);
    let submit = format!("ray job submit --address {here}");
    let tail = "--submission-id counter-bc9bc -- python count.py ;";
    let text = |settings: &Settings| {
        let made = submit_command(&job, Target::Sidecar, false, settings);
        made.unwrap().text
    };
    assert_eq!(text(&settings), format!("{wait} {submit} {tail}"));
    settings.gates.sidecar_submitter_restart = true;
    let text = text(&settings);
    let expected = format!(
        "{wait} if ! ray job status --address {here} counter-bc9bc >/dev/null 2>&1 ; then {submit} \
         --no-wait {tail} fi ; ray job logs --address {here} --follow counter-bc9bc"
    );
    assert_eq!(text, expected);
}

#[test]
fn options_come_in_their_order() {
    let text = submission(&[
        (
            "/spec/runtimeEnvYAML",
            json!("pip: [\"a<1\"]\nenv_vars:\n  B: \"2\"\n  A: x\nn: 1.0\n"),
        ),
        ("/spec/metadata", json!({"z": "1", "a": "2"})),
        ("/spec/entrypointNumCpus", json!(0.5)),
        ("/spec/entrypointNumGpus", json!(1)),
        ("/spec/entrypointResources", json!("{\"Custom\": 1}")),
    ]);
    assert_eq!(
        text,
        format!(
            "ray job submit --address {A} --no-wait --runtime-env <(printf %s \
             \"$SUNDOWN_RAY_RUNTIME_ENV\") --metadata-json \
             \"{{\\\"a\\\":\\\"2\\\",\\\"z\\\":\\\"1\\\"}}\" --submission-id counter-bc9bc \
             --entrypoint-num-cpus 0.500000 --entrypoint-num-gpus 1.000000 --entrypoint-resources \
             \"{{\\\"Custom\\\": 1}}\" -- python count.py ;"
        )
    );
}

/// Upstream puts these in double quotes only: the shell of the submitter runs what a user meant as data.
#[test]
fn nothing_in_data_is_run_by_the_shell() {
    let resources = json!("{\"$(id) `id` $HOME\": 1}");
    let text = submission(&[("/spec/entrypointResources", resources)]);
    assert!(text.contains(r"\$(id) \`id\` \$HOME"), "{text}");
    let text = submission(&[("/status/jobId", json!("a;b"))]);
    assert!(text.contains("--submission-id 'a;b' --"), "{text}");
}

#[test]
fn metadata_needs_a_version_that_takes_it_where_one_is_told() {
    let metadata = ("/spec/metadata", json!({"a": "b"}));
    let with = |version: &str| {
        command(&[
            metadata.clone(),
            ("/spec/rayClusterSpec/rayVersion", json!(version)),
        ])
    };
    assert_eq!(with("2.5.0"), Err(SubmitError::OldVersion));
    assert_eq!(
        SubmitError::OldVersion.to_string(),
        "the Ray version must be at least 2.6.0 to use the metadata field"
    );
    let told = with("nightly").unwrap_err().to_string();
    assert!(
        told.starts_with("failed to parse Ray version: nightly"),
        "{told}"
    );
    assert!(with("").is_ok() && with("2.6.0").is_ok());
    let selector = ("/spec/clusterSelector", json!({"ray.io/cluster": "x"}));
    let none = ("/spec/rayClusterSpec", json!(null));
    assert!(command(&[metadata, selector, none]).is_ok());
}

#[test]
fn the_fence_stands_right_before_the_submission() {
    let job = a_job(&[]);
    let target = Target::Dashboard(&job.status.dashboard_url);
    let made = submit_command(&job, target, true, &Settings::default());
    let text = made.unwrap().text;
    let fence = format!(
        "python -c \"import json,os,sys,urllib.request; want=os.environ['SUNDOWN_RAY_SESSION']; \
         got=json.load(urllib.request.urlopen('{A}/api/version', timeout=10)).get('session_name'); got \
         == want or (print('not submitted: this is session', got, 'and not', want, file=sys.stderr), \
         sys.exit(75))\" ; "
    );
    let (before, after) = text.split_once(&fence).unwrap();
    assert_eq!(format!("{before}{after}"), command(&[]).unwrap());
    assert!(before.ends_with("; then ") && after.starts_with("ray job submit "));
}

#[test]
fn the_default_submitter_has_the_image_of_the_head() {
    let made = made(&[]);
    let command = submit_command(
        &a_job(&[]),
        Target::Dashboard("demo-head-svc.ns.svc.cluster.local:8265"),
        true,
        &Settings::default(),
    );
    assert_eq!(
        made["spec"],
        json!({
            "backoffLimit": 2,
            "template": {
                "metadata": {"labels": {
                    "ray.io/originated-from-cr-name": "counter",
                    "ray.io/originated-from-crd": "RayJob",
                    "app.kubernetes.io/created-by": "kuberay-operator",
                }},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{
                        "name": "ray-job-submitter",
                        "image": "rayproject/ray:2.55.0",
                        "resources": {
                            "requests": {"cpu": "500m", "memory": "200Mi"},
                            "limits": {"cpu": "1", "memory": "1Gi"},
                        },
                        "command": ["/bin/bash", "-ce", "--"],
                        "args": [command.unwrap().text],
                        "env": [
                            {"name": "PYTHONUNBUFFERED", "value": "1"},
                            {"name": "RAY_DASHBOARD_ADDRESS",
                             "value": "demo-head-svc.ns.svc.cluster.local:8265"},
                            {"name": "RAY_JOB_SUBMISSION_ID", "value": "counter-bc9bc"},
                            {"name": "SUNDOWN_RAY_SESSION", "value": "session_1"},
                        ],
                    }],
                },
            },
        })
    );
    assert_eq!(made["metadata"]["name"], "counter");
    assert_eq!(
        made["metadata"]["labels"],
        made["spec"]["template"]["metadata"]["labels"]
    );
    assert_eq!(made["metadata"]["ownerReferences"][0]["controller"], true);
}

#[test]
fn a_command_of_the_user_is_kept_and_gets_the_environment() {
    let container = json!({"name": "mine", "image": "i", "command": ["sh"], "args": ["-c", "x"],
                           "env": [{"name": "OWN", "value": "1"}]});
    let template =
        json!({"metadata": {"labels": {"own": "label"}}, "spec": {"containers": [container]}});
    let made = made(&[
        ("/spec/submitterPodTemplate", template),
        ("/spec/submitterConfig/backoffLimit", json!(0)),
    ]);
    assert_eq!(made["spec"]["backoffLimit"], 0);
    let pod = &made["spec"]["template"];
    assert_eq!(pod["metadata"]["labels"]["own"], "label");
    assert_eq!(
        pod["metadata"]["labels"]["ray.io/originated-from-crd"],
        "RayJob"
    );
    let container = &pod["spec"]["containers"][0];
    assert_eq!(
        (&container["command"], &container["args"]),
        (&json!(["sh"]), &json!(["-c", "x"]))
    );
    assert_eq!(container["env"].as_array().map(Vec::len), Some(5));
}

/// Without one the API server refuses the Job.
#[test]
fn a_template_without_a_restart_policy_gets_never_and_another_is_kept() {
    for (own, expect) in [
        (json!(null), "Never"),
        (json!(""), "Never"),
        (json!("OnFailure"), "OnFailure"),
    ] {
        let spec = json!({"containers": [{"name": "mine"}], "restartPolicy": own});
        let made = made(&[("/spec/submitterPodTemplate", json!({"spec": spec}))]);
        assert_eq!(made["spec"]["template"]["spec"]["restartPolicy"], expect);
    }
}

#[test]
fn what_makes_no_sense_is_told_also_with_a_command_of_the_user() {
    let template = json!({"spec": {"containers": [{"name": "m", "command": ["sh"]}]}});
    let broken = a_job(&[
        ("/spec/submitterPodTemplate", template),
        ("/spec/runtimeEnvYAML", json!("- a")),
    ]);
    let RayCluster { spec, .. } = a_cluster(&[]);
    let told = job(&broken, &spec, None, &Settings::default());
    assert!(matches!(told, Err(SubmitError::RuntimeEnv(_))), "{told:?}");
}

#[test]
fn a_login_shell_is_used_where_it_is_asked_for() {
    let RayCluster { spec, .. } = a_cluster(&[]);
    let settings = Settings {
        login_shell: true,
        ..Settings::default()
    };
    let made = job(&a_job(&[]), &spec, None, &settings).unwrap();
    let container = &made["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["/bin/bash", "-cel", "--"]));
}

/// Every user of a machine could read it in the command lines of the submitter and of Ray.
#[test]
fn a_runtime_environment_stands_in_a_variable_and_in_no_command_line() {
    let yaml = json!("env_vars:\n  KEY: \"s3cret $(HOME) $x `id` \\x7f\"\npip: [\"a<1\"]\n");
    let changes = [("/spec/runtimeEnvYAML", yaml)];
    let container = &made(&changes)["spec"]["template"]["spec"]["containers"][0];
    let words = format!("{}{}", container["command"], container["args"]);
    assert!(!words.contains("s3cret"), "{words}");
    assert!(words.contains("--runtime-env <(printf %s"), "{words}");
    let variable = json!({
        "name": "SUNDOWN_RAY_RUNTIME_ENV",
        // The kubelet makes one dollar of two.
        "value": r#"{"env_vars":{"KEY":"s3cret $$(HOME) $$x `id` \u007f"},"pip":["a\u003c1"]}"#,
    });
    let env = container["env"].as_array().unwrap();
    assert_eq!(env.last(), Some(&variable));
}

#[test]
fn a_command_of_the_user_is_not_given_the_runtime_environment() {
    let template = json!({"spec": {"containers": [{"name": "m", "command": ["sh"]}]}});
    let made = made(&[
        ("/spec/submitterPodTemplate", template),
        ("/spec/runtimeEnvYAML", json!("pip: [a]")),
    ]);
    let text = made.to_string();
    assert!(!text.contains("SUNDOWN_RAY_RUNTIME_ENV"), "{text}");
}

#[test]
fn an_address_is_one_word_of_the_shell_or_refused() {
    let with = |url: &str| command(&[("/status/dashboardURL", json!(url))]);
    let text = with("[fd00::1]:8265").unwrap();
    assert!(text.contains("ray job submit --address 'http://[fd00::1]:8265' --no-wait"));
    assert!(text.contains("urlopen('http://[fd00::1]:8265/api/gcs_healthz'"));
    for url in [
        "a;id", "a b", "$(id)", "`id`", "a\"", "a'", "a\\", "a\nb", "a&b", "a>b",
    ] {
        let told = with(url);
        assert_eq!(told, Err(SubmitError::Address(format!("http://{url}"))));
    }
    let told = with("$(id)").unwrap_err().to_string();
    assert!(
        told.starts_with("status.dashboardURL is no address"),
        "{told}"
    );
}
