//! The requests of reads, word for word.

use std::sync::Arc;

use sundown_engine::Effect;
use sundown_engine::wire::{Call, Method, call, position_call};
use sundown_model::{Form, KnownKind, ObjectKey, Resource, Rv};

use crate::rig::{id, toy, ty};
use crate::toy::{BOX, TOY};

const PARTIAL: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const PARTIAL_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

fn whole() -> Form {
    let mut form = Form::metadata();
    form.add(&["/spec"]);
    form
}

fn get(path: &str, query: &[(&'static str, &str)], accept: &'static str) -> Call {
    Call {
        method: Method::Get,
        path: path.to_owned(),
        query: query
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect(),
        accept,
        content_type: None,
        body: Vec::new(),
    }
}

fn list(kind: &KnownKind, form: Form, next: Option<&str>) -> Effect {
    Effect::List {
        id: id(1),
        ty: Arc::new(ty(kind)),
        form,
        next: next.map(ToOwned::to_owned),
    }
}

fn read(kind: &KnownKind, form: Form, key: ObjectKey) -> Effect {
    Effect::Get {
        id: id(1),
        ty: Arc::new(ty(kind)),
        form,
        key,
    }
}

#[test]
fn a_list_is_paged_and_asks_for_metadata_if_that_is_enough() {
    assert_eq!(
        call(&list(&BOX, Form::metadata(), None)),
        Some(get("/api/v1/boxes", &[("limit", "500")], PARTIAL_LIST))
    );
    assert_eq!(
        call(&list(&TOY, whole(), Some("more"))),
        Some(get(
            "/apis/toys.io/v1/toys",
            &[("limit", "500"), ("continue", "more")],
            "application/json"
        ))
    );
}

#[test]
fn a_watch_begins_after_a_revision_and_wants_bookmarks() {
    let watch = |kind: &KnownKind, form| Effect::Watch {
        id: id(1),
        ty: Arc::new(ty(kind)),
        form,
        from: Rv::new(42),
    };
    let query = [
        ("watch", "true"),
        ("resourceVersion", "42"),
        ("allowWatchBookmarks", "true"),
    ];
    assert_eq!(
        call(&watch(&TOY, whole())),
        Some(get("/apis/toys.io/v1/toys", &query, "application/json"))
    );
    assert_eq!(
        call(&watch(&BOX, Form::metadata())),
        Some(get("/api/v1/boxes", &query, PARTIAL))
    );
}

#[test]
fn a_live_read_asks_for_one_object_without_a_revision() {
    assert_eq!(
        call(&read(&TOY, whole(), toy("a").key())),
        Some(get(
            "/apis/toys.io/v1/namespaces/here/toys/a",
            &[],
            "application/json"
        ))
    );
    let namespaces = KnownKind {
        plural: "namespaces",
        kind: "Namespace",
        ..BOX
    };
    let key = ObjectKey::cluster(&Resource::new("", "namespaces"), "here");
    assert_eq!(
        call(&read(&namespaces, Form::metadata(), key)),
        Some(get("/api/v1/namespaces/here", &[], PARTIAL))
    );
}

#[test]
fn a_position_is_a_list_of_one() {
    assert_eq!(
        position_call(&ty(&TOY)),
        get("/apis/toys.io/v1/toys", &[("limit", "1")], PARTIAL_LIST)
    );
}

#[test]
fn what_is_not_one_request_has_none() {
    let types = vec![Arc::new(ty(&TOY))];
    for effect in [
        Effect::Discover { id: id(1) },
        Effect::Unwatch { id: id(1) },
        Effect::Barrier { id: id(1), types },
    ] {
        assert_eq!(call(&effect), None);
    }
}
