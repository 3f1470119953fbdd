//! Deletes what a run applied beside its job, each very object and no other of its name, one after the
//! other, and tells how far it is. What is told about it is decided elsewhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::apply::{Applied, How};
use super::snapshot::uid;
use super::waits::Wait;
use crate::complaint::Complaint;
use crate::objects;

/// How long an object may wait for finalizers that nothing of Sundown removes.
const OTHERS_TIME_MAX: Duration = Duration::from_secs(30);
const GONE_INTERVAL: Duration = Duration::from_millis(50);
/// How long to wait before a server that does not answer is asked again.
const AWAY_PAUSE: Duration = Duration::from_millis(500);
/// News that wait to be read.
const NEWS_MAX: usize = 16;

/// A removal that is under way, for as long as this lives.
#[derive(Debug)]
pub(super) struct Removal {
    /// What is not gone yet, in the order in which it goes.
    left: Vec<Applied>,
    /// The first of them, as it was seen last.
    seen: Option<Value>,
    news: mpsc::Receiver<News>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
enum News {
    /// The first that is left is still there.
    Seen(Value),
    /// The first that was left is gone.
    Gone,
    Failed(Complaint),
}

/// What goes with `--rm` beside the job, in the order in which it goes, and what stays: of the whole
/// server only what this run created goes, because others may live in such a namespace.
pub(super) fn split(applied: &[Applied], job: Option<&str>) -> (Vec<Applied>, Vec<Applied>) {
    let beside = applied.iter().filter(|it| Some(uid(&it.value)) != job);
    beside
        .rev()
        .cloned()
        .partition(|it| it.namespace.is_some() || it.how == How::Created)
}

/// The command that removes these.
pub(super) fn command(kubeconfig: &Path, all: &[Applied]) -> String {
    let mut by_namespace: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for it in all {
        let namespace = it.namespace.as_deref().unwrap_or_default();
        by_namespace.entry(namespace).or_default().push(&it.object);
    }
    // A namespace goes after what is in it.
    let commands = by_namespace.into_iter().rev().map(|(namespace, names)| {
        let place = match namespace {
            "" => String::new(),
            namespace => format!(" -n {namespace}"),
        };
        let kubeconfig = kubeconfig.display();
        let names = names.join(" ");
        format!("kubectl --kubeconfig {kubeconfig} delete{place} {names}")
    });
    commands.collect::<Vec<_>>().join("; ")
}

impl Removal {
    /// Begins to delete these in this order; the client may change when the control plane does.
    pub(super) fn begin(client: watch::Receiver<Client>, all: Vec<Applied>) -> Self {
        let (tell, news) = mpsc::channel(NEWS_MAX);
        let mut tasks = JoinSet::new();
        tasks.spawn(remove_all(client, all.clone(), tell));
        Self {
            left: all,
            seen: None,
            news,
            _tasks: tasks,
        }
    }

    /// What is not gone yet.
    pub(super) fn left(&self) -> &[Applied] {
        &self.left
    }

    /// What is waited for, with what was seen of it last.
    pub(super) fn waits_for(&self) -> Option<(&Applied, &Value)> {
        self.left.first().zip(self.seen.as_ref())
    }

    /// Returns when something has changed. Cancel-safe.
    ///
    /// Errors: one of them cannot be deleted.
    pub(super) async fn next(&mut self) -> Result<(), Complaint> {
        match self.news.recv().await {
            Some(News::Seen(object)) => self.seen = Some(object),
            Some(News::Gone) => {
                self.left.remove(0);
                self.seen = None;
            }
            Some(News::Failed(complaint)) => return Err(complaint),
            // The task has come to its end, and all of it was told.
            None => std::future::pending().await,
        }
        Ok(())
    }
}

async fn remove_all(client: watch::Receiver<Client>, all: Vec<Applied>, tell: mpsc::Sender<News>) {
    for it in &all {
        let news = match remove(&client, it, &tell).await {
            Ok(()) => News::Gone,
            Err(complaint) => News::Failed(complaint),
        };
        let is_end = matches!(news, News::Failed(_));
        if tell.send(news).await.is_err() || is_end {
            return;
        }
    }
}

async fn remove(
    client: &watch::Receiver<Client>,
    it: &Applied,
    tell: &mpsc::Sender<News>,
) -> Result<(), Complaint> {
    let current = || client.borrow().clone();
    while let Err(error) = delete(&current(), &it.path, uid(&it.value)).await {
        wait_or_fail(it, &error).await?;
    }
    let mut begun_at = Instant::now();
    let mut before = Value::Null;
    loop {
        let found = objects::send(&current(), Method::GET, &it.path, &Value::Null).await;
        match found {
            Ok(found) if uid(&found) != uid(&it.value) => return Ok(()),
            Ok(found) => {
                let wait = Wait::of(&found);
                if found != before {
                    begun_at = Instant::now();
                    before = found.clone();
                    // Whoever asked is gone: so is this task, in a moment.
                    let _ = tell.send(News::Seen(found)).await;
                }
                if wait.is_for_others() && begun_at.elapsed() > OTHERS_TIME_MAX {
                    let complaint =
                        Complaint::new(format!("{} was deleted but is still there", it.object));
                    return Err(complaint.because_of(&wait.in_words(&it.object)));
                }
            }
            Err(error) if objects::is_missing(&error) => return Ok(()),
            Err(error) => wait_or_fail(it, &error).await?,
        }
        sleep(GONE_INTERVAL).await;
    }
}

/// Without an answer the control plane is on its way back, and it is asked again.
async fn wait_or_fail(it: &Applied, error: &kube::Error) -> Result<(), Complaint> {
    if objects::code(error).is_some() {
        return Err(Complaint::new(format!("{} is not deleted", it.object)).because(error));
    }
    sleep(AWAY_PAUSE).await;
    Ok(())
}

/// Deletes this very object after all that it owns. Not finding it is success.
pub(super) async fn delete(client: &Client, path: &str, uid: &str) -> Result<(), kube::Error> {
    let foreground = json!({ "propagationPolicy": "Foreground" });
    objects::delete(client, path, uid, &foreground).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(name: &str, namespace: Option<&str>, how: How) -> Applied {
        Applied {
            object: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            how,
            path: String::new(),
            value: json!({"metadata": {"uid": name}}),
        }
    }

    #[test]
    fn what_was_applied_last_goes_first_and_what_others_made_for_the_server_stays() {
        let all = [
            applied("namespace/old", None, How::Unchanged),
            applied("namespace/new", None, How::Created),
            applied("configmap/code", Some("new"), How::Unchanged),
            applied("job/j", Some("new"), How::Created),
        ];
        let (go, stay) = split(&all, Some("job/j"));
        let names = |all: &[Applied]| all.iter().map(|it| it.object.clone()).collect::<Vec<_>>();
        assert_eq!(names(&go), ["configmap/code", "namespace/new"]);
        assert_eq!(names(&stay), ["namespace/old"]);
        assert_eq!(split(&all, None).0.len(), 3);
    }

    #[test]
    fn the_command_that_removes_names_each_object_in_its_namespace() {
        let all = [
            applied("namespace/new", None, How::Created),
            applied("configmap/code", Some("new"), How::Created),
            applied("service/web", Some("new"), How::Created),
        ];
        let expect = "kubectl --kubeconfig /d/kubeconfig delete -n new configmap/code service/web; \
                      kubectl --kubeconfig /d/kubeconfig delete namespace/new";
        assert_eq!(command(Path::new("/d/kubeconfig"), &all), expect);
    }
}
