//! A panic is put into each sort of effect in turn, while one of every other sort is under way.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use sundown_engine::{Effect, EffectId, Input, broken};
use sundown_model::{
    Deed, DeedOutcome, Draft, Form, Object, ObjectKey, Part, Patch, Propagation, Question, Report,
    Resource, ResourceType, Rv, Seen, Verb, What, Why, Write, node, ray,
};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{Effects, Outbox};
use crate::counters::Counters;
use crate::handle::Message;
use crate::requests::Requests;
use crate::{ListBarrier, NodePort, Ports, RayPort};

/// How long anything here may take. Reached only by a failure.
const BOUND: Duration = Duration::from_secs(30);

/// What names the effect that panics; and all others.
const VICTIM: &str = "victims";
const OTHER: &str = "others";

fn panics(why: &'static str) -> ! {
    std::panic::panic_any(why)
}

/// A server that knows nothing, and panics when it is asked about a victim.
fn client(discovery_panics: bool) -> Client {
    let service = tower::service_fn(move |request: http::Request<Body>| async move {
        let path = request.uri().path();
        if path.contains(VICTIM) || (path == "/api" && discovery_panics) {
            panics("injected into a request");
        }
        let mut answer = http::Response::new(Full::from(&b"{}"[..]));
        *answer.status_mut() = http::StatusCode::NOT_FOUND;
        Ok::<_, Infallible>(answer)
    });
    Client::new(service, "default")
}

/// Answers as nobody does, and panics when it is about a victim.
#[derive(Debug)]
struct Odd;

impl Odd {
    /// Before there is a future: that is the effect's panic, too.
    fn is_asked(about: &dyn std::fmt::Debug) {
        if format!("{about:?}").contains(VICTIM) {
            panics("injected into a question");
        }
    }

    async fn is_told(about: &ObjectKey) -> DeedOutcome {
        tokio::task::yield_now().await;
        if format!("{about:?}").contains(VICTIM) {
            panics("injected into a deed");
        }
        DeedOutcome::Done
    }
}

impl RayPort for Odd {
    fn ask<'a>(
        &'a self,
        query: &'a ray::Query,
    ) -> BoxFuture<'a, Result<ray::Answer, ray::Failure>> {
        Self::is_asked(query);
        Box::pin(async { Err(ray::Failure::unreachable("away".to_owned())) })
    }

    fn carry_out<'a>(
        &'a self,
        about: &'a ObjectKey,
        _: &'a ray::Call,
    ) -> BoxFuture<'a, DeedOutcome> {
        Box::pin(Self::is_told(about))
    }
}

impl NodePort for Odd {
    fn ask<'a>(&'a self, query: &'a node::Query) -> BoxFuture<'a, Result<node::Answer, String>> {
        Self::is_asked(query);
        Box::pin(async { Err("away".to_owned()) })
    }

    fn carry_out<'a>(
        &'a self,
        about: &'a ObjectKey,
        _: &'a node::Call,
    ) -> BoxFuture<'a, DeedOutcome> {
        Box::pin(Self::is_told(about))
    }

    fn reports(&self) -> BoxStream<'static, node::Report> {
        stream::pending().boxed()
    }
}

fn odd() -> Ports {
    Ports::default().ray(Arc::new(Odd)).node(Arc::new(Odd))
}

fn ty(plural: &str) -> Arc<ResourceType> {
    Arc::new(ResourceType {
        resource: Resource::new("", plural),
        version: "v1".into(),
        served: ["v1".into()].into(),
        kind: "Thing".into(),
        aliases: [].into(),
        namespaced: true,
        verbs: [Verb::Get, Verb::List, Verb::Watch].into(),
    })
}

fn seen(resource: &Resource) -> Seen {
    let metadata = json!({
        "name": "a", "namespace": "here", "uid": "u", "resourceVersion": "5",
    });
    let json = json!({ "metadata": metadata });
    let object = Object::read(resource, &json, &Form::metadata());
    object.expect("a whole object").seen()
}

/// The sort of effect that comes after another, about `name`. A new sort does not compile until it
/// stands here.
#[expect(clippy::too_many_lines, reason = "one list of all sorts")]
fn following(before: Option<&Effect>, number: usize, name: &str) -> Option<Effect> {
    let id: EffectId = serde_json::from_value(json!(number)).expect("ids are numbers");
    let ty = ty(name);
    let (form, at) = (Form::metadata(), seen(&ty.resource));
    let key = at.key().clone();
    let by = "tests".to_owned();
    let why = Arc::new(Why {
        code: "Tested".into(),
        sentence: "a test wants it".to_owned(),
    });
    let write = |write| Effect::Write {
        id,
        ty: Arc::clone(&ty),
        form: Form::metadata(),
        by: "tests".to_owned(),
        why: Arc::clone(&why),
        write,
    };
    let dashboard = ray::Dashboard(name.into());
    let run = node::Run {
        pod: name.into(),
        container: "c".into(),
        attempt: 0,
    };
    let ask = |question| Effect::Ask { id, question };
    let next = match before {
        None => Effect::Discover { id },
        Some(Effect::Discover { .. }) => Effect::List {
            id,
            ty,
            form,
            next: None,
        },
        Some(Effect::List { .. }) => Effect::Watch {
            id,
            ty,
            form,
            from: Rv::new(5),
        },
        // Carried out on the spot, without a task.
        Some(Effect::Watch { .. } | Effect::Unwatch { .. }) => Effect::Get { id, ty, form, key },
        Some(Effect::Get { .. }) => Effect::Barrier {
            id,
            types: vec![ty],
        },
        Some(Effect::Barrier { .. }) => write(Write::Create(Arc::new(Draft::new(key, json!({}))))),
        Some(Effect::Write { write: before, .. }) => match before {
            Write::Create(_) => write(Write::Patch {
                at,
                part: Part::Status,
                patch: Patch::Merge(json!({})),
            }),
            Write::Patch { .. } => write(Write::Delete {
                at,
                how: Propagation::Background,
            }),
            Write::Delete { .. } => write(Write::Finish { at }),
            Write::Finish { .. } => ask(Question::Ray(ray::Query::Session { at: dashboard })),
        },
        Some(Effect::Ask { question, .. }) => match question {
            Question::Ray(_) => ask(Question::Node(node::Query::Image { image: name.into() })),
            Question::Node(node::Query::Image { .. }) => ask(Question::Node(node::Query::Probe {
                run,
                probe: node::Probe {
                    how: node::ProbeKind::Tcp { port: 1 },
                    timeout_seconds: 1,
                },
            })),
            Question::Node(node::Query::Probe { .. }) => Effect::Do {
                id,
                by,
                why,
                deed: Deed {
                    about: key,
                    what: What::Ray(ray::Call::Stop {
                        at: dashboard,
                        session: None,
                        submission_id: "s".into(),
                    }),
                },
            },
        },
        Some(Effect::Do { deed, .. }) => match deed.what {
            What::Ray(_) => Effect::Do {
                id,
                by,
                why,
                deed: Deed {
                    about: key,
                    what: What::Node(node::Call::Pull { image: name.into() }),
                },
            },
            What::Node(_) => return None,
        },
    };
    Some(next)
}

/// One effect of each sort; the one of this number is the victim.
fn one_of_each(victim: usize) -> Vec<Effect> {
    let mut all: Vec<Effect> = Vec::new();
    loop {
        let number = all.len();
        let name = if number == victim { VICTIM } else { OTHER };
        match following(all.last(), number, name) {
            Some(effect) => all.push(effect),
            None => return all,
        }
    }
}

fn answered(input: &Input) -> Option<EffectId> {
    match input {
        Input::Lead(_) | Input::Brake(_) | Input::Reported(_) => None,
        Input::Discovered { id, .. }
        | Input::Listed { id, .. }
        | Input::Watched { id, .. }
        | Input::Got { id, .. }
        | Input::Positions { id, .. }
        | Input::Wrote { id, .. }
        | Input::Answered { id, .. }
        | Input::Done { id, .. } => Some(*id),
    }
}

struct Bench {
    effects: Effects,
    inbox: mpsc::Receiver<Message>,
    counters: Arc<Counters>,
}

fn bench(client: Client, ports: Ports) -> Bench {
    let (sender, inbox) = mpsc::channel(64);
    let counters = Arc::<Counters>::default();
    let requests = Requests::new(client, Arc::clone(&counters));
    let barrier = Arc::new(ListBarrier::new(requests.clone()));
    Bench {
        effects: Effects::new(requests, barrier, ports, Outbox::new(sender)),
        inbox,
        counters,
    }
}

impl Bench {
    async fn heard(&mut self) -> anyhow::Result<Input> {
        match timeout(BOUND, self.inbox.recv()).await? {
            Some(Message::Input(input)) => Ok(input),
            other => anyhow::bail!("no input but {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_panic_in_any_effect_costs_that_effect_only() -> anyhow::Result<()> {
    let sorts = one_of_each(0).len();
    for victim in 0..sorts {
        let effects = one_of_each(victim);
        let discovery_panics = matches!(effects[victim], Effect::Discover { .. });
        let mut bench = bench(client(discovery_panics), odd());
        let what = effects[victim].clone();
        for effect in effects.iter().cloned() {
            bench.effects.start(effect);
        }
        let told = timeout(BOUND, bench.effects.broken()).await?;
        assert_eq!(Some(told), broken(&what), "{what:?}");
        let mut others: BTreeSet<_> = effects.iter().map(Effect::id).collect();
        others.remove(&what.id());
        while !others.is_empty() {
            let input = bench.heard().await?;
            let id = answered(&input);
            let is_other = id.is_some_and(|id| others.remove(&id));
            assert!(is_other, "{input:?} while {what:?} panics");
        }
        timeout(BOUND, bench.effects.drain()).await?;
        assert_eq!(bench.counters.counts().panicked, 1, "{what:?}");
        assert!(bench.effects.by_task.is_empty(), "nothing is left behind");
        assert!(bench.effects.watches.is_empty(), "nothing is left behind");
    }
    Ok(())
}

/// Panics the first time that it is listened to.
#[derive(Debug, Default)]
struct Stumbling(std::sync::atomic::AtomicU32);

impl NodePort for Stumbling {
    fn ask<'a>(&'a self, _: &'a node::Query) -> BoxFuture<'a, Result<node::Answer, String>> {
        Box::pin(std::future::pending())
    }

    fn carry_out<'a>(&'a self, _: &'a ObjectKey, _: &'a node::Call) -> BoxFuture<'a, DeedOutcome> {
        Box::pin(std::future::pending())
    }

    fn reports(&self) -> BoxStream<'static, node::Report> {
        let before = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let first = stream::once(async move {
            if before == 0 {
                panics("injected into a report");
            }
            node::Report::All(Vec::new())
        });
        first.chain(stream::pending()).boxed()
    }
}

#[tokio::test]
async fn a_panic_of_the_teller_is_told_and_it_is_listened_to_again() -> anyhow::Result<()> {
    let mut bench = bench(
        client(false),
        Ports::default().node(Arc::new(Stumbling::default())),
    );
    bench.effects.listen();
    let first = bench.heard().await?;
    assert!(
        matches!(
            first,
            Input::Reported(Report::Node(node::Report::Away { .. }))
        ),
        "{first:?}"
    );
    let next = bench.heard().await?;
    let all = Report::Node(node::Report::All(Vec::new()));
    assert_eq!(next, Input::Reported(all));
    assert_eq!(bench.counters.counts().panicked, 1);
    Ok(())
}

/// The key of an object, so that nothing here is about another one.
#[test]
fn one_effect_of_every_sort_is_about_the_victim_or_another() {
    let all = one_of_each(3);
    let names: BTreeSet<_> = all.iter().map(Effect::name).collect();
    assert_eq!(names.len(), 8, "all but the end of a watch: {names:?}");
    let key = ObjectKey::namespaced(&Resource::new("", VICTIM), "here", "a");
    assert!(matches!(&all[3], Effect::Get { key: it, .. } if *it == key));
}
