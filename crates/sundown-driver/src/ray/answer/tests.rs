//! Answers as real dashboards gave them (Ray 2.52 and 2.60), and such as are none.

use super::*;

const ID: &str = "job-ok";

fn response(code: u16, body: &str) -> Response {
    Response {
        code,
        body: body.to_owned().into(),
    }
}

fn a_job(status: &str) -> String {
    format!(
        r#"{{"type":"SUBMISSION","job_id":"02000000","submission_id":"job-ok","driver_info":null,
        "status":"{status}","entrypoint":"python -c 1","message":"Job finished.","error_type":null,
        "start_time":1794768643514,"end_time":null,"metadata":{{}},"runtime_env":{{}},
        "driver_agent_http_address":null,"driver_node_id":null,"driver_exit_code":0}}"#
    )
}

fn kind(answer: Result<Answer, Failure>) -> FailureKind {
    answer.expect_err("no answer").kind
}

fn reason(outcome: DeedOutcome) -> String {
    match outcome {
        DeedOutcome::Refused(refusal) => refusal.reason.to_string(),
        DeedOutcome::Done => "Done".to_owned(),
        DeedOutcome::Unknown { .. } => "Unknown".to_owned(),
    }
}

#[test]
fn a_session_has_a_name() {
    let body =
        r#"{"version":"4","ray_version":"2.52.0","ray_commit":"x","session_name":"session_1"}"#;
    let Ok(Answer::Session { name, ray_version }) = session(&response(200, body)) else {
        panic!("not a session");
    };
    assert_eq!((&*name, &*ray_version), ("session_1", "2.52.0"));
    let without = r#"{"version":"4","ray_version":"2.52.0"}"#;
    assert_eq!(kind(session(&response(200, without))), FailureKind::NotRay);
    assert_eq!(kind(session(&response(503, "later"))), FailureKind::Busy);
}

#[test]
fn a_job_is_read_with_its_status() {
    let Ok(Answer::Job(Some(job))) = job(ID, &response(200, &a_job("SUCCEEDED"))) else {
        panic!("not a job");
    };
    assert_eq!(job.status, JobStatus::Succeeded);
    assert_eq!((job.start_time, job.end_time), (1_794_768_643_514, 0));
    assert_eq!(job.exit_code, Some(0));
}

#[test]
fn a_job_of_ray_client_is_known_by_its_job_id() {
    let driver = a_job("RUNNING").replace(r#""job-ok""#, "null");
    let Ok(Answer::Job(Some(found))) = job("02000000", &response(200, &driver)) else {
        panic!("not a job");
    };
    assert_eq!(found.status, JobStatus::Running);
    let other = job("03000000", &response(200, &driver));
    assert_eq!(kind(other), FailureKind::NotRay);
}

#[test]
fn only_ray_itself_can_say_that_a_job_is_unknown() {
    let unknown = response(404, "Job job-ok does not exist");
    assert_eq!(job(ID, &unknown), Ok(Answer::Job(None)));
    // A proxy in between, or a server that is no dashboard.
    for body in ["404 page not found", "", r#"{"kind":"Status","code":404}"#] {
        assert_eq!(kind(job(ID, &response(404, body))), FailureKind::NotRay);
    }
}

#[test]
fn no_status_code_and_no_strange_word_passes_for_a_status() {
    let strange = [
        (401, r#"{"status":"RUNNING"}"#, FailureKind::Unauthorized),
        (500, &*a_job("RUNNING"), FailureKind::Busy),
        (
            200,
            r#"{"kind":"Status","status":"Failure"}"#,
            FailureKind::NotRay,
        ),
        (200, "<html>hello</html>", FailureKind::NotRay),
        (200, &*a_job("DANCING"), FailureKind::NotRay),
        (302, "elsewhere", FailureKind::NotRay),
    ];
    for (code, body, expected) in strange {
        assert_eq!(
            kind(job(ID, &response(code, body))),
            expected,
            "{code} {body}"
        );
    }
    assert_eq!(
        kind(job("other", &response(200, &a_job("RUNNING")))),
        FailureKind::NotRay
    );
}

#[test]
fn a_submission_is_taken_refused_or_not_known() {
    let taken = r#"{"job_id":"job-ok","submission_id":"job-ok"}"#;
    let known = "Traceback\nValueError: Job with submission_id job-ok already exists. Please use a \
                 different submission_id.";
    let cases = [
        (200, taken, "Done"),
        (500, known, "AlreadyExists"),
        (
            500,
            "No available agent to submit job, please try again later.",
            "Busy",
        ),
        (
            400,
            "Traceback\nTypeError: entrypoint must be a string, got <class 'int'>",
            "Invalid",
        ),
        // Of a proxy, or of a service whose head was replaced: not Ray's word.
        (400, "Bad Request", "NotRay"),
        (404, "404 page not found", "NotRay"),
        (408, "", "NotRay"),
        (413, "", "NotRay"),
        (429, "later", "NotRay"),
        (401, "", "Unauthorized"),
        (
            500,
            "500 Internal Server Error\n\nServer got itself in trouble",
            "Unknown",
        ),
        (200, "<html>", "Unknown"),
    ];
    for (code, body, expected) in cases {
        assert_eq!(reason(submitted(&response(code, body))), expected, "{body}");
    }
    let broken = "Traceback\nOSError: [Errno 28] No space left on device";
    let message = "answered 500: OSError: [Errno 28] No space left on device".to_owned();
    let told = submitted(&response(500, broken));
    assert_eq!(told, DeedOutcome::Unknown { message });
}

#[test]
fn what_has_ended_or_is_unknown_needs_no_stopping() {
    let cases = [
        (200, r#"{"stopped":true}"#, "Done"),
        (200, r#"{"stopped":false}"#, "Done"),
        (404, "Job job-ok does not exist", "Done"),
        (404, "404 page not found", "Invalid"),
        (503, "later", "Unknown"),
    ];
    for (code, body, expected) in cases {
        assert_eq!(
            reason(stopped(ID, &response(code, body))),
            expected,
            "{body}"
        );
    }
}

#[test]
fn a_traceback_is_told_by_its_last_line_and_never_at_length() {
    let long = format!("Traceback\n  File x\nTypeError: {}\n\n", "y".repeat(10_000));
    let DeedOutcome::Refused(refusal) = submitted(&response(400, &long)) else {
        panic!("not refused");
    };
    assert!(refusal.quote.starts_with("TypeError: yyy"));
    assert_eq!(refusal.quote.chars().count(), MESSAGE_CHARS_MAX);
}
