//! `cargo xtask accept oracle` and the step `transcripts`: our server against a real kube-apiserver.
//!
//! It starts the real one; requests, answers and their comparison are in `conformance/`.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::{kube, process, workspace};

/// A loaded machine may need long; a hang ends here.
const START_DURATION_MAX: Duration = Duration::from_mins(2);

/// Histories of the lane; the gate judges fewer.
const ROUNDS: &str = "20";

const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The lane: no drift from the transcripts, then our own answers.
pub(crate) fn run() -> Result<()> {
    let oracle = Oracle::start()?;
    println!("the real kube-apiserver against the committed transcripts");
    let kubeconfig = oracle.kubeconfig().display().to_string();
    conformance(&["drift", &kubeconfig])
        .context("drift: look at it, then `cargo xtask accept record` and commit")?;
    println!("what writers and watchers see of the real kube-apiserver, then of ours");
    conformance(&["history", "--rounds", ROUNDS, &kubeconfig])?;
    conformance(&["history", "--rounds", ROUNDS])?;
    transcripts()
}

/// Writes the transcripts anew; for a script that grew.
pub(crate) fn record() -> Result<()> {
    let oracle = Oracle::start()?;
    conformance(&["record", &oracle.kubeconfig().display().to_string()])
}

/// Writes the facts anew that only a running server tells: names, verbs and columns.
pub(crate) fn facts() -> Result<()> {
    let oracle = Oracle::start()?;
    conformance(&["facts", &oracle.kubeconfig().display().to_string()])
}

/// The step of the landing gate: our server in process against the committed transcripts.
pub(crate) fn transcripts() -> Result<()> {
    println!("our server against the committed transcripts");
    conformance(&["check"])?;
    conformance(&["history"])
}

fn conformance(arguments: &[&str]) -> Result<()> {
    let mut cargo =
        workspace::cargo(&["run", "--quiet", "--package", "sundown-conformance", "--"])?;
    process::run(cargo.args(arguments))
}

/// etcd and kube-apiserver on loopback, in a temporary directory; ended when dropped.
struct Oracle {
    children: Vec<Child>,
    directory: tempfile::TempDir,
}

impl Oracle {
    fn start() -> Result<Self> {
        let directory = tempfile::tempdir().context("make a temporary directory")?;
        let mut oracle = Self {
            children: Vec::new(),
            directory,
        };
        let etcd = oracle.start_etcd()?;
        let port = free_port()?;
        oracle.start_server(&etcd, port)?;
        oracle.write_kubeconfig(port)?;
        oracle.await_answer(&["get", "--raw", "/readyz"])?;
        Ok(oracle)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    fn start_etcd(&mut self) -> Result<String> {
        let client = format!("http://127.0.0.1:{}", free_port()?);
        let peer = format!("http://127.0.0.1:{}", free_port()?);
        let mut etcd = Command::new(kube::program("etcd")?);
        etcd.arg("--data-dir")
            .arg(self.directory.path().join("etcd"));
        for (flag, value) in [
            ("--listen-client-urls", &client),
            ("--advertise-client-urls", &client),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
            ("--initial-cluster", &format!("default={peer}")),
        ] {
            etcd.arg(flag).arg(value);
        }
        // What is compared are answers, not what a power cut leaves.
        etcd.arg("--unsafe-no-fsync");
        self.spawn(&mut etcd, "etcd")?;
        let address = client.trim_start_matches("http://").to_owned();
        self.await_state("etcd listens", |_| {
            std::net::TcpStream::connect(&address).is_ok()
        })?;
        Ok(client)
    }

    fn start_server(&mut self, etcd: &str, port: u16) -> Result<()> {
        let tokens = self.directory.path().join("tokens.csv");
        fs::write(&tokens, "oracle,admin,admin,system:masters\n").context("write the token")?;
        let certificates = self.directory.path().join("certificates");
        // The server makes this key itself before it reads it as the one of service accounts.
        let key = certificates.join("apiserver.key");
        let mut server = Command::new(kube::program("kube-apiserver")?);
        server
            .args([
                "--bind-address=127.0.0.1",
                "--endpoint-reconciler-type=none",
            ])
            .args([
                "--service-cluster-ip-range=10.0.0.0/24",
                "--authorization-mode=RBAC",
            ])
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            // Ours always asks who makes an owner reference.
            .arg("--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
            // Wants a ServiceAccount in each namespace, which a controller makes that is not run.
            .arg("--disable-admission-plugins=ServiceAccount")
            .arg(format!("--etcd-servers={etcd}"))
            .arg(format!("--secure-port={port}"));
        for (flag, path) in [
            ("--cert-dir", &certificates),
            ("--token-auth-file", &tokens),
            ("--service-account-key-file", &key),
            ("--service-account-signing-key-file", &key),
        ] {
            server.arg(flag).arg(path);
        }
        self.spawn(&mut server, "kube-apiserver")
    }

    fn write_kubeconfig(&self, port: u16) -> Result<()> {
        let authority = self.directory.path().join("certificates/apiserver.crt");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: oracle\n\
             clusters: [{{name: oracle, cluster: {{server: 'https://127.0.0.1:{port}', \
             certificate-authority: '{}'}}}}]\n\
             users: [{{name: oracle, user: {{token: oracle}}}}]\n\
             contexts: [{{name: oracle, context: {{cluster: oracle, user: oracle}}}}]\n",
            authority.display()
        );
        fs::write(self.kubeconfig(), text).context("write the kubeconfig")
    }

    fn await_answer(&mut self, arguments: &[&str]) -> Result<()> {
        let (kubectl, kubeconfig) = (kube::program("kubectl")?, self.kubeconfig());
        self.await_state("kube-apiserver is ready", |directory| {
            let mut command = Command::new(&kubectl);
            command
                .env("KUBECONFIG", &kubeconfig)
                .arg("--cache-dir")
                .arg(directory.join("kubectl-cache"))
                .args(arguments);
            process::succeeds_within(&mut command, Duration::from_secs(10)).unwrap_or(false)
        })
    }

    fn spawn(&mut self, command: &mut Command, name: &str) -> Result<()> {
        let log = File::create(self.directory.path().join(format!("{name}.log")))?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = command.spawn().with_context(|| format!("start {name}"))?;
        self.children.push(child);
        Ok(())
    }

    fn await_state(&mut self, what: &str, is_reached: impl Fn(&Path) -> bool) -> Result<()> {
        let started_at = Instant::now();
        while !is_reached(self.directory.path()) {
            for child in &mut self.children {
                if let Some(status) = child.try_wait().context("look at the oracle")? {
                    bail!(
                        "a part of the oracle ended with {status}; {}",
                        self.last_words()
                    );
                }
            }
            ensure!(
                started_at.elapsed() < START_DURATION_MAX,
                "not reached in time: {what}; {}",
                self.last_words()
            );
            sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// The logs go with the directory, so an error repeats their ends.
    fn last_words(&self) -> String {
        let last = ["etcd", "kube-apiserver"].map(|name| {
            let path = self.directory.path().join(format!("{name}.log"));
            let log = fs::read_to_string(path).unwrap_or_default();
            let last = log.lines().next_back().unwrap_or("nothing");
            format!("\n  {name}: {last}")
        });
        format!("the logs end with:{}", last.concat())
    }
}

impl Drop for Oracle {
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
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
    Ok(listener.local_addr()?.port())
}
