//! Where packages come from: what the user's settings of pip or uv say, as far as it decides which
//! package is installed. An environment that was made from another index is another environment.
//!
//! Read here rather than asked of the tools: this is looked at before each start of a container.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::tool;

/// Stands for the index that both tools take where no setting names another.
const USUAL: &str = "the default index";

/// What installs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Installer {
    Uv(PathBuf),
    /// The one of the new environment itself.
    Pip,
}

/// Where packages come from, first the place that is asked first; without user names and passwords.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sources(Vec<String>);

impl Sources {
    /// By the settings as they are now.
    pub(super) fn read(installer: &Installer) -> Self {
        let host = tool::variables_of_host();
        let text = host.into_iter().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let variables = text.collect();
        let read = |path: &Path| std::fs::read_to_string(path).ok();
        match installer {
            Installer::Uv(_) => of_uv(&variables, read),
            Installer::Pip => of_pip(&variables, read),
        }
    }

    /// In the order in which they are asked.
    pub(super) fn list(&self) -> &[String] {
        &self.0
    }

    /// What tells an environment from one with the same packages of the usual index.
    pub(super) fn key(&self) -> impl Iterator<Item = String> {
        let others = (self.0 != [USUAL]).then(|| self.0.iter());
        let others = others.into_iter().flatten();
        others.map(|it| format!("from {it}"))
    }

    /// Whether a list that was noted is that of the usual index.
    pub(super) fn is_usual(list: &[String]) -> bool {
        list == [USUAL]
    }

    #[cfg(test)]
    pub(super) fn usual() -> Self {
        Self(vec![USUAL.to_owned()])
    }

    /// Of an index, unless none may be asked, and of places beside it.
    fn of(indexes: Vec<String>, links: Vec<String>) -> Self {
        let all = indexes.into_iter().chain(links);
        let clean = |url: String| without_userinfo(&url).trim_end_matches('/').to_owned();
        let mut kept: Vec<String> = Vec::new();
        for url in all.map(clean) {
            if !kept.contains(&url) {
                kept.push(url);
            }
        }
        Self(kept)
    }
}

/// An address without the user name and the password in it.
pub fn without_userinfo(url: &str) -> String {
    let (scheme, rest) = match url.find("://") {
        Some(at) => url.split_at(at + 3),
        None => ("", url),
    };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

/// A line of a tool in which addresses have neither user names, passwords nor queries: what a tool says
/// is told in Events and in the status of pods, and a query may be a signature.
pub(super) fn bare(line: &str) -> String {
    let words = line.split_inclusive(char::is_whitespace);
    words.map(bare_word).collect()
}

fn bare_word(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let address = rest.trim_end();
    let space = &rest[address.len()..];
    // Up to the last `@`, wherever it is: a password may hold anything, and so may a list of addresses.
    let address = address.rsplit_once('@').map_or(address, |(_, after)| after);
    let before = address.split_once('?').map(|(before, _)| before);
    format!("{scheme}://{}{space}", before.unwrap_or(address))
}

type Variables = BTreeMap<String, String>;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// As both tools read a switch.
fn is_on(text: &str) -> bool {
    ["1", "true", "yes", "on", "y", "t"].contains(&&*text.trim().to_ascii_lowercase())
}

fn of_pip(variables: &Variables, read: impl Fn(&Path) -> Option<String>) -> Sources {
    let mut settings = BTreeMap::new();
    for file in files_of_pip(variables) {
        if let Some(text) = read(&file) {
            settings.extend(ini(&text));
        }
    }
    // What is told for a command stands before what is told for all, and variables before both.
    let setting = |name: &str| {
        let variable = format!("PIP_{}", name.to_ascii_uppercase().replace('-', "_"));
        let of_file = |section: &str| settings.get(&(section.to_owned(), name.to_owned()));
        let told = variables.get(&variable).filter(|it| !it.is_empty());
        let told = told.or_else(|| of_file("install"));
        told.or_else(|| of_file("global")).cloned()
    };
    let links = words(&setting("find-links").unwrap_or_default());
    if setting("no-index").is_some_and(|it| is_on(&it)) {
        return Sources::of(Vec::new(), links);
    }
    let mut indexes = setting("index-url").map_or_else(|| vec![USUAL.to_owned()], |it| words(&it));
    indexes.extend(words(&setting("extra-index-url").unwrap_or_default()));
    Sources::of(indexes, links)
}

/// The later one counts.
fn files_of_pip(variables: &Variables) -> Vec<PathBuf> {
    let own = variables.get("PIP_CONFIG_FILE").map(PathBuf::from);
    if own.as_deref() == Some(Path::new("/dev/null")) {
        return Vec::new();
    }
    let everybody = variables.get("XDG_CONFIG_DIRS").map_or("/etc/xdg", |it| it);
    let mut files: Vec<PathBuf> = std::env::split_paths(everybody)
        .filter(|it| it.is_absolute())
        .map(|it| it.join("pip/pip.conf"))
        .collect();
    files.push("/etc/pip.conf".into());
    if let Some(home) = variables.get("HOME") {
        files.push(Path::new(home).join(".pip/pip.conf"));
    }
    files.extend(configuration(variables).map(|it| it.join("pip/pip.conf")));
    files.extend(own);
    files
}

/// The user's configuration.
fn configuration(variables: &Variables) -> Option<PathBuf> {
    let told = variables.get("XDG_CONFIG_HOME").map(PathBuf::from);
    told.or_else(|| Some(Path::new(variables.get("HOME")?).join(".config")))
}

/// Settings by section and name. A line that is indented goes on with the value before it.
fn ini(text: &str) -> BTreeMap<(String, String), String> {
    let mut settings: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut section = String::new();
    let mut last = None;
    for line in text.lines() {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        let goes_on = line.starts_with(char::is_whitespace);
        if let Some(key) = last.as_ref().filter(|_| goes_on) {
            let value: &mut String = settings.entry(Clone::clone(key)).or_default();
            value.push(' ');
            value.push_str(bare);
        } else if let Some(name) = bare.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            name.trim().clone_into(&mut section);
            last = None;
        } else if let Some((name, value)) = bare.split_once(['=', ':']) {
            let name = name.trim().to_ascii_lowercase().replace('_', "-");
            let key = (section.clone(), name.trim_start_matches('-').to_owned());
            settings.insert(key.clone(), value.trim().to_owned());
            last = Some(key);
        }
    }
    settings
}

fn of_uv(variables: &Variables, read: impl Fn(&Path) -> Option<String>) -> Sources {
    let mut told = OfUv::default();
    let variable = |name: &str| variables.get(name).filter(|it| !it.is_empty());
    let list = |name: &str| variable(name).map(|it| words(it)).unwrap_or_default();
    // `name=address` is an index with a name.
    let address = |it: String| match it.split_once('=') {
        Some((name, url)) if !name.contains([':', '/']) => url.to_owned(),
        _ => it,
    };
    told.indexes
        .extend(list("UV_INDEX").into_iter().map(address));
    told.indexes.extend(list("UV_EXTRA_INDEX_URL"));
    let links = variable("UV_FIND_LINKS").into_iter();
    let links = links.flat_map(|it| it.split([',', ' '])).map(str::to_owned);
    told.links.extend(links.filter(|it| !it.is_empty()));
    told.has_no_index = variable("UV_NO_INDEX").is_some_and(|it| is_on(it));
    let default = variable("UV_DEFAULT_INDEX").or(variable("UV_INDEX_URL"));
    told.default = default.cloned().map(address);
    for file in files_of_uv(variables) {
        let table = read(&file).and_then(|text| text.parse::<toml::Table>().ok());
        if let Some(table) = table {
            told.add(&table);
            let of_pip = table.get("pip").and_then(toml::Value::as_table);
            if let Some(table) = of_pip {
                told.add(table);
            }
        }
    }
    if told.has_no_index {
        return Sources::of(Vec::new(), told.links);
    }
    let mut indexes = told.indexes;
    indexes.push(told.default.unwrap_or_else(|| USUAL.to_owned()));
    Sources::of(indexes, told.links)
}

/// The first one counts.
fn files_of_uv(variables: &Variables) -> Vec<PathBuf> {
    if let Some(own) = variables.get("UV_CONFIG_FILE") {
        return vec![own.into()];
    }
    if variables.get("UV_NO_CONFIG").is_some_and(|it| is_on(it)) {
        return Vec::new();
    }
    let own = configuration(variables).map(|it| it.join("uv/uv.toml"));
    let everybody = variables.get("XDG_CONFIG_DIRS").map_or("/etc/xdg", |it| it);
    let everybody = std::env::split_paths(everybody).filter(|it| it.is_absolute());
    own.into_iter()
        .chain(everybody.map(|it| it.join("uv/uv.toml")))
        .chain(["/etc/uv/uv.toml".into()])
        .collect()
}

#[derive(Debug, Default)]
struct OfUv {
    indexes: Vec<String>,
    default: Option<String>,
    links: Vec<String>,
    has_no_index: bool,
}

impl OfUv {
    /// What a file adds; what was told before it stands before it.
    fn add(&mut self, table: &toml::Table) {
        let text = |name: &str| table.get(name).and_then(toml::Value::as_str);
        let texts = |name: &str| {
            let list = table.get(name).and_then(toml::Value::as_array);
            let list = list.into_iter().flatten().filter_map(toml::Value::as_str);
            list.map(str::to_owned).collect::<Vec<_>>()
        };
        let indexes = table.get("index").and_then(toml::Value::as_array);
        for index in indexes.into_iter().flatten() {
            let is = |name: &str| index.get(name).and_then(toml::Value::as_bool) == Some(true);
            let Some(url) = index.get("url").and_then(toml::Value::as_str) else {
                continue;
            };
            if is("default") {
                self.default.get_or_insert_with(|| url.to_owned());
            } else if !is("explicit") {
                self.indexes.push(url.to_owned());
            }
        }
        self.indexes.extend(texts("extra-index-url"));
        self.links.extend(texts("find-links"));
        if let Some(url) = text("index-url") {
            self.default.get_or_insert_with(|| url.to_owned());
        }
        let has_no_index = table.get("no-index").and_then(toml::Value::as_bool);
        self.has_no_index |= has_no_index == Some(true);
    }
}

#[cfg(test)]
mod tests;
