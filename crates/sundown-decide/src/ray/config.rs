//! What the controllers of Ray are told once, and how it is read from the variables that upstream's
//! operator knows. Looking into an environment is the shell's business.

use std::fmt;

use jiff::SignedDuration;
use sundown_kinds::Settings;

use crate::pod::DOMAIN;
use crate::ray_job::{Limits, RayJobs};

/// What is the same for all clusters and jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct RayConfig {
    pub settings: Settings,
    pub limits: Limits,
    /// Whether `shutdownAfterJobFinishes` deletes the `RayJob` itself.
    pub deletes_finished: bool,
}

/// A variable with a value that means nothing. Upstream takes such a one for its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadVariable {
    pub name: &'static str,
    pub value: String,
    /// What would be understood.
    pub expected: &'static str,
}

impl fmt::Display for BadVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value, expected) = (self.name, &self.value, self.expected);
        write!(
            f,
            "the variable {name} is {value:?}, but has to be {expected}"
        )
    }
}

impl std::error::Error for BadVariable {}

impl Default for RayConfig {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            limits: Limits::LAPTOP,
            deletes_finished: false,
        }
    }
}

impl RayConfig {
    /// What these variables say; one that is absent or empty says nothing.
    ///
    /// Errors: one of them has a value that means nothing.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, BadVariable> {
        let given = Given(variable);
        let Self {
            settings,
            limits,
            deletes_finished,
        } = Self::default();
        given.check_domain()?;
        Ok(Self {
            settings: Settings {
                login_shell: given.switch("ENABLE_LOGIN_SHELL", settings.login_shell)?,
                inject_probes: given.switch("ENABLE_PROBES_INJECTION", settings.inject_probes)?,
                inject_init_container: given.switch(
                    "ENABLE_INIT_CONTAINER_INJECTION",
                    settings.inject_init_container,
                )?,
                deterministic_head_name: given.switch(
                    "ENABLE_DETERMINISTIC_HEAD_POD_NAME",
                    settings.deterministic_head_name,
                )?,
                head_cluster_ip: given.switch(
                    "ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE",
                    settings.head_cluster_ip,
                )?,
                ..settings
            },
            limits: Limits {
                transition_grace: given.seconds(
                    "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS",
                    0,
                    limits.transition_grace,
                )?,
                status_check: given.seconds(
                    "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS",
                    1,
                    limits.status_check,
                )?,
                ..limits
            },
            deletes_finished: given
                .switch("DELETE_RAYJOB_CR_AFTER_JOB_FINISHES", deletes_finished)?,
        })
    }

    /// The controller of jobs with this configuration.
    pub(crate) fn jobs(&self) -> RayJobs {
        let jobs = RayJobs::new(self.settings.clone(), self.limits);
        if self.deletes_finished {
            jobs.deleting_finished()
        } else {
            jobs
        }
    }
}

/// Variables that may be there.
struct Given<V>(V);

impl<V: Fn(&str) -> Option<String>> Given<V> {
    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    fn switch(&self, name: &'static str, usual: bool) -> Result<bool, BadVariable> {
        let Some(value) = self.get(name) else {
            return Ok(usual);
        };
        match &*value.to_ascii_lowercase() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(BadVariable {
                name,
                value,
                expected: "true or false",
            }),
        }
    }

    fn seconds(
        &self,
        name: &'static str,
        least: u32,
        usual: SignedDuration,
    ) -> Result<SignedDuration, BadVariable> {
        let Some(value) = self.get(name) else {
            return Ok(usual);
        };
        match value.parse::<u32>() {
            Ok(seconds) if seconds >= least => Ok(SignedDuration::from_secs(seconds.into())),
            Ok(_) | Err(_) => Err(BadVariable {
                name,
                value,
                expected: if least == 0 {
                    "a number of seconds"
                } else {
                    "a number of seconds above 0"
                },
            }),
        }
    }

    /// The names that pods know end in one domain; one of another would lead nowhere.
    fn check_domain(&self) -> Result<(), BadVariable> {
        match self.get("CLUSTER_DOMAIN") {
            Some(value) if value != DOMAIN => Err(BadVariable {
                name: "CLUSTER_DOMAIN",
                value,
                expected: DOMAIN,
            }),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut RayConfig);

    fn read(given: &[(&str, &str)]) -> Result<RayConfig, String> {
        let find = |name: &str| given.iter().find(|(known, _)| *known == name);
        let found = RayConfig::of(|name| find(name).map(|(_, value)| (*value).to_owned()));
        found.map_err(|error| error.to_string())
    }

    #[test]
    fn variables_that_say_nothing_change_nothing() {
        assert_eq!(read(&[]).unwrap(), RayConfig::default());
        let empty = [
            ("DELETE_RAYJOB_CR_AFTER_JOB_FINISHES", ""),
            ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", ""),
            ("CLUSTER_DOMAIN", "cluster.local"),
            ("ENABLE_WEBHOOKS", "whatever"),
        ];
        assert_eq!(read(&empty).unwrap(), RayConfig::default());
    }

    #[test]
    fn each_variable_sets_what_it_names() {
        let cases: [(&str, &str, Change); 9] = [
            ("DELETE_RAYJOB_CR_AFTER_JOB_FINISHES", "True", |it| {
                it.deletes_finished = true;
            }),
            ("DELETE_RAYJOB_CR_AFTER_JOB_FINISHES", "false", |_| {}),
            ("ENABLE_LOGIN_SHELL", "true", |it| {
                it.settings.login_shell = true;
            }),
            ("ENABLE_PROBES_INJECTION", "FALSE", |it| {
                it.settings.inject_probes = false;
            }),
            ("ENABLE_INIT_CONTAINER_INJECTION", "false", |it| {
                it.settings.inject_init_container = false;
            }),
            ("ENABLE_DETERMINISTIC_HEAD_POD_NAME", "true", |it| {
                it.settings.deterministic_head_name = true;
            }),
            ("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", "true", |it| {
                it.settings.head_cluster_ip = true;
            }),
            (
                "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS",
                "0",
                |it| {
                    it.limits.transition_grace = SignedDuration::ZERO;
                },
            ),
            ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "7", |it| {
                it.limits.status_check = SignedDuration::from_secs(7);
            }),
        ];
        for (name, value, change) in cases {
            let mut expected = RayConfig::default();
            change(&mut expected);
            assert_eq!(read(&[(name, value)]).unwrap(), expected, "{name}={value}");
        }
    }

    #[test]
    fn a_value_that_means_nothing_is_refused_with_the_name_of_its_variable() {
        let cases = [
            (
                "DELETE_RAYJOB_CR_AFTER_JOB_FINISHES",
                "yes",
                "true or false",
            ),
            ("ENABLE_PROBES_INJECTION", "1", "true or false"),
            (
                "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS",
                "0",
                "a number of seconds above 0",
            ),
            (
                "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS",
                "5m",
                "a number of seconds above 0",
            ),
            (
                "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS",
                "-1",
                "a number of seconds",
            ),
            ("CLUSTER_DOMAIN", "example.org", "cluster.local"),
        ];
        for (name, value, expected) in cases {
            let text = format!("the variable {name} is {value:?}, but has to be {expected}");
            assert_eq!(read(&[(name, value)]), Err(text));
        }
    }
}
