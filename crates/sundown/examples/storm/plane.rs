//! A control plane under measurement: `sundown up`, or etcd with kube-apiserver. Both keep their data
//! in a directory, sync before they answer, and speak TLS. What is asked of them is left to others.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kube::Client;

const START_DURATION_MAX: Duration = Duration::from_mins(3);
const STOP_DURATION_MAX: Duration = Duration::from_mins(1);
/// How exactly a start is timed.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// What a line of /proc/PID/stat counts in; the same on every Linux that we know.
const TICKS_PER_SECOND: f64 = 100.0;

/// Which programs.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Ours { binary: PathBuf },
    Upstream { etcd: PathBuf, server: PathBuf },
}

/// One of the two, on a directory of its own; ended when dropped.
pub(crate) struct Plane {
    pub(crate) name: &'static str,
    kind: Kind,
    /// Removed when dropped.
    home: tempfile::TempDir,
    children: Vec<Child>,
    client: Option<Client>,
}

impl Plane {
    /// Makes its directory; nothing runs yet.
    pub(crate) fn new(kind: Kind) -> Result<Self> {
        let name = match kind {
            Kind::Ours { .. } => "sundown",
            Kind::Upstream { .. } => "kube-apiserver",
        };
        let home = tempfile::tempdir()?;
        Ok(Self {
            name,
            kind,
            home,
            children: Vec::new(),
            client: None,
        })
    }

    /// Starts it; gives the time from nothing to the first answered LIST.
    pub(crate) async fn start(&mut self) -> Result<Duration> {
        let begun_at = Instant::now();
        match self.kind.clone() {
            Kind::Ours { binary } => {
                let mut command = Command::new(binary);
                command
                    .args(["up", "--node=false", "--durability=strict", "--data-dir"])
                    .arg(self.home.path().join("data"));
                self.spawn("sundown", &mut command)?;
            }
            Kind::Upstream { etcd, server } => self.start_upstream(&etcd, &server)?,
        }
        let client = loop {
            ensure!(
                begun_at.elapsed() < START_DURATION_MAX,
                "{} does not answer, see {}",
                self.name,
                self.home.path().display()
            );
            if let Some(client) = self.first_list().await {
                break client;
            }
            for child in &mut self.children {
                if let Some(status) = child.try_wait()? {
                    bail!(
                        "{} ended with {status}, see {}",
                        self.name,
                        self.home.path().display()
                    );
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        };
        self.client = Some(client);
        Ok(begun_at.elapsed())
    }

    /// Asks it to end, last part first.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.client = None;
        while let Some(mut child) = self.children.pop() {
            Command::new("kill").arg(child.id().to_string()).status()?;
            let asked_at = Instant::now();
            while child.try_wait()?.is_none() {
                if asked_at.elapsed() > STOP_DURATION_MAX {
                    child.kill()?;
                }
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        Ok(())
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone().expect("it was started")
    }

    /// What all its processes have used, in seconds.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let mut ticks = 0.0;
        for child in &self.children {
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
            let fields = stat.rsplit(')').next().context("a name in brackets")?;
            // utime and stime, counted from the field after the name.
            for field in fields.split_whitespace().skip(11).take(2) {
                ticks += field.parse::<f64>()?;
            }
        }
        Ok(ticks / TICKS_PER_SECOND)
    }

    /// What all its processes have in memory, in kilobytes.
    pub(crate) fn resident(&self) -> Result<f64> {
        let mut sum = 0.0;
        for child in &self.children {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
            let line = status.lines().find(|line| line.starts_with("VmRSS:"));
            let number = line.and_then(|line| line.split_whitespace().nth(1));
            sum += number.context("VmRSS")?.parse::<f64>()?;
        }
        Ok(sum)
    }

    /// What lies on its disk, in kilobytes.
    pub(crate) fn on_disk(&self) -> Result<f64> {
        let output = Command::new("du")
            .arg("-sk")
            .arg(self.home.path())
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        Ok(text.split_whitespace().next().context("du")?.parse()?)
    }

    /// The client that got a first answer.
    async fn first_list(&self) -> Option<Client> {
        let path = match self.kind {
            Kind::Ours { .. } => self.home.path().join("data/kubeconfig"),
            Kind::Upstream { .. } => self.home.path().join("kubeconfig"),
        };
        if !path.exists() {
            return None;
        }
        let client = sundown_driver::connect(Some(&path)).await.ok()?.client;
        let request = http::Request::get("/api/v1/namespaces/default/configmaps?limit=500");
        let request = request.body(Vec::new()).ok()?;
        client.request_text(request).await.ok()?;
        Some(client)
    }

    fn start_upstream(&mut self, etcd: &Path, server: &Path) -> Result<()> {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let (client, peer, port) = (url(free_port()?), url(free_port()?), free_port()?);
        let mut command = Command::new(etcd);
        command.arg("--data-dir").arg(self.home.path().join("etcd"));
        for (flag, value) in [
            ("--listen-client-urls", &client),
            ("--advertise-client-urls", &client),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
            ("--initial-cluster", &format!("default={peer}")),
        ] {
            command.arg(flag).arg(value);
        }
        self.spawn("etcd", &mut command)?;
        let tokens = self.home.path().join("tokens.csv");
        fs::write(&tokens, "storm,admin,admin,system:masters\n")?;
        let certificates = self.home.path().join("certificates");
        let key = certificates.join("apiserver.key");
        let mut command = Command::new(server);
        command
            .args([
                "--bind-address=127.0.0.1",
                "--endpoint-reconciler-type=none",
            ])
            .args([
                "--service-cluster-ip-range=10.0.0.0/24",
                "--authorization-mode=RBAC",
            ])
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg("--disable-admission-plugins=ServiceAccount")
            .arg(format!("--etcd-servers={client}"))
            .arg(format!("--secure-port={port}"));
        for (flag, path) in [
            ("--cert-dir", &certificates),
            ("--token-auth-file", &tokens),
            ("--service-account-key-file", &key),
            ("--service-account-signing-key-file", &key),
        ] {
            command.arg(flag).arg(path);
        }
        self.spawn("kube-apiserver", &mut command)?;
        self.write_kubeconfig(port)
    }

    fn write_kubeconfig(&self, port: u16) -> Result<()> {
        let authority = self.home.path().join("certificates/apiserver.crt");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: storm\n\
             clusters: [{{name: storm, cluster: {{server: 'https://127.0.0.1:{port}', \
             certificate-authority: '{}'}}}}]\n\
             users: [{{name: storm, user: {{token: storm}}}}]\n\
             contexts: [{{name: storm, context: {{cluster: storm, user: storm}}}}]\n",
            authority.display()
        );
        Ok(fs::write(self.home.path().join("kubeconfig"), text)?)
    }

    fn spawn(&mut self, name: &str, command: &mut Command) -> Result<()> {
        let log = File::create(self.home.path().join(format!("{name}.log")))?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = command.spawn().with_context(|| format!("start {name}"))?;
        self.children.push(child);
        Ok(())
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            // Already ended: nothing is left either way.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}
