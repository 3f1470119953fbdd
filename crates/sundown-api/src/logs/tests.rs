//! Which container, which run, how much: tables in upstream's words.

use serde_json::{Value, json};

use super::*;
use crate::{Method, User};

fn now() -> Timestamp {
    Timestamp::from_second(1_000).unwrap()
}

fn asked(query: &[(&str, &str)]) -> Result<Options, String> {
    let query = query.iter();
    let request = Request {
        method: Method::Get,
        path: String::new(),
        query: query
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        content_type: None,
        accept: None,
        user_agent: None,
        if_none_match: None,
        user: User::admin(),
        body: Vec::new(),
    };
    options(&request, "p", now()).map_err(|it| said(&it))
}

fn said(failure: &Failure) -> String {
    let status = failure.status();
    status["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_query_is_read_as_upstream_reads_it() {
    let plain = Options::default();
    let check = |query: &[(&str, &str)], expect: Options| {
        assert_eq!(asked(query).as_ref(), Ok(&expect), "{query:?}");
    };
    check(&[], plain.clone());
    check(&[("insecureSkipTLSVerifyBackend", "true")], plain.clone());
    check(&[("follow", "false"), ("previous", "0")], plain.clone());
    check(&[("sinceTime", ""), ("container", "")], plain.clone());
    for yes in ["true", "1", "", "maybe"] {
        let follow = true;
        check(
            &[("follow", yes)],
            Options {
                follow,
                ..plain.clone()
            },
        );
    }
    check(
        &[("tailLines", "0"), ("limitBytes", "7"), ("container", "c")],
        Options {
            tail_lines: Some(0),
            bytes_max: Some(7),
            container: Some("c".to_owned()),
            ..plain.clone()
        },
    );
    let since = Some(Timestamp::from_second(990).unwrap());
    check(
        &[("sinceSeconds", "10")],
        Options {
            since,
            ..plain.clone()
        },
    );
    check(
        &[("sinceTime", "1970-01-01T00:16:30Z")],
        Options {
            since,
            ..plain.clone()
        },
    );
    let since = Some(Timestamp::MIN);
    check(
        &[("sinceSeconds", "9223372036854775807")],
        Options { since, ..plain },
    );
}

#[test]
fn what_makes_no_sense_is_refused_in_upstreams_words() {
    let check = |query: &[(&str, &str)], expect: &str| {
        assert_eq!(asked(query), Err(expect.to_owned()), "{query:?}");
    };
    check(
        &[("tailLines", "")],
        r#"strconv.ParseInt: parsing "": invalid syntax"#,
    );
    check(
        &[("sinceTime", "x")],
        r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
    );
    check(
        &[("tailLines", "-1"), ("limitBytes", "0")],
        "PodLogOptions \"p\" is invalid: [tailLines: Invalid value: -1: must be greater than or \
         equal to 0, limitBytes: Invalid value: 0: must be greater than 0]",
    );
    check(
        &[("sinceSeconds", "0")],
        "PodLogOptions \"p\" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0",
    );
    check(
        &[("sinceSeconds", "1"), ("sinceTime", "2020-01-01T00:00:00Z")],
        "PodLogOptions \"p\" is invalid: []: Forbidden: at most one of `sinceTime` or \
         `sinceSeconds` may be specified",
    );
    check(
        &[("stream", "Stdout")],
        "PodLogOptions \"p\" is invalid: stream: Forbidden: may not be specified",
    );
}

#[test]
fn a_container_is_the_named_one_or_the_only_one() {
    let named =
        |names: &[&str]| -> Value { names.iter().map(|it| json!({ "name": it })).collect() };
    let one = json!({ "spec": { "containers": named(&["a"]), "initContainers": named(&["i"]) } });
    let two = json!({ "spec": {
        "containers": named(&["a", "b"]), "initContainers": named(&["i", "j"]),
    } });
    let check = |pod: &Value, wanted: Option<&str>, expect: Result<&str, &str>| {
        let found = container(pod, "p", wanted).map_err(|it| said(&it));
        let expect = expect.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(found, expect, "{wanted:?}");
    };
    check(&one, None, Ok("a"));
    check(&one, Some("i"), Ok("i"));
    check(&one, Some("z"), Err("container z is not valid for pod p"));
    check(
        &two,
        None,
        Err("a container name must be specified for pod p, choose one of: [i j a b]"),
    );
    let none = Err("a container name must be specified for pod p");
    check(&json!({}), None, none);
}

#[test]
fn a_run_is_the_newest_that_wrote_something() {
    let check = |status: Value, previous: bool, expect: Result<&str, &str>| {
        let mut status = status;
        status["name"] = json!("c");
        let whole = json!({ "initContainerStatuses": [], "containerStatuses": [status] });
        let found = run(&whole, "p", "c", previous);
        let expect = expect.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(found, expect, "{whole}");
    };
    let running = json!({
        "containerID": "x://2", "state": { "running": {} },
        "lastState": { "terminated": { "containerID": "x://1" } },
    });
    check(running.clone(), false, Ok("x://2"));
    check(running, true, Ok("x://1"));
    let first = json!({ "containerID": "x://1", "state": { "running": {} }, "lastState": {} });
    let gone = Err("previous terminated container \"c\" in pod \"p\" not found");
    check(first, true, gone);
    let over = json!({ "state": { "terminated": { "containerID": "x://1" } } });
    check(over, false, Ok("x://1"));
    let between = json!({
        "state": { "waiting": { "reason": "CrashLoopBackOff" } },
        "lastState": { "terminated": { "containerID": "x://1" } },
    });
    check(between.clone(), false, Ok("x://1"));
    check(between, true, Ok("x://1"));
    let unknown = json!({ "state": { "terminated": {} } });
    check(
        unknown,
        false,
        Err("container \"c\" in pod \"p\" is terminated"),
    );
    for (reason, expect) in [
        ("ContainerCreating", "ContainerCreating"),
        ("PodInitializing", "PodInitializing"),
        ("ErrImagePull", "image can't be pulled"),
        ("ImagePullBackOff", "trying and failing to pull image"),
    ] {
        let waiting = json!({ "state": { "waiting": { "reason": reason } } });
        let expect = format!("container \"c\" in pod \"p\" is waiting to start: {expect}");
        check(waiting, false, Err(&expect));
    }
    let silent = Err("container \"c\" in pod \"p\" is waiting to start - no logs yet");
    check(json!({}), false, silent);
    let other = run(&json!({}), "p", "c", false);
    let expect = "container \"c\" in pod \"p\" is not available";
    assert_eq!(other, Err(expect.to_owned()));
}
