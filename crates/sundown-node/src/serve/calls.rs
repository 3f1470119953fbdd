//! Calls that are answered once. Each can be repeated: what was done is not done again.

use crate::leftovers;
use crate::pod::Order;
use crate::spec::{ContainerKey, ContainerSpec, PodSpec};
use crate::wire::{Answer, Call, ExecCall, Hello, PROTOCOL, Refusal, Reply};

use super::hands;
use super::registry::{Ordered, Reserved};
use super::{Arc, Node};

/// Carries out a call.
pub(super) fn answer(node: &Arc<Node>, call: Call) -> Reply {
    match call {
        Call::Snapshot => Ok(Answer::Pods(node.registry.snapshot())),
        Call::CreatePod(spec) => create_pod(node, &spec),
        Call::StartContainer { uid, spec } => start_container(node, &uid, spec),
        Call::Signal { key, signal } => send_signal(node, &key, signal),
        Call::ReleasePod { uid } => hands::release(node, &uid).map(|()| Answer::Done),
        Call::RemovePod { uid } => hands::remove(node, &uid).map(|()| Answer::Done),
        Call::Exec(call) => execute(node, call),
        Call::SetNames { names } => {
            node.names.set(names);
            Ok(Answer::Done)
        }
        Call::Leftovers => Ok(Answer::Lines(leftovers::inside(&node.paths))),
        Call::End => end(node),
        Call::Hello | Call::Watch | Call::Dial { .. } | Call::Listen { .. } => {
            Err(Refusal::Invalid {
                message: "this call needs a connection that stays open".to_owned(),
            })
        }
    }
}

/// Begins the end of the node. Files that a container hid from their owner can only be removed from
/// inside, so that is done now.
fn end(node: &Node) -> Reply {
    node.registry.begin_end()?;
    for pod in node.registry.snapshot() {
        if let Err(refusal) = hands::release(node, &pod.uid) {
            eprintln!("node: {refusal}");
        }
    }
    Ok(Answer::Done)
}

/// Who answers.
pub(super) fn hello(node: &Node) -> Answer {
    Answer::Hello(Hello {
        protocol: PROTOCOL,
        isolation: node.isolation.clone(),
        bridge: node.bridge(),
    })
}

fn create_pod(node: &Arc<Node>, spec: &PodSpec) -> Reply {
    if let Some(message) = spec.fault() {
        return Err(Refusal::Invalid { message });
    }
    let address = match node.registry.reserve(spec)? {
        Reserved::Exists(state) => return Ok(Answer::Pod(state)),
        Reserved::New(address) => address,
    };
    match hands::create(node, spec, address) {
        Ok(made) => node.registry.settle(&spec.uid, made),
        Err(message) => {
            node.registry.abandon(&spec.uid);
            let uid = spec.uid.clone();
            return Err(Refusal::Setup { uid, message });
        }
    }
    match node.registry.reserve(spec)? {
        Reserved::Exists(state) => Ok(Answer::Pod(state)),
        Reserved::New(_) => {
            // Removed by somebody between the two lines above: it was there, and is not any more.
            node.registry.abandon(&spec.uid);
            let uid = spec.uid.clone();
            Err(Refusal::NoSuchPod { uid })
        }
    }
}

fn start_container(node: &Node, uid: &str, spec: ContainerSpec) -> Reply {
    if let Some(message) = spec.fault() {
        return Err(Refusal::Invalid { message });
    }
    let (name, attempt) = (spec.name.clone(), spec.attempt);
    let gone = || Refusal::NoSuchPod {
        uid: uid.to_owned(),
    };
    match node.registry.order(uid, &name, attempt)? {
        Ordered::Known(state) => return Ok(Answer::Pod(state)),
        Ordered::New(hands) => hands.order(&Order::Start(spec)).map_err(|_| gone())?,
    }
    node.registry.heard(uid, &name, attempt).map(Answer::Pod)
}

/// A container that has ended needs no signal: that is success.
fn send_signal(node: &Node, key: &ContainerKey, signal: i32) -> Reply {
    if rustix::process::Signal::from_named_raw(signal).is_none() {
        let message = format!("there is no signal {signal}");
        return Err(Refusal::Invalid { message });
    }
    let order = Order::Signal {
        container: key.container.clone(),
        attempt: key.attempt,
        signal,
    };
    match node.registry.hands(&key.uid) {
        // A pod that has ended is no error either.
        Ok(hands) => drop(hands.order(&order)),
        Err(refusal) => return Err(refusal),
    }
    Ok(Answer::Done)
}

fn execute(node: &Node, call: ExecCall) -> Reply {
    if call.argv.is_empty() {
        let message = "a command to run in a container is empty".to_owned();
        return Err(Refusal::Invalid { message });
    }
    let uid = call.uid.clone();
    let gone = || Refusal::NoSuchPod { uid: uid.clone() };
    let result = node
        .registry
        .hands(&uid)?
        .execute(call)
        .map_err(|_| gone())?;
    // The pod's init keeps the time; if it ends, the receiver is cut off.
    result.recv().map_err(|_| gone())?.map(Answer::Exec)
}
