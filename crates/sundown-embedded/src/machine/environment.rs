//! A run of a container as the node wants it: its environment, its variables, its command.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sundown_decide::pod::expand::{Budget, Template, TooLarge};
use sundown_model::node::{Launch, Variable};
use sundown_node::environment::Environment;
use sundown_node::{ContainerSpec, Mount};

use super::DeedFailure;
use super::lookup::{Content, Holder, Lookup};

/// All variables of a container with their values.
pub(super) async fn variables(
    budget: &mut Budget,
    launch: &Launch,
    of_image: &Environment,
    namespace: &str,
    lookup: &Lookup,
) -> Result<Vec<(String, String)>, DeedFailure> {
    let literal = |(name, value): &(String, String)| {
        let value = Template::Literal(value.clone());
        (name.clone(), value)
    };
    let mut all: Vec<(String, Template)> = of_image.variables.iter().map(literal).collect();
    for variable in &launch.variables {
        all.extend(values(variable, namespace, lookup).await?);
    }
    Ok(budget.environment(&all)?)
}

async fn values(
    variable: &Variable,
    namespace: &str,
    lookup: &Lookup,
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
    let content = lookup.content(holder, namespace, of, optional).await?;
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
                Err(DeedFailure::refused("KeyNotFound", message))
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
        Self::refused("EnvironmentInvalid", why.to_string())
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
    #[test]
    fn the_node_gives_the_rights_that_manifests_are_checked_against() {
        assert_eq!(
            sundown_node::CAPABILITIES,
            sundown_model::node::CAPABILITIES
        );
    }
}
