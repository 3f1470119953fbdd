//! The columns of built-in kinds, as a real kube-apiserver told them: `cargo xtask accept facts` asks
//! one and writes the table that is read here.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::registry::Type;

const TABLE: &str = include_str!("../generated/columns.txt");

static COLUMNS: LazyLock<BTreeMap<&'static str, Vec<Value>>> = LazyLock::new(read);

/// The columns of a kind. What is not in the table has what most kinds have.
pub(super) fn of(ty: &Type) -> &'static [Value] {
    let key = format!("{}/{}", ty.resource.group(), ty.resource.plural());
    COLUMNS.get(key.as_str()).map_or_else(plain, Vec::as_slice)
}

/// Name and creation time, which kinds without a printer of their own have.
pub(super) fn plain() -> &'static [Value] {
    COLUMNS.get("/limitranges").map_or(&[], Vec::as_slice)
}

fn read() -> BTreeMap<&'static str, Vec<Value>> {
    let mut texts: BTreeMap<&str, Value> = BTreeMap::new();
    let mut columns: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let mut resource = "";
    for line in TABLE.lines() {
        if let Some(column) = line.strip_prefix('\t') {
            let mut parts = column.split('\t');
            let mut next = || parts.next().unwrap_or("");
            let (name, kind, format) = (next(), next(), next());
            let priority: u8 = next().parse().unwrap_or(0);
            let description = texts.get(next()).cloned().unwrap_or_default();
            columns.entry(resource).or_default().push(json!({
                "name": name, "type": kind, "format": format, "description": description,
                "priority": priority,
            }));
        } else if let Some((number, text)) = line.split_once('\t') {
            texts.insert(number, serde_json::from_str(text).unwrap_or_default());
        } else {
            resource = line;
        }
    }
    columns
}
