//! Cases from seeds: the same in every run, and named when they fail.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Lives one case for each seed.
#[track_caller]
pub(crate) fn for_seeds(count: u64, case: impl Fn(&mut Rng)) {
    for seed in 0..count {
        let mut rng = Rng::with_seed(seed);
        let lived = catch_unwind(AssertUnwindSafe(|| case(&mut rng)));
        assert!(lived.is_ok(), "seed {seed} fails: see the panic before");
    }
}

/// One of some.
pub(crate) fn one_of<'a, T>(rng: &mut Rng, some: &'a [T]) -> &'a T {
    &some[rng.usize(..some.len())]
}

/// True in so many cases of a hundred.
pub(crate) fn percent(rng: &mut Rng, chance: u32) -> bool {
    rng.u32(..100) < chance
}

/// Any JSON, with words that controllers look for.
pub(crate) fn any_json(rng: &mut Rng, depth: u32) -> Value {
    const WORDS: &[&str] = &[
        "",
        "/",
        "a/b/c",
        "v1",
        "batch/v1",
        "Pod",
        "Job",
        "here",
        "True",
        "Complete",
        "foregroundDeletion",
        "orphan",
        "2030-01-01T00:00:00Z",
        "9999-99-99T99:99:99Z",
        "-1",
        "\u{1f600}",
    ];
    let kinds = if depth == 0 { 5 } else { 7 };
    match rng.u32(..kinds) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i64(..)),
        3 => json!(rng.f64() * 1e300),
        4 => json!(one_of(rng, WORDS)),
        5 => (0..rng.usize(..4))
            .map(|_| any_json(rng, depth - 1))
            .collect(),
        _ => {
            let map: Map<String, Value> = (0..rng.usize(..4))
                .map(|_| {
                    let name = (*one_of(rng, NAMES)).to_owned();
                    (name, any_json(rng, depth - 1))
                })
                .collect();
            Value::Object(map)
        }
    }
}

/// The fields that controllers look for.
const NAMES: &[&str] = &[
    "metadata",
    "name",
    "namespace",
    "uid",
    "ownerReferences",
    "finalizers",
    "apiVersion",
    "kind",
    "type",
    "status",
    "conditions",
    "lastTransitionTime",
    "ttlSecondsAfterFinished",
];

/// An object of which something is not as it should be, most often not enough to be refused.
pub(crate) fn odd_object(rng: &mut Rng) -> Value {
    let mut json = json!({
        "metadata": { "name": "odd", "namespace": "here", "uid": "uid-odd", "resourceVersion": "1" },
        "spec": {}, "status": {},
    });
    let owner = json!({
        "apiVersion": odd_text(rng), "kind": odd_text(rng), "name": odd_text(rng),
        "uid": odd_text(rng),
    });
    json["metadata"]["ownerReferences"] = json!([owner]);
    for _ in 0..rng.usize(1..6) {
        let pointer = *one_of(
            rng,
            &[
                "/metadata/name",
                "/metadata/uid",
                "/metadata/namespace",
                "/metadata/resourceVersion",
                "/metadata/finalizers",
                "/metadata/ownerReferences",
                "/metadata/deletionTimestamp",
                "/metadata/deletionGracePeriodSeconds",
                "/spec/ttlSecondsAfterFinished",
                "/status/conditions",
                "/spec",
                "/status",
            ],
        );
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        if let Some(Value::Object(map)) = json.pointer_mut(parent) {
            map.insert(field.to_owned(), any_json(rng, 3));
        }
    }
    json
}

fn odd_text(rng: &mut Rng) -> String {
    (*one_of(
        rng,
        &["", "/", "v1", "batch/v1", "Job", "Pod", "x", "a/b/c"],
    ))
    .to_owned()
}
