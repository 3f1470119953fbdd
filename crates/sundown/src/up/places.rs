//! Where a control plane keeps and finds its files. All of it is settled before the control plane leaves
//! the directory that it was started in: that may be a checkout of other people, and nothing of it shall
//! be found by chance later on.

use std::path::{Path, PathBuf};

use crate::arguments::Up;
use crate::complaint::Complaint;
use crate::data;

/// Absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places {
    /// None: everything is kept in memory.
    pub(super) data: Option<PathBuf>,
    /// The first is told.
    pub(super) kubeconfigs: Vec<PathBuf>,
    /// None: no pods run.
    pub(super) of_pods: Option<OfPods>,
    pub(super) flight_record: Option<PathBuf>,
}

/// What pods are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OfPods {
    pub(super) image_rules: PathBuf,
    pub(super) environments: PathBuf,
}

impl Places {
    /// As told, else by the variables of this process, else the usual ones.
    pub(super) fn of(arguments: &Up, runs_pods: bool) -> Result<Self, Complaint> {
        let data = (!arguments.ephemeral).then(|| data::directory(arguments.data_dir.as_deref()));
        let data = data.transpose()?;
        let data = data.as_deref().map(absolute).transpose()?;
        let told = arguments.kubeconfig.as_deref().map(absolute).transpose()?;
        Ok(Self {
            kubeconfigs: kubeconfigs(told, data.as_deref())?,
            of_pods: runs_pods.then(|| OfPods::of(arguments)).transpose()?,
            flight_record: arguments
                .flight_record
                .as_deref()
                .map(absolute)
                .transpose()?,
            data,
        })
    }

    /// Refuses a data directory that every pod would see: it holds the keys of the control plane.
    pub(super) fn check_for_pods(&self) -> Result<(), Complaint> {
        let is_shown = |it: &Path| sundown_node::is_shown(it);
        let is_seen =
            |it: &&PathBuf| is_shown(it) || it.canonicalize().is_ok_and(|real| is_shown(&real));
        let Some(directory) = self.data.as_ref().filter(is_seen) else {
            return Ok(());
        };
        let complaint = Complaint::usage("every pod would see the data directory")
            .at(directory.display().to_string());
        Err(complaint
            .help("pods see the programs and libraries of this machine: /usr, /opt")
            .help("take a directory elsewhere: --data-dir DIR"))
    }
}

impl OfPods {
    fn of(arguments: &Up) -> Result<Self, Complaint> {
        Ok(Self {
            image_rules: absolute(&data::image_rules(arguments.image_rules.as_deref())?)?,
            environments: absolute(&data::environments()?)?,
        })
    }
}

/// Leaves the directory that this process was started in.
pub(super) fn leave() -> Result<(), Complaint> {
    std::env::set_current_dir("/")
        .map_err(|error| Complaint::new("/ cannot be entered").because(&error))
}

fn absolute(path: &Path) -> Result<PathBuf, Complaint> {
    std::path::absolute(path).map_err(|error| {
        Complaint::new("the working directory is not known, and a path is relative to it")
            .at(path.display().to_string())
            .because(&error)
    })
}

/// Commands of the same user find the one in the data directory; without a directory it is a file of this process, so
/// that two control planes do not take each other's place.
fn kubeconfigs(told: Option<PathBuf>, data: Option<&Path>) -> Result<Vec<PathBuf>, Complaint> {
    let own = match data {
        Some(directory) => {
            Some(data::kubeconfig(directory)).filter(|own| Some(own) != told.as_ref())
        }
        None if told.is_some() => None,
        None => {
            let name = format!("{}.kubeconfig", std::process::id());
            Some(absolute(&data::ephemeral_directory()?)?.join(name))
        }
    };
    Ok(told.into_iter().chain(own).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_that_every_pod_sees_is_refused() {
        let check = |data: Option<&str>| {
            let places = Places {
                data: data.map(PathBuf::from),
                kubeconfigs: vec!["/k".into()],
                of_pods: None,
                flight_record: None,
            };
            places.check_for_pods().is_ok()
        };
        for (data, is_fine) in [
            (None, true),
            (Some("/home/me/.local/state/sundown"), true),
            (Some("/var/lib/sundown"), true),
            (Some("/optional"), true),
            (Some("/opt/sundown"), false),
            (Some("/usr/local/var/sundown"), false),
            (Some("/etc/sundown"), true),
        ] {
            assert_eq!(check(data), is_fine, "{data:?}");
        }
    }
}
