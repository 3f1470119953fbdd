//! The control socket of a data directory: how commands find a control plane that is up, look at it,
//! and stop it. One line of JSON asks, lines of JSON answer.
//!
//! Objects are never asked for here: they come from the API server, as for every client.

mod client;
mod idle;
mod serve;
mod stop;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::arguments::Authorization;
use crate::explain::{self, Wanted};

pub(crate) use client::{
    ControlError, Forwarded, Gone, Held, connect, down, explained, forward, status,
};
pub(crate) use idle::until_unused;
pub(crate) use serve::{Control, Served};
pub(crate) use stop::{Graces, stop_pods};

/// The name of the socket in the data directory.
pub(crate) const SOCKET: &str = "control.sock";

/// What is asked. The connection of `Hello` and `Forward` stays open: whoever holds one is a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Request {
    Hello,
    Status,
    /// End all pods, then the control plane.
    Down,
    /// Why an object is as it is: the controllers that run are asked.
    Explain(Wanted),
    /// A port of the host's loopback that leads to a service of the pods.
    Forward {
        namespace: String,
        service: String,
        port: u16,
    },
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Answer {
    Hello(Hello),
    Status(Standing),
    /// Open to requests of this user that know the token.
    Forwarded {
        port: u16,
        token: String,
    },
    Explained(explain::Answer),
    /// One thing that was done on the way down.
    Step {
        text: String,
    },
    /// The control plane ends: told to clients that are there, and to whoever asked for it when
    /// nothing runs any more.
    Ending,
    Refused {
        message: String,
    },
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hello {
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) url: String,
    /// To be shown; clients use the one of the data directory.
    pub(crate) kubeconfig: PathBuf,
    /// Whether a `RayJob` that shuts its cluster down is deleted with it.
    #[serde(default)]
    pub(crate) deletes_finished: bool,
    /// Who may do what there.
    #[serde(default)]
    pub(crate) authorization: Authorization,
}

/// What is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Standing {
    /// Whether it ends by itself when nobody uses it.
    pub(crate) while_used: bool,
    /// Whether pods run here at all.
    pub(crate) runs_pods: bool,
    /// Other connections than the one that asks.
    pub(crate) clients: usize,
    /// None: no pod has needed one yet.
    pub(crate) node: Option<NodeStanding>,
}

/// The node below.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeStanding {
    pub(crate) rootless: bool,
    /// Why that way.
    pub(crate) reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_on_the_wire_are_as_documented() {
        let forward = Request::Forward {
            namespace: "default".into(),
            service: "head".into(),
            port: 8265,
        };
        let cases = [
            (Request::Hello, r#""hello""#),
            (Request::Down, r#""down""#),
            (
                forward,
                r#"{"forward":{"namespace":"default","service":"head","port":8265}}"#,
            ),
        ];
        for (request, expect) in cases {
            let line = serde_json::to_string(&request).unwrap();
            assert_eq!(line, expect);
            assert_eq!(serde_json::from_str::<Request>(&line).unwrap(), request);
        }
    }
}
