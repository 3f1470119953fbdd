//! A Ray cluster of a head and a worker as pods, a job through its REST API, and nothing left.
//!
//! `cargo run -p sundown-node --example ray -- ENVIRONMENT DATA_DIR [WORKERS]`, where ENVIRONMENT is a virtual
//! environment with `ray[default]`, outside of `/tmp`.
#![allow(clippy::print_stdout, reason = "an example talks to people")]

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use sundown_node::{Config, ContainerSpec, ContainerState, HttpProbe, Node, PodSpec, leftovers};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const HEAD_NAME: &str = "head-svc.default.svc.cluster.local";
const SCRIPT: &str = "import ray; ray.init(); \
    nodes = [n for n in ray.nodes() if n['Alive']]; \
    f = ray.remote(lambda: ray.util.get_node_ip_address()); \
    print('nodes', len(nodes), 'ran on', sorted(set(ray.get([\
    f.options(scheduling_strategy=ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(n['NodeID'], False)).remote() for n in nodes]))))";

fn main() -> ExitCode {
    if let Some(code) = sundown_node::stage(std::env::args_os()) {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = runtime
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run()));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:?}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let usage = "usage: ray ENVIRONMENT DATA_DIR [WORKERS]";
    let environment = arguments.next().context(usage)?;
    let data_dir = arguments.next().context(usage)?;
    let workers = arguments.next().unwrap_or_else(|| "1".into());
    let worker_count: usize = workers.to_string_lossy().parse().context(usage)?;
    let node = Node::connect_or_start(&Config::new(&data_dir, std::env::current_exe()?)).await?;
    println!("isolation: {}", node.isolation().reason);
    let begun_at = Instant::now();
    let result = play(&node, &environment, worker_count, begun_at).await;
    let ended_at = Instant::now();
    for pod in node.snapshot().await? {
        if result.is_err() {
            let log = node.pod_paths(&pod.uid).log("ray", 0);
            println!(
                "{pod:?}\n{}",
                std::fs::read_to_string(log).unwrap_or_default()
            );
        }
        node.remove_pod(&pod.uid).await?;
    }
    println!("{:>7.2?} to remove all pods", ended_at.elapsed());
    let left = node.leftovers().await?;
    ensure!(left.is_empty(), "left: {left:?}");
    node.end().await?;
    drop(node);
    while !leftovers(&data_dir)?.is_empty() {
        ensure!(
            ended_at.elapsed() < Duration::from_secs(30),
            "{:?}",
            leftovers(&data_dir)?
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("nothing is left");
    result
}

async fn play(
    node: &Node,
    environment: &Path,
    worker_count: usize,
    begun_at: Instant,
) -> Result<()> {
    let flags = [
        "--block",
        "--num-cpus=1",
        "--memory=1000000000",
        "--object-store-memory=100000000",
    ];
    let head = node.create_pod(pod("head")).await?;
    let names = vec![(HEAD_NAME.to_owned(), vec![head.address])];
    node.set_names(names).await?;
    let argv = ["ray", "start", "--head", "--dashboard-host=0.0.0.0"];
    start(node, environment, "head", &[&argv[..], &flags[..]].concat()).await?;
    let argv = ["ray", "start", "--address=head-svc:6379"];
    for index in 0..worker_count {
        let uid = format!("worker-{index}");
        node.create_pod(pod(&uid)).await?;
        start(node, environment, &uid, &[&argv[..], &flags[..]].concat()).await?;
    }
    println!("{:>7.2?} all pods run", begun_at.elapsed());

    let dashboard = SocketAddrV4::new(head.address, 8265);
    let is_up = |body: &str| body.contains("ray_version");
    let version = await_body(node, dashboard, "/api/version", is_up).await?;
    println!("{:>7.2?} {version}", begun_at.elapsed());
    let nodes = "/api/v0/nodes?detail=1&limit=10";
    await_body(node, dashboard, nodes, |body| {
        body.matches("\"ALIVE\"").count() == worker_count + 1
    })
    .await?;
    println!("{:>7.2?} all nodes are alive", begun_at.elapsed());

    let entrypoint = format!("python -c \"{SCRIPT}\"");
    let body =
        serde_json::json!({ "entrypoint": entrypoint, "submission_id": "job-1" }).to_string();
    let request = format!(
        "POST /api/jobs/ HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = node.dial(dashboard, Duration::from_secs(5)).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    ensure!(answer.contains("200 OK"), "{answer}");
    let is_over = |body: &str| {
        ["SUCCEEDED", "FAILED"]
            .iter()
            .any(|word| body.contains(word))
    };
    let end = await_body(node, dashboard, "/api/jobs/job-1", is_over).await?;
    println!("{:>7.2?} job ended", begun_at.elapsed());
    let logs = await_body(node, dashboard, "/api/jobs/job-1/logs", |body| {
        body.contains("nodes")
    })
    .await?;
    ensure!(end.contains("SUCCEEDED"), "{end}\n{logs}");
    println!(
        "SUCCEEDED: {}",
        logs.split("nodes").last().unwrap_or_default()
    );
    Ok(())
}

async fn await_body(
    node: &Node,
    to: SocketAddrV4,
    path: &str,
    is_good: impl Fn(&str) -> bool,
) -> Result<String> {
    let probe = HttpProbe {
        address: *to.ip(),
        port: to.port(),
        path: path.to_owned(),
        tls: false,
        headers: Vec::new(),
        timeout: Duration::from_secs(5),
    };
    let begun_at = Instant::now();
    loop {
        match node.probe_http(&probe).await {
            Ok(found) if is_good(&found.body) => return Ok(found.body),
            other => ensure!(
                begun_at.elapsed() < Duration::from_mins(2),
                "{path}: {other:?}"
            ),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn pod(uid: &str) -> PodSpec {
    PodSpec {
        uid: uid.to_owned(),
        namespace: "default".to_owned(),
        name: uid.to_owned(),
        hostname: uid.to_owned(),
        domain: None,
        address: None,
        hosts: Vec::new(),
        search_domains: vec!["default.svc.cluster.local".to_owned()],
        shm_bytes: 256 << 20,
        volumes: Vec::new(),
        closed: sundown_node::ClosedPaths::default(),
    }
}

async fn start(node: &Node, environment: &Path, uid: &str, argv: &[&str]) -> Result<()> {
    let interpreter = environment.join("bin/python3").canonicalize()?;
    let prefix = interpreter
        .ancestors()
        .nth(2)
        .context("an interpreter lies in PREFIX/bin")?;
    let path = format!("{}/bin:/usr/local/bin:/usr/bin:/bin", environment.display());
    let variables = [
        ("PATH", path.as_str()),
        ("HOME", "/root"),
        ("RAY_USAGE_STATS_ENABLED", "0"),
        ("GRPC_DNS_RESOLVER", "native"),
        ("RAY_memory_monitor_refresh_ms", "0"),
    ];
    let env = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let spec = ContainerSpec {
        name: "ray".to_owned(),
        attempt: 0,
        argv: argv.iter().map(|each| (*each).to_owned()).collect(),
        env: env.to_vec(),
        working_directory: None,
        mounts: Vec::new(),
        environment: vec![environment.to_owned(), prefix.to_owned()],
        read_only_root: false,
        dropped: Vec::new(),
        run_as: None,
    };
    let state = node.start_container(uid, spec).await?;
    ensure!(
        state
            .container("ray")
            .is_some_and(ContainerState::is_running),
        "{state:?}"
    );
    Ok(())
}
