//! Go declarations of types: structs with their tags, and what a name stands for.
//!
//! Reads gofmt-ed source line by line; it is no Go parser and needs no Go.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::package_directory;

/// The packages that were read so far.
pub(super) struct Source {
    modules: PathBuf,
    packages: BTreeMap<String, Package>,
}

type Package = BTreeMap<String, Declaration>;

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Declaration {
    Struct(Vec<Field>),
    /// `type X Y`; package and type of Y.
    Named(GoType),
}

/// A type where it is used.
#[derive(Debug, Clone)]
pub(super) enum GoType {
    Pointer(Box<GoType>),
    List(Box<GoType>),
    Map(Box<GoType>),
    /// A type of a package; the package is empty for predeclared ones.
    Name(String, String),
}

/// One field of a struct that is on the wire.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) json: String,
    pub(super) options: Vec<String>,
    pub(super) number: u32,
    pub(super) go_type: GoType,
}

impl Source {
    pub(super) fn new(modules: &Path) -> Self {
        Self {
            modules: modules.to_path_buf(),
            packages: BTreeMap::new(),
        }
    }

    /// The declaration of a type.
    pub(super) fn declaration(&mut self, package: &str, name: &str) -> Result<Declaration> {
        if !self.packages.contains_key(package) {
            let directory = package_directory(&self.modules, package)?;
            let read = read_package(&directory, package)?;
            self.packages.insert(package.to_owned(), read);
        }
        let declarations = &self.packages[package];
        let found = declarations.get(name).cloned();
        found.with_context(|| format!("{package} declares no {name}"))
    }
}

fn read_package(directory: &Path, package: &str) -> Result<Package> {
    let mut declarations = Package::new();
    let entries =
        std::fs::read_dir(directory).with_context(|| format!("read {}", directory.display()))?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        let is_source = path.extension().is_some_and(|ending| ending == "go")
            && !name.ends_with("_test.go")
            && !name.starts_with("zz_")
            && !name.starts_with("generated");
        if is_source {
            let text = std::fs::read_to_string(&path).with_context(|| format!("read {name}"))?;
            read_file(&text, package, &mut declarations);
        }
    }
    Ok(declarations)
}

fn read_file(text: &str, package: &str, declarations: &mut Package) {
    let imports = imports(text);
    let resolve = |text: &str| parse_type(text, package, &imports);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(rest) = line.strip_prefix("type ") else {
            continue;
        };
        let Some((name, rest)) = rest.split_once(' ') else {
            continue;
        };
        if rest.starts_with("struct {") || rest == "struct{}" {
            let mut fields = Vec::new();
            if !rest.ends_with('}') {
                for line in lines.by_ref().take_while(|line| *line != "}") {
                    fields.extend(field(line, &resolve));
                }
            }
            declarations.insert(name.to_owned(), Declaration::Struct(fields));
        } else if !rest.starts_with("interface") && !rest.starts_with("func") && rest != "(" {
            let target = rest.trim_start_matches("= ");
            declarations.insert(name.to_owned(), Declaration::Named(resolve(target)));
        }
    }
}

fn imports(text: &str) -> BTreeMap<String, String> {
    let mut imports = BTreeMap::new();
    let within = text
        .split_once("import (")
        .and_then(|(_, rest)| rest.split_once("\n)"));
    let block = within.map_or("", |(block, _)| block).lines();
    let single = text.lines().filter_map(|line| line.strip_prefix("import "));
    for line in block.chain(single) {
        let Some((alias, path)) = line.trim().split_once('"') else {
            continue;
        };
        let path = path.trim_end_matches('"');
        let last = path.rsplit('/').next().unwrap_or(path);
        let alias = if alias.trim().is_empty() {
            last
        } else {
            alias.trim()
        };
        imports.insert(alias.to_owned(), path.to_owned());
    }
    imports
}

fn parse_type(text: &str, package: &str, imports: &BTreeMap<String, String>) -> GoType {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix('*') {
        return GoType::Pointer(Box::new(parse_type(rest, package, imports)));
    }
    if let Some(rest) = text.strip_prefix("[]") {
        return GoType::List(Box::new(parse_type(rest, package, imports)));
    }
    if let Some(rest) = text.strip_prefix("map[") {
        let value = rest.split_once(']').map_or("", |(_, value)| value);
        return GoType::Map(Box::new(parse_type(value, package, imports)));
    }
    let name = text.split_whitespace().next().unwrap_or(text);
    if let Some((alias, name)) = name.split_once('.') {
        let package = imports.get(alias).map_or(alias, String::as_str);
        return GoType::Name(package.to_owned(), name.to_owned());
    }
    let is_predeclared = name.chars().next().is_some_and(char::is_lowercase);
    let package = if is_predeclared { "" } else { package };
    GoType::Name(package.to_owned(), name.to_owned())
}

fn field(line: &str, resolve: &impl Fn(&str) -> GoType) -> Option<Field> {
    let line = line.trim();
    if line.starts_with("//") {
        return None;
    }
    let (head, tags) = line.split_once('`')?;
    let tags = tags.split('`').next()?;
    let tag = |name: &str| {
        let (_, rest) = tags.split_once(&format!("{name}:\""))?;
        rest.split('"').next()
    };
    let mut json = tag("json")?.split(',');
    let name = json.next().unwrap_or("").to_owned();
    let options: Vec<String> = json.map(str::to_owned).collect();
    if name == "-" {
        return None;
    }
    let words: Vec<&str> = head.split_whitespace().collect();
    let go_type = resolve(words.last()?);
    let number = tag("protobuf").and_then(|tag| tag.split(',').nth(1)?.parse().ok());
    Some(Field {
        json: name,
        options,
        number: number.unwrap_or(0),
        go_type,
    })
}
