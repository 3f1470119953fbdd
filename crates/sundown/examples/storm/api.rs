//! The same requests of the same client on both control planes, in turns: durable creates, watches,
//! lists, starts, memory. The figures are printed side by side; what differs beyond them is said too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use tokio::task::JoinSet;

use crate::plane::Plane;

const WRITERS: usize = 64;
/// Both take turns, so that a busy moment of the machine meets both.
const TURNS: usize = 4;
const TURN_CREATES: usize = 2_500;
/// Enough for a p99 that means something.
const WATCHED: usize = 500;
const LISTS: usize = 7;
/// How long a control plane is left alone before its memory counts.
const REST: Duration = Duration::from_secs(5);

const DIFFERENCES: &str = "\
What the two do not have in common:
- sundown runs its controllers (garbage collector, TTL, namespaces) in the measured process and feeds
  them every write; kube-apiserver runs none.
- kube-apiserver checks RBAC and runs its admission plugins; sundown knows one administrator and has no
  admission plugins yet.
- kube-apiserver writes managedFields into every object; sundown does not. Objects in etcd are protobuf,
  ours are JSON.
- etcd can replicate (here: one member), and kube-apiserver talks to it over a socket; sundown is one
  process.
- etcd syncs its write-ahead log before it answers, as sundown syncs its journal (--durability=strict:
  Leases and Events as well). Both were on the same disk.
- Timing is the client's: its own work (TLS, JSON) is in every latency and takes its share of the cores.";

/// What was measured of one control plane.
#[derive(Debug, Default)]
struct Figures {
    empty_start: Duration,
    idle_kilobytes: f64,
    create_time: Duration,
    create_cpu_seconds: f64,
    creates: Vec<Duration>,
    watches: Vec<Duration>,
    lists: Vec<Duration>,
    list_bytes: usize,
    full_start: Duration,
    full_kilobytes: f64,
    disk_kilobytes: f64,
}

/// Measures both and prints the table.
pub(crate) async fn run(mut planes: [Plane; 2], object_count: usize) -> Result<()> {
    let mut figures: [Figures; 2] = Default::default();
    for (plane, figures) in planes.iter_mut().zip(&mut figures) {
        figures.empty_start = plane.start().await?;
        tokio::time::sleep(REST).await;
        figures.idle_kilobytes = plane.resident()?;
        told(plane, "is up");
    }
    for turn in 0..TURNS {
        for (plane, figures) in planes.iter().zip(&mut figures) {
            let first = turn * TURN_CREATES;
            create_turn(plane, first, figures).await?;
            told(plane, &format!("turn {} of creates", turn + 1));
        }
    }
    for (plane, figures) in planes.iter().zip(&mut figures) {
        list(plane, figures).await?;
        watch(plane, figures).await?;
        told(plane, "lists and watches");
    }
    for (plane, figures) in planes.iter_mut().zip(&mut figures) {
        let first = TURNS * TURN_CREATES;
        create(plane, first, object_count.saturating_sub(first)).await?;
        told(plane, "is full");
        plane.stop()?;
        figures.full_start = plane.start().await?;
        tokio::time::sleep(REST).await;
        figures.full_kilobytes = plane.resident()?;
        figures.disk_kilobytes = plane.on_disk()?;
        plane.stop()?;
        told(plane, "started again");
    }
    report(&planes, &mut figures, object_count);
    Ok(())
}

fn told(plane: &Plane, what: &str) {
    eprintln!("{}: {what}", plane.name);
}

async fn create_turn(plane: &Plane, first: usize, figures: &mut Figures) -> Result<()> {
    let cpu_before = plane.cpu_seconds()?;
    let begun_at = Instant::now();
    let times = create(plane, first, TURN_CREATES).await?;
    figures.create_time += begun_at.elapsed();
    figures.create_cpu_seconds += plane.cpu_seconds()? - cpu_before;
    figures.creates.extend(times);
    Ok(())
}

/// Creates numbered objects from many sides; gives how long each took.
async fn create(plane: &Plane, first: usize, count: usize) -> Result<Vec<Duration>> {
    let next = Arc::new(AtomicUsize::new(first));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (api, next) = (config_maps(plane), Arc::clone(&next));
        writers.spawn(async move {
            let mut times = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= first + count {
                    return anyhow::Ok(times);
                }
                let object = an_object(&format!("cm-{number}"));
                let begun_at = Instant::now();
                api.create(&PostParams::default(), &object).await?;
                times.push(begun_at.elapsed());
            }
        });
    }
    let mut all = Vec::with_capacity(count);
    while let Some(times) = writers.join_next().await {
        all.extend(times??);
    }
    Ok(all)
}

/// Lists everything, without looking into it.
async fn list(plane: &Plane, figures: &mut Figures) -> Result<()> {
    for _ in 0..LISTS {
        let request = http::Request::get("/api/v1/namespaces/default/configmaps");
        let begun_at = Instant::now();
        let text = plane
            .client()
            .request_text(request.body(Vec::new())?)
            .await?;
        figures.lists.push(begun_at.elapsed());
        figures.list_bytes = text.len();
    }
    Ok(())
}

/// From the moment that a create is sent to the moment that another connection hears of it.
async fn watch(plane: &Plane, figures: &mut Figures) -> Result<()> {
    let api = config_maps(plane);
    let begin = api
        .create(&PostParams::default(), &an_object("watched"))
        .await?;
    let rv = begin.resource_version().context("no revision")?;
    let mut events = api.watch(&WatchParams::default(), &rv).await?.boxed();
    for number in 0..WATCHED {
        let name = format!("watched-{number}");
        let begun_at = Instant::now();
        let (object, params) = (an_object(&name), PostParams::default());
        let (created, heard) = tokio::join!(api.create(&params, &object), async {
            while let Some(event) = events.next().await {
                if let WatchEvent::Added(object) = event?
                    && object.name_any() == name
                {
                    return anyhow::Ok(begun_at.elapsed());
                }
            }
            anyhow::bail!("the watch ended")
        });
        created?;
        figures.watches.push(heard?);
    }
    Ok(())
}

fn config_maps(plane: &Plane) -> Api<ConfigMap> {
    Api::namespaced(plane.client(), "default")
}

/// About two kilobytes.
fn an_object(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some(name.to_owned()),
            ..Default::default()
        },
        data: Some(BTreeMap::from([("fill".to_owned(), "x".repeat(1_800))])),
        ..Default::default()
    }
}

fn report(planes: &[Plane; 2], figures: &mut [Figures; 2], object_count: usize) {
    for figures in &mut *figures {
        for times in [
            &mut figures.creates,
            &mut figures.watches,
            &mut figures.lists,
        ] {
            times.sort();
        }
    }
    let figures = &*figures;
    let [ours, theirs] = planes;
    println!("| | {} | {} | ours is better by |", ours.name, theirs.name);
    println!("|---|---|---|---|");
    report_requests(figures);
    report_starts(figures, object_count);
    println!("\n{DIFFERENCES}");
}

fn report_requests(figures: &[Figures; 2]) {
    let creates = TURNS * TURN_CREATES;
    row(
        &format!("durable creates/s, {WRITERS} writers, {creates} objects"),
        Better::Higher,
        figures,
        0,
        |it| number(creates) / it.create_time.as_secs_f64(),
    );
    row(
        "server CPU-seconds per 1,000 creates",
        Better::Lower,
        figures,
        3,
        |it| it.create_cpu_seconds * 1_000.0 / number(creates),
    );
    row("create p50, ms", Better::Lower, figures, 2, |it| {
        at(&it.creates, 50)
    });
    row("create p99, ms", Better::Lower, figures, 2, |it| {
        at(&it.creates, 99)
    });
    row(
        "create to watch event p50, ms",
        Better::Lower,
        figures,
        2,
        |it| at(&it.watches, 50),
    );
    row(
        "create to watch event p99, ms",
        Better::Lower,
        figures,
        2,
        |it| at(&it.watches, 99),
    );
    row(
        "list of 10,000, median, ms",
        Better::Lower,
        figures,
        1,
        |it| at(&it.lists, 50),
    );
    row("list of 10,000, MB", Better::Lower, figures, 1, |it| {
        number(it.list_bytes) / 1e6
    });
}

fn report_starts(figures: &[Figures; 2], object_count: usize) {
    row(
        "start to first LIST, empty, ms",
        Better::Lower,
        figures,
        1,
        |it| ms(it.empty_start),
    );
    row(
        &format!("start to first LIST, {object_count} objects, ms"),
        Better::Lower,
        figures,
        1,
        |it| ms(it.full_start),
    );
    row(
        "resident at rest, empty, MB",
        Better::Lower,
        figures,
        1,
        |it| it.idle_kilobytes / 1e3,
    );
    row(
        &format!("resident at rest, {object_count} objects, MB"),
        Better::Lower,
        figures,
        1,
        |it| it.full_kilobytes / 1e3,
    );
    row(
        "memory per object, bytes",
        Better::Lower,
        figures,
        0,
        |it| (it.full_kilobytes - it.idle_kilobytes) * 1024.0 / number(object_count),
    );
    row("disk per object, bytes", Better::Lower, figures, 0, |it| {
        it.disk_kilobytes * 1024.0 / number(object_count)
    });
}

/// Which of two figures is the better one.
#[derive(Debug, Clone, Copy)]
enum Better {
    Higher,
    Lower,
}

/// The last column says how many times better ours is; below one it is worse.
fn row(
    name: &str,
    better: Better,
    figures: &[Figures; 2],
    digits: usize,
    of: impl Fn(&Figures) -> f64,
) {
    let (ours, theirs) = (of(&figures[0]), of(&figures[1]));
    let ratio = match better {
        Better::Higher => ours / theirs,
        Better::Lower => theirs / ours,
    };
    println!("| {name} | {ours:.digits$} | {theirs:.digits$} | {ratio:.1}x |");
}

/// A percentile of sorted times, in milliseconds.
fn at(times: &[Duration], percent: usize) -> f64 {
    ms(times[times.len() * percent / 100])
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[expect(clippy::cast_precision_loss, reason = "a figure to read")]
fn number(count: usize) -> f64 {
    count as f64
}
