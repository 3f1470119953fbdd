//! Input that nobody means well with: it is refused, nothing is written, and the server goes on.

use fastrand::Rng;
use serde_json::{Value, json};
use sundown_api::{Called, Method, Request};

use crate::world::{CM, CRDS, JOBS, MERGE, PODS, SUNJOBS, World, cm, request, sunjob};

const ROUNDS: u64 = 4000;

/// Requests that are right, to be made wrong.
fn corpus() -> Vec<Request> {
    let with_type = |method, path: &str, media: &str, body: &Value| Request {
        content_type: Some(media.into()),
        ..request(method, path, body)
    };
    let operations = json!([{ "op": "replace", "path": "/data/x", "value": "y" }]);
    vec![
        request(Method::Post, CM, &cm("b")),
        request(Method::Post, PODS, &crate::world::pod("b")),
        request(Method::Post, JOBS, &crate::world::job("b")),
        request(Method::Post, SUNJOBS, &sunjob("b")),
        request(
            Method::Post,
            CRDS,
            &crate::world::custom_resource_definition(),
        ),
        request(Method::Put, &format!("{CM}/a"), &cm("a")),
        with_type(
            Method::Patch,
            &format!("{CM}/a"),
            MERGE,
            &json!({ "data": { "x": "z" } }),
        ),
        with_type(
            Method::Patch,
            &format!("{CM}/a"),
            "application/json-patch+json",
            &operations,
        ),
        with_type(
            Method::Patch,
            &format!("{CM}/a"),
            "application/strategic-merge-patch+json",
            &json!({ "metadata": { "finalizers": ["a.io/b"] } }),
        ),
        request(
            Method::Delete,
            &format!("{CM}/none"),
            &json!({ "gracePeriodSeconds": 1 }),
        ),
        request(
            Method::Get,
            &format!("{CM}?limit=1&labelSelector=a%3Db&resourceVersion=1"),
            &Value::Null,
        ),
        request(
            Method::Get,
            &format!("{CM}?watch=1&resourceVersion=1"),
            &Value::Null,
        ),
        with_type(
            Method::Post,
            CM,
            "application/vnd.kubernetes.protobuf",
            &Value::Null,
        ),
    ]
}

fn spoil(request: &mut Request, rng: &mut Rng) {
    match rng.u8(..8) {
        0 => cut(&mut request.body, rng),
        1 => flip(&mut request.body, rng),
        2 => insert(&mut request.body, rng),
        3 => request.content_type = Some(word(rng)),
        4 => request.accept = Some(word(rng)),
        5 => request.path.push_str(&word(rng)),
        6 => request.query.push((word(rng), word(rng))),
        _ => {
            if let Some((_, value)) = request.query.first_mut() {
                *value = word(rng);
            } else {
                request.body = b"k8s\0\x0a\xff\xff\xff\xff\x0f".to_vec();
            }
        }
    }
}

fn cut(body: &mut Vec<u8>, rng: &mut Rng) {
    body.truncate(rng.usize(..=body.len()));
}

fn flip(body: &mut [u8], rng: &mut Rng) {
    if !body.is_empty() {
        let at = rng.usize(..body.len());
        body[at] = rng.u8(..);
    }
}

fn insert(body: &mut Vec<u8>, rng: &mut Rng) {
    const PIECES: [&[u8]; 8] = [
        b"{",
        b"[[[[[[[[",
        b"\"\\u0000\"",
        b"null",
        b"1e999",
        b"\xff\xfe",
        b"-",
        b"\"metadata\":[],",
    ];
    let at = rng.usize(..=body.len());
    let piece = PIECES[rng.usize(..PIECES.len())];
    body.splice(at..at, piece.iter().copied());
}

fn word(rng: &mut Rng) -> String {
    const WORDS: [&str; 12] = [
        "",
        "/",
        "..",
        "%00",
        "\u{0}",
        "application/json;as=Table",
        "watch",
        "continue",
        "limit",
        "-9223372036854775808",
        "fieldSelector",
        "dryRun",
    ];
    match rng.u8(..4) {
        0 => (0..rng.usize(..40))
            .map(|_| rng.char('\u{1}'..'\u{ff}'))
            .collect(),
        _ => WORDS[rng.usize(..WORDS.len())].to_owned(),
    }
}

#[test]
fn spoiled_requests_are_refused_without_a_trace() {
    let mut world = World::with_sunjobs();
    world.post(CM, &cm("a")).ok();
    let corpus = corpus();
    for seed in 0..ROUNDS {
        let mut rng = Rng::with_seed(seed);
        let mut request = corpus[rng.usize(..corpus.len())].clone();
        for _ in 0..=rng.usize(..3) {
            spoil(&mut request, &mut rng);
        }
        let before = world.server.revision();
        if let Called::Response(response) = world.call(&request) {
            let code = response.code;
            assert!(
                (200..300).contains(&code) || (400..=504).contains(&code),
                "{seed}: {code}"
            );
            if code >= 400 {
                assert_eq!(
                    world.server.revision(),
                    before,
                    "{seed}: {code} left a trace"
                );
            }
        }
    }
    world.get(&format!("{CM}/a")).ok();
}

#[test]
fn deep_nesting_is_refused_and_never_overflows() {
    let mut world = World::with_sunjobs();
    world.post(CM, &cm("a")).ok();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for depth in [90, 110, 200, 100_000] {
            let inside = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let body = format!("{{\"metadata\":{{\"name\":\"deep\"}},\"spec\":{inside}}}");
            for (method, path, media) in [
                (Method::Post, CM, "application/json"),
                (Method::Post, SUNJOBS, "application/json"),
                (Method::Patch, &*format!("{CM}/a"), MERGE),
            ] {
                let reply = world.send(&Request {
                    content_type: Some(media.into()),
                    body: body.clone().into_bytes(),
                    ..request(method, path, &Value::Null)
                });
                assert!(reply.code < 500, "{depth}: {}", reply.text);
                if depth > 100 {
                    assert!((400..500).contains(&reply.code), "{depth}: {}", reply.code);
                }
            }
        }
    }
}

/// Each fault was kept and told twice: a body of 3 MB took more than 1 GB and was answered with 400 MB.
#[test]
fn of_many_faults_a_thousand_are_told_and_the_others_counted() {
    let mut world = World::with_sunjobs();
    let mut pod = crate::world::pod("b");
    pod["spec"]["tolerations"] = vec![json!({}); 200_000].into();
    let refused = world.post(PODS, &pod);
    assert_eq!(refused.code, 422, "{}", refused.text);
    assert!(
        refused.text.len() < 1_000_000,
        "{} bytes",
        refused.text.len()
    );
    let status: Value = serde_json::from_str(&refused.text).expect("a Status");
    let message = status["message"].as_str().unwrap_or("");
    assert!(message.ends_with(", and 199000 more errors]"), "{message}");
    let causes = status["details"]["causes"].as_array().expect("causes");
    assert_eq!(causes.len(), 1_001);
    let rest = json!({ "message": "and 199000 more errors", "field": "<nil>" });
    assert_eq!(causes.last(), Some(&rest));
}

/// A custom resource was answered with a warning for each field that its definition does not know.
#[test]
fn of_many_unknown_fields_of_a_custom_resource_a_hundred_are_told() {
    let mut world = World::with_sunjobs();
    let mut object = sunjob("b");
    for number in 0..1_000 {
        object["metadata"][format!("unknown{number}")] = 1.into();
    }
    let Called::Response(made) = world.call(&request(Method::Post, SUNJOBS, &object)) else {
        unreachable!("a POST is answered");
    };
    assert_eq!((made.code, made.warnings.len()), (201, 100));
}

/// Each finalizer was looked for among all old ones: minutes for a body of 2 MB, on the one thread that
/// decides writes.
#[test]
fn many_finalizers_of_an_object_that_goes_are_compared_in_one_pass() {
    let mut world = World::new();
    let mut all: Vec<String> = (0..200_000).map(|it| format!("a/{it:06}")).collect();
    let mut object = cm("a");
    object["metadata"]["finalizers"] = json!(all);
    world.post(CM, &object).ok();
    world.delete(&format!("{CM}/a"), &Value::Null).ok();
    let mut going = world.get(&format!("{CM}/a")).ok().json;
    all.reverse();
    going["metadata"]["finalizers"] = json!(all);
    world.put(&format!("{CM}/a"), &going).ok();
    all.push("a/new".to_owned());
    going["metadata"]["finalizers"] = json!(all);
    going["metadata"]["resourceVersion"] = Value::Null;
    let refused = world.put(&format!("{CM}/a"), &going);
    assert_eq!(refused.code, 422, "{}", refused.message());
    assert!(refused.message().contains("\"a/new\""), "a new one is told");
}

/// A custom resource was answered with a warning for each of its finalizers: 50 MB for a body of 3 MB.
#[test]
fn of_many_bare_finalizers_of_a_custom_resource_a_hundred_are_told() {
    let mut world = World::with_sunjobs();
    let mut object = sunjob("b");
    let bare: Vec<String> = (0..200_000).map(|it| format!("f{it}")).collect();
    object["metadata"]["finalizers"] = json!(bare);
    let made = world.post(SUNJOBS, &object).ok();
    assert_eq!(made.warnings.len(), 100);
}
