//! `pods/log`: which run of which container is meant, and how much of what it wrote. The text itself is
//! kept by whoever runs the pod.
//!
//! Mirrors upstream's `registry/core/pod/strategy.go` (`LogLocation`) for what the server says, and
//! `kubelet_pods.go` (`validateContainerLogStatus`) for what the kubelet does.

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sundown_model::{ObjectKey, Resource};

use crate::failure::Failure;
use crate::field::{Errors, FieldError};
use crate::render::response;
use crate::route::Target;
use crate::server::Verdict;
use crate::{Cx, Request, Response, Server};

/// What is to be read of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The uid of the pod.
    pub pod: String,
    pub container: String,
    /// The run, as the status of the pod names it.
    pub container_id: String,
    /// Go on until the run ends.
    pub follow: bool,
    /// Only the last lines.
    pub tail_lines: Option<u64>,
    /// Only what was written since.
    pub since: Option<Timestamp>,
    /// Put its time before each line.
    pub timestamps: bool,
    /// Stop after so many bytes.
    pub bytes_max: Option<u64>,
}

impl Log {
    /// The answer where nobody runs pods.
    pub fn without_node() -> Response {
        let message = "no node runs pods here, so there are no logs: start without `--node=false` or `--ephemeral`";
        Failure::unavailable(message).response()
    }

    /// The answer where the log cannot be read, as the kubelet's complaints are passed on.
    pub fn unreadable(why: &str) -> Response {
        Failure::bad_request(why).response()
    }
}

/// What the query says, before it is known whose log is meant.
#[derive(Debug, Clone, Default, PartialEq)]
struct Options {
    container: Option<String>,
    follow: bool,
    previous: bool,
    timestamps: bool,
    tail_lines: Option<u64>,
    bytes_max: Option<u64>,
    since: Option<Timestamp>,
}

/// Answers a GET of a log.
pub(crate) fn get(
    server: &Server,
    target: &Target,
    request: &Request,
    cx: &Cx<'_>,
) -> Result<Verdict, Failure> {
    let name = target.name.as_deref().unwrap_or("");
    let options = options(request, name, cx.now)?;
    let stored = server.store().get(&target.key(name));
    let stored = stored.ok_or_else(|| Failure::not_found(&target.ty, name))?;
    let pod: Value = serde_json::from_slice(stored.json()).unwrap_or_default();
    let container = container(&pod, name, options.container.as_deref())?;
    let node = pod["spec"]["nodeName"].as_str().unwrap_or("");
    if node.is_empty() {
        // A pod without a place has no log, and upstream has no content.
        return Ok(Verdict::Answer(response(204, Vec::new())));
    }
    let at = ObjectKey::cluster(&Resource::new("", "nodes"), node);
    if server.store().get(&at).is_none() {
        // Upstream's words: the name is the node's, the resource that of the request.
        return Err(Failure::not_found(&target.ty, node));
    }
    let run = run(&pod["status"], name, &container, options.previous);
    Ok(Verdict::Log(Box::new(Log {
        pod: stored.uid().to_string(),
        container,
        container_id: run.map_err(Failure::bad_request)?,
        follow: options.follow,
        tail_lines: options.tail_lines,
        since: options.since,
        timestamps: options.timestamps,
        bytes_max: options.bytes_max,
    })))
}

fn options(request: &Request, pod: &str, now: Timestamp) -> Result<Options, Failure> {
    let tail = number(request, "tailLines")?;
    let limit = number(request, "limitBytes")?;
    let seconds = number(request, "sinceSeconds")?;
    let since = instant(request, "sinceTime")?;
    let mut errors = Errors::default();
    if let Some(tail) = tail.filter(|tail| *tail < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("tailLines", tail, why));
    }
    if let Some(limit) = limit.filter(|limit| *limit < 1) {
        let why = "must be greater than 0";
        errors.push(FieldError::invalid("limitBytes", limit, why));
    }
    if seconds.is_some() && since.is_some() {
        let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        errors.push(FieldError::forbidden("[]", why));
    } else if let Some(seconds) = seconds.filter(|seconds| *seconds < 1) {
        let why = "must be greater than 0";
        errors.push(FieldError::invalid("sinceSeconds", seconds, why));
    }
    if request.param("stream").is_some() {
        errors.push(FieldError::forbidden("stream", "may not be specified"));
    }
    if !errors.is_empty() {
        return Err(Failure::invalid_as("PodLogOptions", "", pod, &errors));
    }
    let ago = |seconds| {
        now.checked_sub(SignedDuration::from_secs(seconds))
            .unwrap_or(Timestamp::MIN)
    };
    let container = request.param("container").map(str::to_owned);
    Ok(Options {
        container: container.filter(|name| !name.is_empty()),
        follow: switch(request, "follow"),
        previous: switch(request, "previous"),
        timestamps: switch(request, "timestamps"),
        tail_lines: tail.and_then(|tail| u64::try_from(tail).ok()),
        bytes_max: limit.and_then(|limit| u64::try_from(limit).ok()),
        since: seconds.map(ago).or(since),
    })
}

/// As upstream's conversion of query parameters reads them: nothing but a no is a no.
fn switch(request: &Request, name: &str) -> bool {
    let value = request.param(name);
    value.is_some_and(|value| !matches!(value.to_lowercase().as_str(), "false" | "0"))
}

fn number(request: &Request, name: &str) -> Result<Option<i64>, Failure> {
    let read = |text: &str| {
        let message = format!("strconv.ParseInt: parsing {text:?}: invalid syntax");
        text.parse().map_err(|_| Failure::bad_request(message))
    };
    request.param(name).map(read).transpose()
}

fn instant(request: &Request, name: &str) -> Result<Option<Timestamp>, Failure> {
    let text = request.param(name);
    let text = text.filter(|text| !text.is_empty() && *text != "null");
    let read = |text: &str| {
        let form = "2006-01-02T15:04:05Z07:00";
        let message =
            format!("parsing time {text:?} as {form:?}: cannot parse {text:?} as \"2006\"");
        text.parse().map_err(|_| Failure::bad_request(message))
    };
    text.map(read).transpose()
}

/// The container that is meant: the one that is named, or the only one.
fn container(pod: &Value, name: &str, wanted: Option<&str>) -> Result<String, Failure> {
    let names = |member: &str| -> Vec<&str> {
        let all = pod["spec"][member].as_array().into_iter().flatten();
        all.filter_map(|it| it["name"].as_str()).collect()
    };
    let main = names("containers");
    let all = [
        names("initContainers"),
        main.clone(),
        names("ephemeralContainers"),
    ]
    .concat();
    match (wanted, main.as_slice()) {
        (Some(wanted), _) if all.contains(&wanted) => Ok(wanted.to_owned()),
        (Some(wanted), _) => Err(Failure::bad_request(format!(
            "container {wanted} is not valid for pod {name}"
        ))),
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => Err(Failure::bad_request(format!(
            "a container name must be specified for pod {name}"
        ))),
        (None, _) => Err(Failure::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            all.join(" ")
        ))),
    }
}

/// The run of a container whose log is there to be read, by the kubelet's rule.
///
/// Errors: there is none, and why, in the kubelet's words.
fn run(status: &Value, pod: &str, container: &str, previous: bool) -> Result<String, String> {
    let all = ["containerStatuses", "initContainerStatuses"];
    let mut all = all.iter().filter_map(|it| status[*it].as_array()).flatten();
    let Some(own) = all.find(|it| it["name"] == container) else {
        return Err(format!(
            "container {container:?} in pod {pod:?} is not available"
        ));
    };
    let text = |pointer: &str| {
        let text = own.pointer(pointer).and_then(Value::as_str);
        text.filter(|text| !text.is_empty())
    };
    let has = |pointer: &str| own.pointer(pointer).is_some_and(|it| !it.is_null());
    let last = text("/lastState/terminated/containerID");
    let (found, trouble) = if previous {
        let trouble = "not found";
        let what = format!("previous terminated container {container:?} in pod {pod:?} {trouble}");
        return last.map(str::to_owned).ok_or(what);
    } else if has("/state/running") {
        (
            text("/containerID"),
            "waiting to start - no logs yet".to_owned(),
        )
    } else if has("/state/terminated") {
        let own = text("/state/terminated/containerID");
        (own.or(last), "terminated".to_owned())
    } else if has("/lastState/terminated") {
        (last, "terminated".to_owned())
    } else {
        let why = match text("/state/waiting/reason") {
            Some("ErrImagePull") => ": image can't be pulled".to_owned(),
            Some("ImagePullBackOff") => ": trying and failing to pull image".to_owned(),
            Some(reason) => format!(": {reason}"),
            None => " - no logs yet".to_owned(),
        };
        (None, format!("waiting to start{why}"))
    };
    let trouble = format!("container {container:?} in pod {pod:?} is {trouble}");
    found.map(str::to_owned).ok_or(trouble)
}
