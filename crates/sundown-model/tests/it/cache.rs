//! The cache: monotone per key, and an incarnation that went never returns.

use std::sync::Arc;

use serde_json::json;
use sundown_model::{Cache, Form, Object, Position, Put, Resource, Rv, Step};

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn pod(uid: &str, rv: u64) -> Arc<Object> {
    let metadata = json!({
        "name": "pod", "namespace": "here", "uid": uid, "resourceVersion": rv.to_string(),
    });
    let json = json!({ "metadata": metadata, "spec": { "a": { "b": 1 } }, "status": 2 });
    let mut form = Form::metadata();
    form.add(&["/spec/a/b"]);
    Arc::new(Object::read(&pods(), &json, &form).expect("a pod as written"))
}

#[test]
fn keeps_the_newest_revision_whatever_comes_late() {
    let (mut cache, step) = (Cache::default(), Step::default());
    assert_eq!(cache.put(pod("a", 5), step), Put::Added);
    assert_eq!(cache.put(pod("a", 5), step), Put::Same);
    assert_eq!(cache.put(pod("a", 4), step), Put::Ignored);
    assert!(matches!(cache.put(pod("a", 9), step), Put::Updated { .. }));
    assert_eq!(cache.get(pod("a", 9).key()).unwrap().rv(), Rv::new(9));
}

#[test]
fn an_incarnation_that_went_never_returns() {
    let (mut cache, step) = (Cache::default(), Step::default());
    cache.put(pod("a", 5), step);
    cache.remove(pod("a", 5).key(), pod("a", 5).uid());
    assert!(cache.is_gone(pod("a", 5).uid()));
    assert_eq!(cache.put(pod("a", 7), step), Put::Ignored);
    assert_eq!(cache.put(pod("b", 8), step), Put::Added);
}

#[test]
fn a_changed_uid_is_the_end_of_one_and_the_beginning_of_another() {
    let (mut cache, step) = (Cache::default(), Step::default());
    cache.put(pod("a", 5), step);
    assert!(matches!(cache.put(pod("b", 6), step), Put::Replaced { .. }));
    assert!(cache.is_gone(pod("a", 5).uid()));
    assert!(!cache.is_gone(pod("b", 6).uid()));
}

#[test]
fn a_reply_behind_the_watch_does_not_bring_back_what_the_watch_saw_go() {
    let (mut cache, step) = (Cache::default(), Step::default());
    cache.advance(Position::new(pods(), Rv::new(10)));
    assert_eq!(cache.put(pod("a", 9), step), Put::Ignored);
    assert_eq!(cache.put_listed(pod("a", 9), step), Put::Added);
}

#[test]
fn positions_of_two_resources_have_no_order() {
    let at = |plural: &str, rv| Position::new(Resource::new("", plural), Rv::new(rv));
    assert_eq!(at("pods", 5).reaches(&at("pods", 4)), Some(true));
    assert_eq!(at("pods", 4).reaches(&at("pods", 5)), Some(false));
    assert_eq!(at("pods", 9).reaches(&at("secrets", 1)), None);
}

#[test]
fn only_the_fields_that_were_asked_for_are_kept() {
    let pod = pod("a", 1);
    assert_eq!(pod.field("/spec/a/b"), Some(&json!(1)));
    assert_eq!(pod.field("/status"), None);
}
