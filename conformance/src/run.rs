//! Sends a script through a client, over HTTPS or in process, and writes down the answers.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;

use crate::normalise::Symbols;
use crate::script::{Line, Script, Take};
use crate::transcript::Answer;

/// No answer takes longer, unless something hangs.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);

const PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'?').add(b'#').add(b'%').add(b'"');

/// Runs one file from the beginning to the end.
pub(crate) async fn run(client: &Client, script: &Script) -> Result<Vec<Answer>> {
    let mut symbols = Symbols::default();
    let mut variables = BTreeMap::new();
    let mut answers = Vec::new();
    for line in &script.lines {
        symbols.begin(&line.id);
        let context = || format!("{}/{}", script.name, line.id);
        let sent = send(client, line, &variables);
        let mut answer = tokio::time::timeout(ANSWER_TIME_MAX, sent)
            .await
            .with_context(context)?
            .with_context(context)?;
        let seen = answer.body.clone().unwrap_or_default();
        for (name, pointer) in &line.save {
            variables.insert(name.clone(), text_at(&seen, pointer));
        }
        answer.conceal(line);
        for value in answer.values() {
            symbols.apply(value);
        }
        answers.push(answer);
    }
    Ok(answers)
}

async fn send(
    client: &Client,
    line: &Line,
    variables: &BTreeMap<String, String>,
) -> Result<Answer> {
    let fill = |text: &str| fill(text, variables);
    let path = fill(&line.path);
    let path = utf8_percent_encode(&path, PATH);
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in &line.query {
        query.append_pair(name, &fill(value));
    }
    let query = query.finish();
    let mark = if query.is_empty() { "" } else { "?" };
    let mut request = http::Request::builder()
        .method(line.method.as_str())
        .uri(format!("{path}{mark}{query}"));
    let body = match (&line.text, &line.body) {
        (Some(text), _) => fill(text),
        (None, Some(body)) => fill(&body.to_string()),
        (None, None) => String::new(),
    };
    let has_type = line
        .headers
        .keys()
        .any(|name| name.eq_ignore_ascii_case("content-type"));
    if !body.is_empty() && !has_type {
        request = request.header("content-type", "application/json");
    }
    for (name, value) in &line.headers {
        request = request.header(name, fill(value));
    }
    let response = client
        .send(request.body(Body::from(body.into_bytes()))?)
        .await?;
    let (head, body) = response.into_parts();
    let mut answer = Answer::new(&line.id, &head);
    match line.watch {
        Some(take) if head.status == 200 => answer.events = Some(events(body, take).await?),
        _ => answer.set_body(&body.collect().await?.to_bytes()),
    }
    Ok(answer)
}

/// Takes events until there are enough, the stream ends or time is up.
async fn events(mut body: Body, take: Take) -> Result<Vec<Value>> {
    let mut events = Vec::new();
    let mut bytes: Vec<u8> = Vec::new();
    let time = tokio::time::sleep(Duration::from_millis(take.milliseconds));
    tokio::pin!(time);
    while events.len() < take.events {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = &mut time => break,
        };
        let Some(frame) = frame else {
            // One object instead of a stream has no line feed.
            if !bytes.is_empty() {
                events.push(serde_json::from_slice(&bytes).context("the rest is no JSON")?);
            }
            events.push(Value::from("<end>"));
            break;
        };
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = bytes.drain(..=end).collect();
            if events.len() < take.events {
                events.push(serde_json::from_slice(&line).context("an event is no JSON")?);
            }
        }
    }
    Ok(events)
}

fn fill(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for (name, value) in variables {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    text
}

fn text_at(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "missing".into(),
    }
}
