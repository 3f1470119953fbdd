//! What is served, and how the streams follow it.

use std::sync::Arc;

use serde_json::json;
use sundown_engine::{Config, Effect, Input, WatchEvent};
use sundown_model::{Catalog, Resource, ResourceType};

use crate::rig::{CRD, Rig, a, at, catalog, failure, only, toy, ty};
use crate::toy::{BOX, GADGET, TOY};

/// A settled engine on a server that has custom resource definitions.
fn with_definitions(objects: &[&crate::rig::A]) -> Rig {
    let mut rig = Rig::new(Config::default());
    rig.catalog = catalog(&[&TOY, &BOX, &CRD]);
    rig.settle(objects);
    rig.take(Input::Lead(true));
    rig
}

fn definition(rv: u64) -> crate::rig::A {
    a(&CRD, "gadgets.later.io")
        .meta("namespace", json!(null))
        .rv(rv)
}

fn resources(effects: &[Effect]) -> Vec<Resource> {
    let listed = effects.iter().filter_map(|effect| match effect {
        Effect::List { ty, .. } | Effect::Watch { ty, .. } => Some(ty.resource.clone()),
        _ => None,
    });
    listed.collect()
}

#[test]
fn a_discovery_that_fails_is_asked_again_later_and_later() {
    let mut rig = Rig::new(Config::default());
    let mut id = only(rig.turn()).id();
    for due in [100, 300, 700] {
        let result = Err(failure());
        rig.take(Input::Discovered { id, result });
        assert!(!rig.engine.is_settled());
        assert_eq!(rig.turn_at(due - 1), []);
        let effect = only(rig.turn_at(due));
        assert!(matches!(effect, Effect::Discover { .. }), "{effect:?}");
        id = effect.id();
    }
}

#[test]
fn a_new_definition_leads_to_a_discovery_and_to_new_streams() {
    let mut rig = with_definitions(&[]);
    rig.sees(&definition(11));
    let discover = only(rig.turn());
    assert!(matches!(discover, Effect::Discover { .. }), "{discover:?}");
    rig.discovered(discover.id(), catalog(&[&TOY, &BOX, &CRD, &GADGET]));
    let list = rig.turn();
    assert_eq!(resources(&list), [GADGET.resource()]);
    assert!(!rig.engine.is_settled(), "the new kind had no answer yet");
    let gadget = a(&GADGET, "gadget");
    rig.listed(list[0].id(), crate::rig::page(&[&gadget], 3));
    assert_eq!(resources(&rig.turn()), [GADGET.resource()]);
    assert!(rig.cached(&gadget).is_some());
}

#[test]
fn a_definition_that_changes_during_a_discovery_leads_to_another() {
    let mut rig = with_definitions(&[]);
    rig.sees(&definition(11));
    let first = only(rig.turn());
    rig.sees(&definition(12));
    assert_eq!(rig.turn(), [], "one discovery at a time");
    rig.discovered(first.id(), rig.catalog.clone());
    let second = only(rig.turn());
    assert!(matches!(second, Effect::Discover { .. }), "{second:?}");
    rig.discovered(second.id(), rig.catalog.clone());
    assert_eq!(rig.turn(), []);
}

#[test]
fn a_resource_that_is_no_longer_served_ends_its_watch_and_is_forgotten() {
    let (kept, lost) = (toy("kept"), a(&BOX, "lost"));
    let mut rig = with_definitions(&[&kept, &lost]);
    let watch = rig.watch_of(&BOX);
    rig.sees(&definition(11));
    let discover = only(rig.turn());
    rig.discovered(discover.id(), catalog(&[&TOY, &CRD]));
    assert_eq!(rig.turn(), [Effect::Unwatch { id: watch }]);
    assert_eq!(rig.cached(&lost), None);
    assert!(
        !rig.engine.cache().is_gone(lost.build().uid()),
        "forgotten is not gone"
    );
    assert_eq!(rig.cached(&kept), Some(kept.build()));
    assert_eq!(rig.engine.audit(), Vec::<String>::new());
    rig.take(Input::Watched {
        id: watch,
        event: WatchEvent::Put(lost.clone().rv(99).build()),
    });
    assert_eq!(rig.cached(&lost), None);
}

#[test]
fn a_resource_that_vanishes_while_it_waits_to_be_listed_is_not_listed_any_more() {
    let mut rig = with_definitions(&[]);
    rig.bookmark(&CRD, 11);
    rig.watch(&BOX, WatchEvent::Closed { expired: false });
    rig.sees(&definition(12));
    let discover = only(rig.turn());
    rig.discovered(discover.id(), catalog(&[&TOY, &CRD]));
    assert_eq!(rig.turn_at(60_000), []);
    assert!(rig.engine.is_at_rest(at(60_000)));
}

/// A stream used to keep the version that it began with, and asked for it for ever after the
/// definition had stopped to serve it.
#[test]
fn a_stream_goes_on_in_the_version_that_is_served_now() {
    let mut rig = with_definitions(&[]);
    rig.sees(&definition(11));
    let discover = only(rig.turn());
    let newer = ResourceType {
        version: "v2".into(),
        served: ["v2".into()].into(),
        ..ty(&TOY)
    };
    rig.discovered(discover.id(), Catalog::new([newer, ty(&BOX), ty(&CRD)]));
    rig.turn();
    rig.bookmark(&TOY, 12);
    rig.watch(&TOY, WatchEvent::Closed { expired: false });
    let watch = only(rig.turn());
    let version = match watch {
        Effect::Watch { ty, .. } => Arc::clone(&ty.version),
        other => panic!("expected a watch, got {other:?}"),
    };
    assert_eq!(&*version, "v2");
}

#[test]
fn an_answer_to_a_discovery_that_was_not_asked_changes_nothing() {
    let mut rig = with_definitions(&[&toy("a")]);
    rig.discovered(crate::rig::id(999), Catalog::default());
    assert_eq!(rig.turn(), []);
    assert!(rig.cached(&toy("a")).is_some());
}
