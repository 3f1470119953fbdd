//! Accept headers of real clients, and what they get.

use super::{aggregated_discovery, form, wants_table};
use crate::render::Form;
use crate::{Method, Request, User};

fn asking(accept: &str) -> Request {
    Request {
        method: Method::Get,
        path: String::new(),
        query: Vec::new(),
        content_type: None,
        accept: Some(accept.to_owned()),
        user_agent: None,
        if_none_match: None,
        user: User::admin(),
        body: Vec::new(),
    }
}

#[test]
fn takes_the_first_clause_that_can_be_served() {
    let check = |accept: &str, expect: Option<Form>| {
        assert_eq!(form(&asking(accept)).ok(), expect, "{accept}");
    };
    check("", Some(Form::Full));
    check("application/json", Some(Form::Full));
    check("application/vnd.kubernetes.protobuf, */*", Some(Form::Full));
    check(
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
         application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        Some(Form::Metadata),
    );
    check("application/json;as=PartialObjectMetadata;v=v1", None);
    check("application/json;as=Table;g=meta.k8s.io;v=v2", None);
    check("text/html", None);
    check("application/vnd.kubernetes.protobuf", Some(Form::Full));
    check("application/cbor", None);
    check("application/json;q=0", None);
    check(
        "application/json;q=0.5,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        Some(Form::Metadata),
    );
}

#[test]
fn tells_tables_from_objects() {
    let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;\
                   v=v1beta1;g=meta.k8s.io,application/json";
    assert!(wants_table(&asking(kubectl)));
    assert!(!wants_table(&asking(
        "application/json,application/json;as=Table;v=v1;g=meta.k8s.io"
    )));
}

#[test]
fn takes_the_first_version_of_discovery() {
    let both = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                application/json";
    assert!(aggregated_discovery(&asking(both)).is_some_and(|it| it.contains("v=v2;")));
    assert_eq!(aggregated_discovery(&asking("application/json")), None);
}
