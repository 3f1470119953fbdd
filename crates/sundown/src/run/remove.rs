//! Deletes what a run applied beside its job, each very object and no other of its name: all are deleted before any is
//! waited for, since one may wait for another. What is told about it is decided elsewhere.

use std::collections::BTreeMap;
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
use crate::kubectl::Kubectl;
use crate::objects;

/// How long an object may wait for finalizers that nothing of Sundown removes.
const OTHERS_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a server that is overloaded or has a trouble of its own is asked again.
const TROUBLE_TIME_MAX: Duration = Duration::from_secs(30);
const GONE_INTERVAL: Duration = Duration::from_millis(50);
/// How long to wait before a server that does not answer is asked again.
const AWAY_PAUSE: Duration = Duration::from_millis(500);
/// News that wait to be read.
const NEWS_MAX: usize = 16;

/// A removal that is under way, for as long as this lives.
#[derive(Debug)]
pub(super) struct Removal {
    /// What is waited for.
    left: Vec<Applied>,
    /// Each of them as it was seen last, by its path.
    seen: BTreeMap<String, Value>,
    failed: Vec<Undeleted>,
    news: mpsc::Receiver<(String, News)>,
    _tasks: JoinSet<()>,
}

/// An object that could not be deleted, or does not go.
#[derive(Debug, Clone)]
pub(super) struct Undeleted {
    pub(super) applied: Applied,
    pub(super) why: String,
}

/// What became of one object.
#[derive(Debug, Clone, PartialEq)]
enum News {
    /// It is still there.
    Seen(Value),
    Gone,
    /// It is waited for no longer.
    Failed(String),
}

/// What goes with `--rm` beside the job, in the order in which it goes, and what stays: what was there before this
/// run as it is, since others may use it; and of the whole server what this run only changed, because others
/// may live in such a namespace.
pub(super) fn split(applied: &[Applied], job: Option<&str>) -> (Vec<Applied>, Vec<Applied>) {
    let beside = applied.iter().filter(|it| Some(uid(&it.value)) != job);
    beside.rev().cloned().partition(|it| match it.how {
        How::Created => true,
        How::Configured => it.namespace.is_some(),
        How::Unchanged => false,
    })
}

/// The command that removes these.
pub(super) fn command(kubectl: &Kubectl, all: &[Applied]) -> String {
    let mut by_namespace: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for it in all {
        let namespace = it.namespace.as_deref().unwrap_or_default();
        by_namespace.entry(namespace).or_default().push(&it.object);
    }
    // A namespace goes after what is in it.
    let commands = by_namespace.into_iter().rev().map(|(namespace, names)| {
        let namespace = Some(namespace).filter(|it| !it.is_empty());
        kubectl.command("delete", namespace, &names)
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
            seen: BTreeMap::new(),
            failed: Vec::new(),
            news,
            _tasks: tasks,
        }
    }

    /// What is waited for.
    pub(super) fn left(&self) -> &[Applied] {
        &self.left
    }

    /// What is still there and is waited for no longer.
    pub(super) fn failed(&self) -> &[Undeleted] {
        &self.failed
    }

    /// What is waited for and was seen, as it was seen last.
    pub(super) fn seen(&self) -> impl Iterator<Item = (&Applied, &Value)> {
        let all = self.left.iter();
        all.filter_map(|it| Some((it, self.seen.get(&it.path)?)))
    }

    /// Returns when something has changed: an object that does not go, or None. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Undeleted> {
        let Some((path, news)) = self.news.recv().await else {
            // The task has come to its end, and all of it was told.
            return std::future::pending().await;
        };
        self.take(&path, news)
    }

    fn take(&mut self, path: &str, news: News) -> Option<Undeleted> {
        if let News::Seen(object) = news {
            self.seen.insert(path.to_owned(), object);
            return None;
        }
        let at = self.left.iter().position(|it| it.path == path)?;
        let applied = self.left.remove(at);
        self.seen.remove(path);
        let News::Failed(why) = news else {
            return None;
        };
        let failed = Undeleted { applied, why };
        self.failed.push(failed.clone());
        Some(failed)
    }
}

/// What is told at the end about what could not be deleted.
pub(super) fn complaint(failed: &[Undeleted]) -> Option<Complaint> {
    let names: Vec<&str> = failed.iter().map(|it| &*it.applied.object).collect();
    let complaint = Complaint::new(format!("cannot delete {}", names.join(", ")));
    let whys = failed.iter().map(|it| &*it.why);
    let complaint = whys.fold(complaint, Complaint::because_of);
    (!failed.is_empty()).then_some(complaint)
}

/// Those that could not be deleted, as they were applied.
pub(super) fn undeleted(failed: &[Undeleted]) -> Vec<Applied> {
    failed.iter().map(|it| it.applied.clone()).collect()
}

/// Asks for all of them in turn, until none is left to be waited for.
async fn remove_all(
    client: watch::Receiver<Client>,
    all: Vec<Applied>,
    tell: mpsc::Sender<(String, News)>,
) {
    let mut all: Vec<Going> = all.into_iter().map(Going::new).collect();
    while !all.is_empty() {
        let mut pause = GONE_INTERVAL;
        let mut left = Vec::new();
        for mut going in all {
            let current = client.borrow().clone();
            let news = match going.ask(&current).await {
                Ok(news) => news,
                Err(error) => {
                    let code = objects::code(&error);
                    let next = after(code, going.since.elapsed());
                    if code.is_none() {
                        // Nobody was there who could have done anything.
                        going.since = Instant::now();
                    }
                    pause = AWAY_PAUSE;
                    (next == After::GiveUp).then(|| News::Failed(error.to_string()))
                }
            };
            let is_left = matches!(news, None | Some(News::Seen(_)));
            if let Some(news) = news
                && tell.send((going.it.path.clone(), news)).await.is_err()
            {
                return;
            }
            left.extend(is_left.then_some(going));
        }
        all = left;
        sleep(pause).await;
    }
}

/// An object on its way out.
struct Going {
    it: Applied,
    is_deleted: bool,
    /// As it was seen last, and since when.
    before: Value,
    since: Instant,
}

impl Going {
    fn new(it: Applied) -> Self {
        Self {
            it,
            is_deleted: false,
            before: Value::Null,
            since: Instant::now(),
        }
    }

    /// Deletes it; once that is done, looks whether it is gone.
    async fn ask(&mut self, client: &Client) -> Result<Option<News>, kube::Error> {
        let own = uid(&self.it.value);
        if !self.is_deleted {
            delete(client, &self.it.path, own).await?;
            self.is_deleted = true;
            self.since = Instant::now();
            return Ok(None);
        }
        let found = objects::send(client, Method::GET, &self.it.path, &Value::Null).await;
        let found = match found {
            Ok(found) if uid(&found) == own => found,
            Ok(_) => return Ok(Some(News::Gone)),
            Err(error) if objects::is_missing(&error) => return Ok(Some(News::Gone)),
            Err(error) => return Err(error),
        };
        if found != self.before {
            self.since = Instant::now();
            self.before.clone_from(&found);
            return Ok(Some(News::Seen(found)));
        }
        let wait = Wait::of(&found);
        let is_over = wait.is_for_others() && self.since.elapsed() > OTHERS_TIME_MAX;
        Ok(is_over.then(|| News::Failed(wait.in_words(&self.it.object))))
    }
}

/// What follows when the server did not do what it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Again,
    GiveUp,
}

/// Decides by the code of its answer and by how long it was asked. Without an answer the control plane is on its way back.
fn after(code: Option<u16>, asked: Duration) -> After {
    match code {
        None => After::Again,
        Some(429 | 500..) if asked < TROUBLE_TIME_MAX => After::Again,
        Some(_) => After::GiveUp,
    }
}

/// Deletes this very object after all that it owns, however often the control plane goes away meanwhile.
pub(super) async fn delete_until_answered(
    client: watch::Receiver<Client>,
    path: String,
    uid: String,
) -> Result<(), kube::Error> {
    let begun_at = Instant::now();
    loop {
        let current = client.borrow().clone();
        match delete(&current, &path, &uid).await {
            Ok(()) => return Ok(()),
            Err(error) => match after(objects::code(&error), begun_at.elapsed()) {
                After::Again => sleep(AWAY_PAUSE).await,
                After::GiveUp => return Err(error),
            },
        }
    }
}

/// Deletes this very object after all that it owns. Not finding it is success.
async fn delete(client: &Client, path: &str, uid: &str) -> Result<(), kube::Error> {
    let foreground = json!({ "propagationPolicy": "Foreground" });
    objects::delete(client, path, uid, &foreground).await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn applied(name: &str, namespace: Option<&str>, how: How) -> Applied {
        Applied {
            object: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            how,
            path: format!("/{name}"),
            value: json!({"metadata": {"uid": name}}),
        }
    }

    fn names(all: &[Applied]) -> Vec<&str> {
        all.iter().map(|it| &*it.object).collect()
    }

    /// Of two runs that share a `ConfigMap`, the first to end deleted it under the other.
    #[test]
    fn what_was_applied_last_goes_first_and_what_was_there_before_stays() {
        let all = [
            applied("namespace/old", None, How::Unchanged),
            applied("namespace/changed", None, How::Configured),
            applied("namespace/new", None, How::Created),
            applied("configmap/shared", Some("new"), How::Unchanged),
            applied("configmap/changed", Some("new"), How::Configured),
            applied("configmap/code", Some("new"), How::Created),
            applied("job/j", Some("new"), How::Created),
        ];
        let (go, stay) = split(&all, Some("job/j"));
        let expect = ["configmap/code", "configmap/changed", "namespace/new"];
        assert_eq!(names(&go), expect);
        let expect = ["configmap/shared", "namespace/changed", "namespace/old"];
        assert_eq!(names(&stay), expect);
        assert_eq!(split(&all, None).0.len(), 4);
    }

    /// The first that could not be deleted left the others undeleted and unnamed.
    #[test]
    fn an_object_that_does_not_go_keeps_no_other() {
        let all = ["a", "b", "c"].map(|it| applied(it, Some("n"), How::Created));
        let mut removal = Removal {
            left: all.to_vec(),
            seen: BTreeMap::new(),
            failed: Vec::new(),
            news: mpsc::channel(1).1,
            _tasks: JoinSet::new(),
        };
        assert!(removal.take("/b", News::Seen(json!({}))).is_none());
        assert_eq!(removal.seen().count(), 1);
        let failed = removal.take("/b", News::Failed("held".to_owned()));
        assert_eq!(failed.map(|it| it.why).as_deref(), Some("held"));
        assert_eq!(names(removal.left()), ["a", "c"]);
        assert_eq!(removal.seen().count(), 0);
        assert!(removal.take("/a", News::Gone).is_none());
        assert!(removal.take("/c", News::Gone).is_none());
        assert!(removal.left().is_empty());
        let told = complaint(removal.failed()).unwrap().text();
        assert_eq!(told, "error: cannot delete b\n  = cause: held\n");
        assert!(complaint(&[]).is_none());
    }

    #[test]
    fn a_server_in_trouble_is_asked_again_for_a_while_and_a_refusal_counts() {
        let (now, later) = (Duration::ZERO, TROUBLE_TIME_MAX);
        for (code, asked, expect) in [
            (None, later, After::Again),
            (Some(429), now, After::Again),
            (Some(500), now, After::Again),
            (Some(503), now, After::Again),
            (Some(503), later, After::GiveUp),
            (Some(403), now, After::GiveUp),
            (Some(409), now, After::GiveUp),
        ] {
            assert_eq!(after(code, asked), expect, "{code:?} {asked:?}");
        }
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
        let kubectl = Kubectl::of_data(Path::new("/d"));
        assert_eq!(command(&kubectl, &all), expect);
    }
}
