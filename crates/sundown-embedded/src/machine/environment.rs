//! A run of a container as the node wants it: its environment, its variables, its command.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sundown_decide::pod::expand::{Budget, Template, TooLarge};
use sundown_driver::lookup::{Content, Holder};
use sundown_model::node::{Launch, Refused, Variable};
use sundown_node::environment::Environment;
use sundown_node::{ContainerSpec, Mount};

use super::DeedFailure;
use super::references::References;

/// All variables of a container with their values.
pub(super) async fn variables(
    budget: &mut Budget,
    launch: &Launch,
    of_image: &Environment,
    namespace: &str,
    references: &References,
) -> Result<Vec<(String, String)>, DeedFailure> {
    let mut all = budget.environment();
    for (name, value) in &of_image.variables {
        all.put(name.clone(), Template::Literal(value.clone()))?;
    }
    for variable in &launch.variables {
        // Each is paid for before the next object is looked up: one may be named many times.
        for (name, value) in values(variable, namespace, references).await? {
            all.put(name, value)?;
        }
    }
    Ok(all.finish())
}

async fn values(
    variable: &Variable,
    namespace: &str,
    references: &References,
) -> Result<Vec<(String, Template)>, DeedFailure> {
    let (holder, of, optional) = match variable {
        Variable::Text { name, value } => {
            return Ok(vec![(name.clone(), Template::Text(value.clone()))]);
        }
        Variable::ConfigMapKey { of, optional, .. } | Variable::ConfigMap { of, optional, .. } => {
            (Holder::ConfigMap, of, *optional)
        }
        Variable::SecretKey { of, optional, .. } | Variable::Secret { of, optional, .. } => {
            (Holder::Secret, of, *optional)
        }
    };
    let content = references.content(holder, namespace, of, optional).await?;
    let found = chosen(variable, content.unwrap_or_default());
    found.map_err(|failure| failure.for_lack_of(holder.key(namespace, of)))
}

fn chosen(
    variable: &Variable,
    mut content: Content,
) -> Result<Vec<(String, Template)>, DeedFailure> {
    match variable {
        Variable::Text { .. } => Ok(Vec::new()),
        Variable::ConfigMapKey {
            name,
            of,
            key,
            optional,
        }
        | Variable::SecretKey {
            name,
            of,
            key,
            optional,
        } => match content.remove(key) {
            Some(value) => Ok(vec![(name.clone(), text(&value))]),
            None if *optional => Ok(Vec::new()),
            None => {
                let message = format!("couldn't find key {key} in {of}");
                Err(DeedFailure::refused(Refused::KeyNotFound, message))
            }
        },
        Variable::ConfigMap { prefix, .. } | Variable::Secret { prefix, .. } => {
            let all = content.into_iter();
            Ok(all
                .map(|(key, value)| (format!("{prefix}{key}"), text(&value)))
                .collect())
        }
    }
}

fn text(value: &[u8]) -> Template {
    Template::Literal(String::from_utf8_lossy(value).into_owned())
}

/// The kubelet shows what is wrong with a manifest as `CreateContainerConfigError`.
impl From<TooLarge> for DeedFailure {
    fn from(why: TooLarge) -> Self {
        Self::refused(Refused::EnvironmentInvalid, why.to_string())
    }
}

/// The run with its command put together.
pub(super) fn container_spec(
    budget: &mut Budget,
    launch: &Launch,
    of_image: &Environment,
    variables: &[(String, String)],
) -> Result<ContainerSpec, TooLarge> {
    let known: BTreeMap<String, String> = variables.iter().cloned().collect();
    let parts = launch.command.iter().chain(&launch.args);
    let mut command = budget.command(parts, &known)?;
    // Arguments alone replace what the image would run, but flags alone are meant for it.
    let has_program = command.first().is_some_and(|it| !it.starts_with('-'));
    if launch.command.is_empty() && !has_program {
        command.splice(0..0, of_image.command.iter().cloned());
    }
    let mounts = launch.mounts.iter().map(|mount| Mount {
        volume: mount.volume.clone(),
        mount_path: PathBuf::from(&mount.path),
        sub_path: (!mount.sub_path.is_empty()).then(|| PathBuf::from(&mount.sub_path)),
        read_only: mount.read_only,
    });
    let directory = &launch.directory;
    Ok(ContainerSpec {
        name: launch.run.container.to_string(),
        attempt: launch.run.attempt,
        argv: command,
        env: variables.to_vec(),
        working_directory: (!directory.is_empty()).then(|| PathBuf::from(directory)),
        mounts: mounts.collect(),
        environment: of_image.binds.clone(),
        read_only_root: launch.read_only_root,
        dropped: launch.dropped.clone(),
        run_as: None,
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use kube::Client;
    use sundown_model::node::{Files, Run, Sandbox, Selection};

    use super::super::{files, sandbox};
    use super::*;

    /// A server in which every `ConfigMap` holds one text of so many bytes, and how often it was asked.
    fn answering(bytes: usize) -> (References, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let answer = move |_: http::Request<kube::client::Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            let body = serde_json::json!({ "data": { "a": "x".repeat(bytes) } }).to_string();
            std::future::ready(Ok::<_, Infallible>(http::Response::new(
                kube::client::Body::from(body.into_bytes()),
            )))
        };
        let client = Client::new(tower::service_fn(answer), "default");
        (References::new(client, String::new()), asked)
    }

    /// Eighty thousand lines that each named one `ConfigMap` were collected before they were counted.
    #[tokio::test]
    async fn a_config_map_that_is_named_many_times_is_paid_for_each_time() {
        let (references, asked) = answering(100_000);
        let named = Variable::ConfigMap {
            of: "c".to_owned(),
            prefix: String::new(),
            optional: false,
        };
        let launch = Launch {
            run: Run {
                pod: "u".into(),
                container: "main".into(),
                attempt: 0,
            },
            image: "i".into(),
            command: Vec::new(),
            args: Vec::new(),
            variables: vec![named; 80_000],
            directory: String::new(),
            mounts: Vec::new(),
            read_only_root: false,
            dropped: Vec::new(),
            run_as: sundown_model::node::RunAs::default(),
        };
        let of_image = Environment {
            binds: Vec::new(),
            variables: Vec::new(),
            command: Vec::new(),
        };
        let mut budget = Budget::default();
        let made = variables(&mut budget, &launch, &of_image, "ns", &references).await;
        let Err(DeedFailure::Refused(refusal)) = made else {
            unreachable!("it is 8 GB")
        };
        assert_eq!(refusal.reason, Refused::EnvironmentInvalid.into());
        assert_eq!(asked.load(Ordering::Relaxed), 11, "{}", refusal.message);
    }

    #[tokio::test]
    async fn files_of_volumes_have_a_bound_together() {
        let (references, asked) = answering(1 << 20);
        let named = Files::ConfigMap(Selection {
            name: "c".to_owned(),
            items: None,
            optional: false,
        });
        let sandbox = Sandbox {
            pod: "u".into(),
            namespace: "ns".into(),
            name: "p".into(),
            hostname: "p".to_owned(),
            domain: None,
            hosts: Vec::new(),
            search: Vec::new(),
            volumes: Vec::new(),
            shared_memory_bytes: None,
        };
        let from = vec![named; 10_000];
        let mut room = sundown_decide::pod::room::Room::of(sandbox::FILES_BYTES_MAX);
        let made = files::all(&sandbox, &from, 0o644, &mut room, &references).await;
        let Err(DeedFailure::Refused(refusal)) = made else {
            unreachable!("it is 10 GB")
        };
        assert_eq!(refusal.reason, Refused::VolumesTooLarge.into());
        assert_eq!(asked.load(Ordering::Relaxed), 64, "{}", refusal.message);
    }

    #[test]
    fn the_node_gives_the_rights_that_manifests_are_checked_against() {
        assert_eq!(
            sundown_node::CAPABILITIES,
            sundown_model::node::CAPABILITIES
        );
    }
}
