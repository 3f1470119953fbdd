//! What stands for an image. Built-in rules know the images of this field; a user's rules come first.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::reference::Reference;

/// A version of Python, such as 3.11.
pub(super) type PythonVersion = (u8, u8);

/// What stands for an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Recipe {
    /// A virtual environment with these packages.
    Packages {
        /// Names the environment in the cache.
        name: String,
        requirements: Vec<String>,
        /// None: the best one on the machine that the packages have wheels for.
        python: Option<PythonVersion>,
    },
    /// A Python of this machine, without further packages.
    Python { python: Option<PythonVersion> },
    /// The host's own tools; the program has to be there.
    Host {
        program: String,
        command: Vec<String>,
    },
    /// An environment that the user made.
    Prefix { path: PathBuf },
}

/// Nothing stands for an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "nothing stands for image {image:?} on this machine: add a rule for it to {file}, such as \
     [{{\"image\": {image:?}, \"like\": \"rayproject/ray:2.52.0\"}}]"
)]
pub struct Unknown {
    pub image: String,
    pub file: String,
}

/// A user's rule.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    /// The image, with or without a tag; `*` at the end stands for anything.
    image: String,
    /// The same as another image.
    like: Option<String>,
    /// Further packages, as pip takes them.
    #[serde(default)]
    packages: Vec<String>,
    /// An environment that is there already.
    prefix: Option<PathBuf>,
}

/// What is wrong with a file of rules.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    #[error("read the image rules {file}")]
    Read {
        file: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the image rules {file} are not a list of rules")]
    Malformed {
        file: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("the image rule for {image:?} in {file} needs either \"like\" or \"prefix\"")]
    Incomplete { file: String, image: String },
}

/// All rules, the user's first.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    own: Vec<Rule>,
    file: String,
}

impl Rules {
    /// Reads a user's rules; a file that is not there holds none.
    pub fn read(file: &std::path::Path) -> Result<Self, RuleError> {
        let name = file.display().to_string();
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self {
                    own: Vec::new(),
                    file: name,
                });
            }
            Err(source) => return Err(RuleError::Read { file: name, source }),
        };
        Self::parse(&text, name)
    }

    fn parse(text: &str, file: String) -> Result<Self, RuleError> {
        let own: Vec<Rule> = match serde_json::from_str(text) {
            Ok(own) => own,
            Err(source) => return Err(RuleError::Malformed { file, source }),
        };
        let incomplete = own
            .iter()
            .find(|rule| rule.like.is_some() == rule.prefix.is_some());
        if let Some(rule) = incomplete {
            let image = rule.image.clone();
            return Err(RuleError::Incomplete { file, image });
        }
        Ok(Self { own, file })
    }

    /// What stands for an image.
    pub fn recipe(&self, image: &str) -> Result<Recipe, Unknown> {
        let unknown = || Unknown {
            image: image.to_owned(),
            file: self.file.clone(),
        };
        let Some(rule) = self.own.iter().find(|rule| rule.fits(image)) else {
            return built_in(&Reference::of(image)).ok_or_else(unknown);
        };
        if let Some(path) = &rule.prefix {
            return Ok(Recipe::Prefix { path: path.clone() });
        }
        let like = rule.like.as_deref().unwrap_or_default();
        let base = built_in(&Reference::of(like)).ok_or_else(unknown)?;
        Ok(base.with(&rule.packages))
    }
}

impl Rule {
    fn fits(&self, image: &str) -> bool {
        match self.image.strip_suffix('*') {
            Some(start) => image.starts_with(start),
            None => image == self.image || Reference::of(image).repository == self.image,
        }
    }
}

impl Recipe {
    fn with(self, packages: &[String]) -> Self {
        if packages.is_empty() {
            return self;
        }
        let (name, mut requirements, python) = match self {
            Self::Packages {
                name,
                requirements,
                python,
            } => (name, requirements, python),
            Self::Python { python } => ("python".to_owned(), Vec::new(), python),
            other @ (Self::Host { .. } | Self::Prefix { .. }) => return other,
        };
        requirements.extend(packages.iter().cloned());
        Self::Packages {
            name,
            requirements,
            python,
        }
    }
}

fn built_in(image: &Reference) -> Option<Recipe> {
    let host = |program: &str, command: &[&str]| {
        Some(Recipe::Host {
            program: program.to_owned(),
            command: command.iter().map(|&it| it.to_owned()).collect(),
        })
    };
    match &*image.repository {
        "rayproject/ray" | "rayproject/ray-ml" | "rayproject/ray-llm" => ray(&image.tag),
        "python" => Some(Recipe::Python {
            python: python_tag(&image.tag),
        }),
        "redis" | "bitnami/redis" | "valkey/valkey" => host("redis-server", &["redis-server"]),
        "busybox" | "alpine" => host("sh", &["sh"]),
        "bash" | "ubuntu" | "debian" | "fedora" => host("bash", &["bash"]),
        _ => None,
    }
}

/// `2.52.0`, `2.52.0-py311`, `2.52.0-py311-cpu`; `latest` is the newest that pip finds.
fn ray(tag: &str) -> Option<Recipe> {
    let mut parts = tag.split('-');
    let version = parts.next().unwrap_or_default();
    let is_version = version.starts_with(|c: char| c.is_ascii_digit())
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '.');
    if version != "latest" && !is_version {
        return None;
    }
    let python = parts.find_map(|part| python_digits(part.strip_prefix("py")?));
    Some(Recipe::Packages {
        name: format!("ray-{version}"),
        requirements: vec![requirement(version)],
        python,
    })
}

fn requirement(version: &str) -> String {
    match version {
        "latest" => "ray[default]".to_owned(),
        version => format!("ray[default]=={version}"),
    }
}

/// Whether the name of an environment says all that is in it: a version of Ray, and nothing else.
pub(super) fn is_told_by_name(name: &str, requirements: &[String]) -> bool {
    let version = name.strip_prefix("ray-");
    version.is_some_and(|version| requirements == [requirement(version)])
}

/// `311` is 3.11, `39` is 3.9.
fn python_digits(digits: &str) -> Option<PythonVersion> {
    let (major, minor) = digits.split_at_checked(1)?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// `3.11`, `3.11.7-slim`; None for `3`, `latest` and the like.
fn python_tag(tag: &str) -> Option<PythonVersion> {
    let version = tag.split('-').next()?;
    let mut numbers = version.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests;
