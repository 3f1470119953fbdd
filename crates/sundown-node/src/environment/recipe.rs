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
pub enum Unknown {
    /// No rule is for it.
    #[error(
        "nothing stands for image {image:?} on this machine: add a rule for it to {file}, such as \
         [{{\"image\": {image:?}, \"like\": \"rayproject/ray:2.52.0\"}}]"
    )]
    NoRule { image: String, file: String },
    /// No registry could have it.
    #[error(
        "image {start:?}... is not a valid image name: it has {length} characters, and \
         {IMAGE_LEN_MAX} is the most"
    )]
    TooLong { start: String, length: usize },
    /// It would name a directory.
    #[error(
        "the tag of image {start:?}... names no version of Ray: that has {length} characters, and \
         {VERSION_LEN_MAX} is the most"
    )]
    VersionTooLong { start: String, length: usize },
}

/// The longest image: 255 characters of a name, 128 of a tag and a digest, as registries have them.
const IMAGE_LEN_MAX: usize = 512;
/// The longest version of Ray. It becomes a part of the name of a directory.
const VERSION_LEN_MAX: usize = 64;

/// So much of a name that is too long is shown.
const SHOWN_LEN: usize = 40;

fn start(image: &str) -> String {
    image.chars().take(SHOWN_LEN).collect()
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
    #[error("the image rules {file} cannot be trusted any more")]
    Distrusted {
        file: String,
        #[source]
        source: sundown_files::TrustError,
    },
    #[error("the image rules {file} are not a list of rules")]
    Malformed {
        file: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("the image rule for {image:?} in {file} needs either \"like\" or \"prefix\"")]
    Incomplete { file: String, image: String },
    #[error("the image rule for {image:?} in {file} needs an absolute path as its \"prefix\"")]
    Relative { file: String, image: String },
}

/// All rules, the user's first.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    own: Vec<Rule>,
    file: String,
    /// Where they were read, so that they can be read again.
    path: Option<std::path::PathBuf>,
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
                    path: Some(file.to_owned()),
                });
            }
            Err(source) => return Err(RuleError::Read { file: name, source }),
        };
        let rules = Self::parse(&text, name)?;
        Ok(Self {
            path: Some(file.to_owned()),
            ..rules
        })
    }

    /// As the file is now: it is small, and an image is looked for seldom. What was not read stays as it is.
    pub fn again(&self) -> Result<Self, RuleError> {
        match &self.path {
            Some(path) => {
                let name = || path.display().to_string();
                sundown_files::check(path).map_err(|source| RuleError::Distrusted {
                    file: name(),
                    source,
                })?;
                Self::read(path)
            }
            None => Ok(self.clone()),
        }
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
        // Relative to what? A control plane does not stay where the user started it.
        let prefix_of = |rule: &Rule| rule.prefix.clone().unwrap_or_else(|| "/".into());
        if let Some(rule) = own.iter().find(|rule| prefix_of(rule).is_relative()) {
            let image = rule.image.clone();
            return Err(RuleError::Relative { file, image });
        }
        Ok(Self {
            own,
            file,
            path: None,
        })
    }

    /// What stands for an image.
    pub fn recipe(&self, image: &str) -> Result<Recipe, Unknown> {
        let length = image.chars().count();
        if length > IMAGE_LEN_MAX {
            let start = start(image);
            return Err(Unknown::TooLong { start, length });
        }
        let unknown = || Unknown::NoRule {
            image: image.to_owned(),
            file: self.file.clone(),
        };
        let Some(rule) = self.own.iter().find(|rule| rule.fits(image)) else {
            return found(image, unknown);
        };
        if let Some(path) = &rule.prefix {
            return Ok(Recipe::Prefix { path: path.clone() });
        }
        let like = rule.like.as_deref().unwrap_or_default();
        Ok(found(like, unknown)?.with(&rule.packages))
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

/// The built-in recipe for an image, unless its version cannot name a directory.
fn found(image: &str, unknown: impl FnOnce() -> Unknown) -> Result<Recipe, Unknown> {
    let recipe = built_in(&Reference::of(image)).ok_or_else(unknown)?;
    match &recipe {
        Recipe::Packages { name, .. } => {
            let length = name.strip_prefix(RAY).unwrap_or(name).len();
            if length > VERSION_LEN_MAX {
                let start = start(image);
                return Err(Unknown::VersionTooLong { start, length });
            }
        }
        Recipe::Python { .. } | Recipe::Host { .. } | Recipe::Prefix { .. } => {}
    }
    Ok(recipe)
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

/// How the name of an environment with a version of Ray begins.
const RAY: &str = "ray-";

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
        name: format!("{RAY}{version}"),
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
    let version = name.strip_prefix(RAY);
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
