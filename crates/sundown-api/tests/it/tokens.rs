//! Tokens of service accounts: how long they live, and whom they are meant for.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sundown_api::ISSUER;

use crate::world::{PODS, World, pod};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// The claims of a new token of account `a`.
fn claims(world: &mut World, spec: &Value) -> Vec<u8> {
    let body = json!({ "spec": spec });
    let answer = world.post(&format!("{ACCOUNTS}/a/token"), &body).ok().json;
    let claims = answer["status"]["token"].as_str().unwrap();
    URL_SAFE_NO_PAD.decode(claims).unwrap()
}

/// The seconds from issue to end that the claims say, and those that the answer says.
fn lives(world: &mut World, spec: &Value) -> (i64, Value) {
    let claims: Value = serde_json::from_slice(&claims(world, spec)).unwrap();
    let seconds = claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap();
    (seconds, claims["kubernetes.io"]["warnafter"].clone())
}

/// Nobody writes the file in a pod anew, and upstream's tokens outlive such programs too
/// (`registry/core/serviceaccount/storage/token.go`).
#[test]
fn those_that_pods_get_by_themselves_live_for_a_year() {
    let mut world = World::new();
    let account = json!({ "metadata": { "name": "a" } });
    world.post(ACCOUNTS, &account).ok();
    let (seconds, warn_after) = lives(&mut world, &json!({ "expirationSeconds": 3607 }));
    assert_eq!(seconds, 365 * 24 * 60 * 60);
    assert!(warn_after.is_i64(), "{warn_after}");
    for spec in [
        json!({ "expirationSeconds": 3600 }),
        json!({ "expirationSeconds": 3607, "audiences": ["other"] }),
    ] {
        let (seconds, warn_after) = lives(&mut world, &spec);
        assert_eq!(seconds, spec["expirationSeconds"]);
        assert!(warn_after.is_null());
    }
}

/// Upstream: a token that is bound to a pod ends a minute after the pod's `deletionTimestamp`, however
/// long a finalizer keeps the object (`pkg/serviceaccount/claims.go`).
#[test]
fn one_that_is_bound_to_a_pod_ends_a_minute_after_the_pods_deletion() {
    let mut world = World::new();
    let account = json!({ "metadata": { "name": "a" } });
    world.post(ACCOUNTS, &account).ok();
    let mut held = pod("held");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    held["spec"]["nodeName"] = json!("node");
    world.post(PODS, &held).ok();
    let bound = json!({ "apiVersion": "v1", "kind": "Pod", "name": "held" });
    let claims = claims(&mut world, &json!({ "boundObjectRef": bound }));
    let going = world.delete(&format!("{PODS}/held"), &Value::Null).ok();
    let deletion_at = going.metadata("deletionTimestamp").as_str().unwrap();
    let deletion_at: Timestamp = deletion_at.parse().unwrap();
    assert!(deletion_at > world.now, "the end of the grace period");
    for (waited, counts) in [(0, true), (60, true), (61, false)] {
        let now = deletion_at + SignedDuration::from_secs(waited);
        let user = world.server.token_user(&claims, &[ISSUER], now);
        assert_eq!(user.is_ok(), counts, "{waited} s: {user:?}");
    }
}

#[test]
fn one_counts_for_those_audiences_that_it_names() {
    let mut world = World::new();
    let account = json!({ "metadata": { "name": "a" } });
    world.post(ACCOUNTS, &account).ok();
    let claims = claims(&mut world, &json!({ "audiences": ["x", "y"] }));
    let check = |asked: &[&str], expect: &[&str]| {
        let user = world.server.token_user(&claims, asked, world.now);
        let audiences = user.map(|(_, audiences)| audiences).unwrap_or_default();
        assert_eq!(audiences, expect, "{asked:?}");
    };
    check(&["x"], &["x"]);
    check(&["other", "y", "x"], &["y", "x"]);
    check(&[ISSUER], &[]);
    check(&[], &[]);
}
