//! Tokens of service accounts: how long they live.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::world::World;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// The seconds from issue to end that the claims say, and those that the answer says.
fn lives(world: &mut World, spec: &Value) -> (i64, Value) {
    let body = json!({ "spec": spec });
    let answer = world.post(&format!("{ACCOUNTS}/a/token"), &body).ok().json;
    let claims = answer["status"]["token"].as_str().unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
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
