//! Probes: when they are tried and what follows.

use serde_json::json;
use sundown_model::Need;
use sundown_model::node::{Answer, Probe, ProbeKind, Query};

use super::life::{Life, a_pod, run, signals, starts};
use crate::pod::{Key, Purpose, Reason};
use crate::testing::{A, at};

fn probed(member: &str) -> A {
    let probe = json!({
        "tcpSocket": { "port": "web" }, "initialDelaySeconds": 5, "periodSeconds": 10,
        "failureThreshold": 2, "timeoutSeconds": 1,
    });
    let mut container = json!({
        "name": "main", "image": "i", "ports": [{ "name": "web", "containerPort": 80 }],
    });
    container[member] = probe;
    a_pod()
        .with("/spec/restartPolicy", json!("Always"))
        .with("/spec/containers", json!([container]))
}

fn query() -> Query {
    let how = ProbeKind::Tcp { port: 80 };
    let probe = Probe {
        how,
        timeout_seconds: 1,
    };
    Query::Probe { run: run(0), probe }
}

fn answer(life: &mut Life, seconds: i64, is_well: bool) {
    let trouble = (!is_well).then(|| "connection refused".to_owned());
    let scene = life.scene.clone();
    life.scene = scene.answered(query(), seconds, Answer::Probe { trouble });
}

fn key(life: &Life, purpose: Purpose) -> Key {
    Key::Probe(life.pod.key(), "main".into(), purpose)
}

#[test]
fn a_probe_is_tried_after_its_delay_and_then_in_its_period() {
    let mut life = Life::of(probed("readinessProbe"));
    let key = key(&life, Purpose::Readiness);
    let idle = life.scene.decide(&key, 0);
    assert_eq!(idle.reason, Reason::NothingToProbe);
    life.settle(0);
    let early = life.scene.decide(&key, 4);
    assert_eq!(early.reason, Reason::ProbesLater { at: at(5) });
    let due = life.scene.decide(&key, 5);
    assert_eq!(due.needs, [Need::Node(query())]);
    assert!(matches!(due.reason, Reason::Probes { .. }));
    answer(&mut life, 6, true);
    let next = life.scene.decide(&key, 6);
    assert_eq!(next.wake_at, Some(at(16)));
}

#[test]
fn readiness_follows_enough_answers_in_a_row() {
    let mut life = Life::of(probed("readinessProbe"));
    life.settle(0);
    let ready = "/containerStatuses/0/ready";
    assert_eq!(life.status(ready), false);
    answer(&mut life, 6, true);
    life.settle(6);
    assert_eq!(life.status(ready), true);
    answer(&mut life, 16, false);
    let notes = life.notes(16);
    assert_eq!(
        notes,
        ["Unhealthy: Readiness probe failed: connection refused"]
    );
    life.settle(16);
    assert_eq!(life.status(ready), true, "once is not enough");
    answer(&mut life, 26, false);
    life.settle(26);
    assert_eq!(life.status(ready), false);
}

#[test]
fn what_was_recorded_stands_until_there_is_an_answer_in_a_new_life() {
    let mut life = Life::of(probed("readinessProbe"));
    life.settle(0);
    answer(&mut life, 6, true);
    life.settle(6);
    let mut other = Life::of(life.pod.clone());
    other.node = life.node.clone();
    other.report();
    other.settle(7);
    assert_eq!(other.status("/containerStatuses/0/ready"), true);
}

#[test]
fn a_container_that_fails_its_liveness_probe_is_ended_and_restarted() {
    let mut life = Life::of(probed("livenessProbe"));
    life.settle(0);
    answer(&mut life, 6, false);
    assert!(life.settle(6).is_empty());
    answer(&mut life, 16, false);
    let (reason, calls) = life.turn(16);
    assert_eq!(reason, Reason::Unhealthy);
    assert_eq!(signals(&calls), [15]);
    assert!(life.settle(20).is_empty());
    assert_eq!(signals(&life.settle(46)), [9]);
    life.exits(&run(0), 47, 137);
    assert_eq!(starts(&life.settle(47)), [("main".to_owned(), 1)]);
}

#[test]
fn a_startup_probe_holds_the_others_back() {
    let mut life = Life::of(probed("startupProbe"));
    life.settle(0);
    assert_eq!(life.status("/containerStatuses/0/started"), false);
    assert_eq!(life.status("/containerStatuses/0/ready"), false);
    let key = key(&life, Purpose::Startup);
    assert_eq!(life.scene.decide(&key, 5).needs.len(), 1);
    answer(&mut life, 6, true);
    life.settle(6);
    assert_eq!(life.status("/containerStatuses/0/started"), true);
    let over = life.scene.decide(&key, 20);
    assert_eq!(over.reason, Reason::NothingToProbe);
}
