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
use super::patience::{self, Around, OTHERS_TIME_MAX};
use super::snapshot::uid;
use super::waits::Wait;
use crate::complaint::Complaint;
use crate::kubectl::Kubectl;
use crate::objects;

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
    /// Since when only others can let an object go, by its path.
    held_at: BTreeMap<String, Instant>,
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

impl Undeleted {
    /// For people.
    pub(super) fn in_words(&self) -> String {
        format!("not deleted: {}: {}", self.applied.object, self.why)
    }
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
            held_at: BTreeMap::new(),
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
        let News::Failed(why) = news else {
            self.left.remove(at);
            self.seen.remove(path);
            return None;
        };
        let applied = self.left.remove(at);
        let failed = Undeleted { applied, why };
        self.failed.push(failed.clone());
        Some(failed)
    }

    /// Gives up what only others could let go for too long, and gives those objects. To be called as time goes on.
    pub(super) fn give_up(&mut self, around: Around<'_>, now: Instant) -> Vec<Undeleted> {
        let left: Vec<(&Applied, &Value)> = self.seen().collect();
        let failed = self.failed.iter();
        let given_up: Vec<&Value> = failed
            .filter_map(|it| self.seen.get(&it.applied.path))
            .collect();
        let held = patience::held(&left, &given_up, around);
        self.held_at.retain(|path, _| held.contains(path));
        for path in held {
            self.held_at.entry(path).or_insert(now);
        }
        let is_over = |at: &Instant| now.saturating_duration_since(*at) >= OTHERS_TIME_MAX;
        let over = self.held_at.iter().filter(|(_, at)| is_over(at));
        let over: Vec<String> = over.map(|(path, _)| path.clone()).collect();
        let failed = over.into_iter().filter_map(|path| {
            let it = self.left.iter().find(|it| it.path == path)?;
            let why = Wait::of(self.seen.get(&path)?).in_words(&it.object);
            self.take(&path, News::Failed(why))
        });
        failed.collect()
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
            let asked = going.ask(&current).await;
            let code = asked.as_ref().err().and_then(objects::code);
            if code.is_none() {
                // It was answered, or no server was there that could be in trouble.
                going.well_at = Instant::now();
            }
            let news = match asked {
                Ok(news) => news,
                Err(error) => {
                    let next = after(code, going.well_at.elapsed());
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
    /// As it was seen last.
    before: Value,
    /// When the server was not in trouble last.
    well_at: Instant,
}

impl Going {
    fn new(it: Applied) -> Self {
        Self {
            it,
            is_deleted: false,
            before: Value::Null,
            well_at: Instant::now(),
        }
    }

    /// Deletes it; once that is done, looks whether it is gone.
    async fn ask(&mut self, client: &Client) -> Result<Option<News>, kube::Error> {
        let own = uid(&self.it.value);
        if !self.is_deleted {
            delete(client, &self.it.path, own).await?;
            self.is_deleted = true;
            return Ok(None);
        }
        let found = objects::send(client, Method::GET, &self.it.path, &Value::Null).await;
        let found = match found {
            Ok(found) if uid(&found) == own => found,
            Ok(_) => return Ok(Some(News::Gone)),
            Err(error) if objects::is_missing(&error) => return Ok(Some(News::Gone)),
            Err(error) => return Err(error),
        };
        if found == self.before {
            return Ok(None);
        }
        self.before.clone_from(&found);
        Ok(Some(News::Seen(found)))
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

    fn removal(all: &[Applied]) -> Removal {
        Removal {
            left: all.to_vec(),
            seen: BTreeMap::new(),
            held_at: BTreeMap::new(),
            failed: Vec::new(),
            news: mpsc::channel(1).1,
            _tasks: JoinSet::new(),
        }
    }

    /// Others who wrote its status every 20 seconds were waited for without end.
    #[test]
    fn an_object_that_others_hold_is_given_up_however_often_they_change_it() {
        let mut removal = removal(&[applied("a", Some("n"), How::Created)]);
        let begun_at = Instant::now();
        let seen = |number: u64, finalizers: &[&str]| {
            let metadata = json!({"deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": finalizers, "resourceVersion": number.to_string()});
            News::Seen(json!({ "metadata": metadata }))
        };
        let mut at = |second: u64, finalizers: &[&str]| {
            removal.take("/a", seen(second, finalizers));
            let now = begun_at + Duration::from_secs(second);
            let failed = removal.give_up(Around::default(), now);
            failed.into_iter().map(|it| it.why).collect::<Vec<_>>()
        };
        let none = Vec::<String>::new();
        assert_eq!(at(0, &["foregroundDeletion"]), none);
        assert_eq!(at(10, &["x/y"]), none);
        assert_eq!(at(30, &["x/y"]), none);
        assert_eq!(at(39, &["x/y"]), none);
        let why = "waiting for finalizer x/y of a to be removed";
        assert_eq!(at(40, &["x/y"]), [why]);
        assert_eq!(at(80, &["x/y"]), none);
        assert!(removal.left().is_empty());
    }

    /// The first that could not be deleted left the others undeleted and unnamed.
    #[test]
    fn an_object_that_does_not_go_keeps_no_other() {
        let all = ["a", "b", "c"].map(|it| applied(it, Some("n"), How::Created));
        let mut removal = removal(&all);
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
