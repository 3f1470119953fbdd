//! The definitions of Ray's and Volcano's kinds, put into the API server at its start. A definition that another client
//! put there, or changed since, stays as it is: its user knows which version is wanted.

use http::Request;
use kube::Client;
use serde_json::{Value, json};
use sundown_kinds::crd;
use xxhash_rust::xxh3::xxh3_64;

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Which text a definition was made of; only on those that are ours.
const ANNOTATION: &str = "sundown.dev/definition";
/// Which generation of the object has that text: a later one is of another client. Missing: the first.
const GENERATION: &str = "sundown.dev/definition-generation";

/// The name of a definition, and what gives its text.
type Named = (&'static str, fn() -> String);

const OURS: [Named; 5] = [
    ("rayclusters.ray.io", crd::ray_cluster),
    ("rayjobs.ray.io", crd::ray_job),
    ("jobs.batch.volcano.sh", crd::volcano::job),
    ("podgroups.scheduling.volcano.sh", crd::volcano::pod_group),
    ("queues.scheduling.volcano.sh", crd::volcano::queue),
];

/// What to do about a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Create,
    /// Bring it up to date, which makes it this generation.
    Replace {
        generation: i64,
    },
    Keep,
}

/// The definitions as a new server begins with them.
pub(crate) fn first() -> Vec<String> {
    let texts = OURS.into_iter().map(|(_, text)| text());
    texts
        .map(|text| {
            let mark = mark(&text);
            marked(text, &annotations(&mark, 1))
        })
        .collect()
}

fn mark(text: &str) -> String {
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

/// Puts in what is missing, and brings up to date what an earlier version of ours put in.
///
/// Errors: the API server did not take it.
pub(crate) async fn install(client: &Client) -> Result<(), kube::Error> {
    for (name, text) in OURS {
        let text = text();
        let mark = mark(&text);
        let step = step(found(client, name).await?.as_ref(), &mark);
        let request = match step {
            Step::Keep => continue,
            Step::Create => Request::post(PATH)
                .header("content-type", "application/json")
                .body(marked(text, &annotations(&mark, 1)).into_bytes()),
            Step::Replace { generation } => Request::patch(format!("{PATH}/{name}"))
                .header("content-type", "application/merge-patch+json")
                .body(marked(text, &annotations(&mark, generation)).into_bytes()),
        };
        let request = request.expect("the addresses are constants");
        match (step, client.request_text(request).await) {
            (_, Ok(_)) => {}
            // What is there goes on working; the start does not depend on it.
            (Step::Replace { .. }, Err(error @ kube::Error::Api(_))) => {
                tracing::warn!(%error, definition = name, "not brought up to date");
            }
            (_, Err(error)) => return Err(error),
        }
    }
    Ok(())
}

/// What the server says about a definition, without its schemas.
async fn found(client: &Client, name: &str) -> Result<Option<Value>, kube::Error> {
    let request = Request::get(format!("{PATH}/{name}"))
        .header(
            "accept",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        )
        .body(Vec::new());
    let request = request.expect("the addresses are constants");
    match client.request(request).await {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

fn step(found: Option<&Value>, mark: &str) -> Step {
    let Some(found) = found else {
        return Step::Create;
    };
    let metadata = &found["metadata"];
    let annotations = &metadata["annotations"];
    let Some(made_of) = annotations[ANNOTATION].as_str() else {
        return Step::Keep;
    };
    let own = annotations[GENERATION].as_str();
    let own = own.map_or(Some(1), |text| text.parse().ok());
    let generation = metadata["generation"].as_i64().unwrap_or(0);
    if made_of == mark || own != Some(generation) {
        return Step::Keep;
    }
    let generation = generation + 1;
    Step::Replace { generation }
}

fn annotations(mark: &str, generation: i64) -> Value {
    match generation {
        1 => json!({ ANNOTATION: mark }),
        _ => json!({ ANNOTATION: mark, GENERATION: generation.to_string() }),
    }
}

/// The text with its annotations, without reading half a megabyte of schemas.
fn marked(mut text: String, annotations: &Value) -> String {
    let metadata = "\"metadata\":{";
    if let Some(at) = text.find(metadata) {
        text.insert_str(
            at + metadata.len(),
            &format!("\"annotations\":{annotations},"),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use sundown_api::{Called, Cx, Method, Server};
    use sundown_model::{ObjectKey, Resource};

    use super::*;

    #[test]
    fn the_mark_is_put_beside_the_name() {
        for text in OURS.map(|(_, text)| text()) {
            let before: Value = serde_json::from_str(&text).unwrap();
            let mut after: Value =
                serde_json::from_str(&marked(text, &annotations("m", 1))).unwrap();
            let annotations = after["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("annotations");
            assert_eq!(annotations, Some(json!({ ANNOTATION: "m" })));
            assert_eq!(after, before);
        }
    }

    /// What a server begins with is not checked by it, so it is checked here.
    #[test]
    fn a_server_begins_with_what_it_would_have_stored_of_a_post() {
        let begun = server(first);
        let mut told = server(Vec::new);
        for text in first() {
            let Called::Response(answer) = call(&mut told, Method::Post, PATH, text) else {
                panic!("a response");
            };
            assert_eq!(answer.code, 201, "{answer:?}");
        }
        for (name, _) in OURS {
            let path = format!("{PATH}/{name}");
            let shown = |server: &Server| {
                let answer = call(&mut server.clone(), Method::Get, &path, String::new());
                let Called::Response(answer) = answer else {
                    panic!("a response");
                };
                let mut object: Value = serde_json::from_slice(&answer.body).unwrap();
                let metadata = object["metadata"].as_object_mut().unwrap();
                metadata.remove("resourceVersion");
                metadata.remove("uid");
                object
            };
            assert_eq!(shown(&begun), shown(&told));
        }
        // To the byte, but for what differs between any two.
        for (name, _) in OURS {
            let resource = Resource::new("apiextensions.k8s.io", "customresourcedefinitions");
            let key = ObjectKey::cluster(&resource, name);
            let tail = |server: &Server| {
                let stored = server.store().get(&key).unwrap();
                let text = String::from_utf8(stored.content_json().to_vec()).unwrap();
                text.split_once("\"spec\":").unwrap().1.to_owned()
            };
            assert!(tail(&begun) == tail(&told), "{name}");
        }
        let lists = |server: &Server, path: &str| {
            let answer = call(&mut server.clone(), Method::Get, path, String::new());
            matches!(answer, Called::Response(answer) if answer.code == 200)
        };
        for path in [
            "/apis/ray.io/v1/namespaces/default/rayjobs",
            "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs",
            "/apis/scheduling.volcano.sh/v1beta1/queues",
        ] {
            assert!(lists(&begun, path) && lists(&told, path), "{path}");
        }
    }

    fn server(definitions: fn() -> Vec<String>) -> Server {
        let config = sundown_api::Config {
            definitions,
            ..sundown_api::Config::default()
        };
        with_cx(|cx| Server::new(config, cx))
    }

    fn call(server: &mut Server, method: Method, path: &str, body: String) -> Called {
        let request = sundown_api::Request {
            method,
            path: path.into(),
            query: Vec::new(),
            content_type: None,
            accept: None,
            user_agent: None,
            if_none_match: None,
            user: sundown_api::User::admin(),
            body: body.into_bytes(),
        };
        with_cx(|cx| server.call(&request, cx))
    }

    fn with_cx<T>(then: impl FnOnce(&mut Cx<'_>) -> T) -> T {
        let mut last = 0;
        let mut entropy = || {
            last += 1;
            last
        };
        then(&mut Cx {
            now: Timestamp::UNIX_EPOCH,
            entropy: &mut entropy,
        })
    }

    #[test]
    fn only_what_is_missing_or_was_ours_is_written() {
        let of = |generation: i64, annotations: Value| json!({ "metadata": { "generation": generation, "annotations": annotations } });
        let ours = |generation: i64, written: i64| of(generation, annotations("m", written));
        let theirs = of(1, Value::Null);
        assert_eq!(step(None, "m"), Step::Create);
        assert_eq!(step(Some(&theirs), "m"), Step::Keep);
        for (found, mark, expect) in [
            (ours(1, 1), "m", Step::Keep),
            (ours(1, 1), "n", Step::Replace { generation: 2 }),
            (ours(2, 2), "n", Step::Replace { generation: 3 }),
            // `kubectl apply` of another text leaves our annotations.
            (ours(2, 1), "n", Step::Keep),
            (ours(3, 2), "n", Step::Keep),
        ] {
            assert_eq!(step(Some(&found), mark), expect, "{found}");
        }
    }
}
