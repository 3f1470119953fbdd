//! One rule of a role: what it allows, and whether it covers another one.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::Attributes;

/// Everything.
const ALL: &str = "*";

/// A `PolicyRule`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_groups: Vec<Box<str>>,
    #[serde(rename = "nonResourceURLs")]
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) non_resource_urls: Vec<Box<str>>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_names: Vec<Box<str>>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<Box<str>>,
    #[serde(deserialize_with = "list")]
    pub(crate) verbs: Vec<Box<str>>,
}

fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Box<str>>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl Rule {
    /// Whether this rule allows it.
    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> bool {
        if !has(&self.verbs, asked.verb) {
            return false;
        }
        if !asked.is_resource {
            let mut urls = self.non_resource_urls.iter();
            return urls.any(|own| reaches(own, asked.path));
        }
        has(&self.api_groups, asked.group)
            && self.resources.iter().any(|own| names(own, asked))
            && (self.resource_names.is_empty()
                || self.resource_names.iter().any(|own| **own == *asked.name))
    }
}

fn has(all: &[Box<str>], one: &str) -> bool {
    all.iter().any(|own| **own == *ALL || **own == *one)
}

/// Whether an entry of `resources` means what is asked for: `*`, `pods`, `pods/log`, `*/scale`.
fn names(own: &str, asked: &Attributes<'_>) -> bool {
    if own == ALL {
        return true;
    }
    match own.split_once('/') {
        None => asked.subresource.is_empty() && own == asked.resource,
        Some((resource, part)) => {
            !asked.subresource.is_empty()
                && part == asked.subresource
                && (resource == ALL || resource == asked.resource)
        }
    }
}

/// Whether an entry of `nonResourceURLs` means a path; a `*` at its end stands for any rest.
fn reaches(own: &str, path: &str) -> bool {
    own == path
        || own
            .ends_with('*')
            .then(|| own.trim_end_matches('*'))
            .is_some_and(|prefix| path.starts_with(prefix))
}

/// The short form that upstream's refusals have.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        f.write_str("{")?;
        let mut separator = "";
        for (name, texts) in parts.into_iter().filter(|(_, texts)| !texts.is_empty()) {
            write!(f, "{separator}{name}:{}", quoted(texts))?;
            separator = ", ";
        }
        f.write_str("}")
    }
}

/// Texts as Go's `%q` shows them.
pub(crate) fn quoted<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<String> = texts
        .iter()
        .map(|it| format!("{:?}", it.as_ref()))
        .collect();
    format!("[{}]", texts.join(" "))
}

/// What of some rules others do not cover, one verb on one thing each.
pub(crate) fn uncovered<'a>(
    held: &(impl Iterator<Item = &'a Rule> + Clone),
    asked: &[Rule],
) -> Vec<Rule> {
    let single = asked.iter().flat_map(Rule::single);
    let is_covered = |one: &Rule| held.clone().any(|own| own.covers(one));
    single.filter(|one| !is_covered(one)).collect()
}

impl Rule {
    /// The same, one verb on one thing each.
    fn single<'a>(&'a self) -> impl Iterator<Item = Rule> + 'a {
        let names = || {
            let none = self.resource_names.is_empty().then(Vec::new);
            let each = self.resource_names.iter().map(|name| vec![name.clone()]);
            none.into_iter().chain(each)
        };
        let on = move |group: &'a str, resource: &'a str, verb: &'a str| {
            names().map(move |resource_names| Rule {
                api_groups: vec![group.into()],
                resources: vec![resource.into()],
                verbs: vec![verb.into()],
                resource_names,
                ..Rule::default()
            })
        };
        let resources = self.api_groups.iter().flat_map(move |group| {
            self.resources.iter().flat_map(move |resource| {
                let verbs = self.verbs.iter();
                verbs.flat_map(move |verb| on(group, resource, verb))
            })
        });
        let urls = self.non_resource_urls.iter().flat_map(|url| {
            self.verbs.iter().map(|verb| Rule {
                non_resource_urls: vec![url.clone()],
                verbs: vec![verb.clone()],
                ..Rule::default()
            })
        });
        resources.chain(urls)
    }

    /// How many of those there are.
    pub(crate) fn single_count(&self) -> usize {
        let names = self.resource_names.len().max(1);
        let parts = [&self.api_groups, &self.resources].map(Vec::len);
        let things = parts.into_iter().fold(names, usize::saturating_mul);
        let things = things.saturating_add(self.non_resource_urls.len());
        things.saturating_mul(self.verbs.len())
    }

    /// How many entries are looked at, at most, to find out whether it covers another one.
    pub(crate) fn entry_count(&self) -> usize {
        let lists = [
            &self.api_groups,
            &self.non_resource_urls,
            &self.resource_names,
            &self.resources,
            &self.verbs,
        ];
        // The resources are looked at twice: as they are, and for their part of all resources.
        lists.map(Vec::len).iter().sum::<usize>() + self.resources.len() + 1
    }

    /// Whether a rule of one verb on one thing is part of this one.
    fn covers(&self, one: &Rule) -> bool {
        let all = |own: &[Box<str>], asked: &[Box<str>]| asked.iter().all(|it| has(own, it));
        let of_all = |path: &str| {
            let part = path.split_once('/').map(|(_, part)| format!("*/{part}"));
            part.is_some_and(|part| self.resources.iter().any(|own| **own == *part))
        };
        let mut resources = one.resources.iter();
        let mut urls = one.non_resource_urls.iter();
        let is_named = self.resource_names.is_empty()
            || !one.resource_names.is_empty()
                && one
                    .resource_names
                    .iter()
                    .all(|it| self.resource_names.contains(it));
        all(&self.verbs, &one.verbs)
            && all(&self.api_groups, &one.api_groups)
            && resources.all(|path| has(&self.resources, path) || of_all(path))
            && urls.all(|path| self.non_resource_urls.iter().any(|own| reaches(own, path)))
            && is_named
    }
}
