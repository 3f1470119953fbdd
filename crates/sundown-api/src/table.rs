//! Objects as rows, for people: what `kubectl get` prints.
//!
//! A Table is made from the answer that the client would have got without it, as upstream does in
//! `transformResponseObject`; the verbs know nothing about it. Cells are hand-written per kind
//! (`cells.rs`), columns are facts (`columns.rs`) or come from the definition (`custom.rs`).

mod age;
mod cells;
mod columns;
mod custom;
mod pod;
mod settings;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::registry::Type;
use crate::{Request, Response, Server};

/// What a row carries besides its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Include {
    None,
    Metadata,
    Object,
}

/// How objects of one type become a Table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    ty: Arc<Type>,
    include: Include,
    /// The columns as they are sent; custom resources have their own.
    columns: Value,
    custom: Option<Vec<custom::Cell>>,
    /// In a watch only the first event names the columns.
    were_columns_sent: bool,
}

impl Table {
    /// The Table that a request asks for, of objects of this type.
    ///
    /// Errors: includeObject is none of upstream's values.
    pub(crate) fn asked(
        server: &Server,
        ty: &Arc<Type>,
        request: &Request,
    ) -> Result<Self, Failure> {
        let include = match request.param("includeObject").unwrap_or("") {
            "" | "Metadata" => Include::Metadata,
            "None" => Include::None,
            "Object" => Include::Object,
            other => {
                let shown = Value::from(other);
                return Err(Failure::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {shown}: \
                     must be 'Metadata', 'Object', 'None', or empty"
                )));
            }
        };
        let (columns, custom) = match &ty.definition {
            Some(key) => {
                let (columns, cells) = custom::columns(server.store().get(key), &ty.version);
                (columns, Some(cells))
            }
            None => (Value::from(columns::of(ty).to_vec()), None),
        };
        Ok(Self {
            ty: Arc::clone(ty),
            include,
            columns,
            custom,
            were_columns_sent: false,
        })
    }

    /// The answer as a Table; failures and Status objects stay as they are.
    pub(crate) fn answer(&self, response: Response, now: Timestamp) -> Response {
        if !(200..300).contains(&response.code) {
            return response;
        }
        let Ok(shown) = serde_json::from_slice::<Value>(&response.body) else {
            return response;
        };
        if shown["kind"] == "Status" {
            return response;
        }
        let body = self.of(shown, &self.columns, now).to_string().into_bytes();
        Response { body, ..response }
    }

    /// A line of a watch as a line with a Table.
    pub(crate) fn line(&mut self, line: &Arc<[u8]>, now: Timestamp) -> Arc<[u8]> {
        let Ok(mut event) = serde_json::from_slice::<Value>(line) else {
            return Arc::clone(line);
        };
        if event["type"] == "ERROR" {
            return Arc::clone(line);
        }
        let columns = if self.were_columns_sent {
            &Value::Null
        } else {
            &self.columns
        };
        let table = self.of(event["object"].take(), columns, now);
        self.were_columns_sent = true;
        format!("{{\"type\":{},\"object\":{table}}}\n", event["type"])
            .into_bytes()
            .into()
    }

    fn of(&self, mut shown: Value, columns: &Value, now: Timestamp) -> Value {
        let (metadata, items) = match shown.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) if *self.ty.list_kind == shown["kind"] => {
                (shown["metadata"].take(), items)
            }
            _ => {
                let revision = shown["metadata"]["resourceVersion"].clone();
                (json!({ "resourceVersion": revision }), vec![shown])
            }
        };
        let mut metadata = metadata;
        if let Some(map) = metadata
            .as_object_mut()
            .filter(|map| map.get("continue") == Some(&json!("")))
        {
            map.remove("continue");
        }
        let rows: Vec<Value> = items.into_iter().map(|item| self.row(item, now)).collect();
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            "columnDefinitions": columns, "rows": rows,
        })
    }

    fn row(&self, mut object: Value, now: Timestamp) -> Value {
        let cells = match &self.custom {
            Some(cells) => custom::cells(cells, &object, now),
            None => match (&self.ty.view, object.as_object()) {
                // Cells are read from the stored form.
                (Some(view), Some(served)) => {
                    let mut stored = view.stored(served.clone());
                    stored.insert("metadata".into(), object["metadata"].clone());
                    cells::cells(&self.ty, &Value::Object(stored), now)
                }
                _ => cells::cells(&self.ty, &object, now),
            },
        };
        let mut row = json!({ "cells": cells });
        if let Some(conditions) = cells::row_conditions(&self.ty, &object) {
            row["conditions"] = conditions;
        }
        row["object"] = match self.include {
            Include::None => Value::Null,
            Include::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"].take(),
            }),
            Include::Object => {
                object["kind"] = (*self.ty.kind).into();
                object["apiVersion"] = self.ty.api_version().into();
                object
            }
        };
        row
    }
}
