//! The published `OpenAPI` documents: what Go types do not say about the fields of a kind.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// The schemas of all documents, by name.
pub(super) struct Documents {
    schemas: BTreeMap<String, Value>,
}

impl Documents {
    pub(super) fn read(directory: &Path) -> Result<Self> {
        let mut schemas = BTreeMap::new();
        let entries = std::fs::read_dir(directory).context("read the OpenAPI documents")?;
        let mut paths: Vec<_> = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        paths.sort();
        for path in paths {
            let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
            let mut document: Value =
                serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
            let own = document.pointer_mut("/components/schemas").map(Value::take);
            if let Some(Value::Object(own)) = own {
                schemas.extend(own);
            }
        }
        Ok(Self { schemas })
    }

    /// The schema of a type; null if it has none.
    pub(super) fn schema(&self, name: &str) -> &Value {
        self.schemas.get(name).unwrap_or(&Value::Null)
    }
}

/// The name of the schema of a Go type.
pub(super) fn schema_name(package: &str, name: &str) -> String {
    let rest = package.trim_start_matches("k8s.io/");
    format!("io.k8s.{}.{name}", rest.replace('/', "."))
}
