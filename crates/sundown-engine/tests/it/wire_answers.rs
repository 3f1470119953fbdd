//! What the answers to reads mean: a 404 is absence only if a Status names the object.

use std::sync::Arc;

use serde_json::{Value, json};
use sundown_engine::wire::{Reply, answered, position_rv};
use sundown_engine::{Effect, Failure, Input, Page, WatchEvent};
use sundown_model::{Form, Object, Rv};

use crate::rig::{id, page, toy, ty};
use crate::toy::TOY;

fn form() -> Form {
    let mut form = Form::metadata();
    form.add(&["/spec"]);
    form
}

fn reply(code: u16, body: &Value) -> Reply {
    let body = body.to_string().into_bytes();
    Reply::Answered { code, body }
}

fn plain(code: u16, text: &str) -> Reply {
    let body = text.as_bytes().to_vec();
    Reply::Answered { code, body }
}

#[track_caller]
fn found(reply: Reply) -> Result<Option<Arc<Object>>, Failure> {
    let read = Effect::Get {
        id: id(7),
        ty: Arc::new(ty(&TOY)),
        form: form(),
        key: toy("a").key(),
    };
    match answered(&read, reply) {
        Some(Input::Got { id, result }) if id == read.id() => result,
        other => unreachable!("expected a read, got {other:?}"),
    }
}

#[track_caller]
fn listed(reply: Reply) -> Result<Page, Failure> {
    let list = Effect::List {
        id: id(7),
        ty: Arc::new(ty(&TOY)),
        form: form(),
        next: None,
    };
    match answered(&list, reply) {
        Some(Input::Listed { id, result }) if id == list.id() => result,
        other => unreachable!("expected a list, got {other:?}"),
    }
}

fn not_found(name: &str) -> Value {
    json!({
        "kind": "Status", "reason": "NotFound", "message": "not found", "code": 404,
        "details": { "name": name, "kind": "toys" },
    })
}

#[test]
fn a_read_gives_the_object_or_its_absence() {
    let toy = toy("a").doomed();
    assert_eq!(found(reply(200, &toy.json)), Ok(Some(toy.build())));
    assert_eq!(found(reply(404, &not_found("a"))), Ok(None));
}

#[test]
fn everything_else_is_no_answer() {
    let nameless = json!({ "kind": "Status", "reason": "NotFound", "details": {} });
    for reply in [
        plain(404, "404 page not found"),
        reply(404, &not_found("another")),
        reply(404, &nameless),
        reply(200, &not_found("a")),
        plain(200, "not json"),
        plain(403, ""),
        plain(429, ""),
        plain(500, ""),
        plain(503, ""),
        plain(504, ""),
        Reply::NotSent("refused".to_owned()),
        Reply::Lost("reset".to_owned()),
    ] {
        let result = found(reply.clone());
        assert!(
            result.as_ref().is_err_and(|failure| !failure.expired),
            "{reply:?} became {result:?}"
        );
    }
}

#[test]
fn a_failure_says_what_the_server_said() {
    let forbidden = json!({ "kind": "Status", "message": "toys is forbidden" });
    let failure = listed(reply(403, &forbidden)).unwrap_err();
    assert_eq!(failure.to_string(), "403: toys is forbidden");
}

#[test]
fn a_page_gives_its_objects_its_revision_and_the_token_of_the_next() {
    let (a, b) = (toy("a"), toy("b"));
    let list = |next: Value| {
        let metadata = json!({ "resourceVersion": "42", "continue": next });
        json!({ "metadata": metadata, "items": [a.json, b.json] })
    };
    let whole = page(&[&a, &b], 42);
    assert_eq!(listed(reply(200, &list(json!("")))), Ok(whole.clone()));
    assert_eq!(listed(reply(200, &list(json!(null)))), Ok(whole.clone()));
    let next = Some("more".to_owned());
    assert_eq!(
        listed(reply(200, &list(json!("more")))),
        Ok(Page { next, ..whole })
    );
    let empty = json!({ "metadata": { "resourceVersion": "42" }, "items": null });
    assert_eq!(listed(reply(200, &empty)), Ok(page(&[], 42)));
}

#[test]
fn a_page_that_is_not_whole_is_no_answer() {
    let nameless = json!({ "metadata": { "uid": "u", "resourceVersion": "1" } });
    for body in [
        json!({ "metadata": { "resourceVersion": "42" }, "items": [nameless] }),
        json!({ "metadata": {}, "items": [] }),
        json!({ "metadata": { "resourceVersion": "new" }, "items": [] }),
        json!(null),
    ] {
        let result = listed(reply(200, &body));
        assert!(result.is_err(), "{body} became {result:?}");
    }
}

#[test]
fn a_410_says_that_the_list_must_begin_again() {
    let expired = listed(reply(410, &json!({}))).unwrap_err();
    assert!(expired.expired);
    assert!(!listed(reply(500, &json!({}))).unwrap_err().expired);
}

#[test]
fn a_position_is_the_revision_of_the_list() {
    let list = json!({ "metadata": { "resourceVersion": "42" }, "items": [] });
    assert_eq!(position_rv(reply(200, &list)), Ok(Rv::new(42)));
    assert!(position_rv(reply(200, &json!({}))).is_err());
    assert!(position_rv(plain(503, "")).is_err());
}

#[test]
fn a_watch_that_did_not_open_has_closed() {
    let watch = Effect::Watch {
        id: id(7),
        ty: Arc::new(ty(&TOY)),
        form: form(),
        from: Rv::new(1),
    };
    for (reply, expired) in [
        (plain(410, ""), true),
        (plain(404, "404 page not found"), false),
        (plain(500, ""), false),
        (Reply::NotSent("refused".to_owned()), false),
    ] {
        let event = WatchEvent::Closed { expired };
        let id = id(7);
        assert_eq!(answered(&watch, reply), Some(Input::Watched { id, event }));
    }
}

#[test]
fn what_is_not_one_request_has_no_answer() {
    let discover = Effect::Discover { id: id(7) };
    assert_eq!(answered(&discover, plain(200, "{}")), None);
}
