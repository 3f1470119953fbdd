//! A data directory with a node of its own, and words to say what is to run.

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use sundown_node::{
    Change, Config, ContainerKey, ContainerSpec, ContainerState, Exit, File, Mount, Node, PodSpec,
    PodState, Volume, VolumeSource, leftovers,
};
use sundown_testing::{TestBound, eventually, within, write_program};

/// Runs a test on a runtime of its own.
pub(crate) fn block_on(test: impl Future<Output = Result<()>>) -> Result<()> {
    let _bound = TestBound::of_this_test();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(test)
}

/// A node for one test.
pub(crate) struct World {
    pub(crate) node: Node,
    directory: tempfile::TempDir,
}

/// A test that failed leaves no node with pods behind.
impl Drop for World {
    fn drop(&mut self) {
        if let Some(pid) =
            node_process(self.path()).and_then(|pid| Pid::from_raw(pid.cast_signed()))
        {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The node of a data directory as the host counts processes.
pub(crate) fn node_process(data_dir: &Path) -> Option<u32> {
    let name = data_dir.file_name()?.to_string_lossy().into_owned();
    processes_with("__node-serve").into_iter().find(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&name)
    })
}

impl World {
    pub(crate) async fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let node = connect(directory.path()).await?;
        Ok(Self { node, directory })
    }

    /// With a node whose starter ignores hang-ups and interrupts, as `nohup` and shells do.
    pub(crate) async fn started_behind_a_shell() -> Result<Self> {
        Self::started_after("trap '' HUP INT QUIT").await
    }

    /// With a node whose starter has directories open, as shells and builds do.
    pub(crate) async fn started_with_directories_open() -> Result<Self> {
        Self::started_after("exec 7</ 8</usr").await
    }

    async fn started_after(line: &str) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let script = directory.path().join("starter");
        let binary = std::env::current_exe()?;
        let text = format!("#!/bin/sh\n{line}\nexec {} \"$@\"\n", binary.display());
        write_program(&script, &text)?;
        let config = Config::new(directory.path(), &script);
        let node = Node::connect_or_start(&config).await?;
        std::fs::remove_file(&script)?;
        Ok(Self { node, directory })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Makes a pod and starts its only container.
    pub(crate) async fn run(&self, pod: PodSpec, container: ContainerSpec) -> Result<PodState> {
        let uid = pod.uid.clone();
        self.node.create_pod(pod).await?;
        Ok(self.node.start_container(&uid, container).await?)
    }

    /// Waits until the main container has ended.
    pub(crate) async fn end(&self, uid: &str) -> Result<Exit> {
        let state = self.until(uid, |pod| {
            pod.container("main").is_some_and(|each| !each.is_running())
        });
        match state.await?.container("main") {
            Some(ContainerState::Exited(exit)) => Ok(exit.clone()),
            other => bail!("{uid}: {other:?}"),
        }
    }

    /// Runs a script in a pod of its own to its end, removes the pod, and gives exit and log.
    pub(crate) async fn script(&self, uid: &str, script: &str) -> Result<(Exit, String)> {
        self.run(a_pod(uid), sh(script)).await?;
        self.finish(uid).await
    }

    /// Waits for the end of the main container, reads its log and removes the pod.
    pub(crate) async fn finish(&self, uid: &str) -> Result<(Exit, String)> {
        let exit = self.end(uid).await?;
        let log = self.log(uid)?;
        self.node.remove_pod(uid).await?;
        Ok((exit, log))
    }

    /// Waits until a pod is as described.
    pub(crate) async fn until(
        &self,
        uid: &str,
        is_so: impl Fn(&PodState) -> bool,
    ) -> Result<PodState> {
        until(&self.node, uid, is_so).await
    }

    /// The text of the main container's first attempt, without times and tags.
    pub(crate) fn log(&self, uid: &str) -> Result<String> {
        let path = self.node.pod_paths(uid).log("main", 0);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let lines = text
            .lines()
            .map(|line| line.splitn(4, ' ').nth(3).unwrap_or_default());
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    /// Waits until the main container's first attempt has written exactly this.
    pub(crate) async fn says(&self, uid: &str, text: &str) -> Result<()> {
        let mut log = Ok(String::new());
        let waited = eventually(format!("{uid} to write {text:?}"), || {
            log = self.log(uid);
            log.as_ref().map_or(true, |it| it == text)
        });
        let waited = waited.await;
        let log = log?;
        waited.with_context(|| format!("{uid} wrote {log:?}"))
    }

    /// Ends the node and checks that nothing is left, inside and outside.
    pub(crate) async fn close(self) -> Result<()> {
        for pod in self.node.snapshot().await? {
            self.node.remove_pod(&pod.uid).await?;
        }
        let left = self.node.leftovers().await?;
        ensure!(left.is_empty(), "left in the node: {left:?}");
        self.node.end().await?;
        nothing_left(self.path()).await
    }
}

/// Joins or starts the node of a directory.
pub(crate) async fn connect(data_dir: &Path) -> Result<Node> {
    Ok(Node::connect_or_start(&config(data_dir)?).await?)
}

pub(crate) fn config(data_dir: &Path) -> Result<Config> {
    Ok(Config::new(data_dir, std::env::current_exe()?))
}

pub(crate) async fn until(
    node: &Node,
    uid: &str,
    is_so: impl Fn(&PodState) -> bool,
) -> Result<PodState> {
    let mut watch = node.watch().await?;
    let mut last = None;
    let found = async {
        loop {
            match watch.next().await? {
                Change::Pod(pod) if pod.uid == uid => {
                    last = Some(pod.clone());
                    if is_so(&pod) {
                        return anyhow::Ok(pod);
                    }
                }
                Change::Pod(_) | Change::Removed { .. } | Change::Listed => {}
            }
        }
    };
    let found = within(format!("a change of pod {uid}"), found).await;
    found.with_context(|| format!("{uid} stays {last:?}"))?
}

/// Waits until the host sees nothing of a node.
pub(crate) async fn nothing_left(data_dir: &Path) -> Result<()> {
    let mut left = Ok(Vec::new());
    let waited = eventually("an empty machine", || {
        left = leftovers(data_dir);
        left.as_ref().map_or(true, Vec::is_empty)
    });
    let waited = waited.await;
    let left = left?;
    waited.with_context(|| format!("left: {left:?}"))
}

pub(crate) fn a_pod(uid: &str) -> PodSpec {
    PodSpec {
        uid: uid.to_owned(),
        namespace: "default".to_owned(),
        name: uid.to_owned(),
        hostname: uid.to_owned(),
        domain: None,
        address: None,
        hosts: Vec::new(),
        search_domains: vec![
            "default.svc.cluster.local".to_owned(),
            "svc.cluster.local".to_owned(),
        ],
        shm_bytes: 64 << 20,
        volumes: Vec::new(),
        closed: sundown_node::ClosedPaths::default(),
    }
}

pub(crate) fn a_container(argv: &[&str]) -> ContainerSpec {
    ContainerSpec {
        name: "main".to_owned(),
        attempt: 0,
        argv: argv.iter().map(|each| (*each).to_owned()).collect(),
        env: vec![(
            "PATH".to_owned(),
            "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned(),
        )],
        working_directory: None,
        mounts: Vec::new(),
        environment: Vec::new(),
        read_only_root: false,
        dropped: Vec::new(),
        run_as: None,
    }
}

pub(crate) fn sh(script: &str) -> ContainerSpec {
    a_container(&["sh", "-c", script])
}

pub(crate) fn key(uid: &str) -> ContainerKey {
    ContainerKey {
        uid: uid.to_owned(),
        container: "main".to_owned(),
        attempt: 0,
    }
}

pub(crate) fn volume(name: &str, source: VolumeSource) -> Volume {
    Volume {
        name: name.to_owned(),
        source,
    }
}

pub(crate) fn files(files: &[(&str, &str)]) -> VolumeSource {
    let file = |text: &str| File {
        content: text.as_bytes().to_vec(),
        mode: 0o644,
    };
    let files: BTreeMap<String, File> = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), file(text)))
        .collect();
    VolumeSource::Files { files }
}

pub(crate) fn mount(volume: &str, mount_path: &str) -> Mount {
    Mount {
        volume: volume.to_owned(),
        mount_path: PathBuf::from(mount_path),
        sub_path: None,
        read_only: false,
    }
}

/// The processes of this machine whose command line holds a word.
pub(crate) fn processes_with(word: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if pid != std::process::id() && String::from_utf8_lossy(&line).contains(word) {
            found.push(pid);
        }
    }
    found
}
