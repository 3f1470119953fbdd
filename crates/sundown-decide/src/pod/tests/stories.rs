//! From binding to the end.

use serde_json::json;
use sundown_model::node::{self, Call, Report};
use sundown_model::{Action, DeedOutcome, DeedRefusal, Explain, Need, Subject, What};

use super::life::{Life, a_pod, run, signals, starts, uid};
use crate::pod::{Key, Pods, Reason};
use crate::testing::{Scene, a, at};

fn always() -> Life {
    Life::of(a_pod().with("/spec/restartPolicy", json!("Always")))
}

#[test]
fn a_pod_gets_its_place_then_its_record_then_its_run_then_its_end() {
    let mut life = Life::of(a_pod());
    let (reason, calls) = life.turn(0);
    assert_eq!(reason, Reason::Places);
    assert!(matches!(&calls[..], [Call::Prepare(_)]));
    assert_eq!(life.status(""), json!(null), "no write of its own");
    life.carry_out(&calls[0], 0);
    let (reason, calls) = life.turn(0);
    assert_eq!(
        reason,
        Reason::Records,
        "nothing starts before it is on record"
    );
    assert!(calls.is_empty());
    assert_eq!(life.status("/podIP"), "10.0.0.7");
    assert_eq!(life.status("/phase"), "Pending");
    let (reason, calls) = life.turn(0);
    assert_eq!(starts(&calls), [("main".to_owned(), 0)]);
    assert!(matches!(reason, Reason::Starts { .. }));
    life.carry_out(&calls[0], 0);
    life.settle(1);
    assert_eq!(life.status("/phase"), "Running");
    assert_eq!(life.status("/containerStatuses/0/ready"), true);
    assert_eq!(life.turn(2).0, Reason::Runs);
    life.exits(&run(0), 5, 0);
    let (reason, calls) = life.turn(5);
    assert_eq!(reason, Reason::Records);
    assert!(calls.is_empty(), "its place stays until its end is told");
    assert_eq!(life.status("/phase"), "Succeeded");
    let ended = life.status("/containerStatuses/0/state/terminated");
    assert_eq!(ended["exitCode"], 0);
    assert_eq!(ended["reason"], "Completed");
    let vacates = Reason::Vacates { at: at(7) };
    assert_eq!(life.turn(5), (vacates.clone(), Vec::new()));
    assert_eq!(life.decide(6).wake_at, Some(at(7)));
    let (reason, calls) = life.turn(7);
    assert_eq!(reason, vacates);
    assert!(matches!(&calls[..], [Call::Release { .. }]), "{calls:?}");
    assert!(life.turn(7).1.is_empty(), "it takes a moment to show");
    life.carry_out(&calls[0], 7);
    let before = life.pod.json.clone();
    assert_eq!(life.turn(8).0, Reason::Finished);
    assert_eq!(life.pod.json, before, "no further write");
}

#[test]
fn a_pod_of_another_node_without_containers_or_gone_is_left_alone() {
    let elsewhere = Life::of(a_pod().with("/spec/nodeName", json!("other")));
    assert_eq!(elsewhere.decide(0).reason, Reason::NotOurs);
    let odd = Life::of(a_pod().with("/spec/containers", json!("none")));
    assert_eq!(odd.decide(0).reason, Reason::Malformed);
    let none = Scene::new(Pods::default()).decide(&Key::Pod(a_pod().key()), 0);
    assert_eq!(none.reason, Reason::Gone);
}

#[test]
fn nothing_is_decided_while_the_node_has_not_said_what_it_runs() {
    let mut life = always();
    life.settle(0);
    let message = "down".to_owned();
    life.say(Report::Away { message });
    let decision = life.decide(100);
    assert_eq!(decision.reason, Reason::NodeAway);
    assert!(decision.actions.is_empty());
}

#[test]
fn restarts_back_off_from_what_is_on_record() {
    let mut life = always();
    life.settle(0);
    life.exits(&run(0), 10, 1);
    assert_eq!(
        starts(&life.settle(10)),
        [("main".to_owned(), 1)],
        "at once"
    );
    life.exits(&run(1), 20, 1);
    assert!(life.settle(20).is_empty());
    let waiting = life.status("/containerStatuses/0/state/waiting");
    assert_eq!(waiting["reason"], "CrashLoopBackOff");
    assert_eq!(
        waiting["message"],
        "back-off 10s restarting failed container=main pod=p_here(uid-p)"
    );
    assert_eq!(life.decide(25).reason, Reason::BacksOff { until: at(30) });
    assert_eq!(life.decide(25).wake_at, Some(at(30)));
    // A death of ours in between changes nothing: the node and the record tell the rest.
    let mut other = Life::of(life.pod.clone());
    other.node = life.node.clone();
    other.report();
    assert!(other.settle(29).is_empty());
    assert_eq!(starts(&other.settle(30)), [("main".to_owned(), 2)]);
    assert_eq!(other.status("/containerStatuses/0/restartCount"), 2);
    assert_eq!(other.status("/phase"), "Running");
}

#[test]
fn the_back_off_doubles_up_to_five_minutes_and_a_long_run_is_forgiven() {
    let mut life = always();
    let mut now = 0;
    life.settle(now);
    for (attempt, delay) in [
        (0, 0),
        (1, 10),
        (2, 20),
        (3, 40),
        (4, 80),
        (5, 160),
        (6, 300),
    ] {
        now += 1;
        life.exits(&run(attempt), now, 1);
        if delay > 0 {
            assert!(life.settle(now + delay - 1).is_empty(), "attempt {attempt}");
        }
        now += delay;
        assert_eq!(
            starts(&life.settle(now)),
            [("main".to_owned(), attempt + 1)]
        );
    }
    // The harness says that every run began at 0.
    life.exits(&run(7), 700, 1);
    assert_eq!(starts(&life.settle(700)), [("main".to_owned(), 8)]);
}

#[test]
fn a_policy_decides_what_the_end_of_a_container_means() {
    for (policy, exit, phase, again) in [
        ("Never", 1, "Failed", false),
        ("Never", 0, "Succeeded", false),
        ("OnFailure", 0, "Succeeded", false),
        ("OnFailure", 1, "Running", true),
        ("Always", 0, "Running", true),
    ] {
        let mut life = Life::of(a_pod().with("/spec/restartPolicy", json!(policy)));
        life.settle(0);
        life.exits(&run(0), 1, exit);
        assert_eq!(
            !starts(&life.settle(1)).is_empty(),
            again,
            "{policy} {exit}"
        );
        assert_eq!(life.status("/phase"), phase, "{policy} {exit}");
    }
}

#[test]
fn init_containers_run_one_after_the_other_before_the_rest() {
    let init = json!([{ "name": "one", "image": "i" }, { "name": "two", "image": "i" }]);
    let mut life = Life::of(a_pod().with("/spec/initContainers", init));
    let of = |name: &str| node::Run {
        container: name.into(),
        ..run(0)
    };
    assert_eq!(starts(&life.settle(0)), [("one".to_owned(), 0)]);
    assert_eq!(
        life.status("/containerStatuses/0/state/waiting/reason"),
        "PodInitializing"
    );
    life.exits(&of("one"), 1, 0);
    assert_eq!(starts(&life.settle(1)), [("two".to_owned(), 0)]);
    life.exits(&of("two"), 2, 0);
    assert_eq!(starts(&life.settle(2)), [("main".to_owned(), 0)]);
    assert_eq!(life.status("/phase"), "Running");
    let mut fails = Life::of(life.pod.clone());
    fails = Life::of(fails.pod.with("/status", json!({})));
    fails.settle(0);
    fails.exits(&of("one"), 1, 1);
    assert!(starts(&fails.settle(1)).is_empty());
    assert_eq!(fails.status("/phase"), "Failed");
}

#[test]
fn a_deleted_pod_is_told_then_killed_then_removed_then_finished() {
    let mut life = always();
    life.settle(0);
    life.delete(40, 30);
    let (reason, calls) = life.turn(10);
    assert_eq!(reason, Reason::Stops { until: at(40) });
    assert_eq!(signals(&calls), [15]);
    assert!(life.settle(39).is_empty(), "told once");
    assert_eq!(life.decide(39).wake_at, Some(at(40)));
    assert_eq!(signals(&life.settle(40)), [9]);
    life.exits(&run(0), 41, 137);
    assert_eq!(life.turn(41).0, Reason::Records);
    assert_eq!(life.status("/phase"), "Failed");
    let (reason, calls) = life.turn(41);
    assert_eq!(reason, Reason::Removes);
    life.carry_out(&calls[0], 41);
    assert_eq!(life.turn(41).0, Reason::Finishes);
    assert_eq!(life.decide(41).reason, Reason::Gone);
}

#[test]
fn a_pod_that_survives_its_kill_is_removed_by_force() {
    let mut life = always();
    life.settle(0);
    life.delete(40, 30);
    life.settle(40);
    life.settle(41);
    assert!(life.settle(45).is_empty());
    let calls = life.turn(60).1;
    assert!(matches!(&calls[..], [Call::Remove { .. }]), "{calls:?}");
}

#[test]
fn a_pod_that_a_finalizer_holds_is_released_once() {
    let mut life = always();
    life.settle(0);
    life.delete(0, 0);
    assert_eq!(signals(&life.turn(10).1), [9]);
    life.exits(&run(0), 10, 137);
    let calls = life.settle(10);
    assert!(matches!(&calls[..], [Call::Remove { .. }]));
    assert_eq!(life.turn(11).0, Reason::Released);
}

#[test]
fn a_pod_that_never_began_goes_at_once() {
    let mut life = always();
    life.delete(30, 30);
    assert_eq!(life.turn(1).0, Reason::Finishes);
}

#[test]
fn a_pod_that_was_lost_is_recorded_as_such_and_the_next_run_is_the_next_attempt() {
    let mut life = always();
    life.settle(0);
    life.say(Report::All(Vec::new()));
    assert_eq!(life.turn(5).0, Reason::Lost);
    let last = life.status("/containerStatuses/0/lastState/terminated");
    assert_eq!(last["exitCode"], 137);
    assert_eq!(last["reason"], "ContainerStatusUnknown");
    life.node.containers.clear();
    assert_eq!(starts(&life.settle(6)), [("main".to_owned(), 1)]);
}

#[test]
fn a_lost_pod_that_must_not_restart_has_failed() {
    let mut life = Life::of(a_pod());
    life.settle(0);
    life.node.lost = Some("the init of the pod died".to_owned());
    life.report();
    assert!(life.settle(5).is_empty());
    assert_eq!(life.status("/phase"), "Failed");
}

#[test]
fn a_start_of_unknown_fate_is_never_a_second_run_of_the_attempt() {
    let mut life = always();
    let calls = life.turn(0).1;
    life.carry_out(&calls[0], 0);
    life.turn(0);
    assert_eq!(starts(&life.turn(0).1), [("main".to_owned(), 0)]);
    // It may have run; the node forgot everything before it could say so.
    life.say(Report::All(Vec::new()));
    assert_eq!(starts(&life.settle(5)), [("main".to_owned(), 1)]);
}

#[test]
fn the_deadline_of_a_pod_ends_it() {
    let mut life = always();
    life.change(|pod| pod.with("/spec/activeDeadlineSeconds", json!(60)));
    life.settle(0);
    assert_eq!(life.decide(10).wake_at, Some(at(60)));
    let calls = life.settle(60);
    assert_eq!(signals(&calls), [15]);
    assert_eq!(life.status("/phase"), "Failed");
    assert_eq!(life.status("/reason"), "DeadlineExceeded");
    assert_eq!(signals(&life.settle(90)), [9]);
    life.exits(&run(0), 90, 137);
    assert!(starts(&life.settle(91)).is_empty(), "no restart");
}

#[test]
fn what_the_node_refuses_is_told_and_shown() {
    let mut life = Life::of(a_pod());
    let refusal = |refused: node::Refused| {
        DeedOutcome::Refused(DeedRefusal::new(refused, "configmap \"c\" not found"))
    };
    let scene = life.scene.clone();
    life.scene = scene.done(
        Subject::Pod(uid()),
        0,
        refusal(node::Refused::ConfigMapNotFound),
    );
    let notes = life.notes(0);
    assert!(notes[0].starts_with("FailedMount: "), "{notes:?}");
    let scene = life.scene.clone();
    life.scene = scene.done(
        Subject::Pod(uid()),
        0,
        refusal(node::Refused::FailedCreatePodSandBox),
    );
    let notes = life.notes(0);
    assert!(
        notes[0].starts_with("FailedCreatePodSandBox: "),
        "{notes:?}"
    );
    life.report();
    life.turn(1);
    let scene = life.scene.clone();
    life.scene = scene.done(
        Subject::Run(run(0)),
        1,
        refusal(node::Refused::ConfigMapNotFound),
    );
    life.turn(2);
    assert_eq!(
        life.status("/containerStatuses/0/state/waiting/reason"),
        "CreateContainerConfigError"
    );
    assert_eq!(
        starts(&life.turn(3).1),
        [("main".to_owned(), 0)],
        "tried again"
    );
}

/// Which directories are closed to pods only the node knows; people find it where other refused
/// fields stand.
#[test]
fn a_host_path_that_the_node_does_not_give_is_refused_by_name() {
    let mut life = Life::of(a_pod());
    let message = "volume \"host\": hostPath / is refused: it is the whole file system";
    let refusal = DeedRefusal::new(node::Refused::ClosedHostPath, message);
    let refusal = DeedOutcome::Refused(refusal);
    let scene = life.scene.clone();
    life.scene = scene.done(Subject::Pod(uid()), 0, refusal);
    assert_eq!(life.notes(0), [format!("Failed: Error: {message}")]);
    life.turn(1);
    let waiting = life.status("/containerStatuses/0/state/waiting");
    assert_eq!(waiting["reason"], "CreateContainerConfigError");
    assert_eq!(waiting["message"], message);
    assert_eq!(life.status("/phase"), "Pending");
}

/// `kubectl logs` said "not available" and `describe` knew no node, as long as a volume was missing.
#[test]
fn a_place_that_could_not_be_made_is_shown_as_being_made() {
    let mut life = Life::of(a_pod());
    let refused = DeedOutcome::Refused(DeedRefusal::new(
        node::Refused::ConfigMapNotFound,
        "configmap \"c\" not found",
    ));
    let scene = life.scene.clone();
    life.scene = scene.done(Subject::Pod(uid()), 0, refused);
    for seconds in [0, 1] {
        let (reason, _) = life.turn(seconds);
        assert_eq!(reason, Reason::Places);
        assert_eq!(
            life.status("/containerStatuses/0/state/waiting/reason"),
            "ContainerCreating"
        );
    }
}

#[test]
fn an_image_is_asked_for_made_and_waited_for() {
    let pod = a_pod();
    let mut scene = Scene::new(Pods::default()).seeing(&pod);
    let key = Key::Image("i".into());
    assert_eq!(scene.decide(&key, 0).reason, Reason::ImageUnwanted);
    scene = scene.reported(Report::All(Vec::new()));
    let asked = scene.decide(&key, 0);
    let query = node::Query::Image { image: "i".into() };
    assert_eq!(asked.needs, [Need::Node(query.clone())]);
    assert!(
        matches!(asked.reason, Reason::ImageUnknown { .. }),
        "{:?}",
        asked.reason
    );
    scene = scene.answered(query.clone(), 0, node::Answer::Image(node::Image::Missing));
    let pull = scene.decide(&key, 0);
    assert!(matches!(
        &pull.actions[..],
        [Action::Do(deed)] if matches!(deed.what, What::Node(Call::Pull { .. }))
    ));
    assert!(
        matches!(pull.reason, Reason::ImagePulled { .. }),
        "{:?}",
        pull.reason
    );
    let is = |is| Report::Image {
        image: "i".into(),
        is,
    };
    let progress = "half".to_owned();
    scene = scene.reported(is(node::Image::Making { progress }));
    assert!(matches!(
        scene.decide(&key, 0).reason,
        Reason::ImageMade { .. }
    ));
    let message = "no rule".to_owned();
    let gone = node::Answer::Image(node::Image::Unavailable { message });
    scene = scene.answered(query, 10, gone);
    let decision = scene.decide(&key, 10);
    assert!(
        matches!(decision.reason, Reason::ImageUnavailable { .. }),
        "{:?}",
        decision.reason
    );
    assert_eq!(decision.wake_at, Some(at(20)));
    assert_eq!(scene.decide(&key, 20).needs.len(), 1);
    scene = scene.reported(is(node::Image::Ready));
    assert!(matches!(
        scene.decide(&key, 20).reason,
        Reason::ImageReady { .. }
    ));
}

#[test]
fn a_container_whose_image_cannot_be_had_says_so() {
    let mut life = Life::of(a_pod());
    let message = "no rule for i".to_owned();
    let is = node::Image::Unavailable { message };
    let query = node::Query::Image { image: "i".into() };
    life.scene = life.scene.answered(query, 0, node::Answer::Image(is));
    life.settle(1);
    let reason = "/containerStatuses/0/state/waiting/reason";
    assert_eq!(life.status(reason), "ErrImagePull");
    assert_eq!(life.decide(1).wake_at, Some(at(10)));
    life.settle(10);
    assert_eq!(life.status(reason), "ImagePullBackOff");
    let waits = life.decide(11);
    assert!(
        matches!(waits.reason, Reason::Waits { .. }),
        "{:?}",
        waits.reason
    );
    assert!(waits.reason.sentence().contains("no rule for i"));
}

#[test]
fn what_is_on_the_node_without_its_pod_is_removed() {
    let pod = a_pod();
    let node = Life::of(pod.clone()).node;
    let key = Key::Stray(uid());
    let scene = Scene::new(Pods::default()).reported(Report::All(vec![node]));
    let stray = scene.decide(&key, 0);
    assert_eq!(stray.reason, Reason::Stray);
    assert_eq!(stray.actions.len(), 1);
    let scene = scene.seeing(&pod);
    assert_eq!(scene.decide(&key, 0).reason, Reason::NotStray);
    let scene = scene.seeing_the_end_of(&pod);
    assert_eq!(scene.decide(&key, 0).reason, Reason::Stray);
    let other = a("pod", "p").uid("another");
    let scene = scene.seeing(&other);
    assert_eq!(
        scene.decide(&key, 0).reason,
        Reason::Stray,
        "a name proves nothing"
    );
}

#[test]
fn a_volume_that_is_not_supported_is_named() {
    let volume = json!([{ "name": "v", "nfs": { "server": "x", "path": "/" } }]);
    let life = Life::of(a_pod().with("/spec/volumes", volume));
    let decision = life.decide(0);
    assert!(
        matches!(decision.reason, Reason::Unsupported { .. }),
        "{:?}",
        decision.reason
    );
    let notes = life.notes(0);
    assert_eq!(
        notes,
        ["Failed: Error: volume \"v\": nfs is not supported here"]
    );
}
