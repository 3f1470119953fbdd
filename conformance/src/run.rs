//! Sends a script through a client, over HTTPS or in process, and writes down the answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};

use crate::normalise::Symbols;
use crate::questions::Questions;
use crate::script::{Line, Script, Take};
use crate::transcript::Answer;

/// No answer takes longer, unless something hangs.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);

/// The same for a line that asks hundreds of questions.
const QUESTIONS_TIME_MAX: Duration = Duration::from_mins(3);

const PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'?').add(b'#').add(b'%').add(b'"');

/// A server, as its administrator and others see it.
pub(crate) struct Server {
    /// The administrator's.
    pub(crate) client: Client,
    /// The way in over HTTPS, for those who show a token of their own.
    config: Config,
}

impl Server {
    /// The server of a kubeconfig.
    pub(crate) async fn of_file(path: &Path) -> Result<Self> {
        let client = sundown_driver::connect(Some(path)).await?.client;
        Self::new(client, Kubeconfig::read_from(path)?).await
    }

    /// A server with a client that is there already.
    pub(crate) async fn new(client: Client, kubeconfig: Kubeconfig) -> Result<Self> {
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        // Whatever proxy the machine has, it does not lead to loopback.
        config.proxy_url = None;
        Ok(Self { client, config })
    }

    fn showing(&self, token: String) -> Result<Client> {
        let mut config = self.config.clone();
        config.auth_info = AuthInfo {
            token: Some(token.into()),
            ..AuthInfo::default()
        };
        Ok(Client::try_from(config)?)
    }
}

/// Runs one file from the beginning to the end.
pub(crate) async fn run(server: &Server, script: &Script) -> Result<Vec<Answer>> {
    let mut symbols = Symbols::default();
    let mut variables = BTreeMap::new();
    let mut answers = Vec::new();
    for line in &script.lines {
        symbols.begin(&line.id);
        let context = || format!("{}/{}", script.name, line.id);
        let sent = send(server, line, &variables);
        let time_max = match &line.questions {
            Some(_) => QUESTIONS_TIME_MAX,
            None => ANSWER_TIME_MAX,
        };
        let mut answer = tokio::time::timeout(time_max, sent)
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
    server: &Server,
    line: &Line,
    variables: &BTreeMap<String, String>,
) -> Result<Answer> {
    let client = match &line.token {
        Some(token) => server.showing(fill(token, variables))?,
        None => server.client.clone(),
    };
    match &line.questions {
        Some(questions) => ask(&client, line, questions, variables).await,
        None => send_one(&client, line, variables).await,
    }
}

/// Asks all questions of a line; of the answers it is kept which are allowed.
async fn ask(
    client: &Client,
    line: &Line,
    questions: &Questions,
    variables: &BTreeMap<String, String>,
) -> Result<Answer> {
    let mut line = line.clone();
    let mut last = None;
    let mut allowed = Vec::new();
    for question in questions.all() {
        let body = line.body.get_or_insert_default();
        if let Some(spec) = body["spec"].as_object_mut() {
            spec.retain(|member, _| !member.ends_with("Attributes"));
            spec.insert(question.member.to_owned(), question.attributes);
        }
        let answer = send_one(client, &line, variables).await?;
        ensure!(answer.code == 201, "{}: {answer:?}", question.text);
        let is_allowed = |body: &Value| body["status"]["allowed"] == true;
        if answer.body.as_ref().is_some_and(is_allowed) {
            allowed.push(question.text);
        }
        last = Some(answer);
    }
    let mut answer = last.context("no questions")?;
    answer.body = Some(json!({ "asked": questions.count, "allowed": allowed }));
    Ok(answer)
}

async fn send_one(
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
    if let Some((user, groups)) = line.impersonated.split_first() {
        request = request.header("impersonate-user", user);
        for group in groups {
            request = request.header("impersonate-group", group);
        }
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
