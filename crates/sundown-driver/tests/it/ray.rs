//! Dashboards over real sockets: what is asked on which connection, and what is known when one breaks.

use std::sync::Arc;

use anyhow::{Context, Result};
use sundown_driver::{Dashboards, OwnNetwork, RayPort as _};
use sundown_model::{DeedOutcome, ObjectKey, Resource, ray};
use sundown_testing::TestBound;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

const SESSION: &str = r#"{"version":"4","ray_version":"2.60.0","session_name":"session_1"}"#;
const TAKEN: &str = r#"{"job_id":"a","submission_id":"a"}"#;

/// What a dashboard does with its next request.
#[derive(Debug, Clone, Copy)]
enum Play {
    Answer(u16, &'static str),
    /// Reads the request and goes.
    Hang,
}

/// The requests that a dashboard got, once it has ended.
type Played = JoinSet<Result<Vec<String>>>;

async fn heard(mut played: Played) -> Result<Vec<String>> {
    played.join_next().await.context("one task")??
}

/// A dashboard that accepts one connection; gives the request lines that it got.
async fn dashboard(plays: Vec<Play>) -> Result<(ray::Dashboard, Played)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = ray::Dashboard(listener.local_addr()?.to_string().into());
    let mut played = Played::new();
    played.spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        let mut heard = Vec::new();
        for play in plays {
            let Some(line) = request(&mut stream).await? else {
                break;
            };
            heard.push(line);
            match play {
                Play::Answer(code, body) => answer(&mut stream, code, body).await?,
                Play::Hang => break,
            }
        }
        Ok(heard)
    });
    Ok((at, played))
}

/// Reads one request with its body; gives its first line and its body.
async fn request(stream: &mut TcpStream) -> Result<Option<String>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec())?.to_lowercase();
    let length = head
        .lines()
        .find_map(|it| it.strip_prefix("content-length: "));
    let length: usize = length.map_or(Ok(0), str::parse)?;
    while bytes.len() < end + length {
        stream.read_buf(&mut bytes).await?;
    }
    let first = String::from_utf8(bytes.clone())?;
    let first = first.lines().next().context("a request line")?;
    let line = first.trim_end_matches(" HTTP/1.1");
    Ok(Some(format!(
        "{line} {}",
        String::from_utf8_lossy(&bytes[end..])
    )))
}

async fn answer(stream: &mut TcpStream, code: u16, body: &str) -> Result<()> {
    let length = body.len();
    let text = format!("HTTP/1.1 {code} x\r\ncontent-length: {length}\r\n\r\n{body}");
    Ok(stream.write_all(text.as_bytes()).await?)
}

fn about() -> ObjectKey {
    ObjectKey::namespaced(&Resource::new("ray.io", "rayjobs"), "here", "a")
}

fn dashboards() -> Dashboards {
    Dashboards::new(Arc::new(OwnNetwork))
}

fn submit(at: &ray::Dashboard, session: &str) -> ray::Call {
    let job = ray::Submission {
        submission_id: "a".into(),
        entrypoint: "true".to_owned(),
        runtime_env: None,
        metadata: [].into(),
        entrypoint_num_cpus: None,
        entrypoint_num_gpus: None,
        entrypoint_resources: None,
    };
    ray::Call::Submit {
        at: at.clone(),
        session: session.into(),
        job: job.into(),
    }
}

fn reason(outcome: &DeedOutcome) -> String {
    match outcome {
        DeedOutcome::Refused(refusal) => refusal.reason.to_string(),
        DeedOutcome::Done => "Done".to_owned(),
        DeedOutcome::Unknown { .. } => "Unknown".to_owned(),
    }
}

#[tokio::test]
async fn a_submission_asks_for_the_session_and_tells_on_the_same_connection() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let plays = vec![Play::Answer(200, SESSION), Play::Answer(200, TAKEN)];
    let (at, played) = dashboard(plays).await?;
    let outcome = dashboards()
        .carry_out(&about(), &submit(&at, "session_1"))
        .await;
    assert_eq!(outcome, DeedOutcome::Done);
    let got = heard(played).await?;
    let posted = r#"POST /api/jobs/ {"submission_id":"a","entrypoint":"true"}"#;
    assert_eq!(got, ["GET /api/version ", posted]);
    Ok(())
}

#[tokio::test]
async fn another_session_is_told_nothing() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let (at, played) = dashboard(vec![Play::Answer(200, SESSION), Play::Hang]).await?;
    let outcome = dashboards()
        .carry_out(&about(), &submit(&at, "session_0"))
        .await;
    assert_eq!(reason(&outcome), "OtherSession");
    assert_eq!(heard(played).await?, ["GET /api/version "]);
    Ok(())
}

/// A job of the same id in another session is of somebody else.
#[tokio::test]
async fn a_stop_asks_for_the_session_and_tells_no_other() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let stop = |at: &ray::Dashboard, session: Option<&str>| ray::Call::Stop {
        at: at.clone(),
        session: session.map(Into::into),
        submission_id: "a".into(),
    };
    let stopped = Play::Answer(200, r#"{"stopped":true}"#);
    let (version, posted) = ("GET /api/version ", "POST /api/jobs/a/stop ");
    for (session, plays, expect, requests) in [
        (None, vec![stopped], "Done", vec![posted]),
        (
            Some("session_1"),
            vec![Play::Answer(200, SESSION), stopped],
            "Done",
            vec![version, posted],
        ),
        (
            Some("session_0"),
            vec![Play::Answer(200, SESSION), Play::Hang],
            "OtherSession",
            vec![version],
        ),
    ] {
        let (at, played) = dashboard(plays).await?;
        let outcome = dashboards().carry_out(&about(), &stop(&at, session)).await;
        assert_eq!(reason(&outcome), expect, "{session:?}");
        assert_eq!(heard(played).await?, requests, "{session:?}");
    }
    Ok(())
}

#[tokio::test]
async fn what_was_sent_and_not_answered_is_not_known() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let (at, _played) = dashboard(vec![Play::Answer(200, SESSION), Play::Hang]).await?;
    let outcome = dashboards()
        .carry_out(&about(), &submit(&at, "session_1"))
        .await;
    assert_eq!(reason(&outcome), "Unknown");
    Ok(())
}

#[tokio::test]
async fn what_could_not_be_sent_was_not_done() -> Result<()> {
    let _bound = TestBound::of_this_test();
    // Bound, so that nothing else gets the port, and never listening.
    let deaf = TcpSocket::new_v4()?;
    deaf.bind("127.0.0.1:0".parse()?)?;
    let at = ray::Dashboard(deaf.local_addr()?.to_string().into());
    let outcome = dashboards()
        .carry_out(&about(), &submit(&at, "session_1"))
        .await;
    assert_eq!(reason(&outcome), "Unreachable");
    let asked = dashboards().ask(&ray::Query::Session { at }).await;
    let failure = asked.expect_err("nobody is there");
    assert_eq!(failure.kind, ray::FailureKind::Unreachable);
    Ok(())
}

#[tokio::test]
async fn an_id_is_one_part_of_the_path_whatever_it_holds() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let (at, played) = dashboard(vec![Play::Answer(404, "Job a/../b c does not exist")]).await?;
    let submission_id = "a/../b c".into();
    let asked = dashboards()
        .ask(&ray::Query::Job { at, submission_id })
        .await;
    assert_eq!(asked, Ok(ray::Answer::Job(None)));
    assert_eq!(heard(played).await?, ["GET /api/jobs/a%2F..%2Fb%20c "]);
    Ok(())
}
