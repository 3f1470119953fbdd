//! What other users of the machine and pages of the web can do: nothing. The shipped binary with real pods; the
//! parts that need a second user run where the tests run as root.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use sundown_testing::BOUND;

use crate::plane::{PAUSE, PODS, Plane};
use crate::process::{Up, stderr, sundown};

const SERVICES: &str = "/api/v1/namespaces/default/services";
/// A user that every system has, and that owns nothing.
pub(crate) const STRANGER: u32 = 65534;

pub(crate) fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: a second user needs root");
    }
    is_root
}

/// A program of the other user.
pub(crate) fn as_stranger(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.uid(STRANGER).gid(STRANGER).current_dir("/");
    command.stdin(Stdio::null()).args(arguments);
    command
}

/// A control plane with a pod that serves HTTP and writes down what it is asked for.
struct Served {
    plane: Plane,
}

impl Served {
    async fn start(home: &Path) -> Result<Self> {
        let plane = Plane::start(home).await?;
        let program = ["python3", "-u", "-m", "http.server", "8265"];
        let pod = json!({
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [
                {"name": "main", "image": "python:3", "command": program}]},
        });
        let service = json!({
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 8265}]},
        });
        plane.send("POST", PODS, &pod).await?;
        plane.send("POST", SERVICES, &service).await?;
        Ok(Self { plane })
    }

    fn data(&self) -> Result<&Path> {
        Ok(Path::new(
            self.plane.up.started["data"]
                .as_str()
                .context("a directory")?,
        ))
    }

    /// The log of the pod once it holds a text.
    async fn log_with(&self, text: &str) -> Result<String> {
        let begun_at = Instant::now();
        let path = format!("{PODS}/web/log");
        loop {
            let log = self.plane.send("GET", &path, &Value::Null).await?;
            if log.contains(text) {
                return Ok(log);
            }
            ensure!(
                begun_at.elapsed() < BOUND,
                "{text} is not in the log: {log}"
            );
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Opens a forward and waits until the server behind it answers.
    async fn forward(&self) -> Result<Forward> {
        let begun_at = Instant::now();
        let socket = socket(self.data()?, "control.sock")?;
        loop {
            let forward = Forward::open(&socket)?;
            if let Some(forward) = forward
                && forward.get("/", &[&forward.bearer()])?.contains(" 200 ")
            {
                return Ok(forward);
            }
            ensure!(begun_at.elapsed() < BOUND, "the pod does not serve");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// A socket of a data directory, wherever in it that lies.
pub(crate) fn socket(data: &Path, name: &str) -> Result<PathBuf> {
    let mut places = vec![data.to_owned()];
    for entry in fs::read_dir(data)?.flatten() {
        places.push(entry.path());
    }
    let mut found = places.into_iter().map(|it| it.join(name));
    found
        .find(|it| it.exists())
        .with_context(|| format!("no {name}"))
}

/// An open forward, as the documented lines of the control socket give it.
struct Forward {
    port: u16,
    token: String,
    _open: BufReader<UnixStream>,
}

impl Forward {
    /// None: nothing stands behind the service yet.
    fn open(socket: &Path) -> Result<Option<Self>> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(BOUND))?;
        let ask = json!({"forward": {"namespace": "default", "service": "web", "port": 8265}});
        stream.write_all(format!("{ask}\n").as_bytes())?;
        let mut open = BufReader::new(stream);
        let mut line = String::new();
        let read = open.read_line(&mut line);
        read.with_context(|| format!("an answer of {} to {ask}", socket.display()))?;
        let answer: Value = serde_json::from_str(&line)?;
        let forwarded = &answer["forwarded"];
        let Some(port) = forwarded["port"].as_u64() else {
            return Ok(None);
        };
        let token = forwarded["token"].as_str().context("a token")?.to_owned();
        Ok(Some(Self {
            port: u16::try_from(port)?,
            token,
            _open: open,
        }))
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The whole answer to one request; `Host` is the right one unless it is given.
    fn get(&self, path: &str, headers: &[&str]) -> Result<String> {
        let mut request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|it| it.starts_with("Host:")) {
            let host = self.host();
            request.extend(["Host: ", &host, "\r\n"]);
        }
        for header in headers {
            request.extend([header, "\r\n"]);
        }
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(BOUND))?;
        stream.write_all(format!("{request}\r\n").as_bytes())?;
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        read.with_context(|| format!("an answer of the forward to GET {path} {headers:?}"))?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forward_serves_its_user_and_no_page_of_the_web() -> Result<()> {
    let home = tempfile::tempdir()?;
    let served = Served::start(home.path()).await?;
    let forward = served.forward().await?;
    let cookie = format!("Cookie: sundown-{}={}", forward.port, forward.token);
    let is = |answer: &str, status: &str| answer.starts_with(&format!("HTTP/1.1 {status} "));

    // As a browser opens the printed address.
    let kept = forward.get(&format!("/?token={}", forward.token), &[])?;
    assert!(is(&kept, "303"), "{kept}");
    let set = format!(
        "set-cookie: sundown-{}={}; HttpOnly; SameSite=Strict; Path=/",
        forward.port, forward.token
    );
    assert!(kept.contains(&set), "{kept}");
    assert!(kept.contains(&format!("location: http://{}/\r\n", forward.host())));
    let known = forward.get("/known", &[&cookie, "Sec-Fetch-Site: none"])?;
    assert!(is(&known, "404"), "by the pod's server: {known}");
    assert!(is(&forward.get("/", &[&cookie])?, "200"));

    let evil = [
        vec![],
        vec!["Cookie: sundown-1=x"],
        vec![&*cookie, "Host: evil.example"],
        vec![&*cookie, "Origin: https://evil.example"],
        vec![&*cookie, "Sec-Fetch-Site: cross-site"],
        vec![
            &*cookie,
            "Origin: https://evil.example",
            "Connection: Upgrade",
            "Upgrade: websocket",
        ],
    ];
    for headers in evil {
        let answer = forward.get("/evil", &headers)?;
        assert!(is(&answer, "403"), "{headers:?}: {answer}");
    }

    if is_root() {
        let port = forward.port.to_string();
        for way in ["waits", "closes"] {
            let asks = &mut as_stranger("python3", &["-c", ASKS, &port, &forward.token, way]);
            let output = sundown_testing::output(asks)?;
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                "closed\n",
                "{}",
                stderr(&output)
            );
        }
    }
    // Its log is written when it is: what came before the last request is there with it.
    assert!(is(&forward.get("/last", &[&cookie])?, "404"));
    let log = served.log_with("/last").await?;
    assert!(log.contains("/known") && !log.contains("/evil"), "{log}");
    assert!(!log.contains("/stranger"), "{log}");
    served.plane.end().await
}

/// Asks with the right token; one way is to be gone before it can be looked whose the connection was.
const ASKS: &str = r#"
import socket, sys
port, token, way = int(sys.argv[1]), sys.argv[2], sys.argv[3]
s = socket.create_connection(("127.0.0.1", port))
s.settimeout(60)
try:
    s.sendall(f"GET /stranger HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    answer = b"" if way == "closes" else s.recv(100)
except socket.timeout:
    answer = b"silence"
except OSError:
    answer = b""
s.close()
print("closed" if answer == b"" else answer)
"#;

/// Everything that another user can come to below a directory.
fn open_to_others(place: &Path, found: &mut Vec<String>) -> Result<()> {
    let Ok(about) = fs::symlink_metadata(place) else {
        // Gone meanwhile.
        return Ok(());
    };
    let kind = about.file_type();
    if kind.is_symlink() {
        return Ok(());
    }
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        found.push(format!(
            "{mode:04o} {}{}",
            place.display(),
            if kind.is_socket() { "=" } else { "" }
        ));
    }
    if kind.is_dir() && mode & 0o011 != 0 {
        for entry in fs::read_dir(place)? {
            open_to_others(&entry?.path(), found)?;
        }
    }
    Ok(())
}

/// In a data directory that the user made, with the usual mode, before.
#[test]
fn nothing_that_is_kept_can_be_read_by_others() -> Result<()> {
    let home = tempfile::tempdir()?;
    let data = home.path().join("data");
    let flight = home.path().join("flight");
    fs::create_dir(&data)?;
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755))?;
    let job = home.path().join("job.yaml");
    fs::write(
        &job,
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec:\n  backoffLimit: 0\n  template:\n    spec:\n      \
         restartPolicy: Never\n      containers:\n      - {name: main, image: 'python:3', command: [python3, -c, 'print(1)']}\n",
    )?;
    let (job, place) = (job.display().to_string(), data.display().to_string());
    let mut run = sundown(home.path(), &["run", &job, "--data-dir", &place]);
    let output = sundown_testing::output(&mut run)?;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut found = Vec::new();
    for entry in fs::read_dir(&data)? {
        open_to_others(&entry?.path(), &mut found)?;
    }
    let mut down = sundown(home.path(), &["down", "--data-dir", &place]);
    let output = sundown_testing::output(&mut down)?;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let record = flight.display().to_string();
    let up = Up::start_durable(home.path(), &["--flight-record", &record])?;
    assert_eq!(up.terminate()?, Some(0));
    for place in [
        flight,
        home.path().join(".local/state/sundown"),
        home.path().join(".cache/sundown"),
    ] {
        open_to_others(&place, &mut found)?;
    }
    assert_eq!(found, Vec::<String>::new());
    Ok(())
}

/// Tells every command line of the machine, one per line, as the other user sees them if there can be one.
fn command_lines() -> Result<String> {
    let looks =
        "for it in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $it; echo; done 2>/dev/null; true";
    let mut look = if rustix::process::geteuid().is_root() {
        as_stranger("sh", &["-c", looks])
    } else {
        let mut look = Command::new("sh");
        look.args(["-c", looks]);
        look
    };
    let output = sundown_testing::output(&mut look)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Every user of the machine reads them.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_pod_is_told_in_confidence_stands_in_no_command_line() -> Result<()> {
    const MARKER: &str = "hunter2-of-command-lines";
    // No other process has this one.
    const SLEEPS: &str = "7654321";
    let home = tempfile::tempdir()?;
    let plane = Plane::start(home.path()).await?;
    let secret = json!({ "metadata": { "name": "told" }, "stringData": { "key": MARKER } });
    let secrets = "/api/v1/namespaces/default/secrets";
    plane.send("POST", secrets, &secret).await?;
    let from = json!({ "secretKeyRef": { "name": "told", "key": "key" } });
    let main = json!({
        "name": "main", "image": "busybox", "command": ["sleep", SLEEPS],
        "env": [{ "name": "PASSWORD", "valueFrom": from }, { "name": "PLAIN", "value": MARKER }],
        "volumeMounts": [{ "name": "told", "mountPath": "/told" }],
    });
    let pod = json!({ "metadata": { "name": "told" }, "spec": {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [main],
        "volumes": [{ "name": "told", "secret": { "secretName": "told" } }],
    } });
    plane.send("POST", PODS, &pod).await?;
    let begun_at = Instant::now();
    // From its first moment on: whatever is started for it is looked at.
    loop {
        let lines = command_lines()?;
        ensure!(!lines.contains(MARKER), "a command line holds it: {lines}");
        let pod = plane.get(&format!("{PODS}/told")).await?;
        if pod["status"]["phase"] == "Running" {
            break;
        }
        ensure!(begun_at.elapsed() < BOUND, "the pod does not run: {pod}");
    }
    let lines = command_lines()?;
    ensure!(lines.contains(SLEEPS), "its own line is not seen: {lines}");
    ensure!(!lines.contains(MARKER), "a command line holds it: {lines}");
    plane.end().await
}
