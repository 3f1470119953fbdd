//! What all versions of a definition have in common, as upstream's internal type has it: told once,
//! at the top.

use serde_json::{Value, json};

use super::{go_schema, versions};
use crate::document::Document;

/// The versions of a definition with their common parts apart.
#[derive(Debug)]
pub(super) struct Hoisted<'a> {
    versions: &'a [Value],
}

impl<'a> Hoisted<'a> {
    pub(super) fn of(object: &'a Document) -> Self {
        Self {
            versions: versions(object),
        }
    }

    /// A member that all versions share.
    pub(super) fn common(&self, member: &str) -> Option<&'a Value> {
        let first = self.versions.first()?;
        let is_same = |version: &Value| version.get(member) == first.get(member);
        let common = first.get(member).filter(|it| !it.is_null());
        common.filter(|_| self.versions.iter().all(is_same))
    }

    /// A member that one version has for itself.
    pub(super) fn own(&self, index: usize, member: &str) -> Option<&'a Value> {
        if self.common(member).is_some() {
            return None;
        }
        self.versions
            .get(index)?
            .get(member)
            .filter(|it| !it.is_null())
    }

    /// The versions in the form in which upstream shows them when it refuses them.
    pub(super) fn shown(&self) -> String {
        let shown = self.versions.iter().enumerate().map(|(index, version)| {
            let other = |name: &str| version.get(name).cloned().unwrap_or_default();
            let name = json!(version["name"].as_str().unwrap_or(""));
            let flag = |name: &str| version[name] == true;
            let own = |part: &str| self.own(index, part).cloned().unwrap_or_default();
            let schema = self
                .own(index, "schema")
                .map_or("null".to_owned(), |schema| {
                    let shown = go_schema::shown(&schema["openAPIV3Schema"]);
                    format!("{{\"OpenAPIV3Schema\":{shown}}}")
                });
            format!(
                "{{\"Name\":{name},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\
                 \"DeprecationWarning\":{},\"Schema\":{},\"Subresources\":{},\
                 \"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
                flag("served"),
                flag("storage"),
                flag("deprecated"),
                other("deprecationWarning"),
                schema,
                own("subresources"),
                own("additionalPrinterColumns"),
                own("selectableFields"),
            )
        });
        format!("[{}]", shown.collect::<Vec<_>>().join(","))
    }
}
