//! Rounds of: start, look for everything that was ever acknowledged, resume the watch of the last
//! round, write from many sides, kill -9.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
    WatchEvent, WatchParams,
};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::server::Server;

const WRITERS: usize = 16;
/// The kill comes after so many acknowledged writes of a round, at most.
const WRITES_MAX: u64 = 250;
/// And at a random moment within this time, so that it meets every step of a commit.
const MOMENT_MICROSECONDS_MAX: u64 = 3_000;
/// So many names one writer keeps, about.
const NAMES_MAX: usize = 16;
/// Bounds a hang; nothing is measured by it.
const ROUND_TIME_MAX: Duration = Duration::from_mins(1);

/// What is known of one name. An unanswered write may have happened or not.
#[derive(Debug, Clone, Default)]
struct Known {
    /// The acknowledged revision; None: deleted, or never created.
    rv: Option<String>,
    unanswered: bool,
}

type Ledger = BTreeMap<String, Known>;

/// What a list showed: the revision of each name, and that of the list.
#[derive(Debug, Clone, Default)]
struct Seen {
    names: BTreeMap<String, String>,
    rv: Option<String>,
}

/// One kind of object, and what is known of it.
struct Kind {
    resource: ApiResource,
    ledger: Ledger,
    seen: Seen,
}

/// Runs the rounds; the first lost write ends them.
pub(crate) async fn run(binary: &Path, rounds: usize, seed: u64) -> Result<()> {
    // Kept when a round fails: what is in it tells why.
    let kept = tempfile::tempdir()?.keep();
    let home = kept.join("data");
    let mut random = Random(seed | 1);
    // Leases are answered before they are synced; a killed process must not lose them either.
    let mut kinds = [
        Kind::new(ApiResource::erase::<ConfigMap>(&())),
        Kind::new(ApiResource::erase::<Lease>(&())),
    ];
    let mut acknowledged = 0;
    for round in 0..rounds {
        let told = || format!("round {round}, seed {seed}, data in {}", home.display());
        let server = Server::start(binary, &home, false)
            .await
            .with_context(told)?;
        for kind in &mut kinds {
            kind.check(&server).await.with_context(told)?;
        }
        acknowledged += storm(server, &mut kinds, round, &mut random).await?;
    }
    let server = Server::start(binary, &home, false).await?;
    for kind in &mut kinds {
        kind.check(&server).await.context("after the last round")?;
    }
    server.kill().await?;
    sundown_files::remove(&kept, "data")?;
    std::fs::remove_dir(&kept)?;
    println!("{rounds} kills, seed {seed}: {acknowledged} acknowledged writes, all there");
    Ok(())
}

impl Kind {
    fn new(resource: ApiResource) -> Self {
        Self {
            resource,
            ledger: Ledger::new(),
            seen: Seen::default(),
        }
    }

    fn api(&self, server: &Server) -> Api<DynamicObject> {
        Api::default_namespaced_with(server.client.clone(), &self.resource)
    }

    /// Compares the server with the ledger, and settles what was unanswered.
    async fn check(&mut self, server: &Server) -> Result<()> {
        let api = self.api(server);
        let list = api.list(&ListParams::default()).await?;
        let mut names = BTreeMap::new();
        for object in &list.items {
            let rv = object.resource_version().context("it has a revision")?;
            names.insert(object.name_any(), rv);
        }
        let mut unknown = names.clone();
        for (name, known) in &mut self.ledger {
            let found = unknown.remove(name);
            ensure!(
                known.unanswered || found == known.rv,
                "{name}: acknowledged at {:?}, found at {found:?}",
                known.rv
            );
            *known = Known {
                rv: found,
                unanswered: false,
            };
        }
        ensure!(unknown.is_empty(), "nobody wrote {:?}", unknown.keys());
        self.ledger.retain(|_, known| known.rv.is_some());
        let before = std::mem::replace(
            &mut self.seen,
            Seen {
                names,
                rv: list.metadata.resource_version,
            },
        );
        let resumed = tokio::time::timeout(ROUND_TIME_MAX, self.resume(&api, before));
        resumed.await.context("a watch does not resume")?
    }

    /// A watch from the last list must lead to this one.
    async fn resume(&self, api: &Api<DynamicObject>, before: Seen) -> Result<()> {
        let Some(rv) = before.rv else {
            return Ok(());
        };
        let mut names = before.names;
        if names == self.seen.names {
            return Ok(());
        }
        let params = WatchParams::default().disable_bookmarks();
        let mut events = api.watch(&params, &rv).await?.boxed();
        while let Some(event) = events.next().await {
            match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    let rv = object.resource_version().context("it has a revision")?;
                    names.insert(object.name_any(), rv);
                }
                WatchEvent::Deleted(object) => {
                    names.remove(&object.name_any());
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => bail!("the watch from {rv}: {}", status.message),
            }
            if names == self.seen.names {
                return Ok(());
            }
        }
        bail!("the watch from {rv} ended before it came to the list");
    }
}

/// Writes from many sides until the server is killed; gives the number of acknowledged writes.
async fn storm(
    server: Server,
    kinds: &mut [Kind; 2],
    round: usize,
    random: &mut Random,
) -> Result<usize> {
    let mut writers = JoinSet::new();
    let progress = Arc::new(Progress {
        goal: usize::try_from(1 + random.next() % WRITES_MAX)?,
        ..Progress::default()
    });
    for (number, kind) in kinds.iter_mut().enumerate() {
        let mut shares: Vec<Ledger> = vec![Ledger::new(); WRITERS];
        for (number, (name, known)) in std::mem::take(&mut kind.ledger).into_iter().enumerate() {
            shares[number % WRITERS].insert(name, known);
        }
        for (writer, share) in shares.into_iter().enumerate() {
            let prefix = format!("r{round}-w{writer}");
            let whom = (kind.api(&server), kind.resource.clone());
            let (own, progress) = (Random(random.next() | 1), Arc::clone(&progress));
            writers.spawn(async move {
                let share = write(whom, share, prefix, own, &progress).await?;
                anyhow::Ok((number, share))
            });
        }
    }
    tokio::select! {
        () = progress.reached.notified() => {}
        Some(end) = writers.join_next() => {
            end??;
            bail!("a writer gave up before the kill");
        }
        () = tokio::time::sleep(ROUND_TIME_MAX) => bail!("the writers come to nothing"),
    }
    let moment = Duration::from_micros(random.next() % MOMENT_MICROSECONDS_MAX);
    tokio::time::sleep(moment).await;
    server.kill().await?;
    while let Some(end) = writers.join_next().await {
        let (number, share) = end??;
        kinds[number].ledger.extend(share);
    }
    Ok(progress.count.load(Ordering::Relaxed))
}

/// How far the writers of a round have come together.
#[derive(Debug, Default)]
struct Progress {
    count: AtomicUsize,
    goal: usize,
    reached: Notify,
}

impl Progress {
    fn step(&self) {
        if self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.goal {
            self.reached.notify_one();
        }
    }
}

/// One writer: creates, changes and deletes its own names until it gets no answer.
async fn write(
    (api, resource): (Api<DynamicObject>, ApiResource),
    mut ledger: Ledger,
    prefix: String,
    mut random: Random,
    progress: &Progress,
) -> Result<Ledger> {
    for count in 0_u64.. {
        let draw = random.next();
        let live = ledger.iter().filter(|(_, known)| known.rv.is_some());
        let live: Vec<&String> = live.map(|(name, _)| name).take(NAMES_MAX).collect();
        let old = live.get(usize::try_from(draw >> 32).unwrap_or(0) % live.len().max(1));
        // A writer with many names only deletes, so that late rounds are like early ones.
        let what = if live.len() == NAMES_MAX {
            0
        } else {
            draw % 10
        };
        let (name, answer) = match (what, old.map(|name| (*name).clone())) {
            (0..3, Some(name)) => {
                let deleted = api.delete(&name, &DeleteParams::default()).await;
                (name, deleted.map(|_| None))
            }
            (3..5, Some(name)) => {
                let annotations = json!({ "draw": draw.to_string() });
                let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
                let patched = api.patch(&name, &PatchParams::default(), &patch).await;
                (name, patched.map(|object| object.resource_version()))
            }
            _ => {
                let name = format!("{prefix}-{count}");
                let created = create(&api, &resource, &name).await;
                (name, created.map(|object| object.resource_version()))
            }
        };
        let known = ledger.entry(name).or_default();
        match answer {
            Ok(rv) => known.rv = rv,
            // It is alive and says no: that is another story.
            Err(kube::Error::Api(status)) => bail!("refused: {}", status.message),
            Err(_) => {
                known.unanswered = true;
                break;
            }
        }
        progress.step();
    }
    Ok(ledger)
}

async fn create(
    api: &Api<DynamicObject>,
    resource: &ApiResource,
    name: &str,
) -> kube::Result<DynamicObject> {
    let mut object = DynamicObject::new(name, resource);
    object.data = json!({});
    let fill = BTreeMap::from([("fill".to_owned(), "x".repeat(500))]);
    object.metadata.annotations = Some(fill);
    api.create(&PostParams::default(), &object).await
}

/// Xorshift: the moments of a seed are the same every time, as far as a machine allows.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
