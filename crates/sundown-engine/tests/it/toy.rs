//! A controller that does what the spec of its toys says, so that a test can ask for any decision.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_model::{
    Action, Cache, Change, Controller, Decision, Deed, DeedOutcome, Draft, Explain, Facts, Grant,
    Interest, KnownKind, Need, Note, Object, ObjectKey, Part, Patch, Permit, Port, Propagation,
    Question, Report, Resource, Scope, Sight, Uid, What, Write, node, ray,
};

pub(crate) const TOY: KnownKind = KnownKind {
    group: "toys.io",
    version: "v1",
    kind: "Toy",
    plural: "toys",
};

pub(crate) const BOX: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "Box",
    plural: "boxes",
};

/// A kind that only a custom resource definition brings.
pub(crate) const GADGET: KnownKind = KnownKind {
    group: "later.io",
    version: "v1",
    kind: "Gadget",
    plural: "gadgets",
};

/// Obeys the spec of each toy: `asks`, `waits`, `looks`, `dials`, `wakes`, `again`, `tells`, `creates`, `patches`,
/// `binds`, `makes`, `pulls`, `stops` and `doomed`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Toys {
    /// Followed change by change, for the audit.
    known: BTreeSet<Uid>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    Gone,
    Deleting,
    Asks,
    Waits,
    Early,
    Obeys,
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::Deleting => "Deleting",
            Self::Asks => "Asks",
            Self::Waits => "Waits",
            Self::Early => "Early",
            Self::Obeys => "Obeys",
        }
    }

    fn sentence(&self) -> String {
        format!("the toy is in the case {}", self.code())
    }
}

impl Controller for Toys {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = "toys";
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(TOY),
            fields: &["/spec"],
        },
        Interest {
            scope: Scope::One(BOX),
            fields: &[],
        },
        Interest {
            scope: Scope::One(GADGET),
            fields: &[],
        },
    ];
    const GRANTS: &'static [Grant] = &[Grant {
        group: Some("toys.io"),
        plural: Some("toys"),
        permits: &[
            Permit::Create,
            Permit::Delete,
            Permit::Patch(Part::Main),
            Permit::Patch(Part::Binding),
        ],
    }];

    const PORTS: &'static [Port] = &[Port::Node];

    fn observe(&mut self, change: &Change, _: &Cache, touched: &mut BTreeSet<ObjectKey>) {
        let object = match change {
            Change::Added(object) | Change::Updated { new: object, .. } => {
                self.known.insert(object.uid().clone());
                object
            }
            Change::Deleted(object) | Change::Forgotten(object) => {
                self.known.remove(object.uid());
                object
            }
            Change::Report(Report::Node(node::Report::Image { image, .. })) => {
                let key = ObjectKey::namespaced(&TOY.resource(), "here", image);
                touched.insert(key);
                return;
            }
            Change::Read(_)
            | Change::Refused(_)
            | Change::Freshness(_)
            | Change::Catalog
            | Change::Report(_)
            | Change::Answered(_) => return,
        };
        if object.key().resource.is(&TOY) {
            touched.insert(object.key().clone());
        }
    }

    fn decide(&self, key: &ObjectKey, sight: Sight<'_>) -> Decision<Reason> {
        let Some(toy) = sight.cache.get(key) else {
            return Decision::idle(Reason::Gone);
        };
        if toy.is_deleting() {
            return Decision::idle(Reason::Deleting);
        }
        if let Some(need) = missing_answer(toy, sight.cache, sight.facts) {
            return Decision::need(vec![need], Reason::Asks);
        }
        if let Some(need) = missing_freshness(toy, sight.cache, sight.facts) {
            return Decision::need(vec![need], Reason::Waits);
        }
        let asks = missing_image(toy, sight.cache, sight.facts);
        let asks = asks.or_else(|| missing_session(toy, sight.cache, sight.facts));
        if let Some(need) = asks {
            return Decision::need(vec![need], Reason::Asks);
        }
        if let Some(at) = instant(toy, "/spec/wakes").filter(|at| sight.now < *at) {
            return Decision::wake_at(at, Reason::Early);
        }
        let again_at = instant(toy, "/spec/again").filter(|at| sight.now < *at);
        Decision {
            wake_at: again_at,
            ..Decision::act_all(actions(toy, sight.cache, sight.facts), Reason::Obeys)
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        vec![object.key().clone()]
    }

    fn audit(&self, cache: &Cache) -> Result<(), String> {
        let anew: BTreeSet<_> = cache.iter().map(|object| object.uid().clone()).collect();
        if self.known == anew {
            Ok(())
        } else {
            Err(format!("followed {:?}, made anew {anew:?}", self.known))
        }
    }
}

/// `asks: name`: the box of that name has to be read after the toy was seen.
fn missing_answer(toy: &Object, cache: &Cache, facts: &Facts) -> Option<Need> {
    let name = toy.field("/spec/asks")?.as_str()?;
    let key = ObjectKey::namespaced(&BOX.resource(), toy.key().namespace_str(), name);
    let since = cache.seen_step(toy.key())?;
    let is_answered = facts.live(&key).is_some_and(|fact| fact.asked > since);
    (!is_answered).then_some(Need::Live(key))
}

/// `waits: [resource]`: these have to be caught up with the moment when the toy was seen.
fn missing_freshness(toy: &Object, cache: &Cache, facts: &Facts) -> Option<Need> {
    let names = toy.field("/spec/waits")?.as_array()?.iter();
    let resources = names.filter_map(|name| serde_json::from_value::<Resource>(name.clone()).ok());
    let since = cache.seen_step(toy.key())?;
    let stale: Vec<_> = resources
        .filter(|resource| !facts.is_fresh(resource, since))
        .collect();
    (!stale.is_empty()).then_some(Need::Barrier(stale))
}

/// `looks: image`: the node has to be asked about an image after the toy was seen.
fn missing_image(toy: &Object, cache: &Cache, facts: &Facts) -> Option<Need> {
    let image = toy.field("/spec/looks")?.as_str()?.into();
    let query = node::Query::Image { image };
    is_open(toy, &Question::Node(query.clone()), cache, facts).then_some(Need::Node(query))
}

/// `dials: address`: a dashboard has to be asked for its session after the toy was seen.
fn missing_session(toy: &Object, cache: &Cache, facts: &Facts) -> Option<Need> {
    let at = ray::Dashboard(toy.field("/spec/dials")?.as_str()?.into());
    let query = ray::Query::Session { at };
    is_open(toy, &Question::Ray(query.clone()), cache, facts).then_some(Need::Ray(query))
}

/// Whether a question was not answered since the toy was seen.
fn is_open(toy: &Object, question: &Question, cache: &Cache, facts: &Facts) -> bool {
    let since = cache.seen_step(toy.key()).unwrap_or_default();
    facts.reply(question).is_none_or(|fact| fact.asked <= since)
}

/// `pulls: image`: the node shall have it. `stops: job`: a toy may not speak to Ray.
fn deeds(toy: &Object, facts: &Facts) -> impl Iterator<Item = Action> {
    let text = |pointer| toy.field(pointer).and_then(Value::as_str);
    let pull = text("/spec/pulls").map(|image| {
        What::Node(node::Call::Pull {
            image: image.into(),
        })
    });
    let stop = text("/spec/stops").map(|job| {
        let at = ray::Dashboard("ray:8265".into());
        let submission_id = job.into();
        What::Ray(ray::Call::Stop {
            at,
            session: None,
            submission_id,
        })
    });
    let open = |what: &What| {
        let fact = facts.deed(&what.subject());
        fact.is_none_or(|fact| fact.outcome != DeedOutcome::Done)
    };
    let about = toy.key().clone();
    let deeds = pull.into_iter().chain(stop).filter(open);
    deeds
        .map(move |what| {
            let about = about.clone();
            Action::Do(Deed { about, what })
        })
        .collect::<Vec<_>>()
        .into_iter()
}

fn instant(toy: &Object, pointer: &str) -> Option<Timestamp> {
    toy.field(pointer)?.as_str()?.parse().ok()
}

fn word(toy: &Object, reason: &str, message: &str) -> Note {
    Note {
        about: toy.key().clone(),
        uid: toy.uid().clone(),
        warning: true,
        reason: reason.into(),
        message: message.to_owned(),
        quote: String::new(),
    }
}

/// `makes: name`: a toy of that name shall be there, and is told about when it is; until then, why not.
fn make(toy: &Object, cache: &Cache, facts: &Facts) -> Vec<Action> {
    let name = toy.field("/spec/makes").and_then(Value::as_str);
    let key = name.map(|name| ObjectKey::namespaced(&TOY.resource(), "here", name));
    let Some(key) = key.filter(|key| cache.get(key).is_none()) else {
        return Vec::new();
    };
    let refusal = facts.refusal(&key);
    let refusal = refusal.map(|it| Action::Tell(word(toy, "ToyRefused", &it.message)));
    let owner = json!({
        "apiVersion": "toys.io/v1", "kind": "Toy", "name": &*toy.key().name,
        "uid": toy.uid().as_str(), "controller": true,
    });
    let metadata = json!({ "name": &*key.name, "namespace": "here", "ownerReferences": [owner] });
    let body = json!({ "apiVersion": "toys.io/v1", "kind": "Toy", "metadata": metadata });
    let told = Some(word(toy, "ToyMade", "made"));
    let draft = Draft { key, body, told };
    let makes = Action::Api(Write::Create(draft.into()));
    [makes].into_iter().chain(refusal).collect()
}

fn actions(toy: &Object, cache: &Cache, facts: &Facts) -> Vec<Action> {
    let mut actions: Vec<Action> = deeds(toy, facts).collect();
    actions.extend(make(toy, cache, facts));
    if let Some(message) = toy.field("/spec/tells").and_then(Value::as_str) {
        actions.push(Action::Tell(word(toy, "ToyTold", message)));
    }
    if let Some(name) = toy.field("/spec/creates").and_then(Value::as_str) {
        let key = ObjectKey::namespaced(&BOX.resource(), "here", name);
        let body = json!({ "apiVersion": "v1", "kind": "Box", "metadata": { "name": name } });
        actions.push(Action::Api(Write::Create(Draft::new(key, body).into())));
    }
    for (pointer, part) in [
        ("/spec/patches", Part::Main),
        ("/spec/binds", Part::Binding),
    ] {
        actions.extend(toy.field(pointer).map(|patch| {
            Action::Api(Write::Patch {
                at: toy.seen(),
                part,
                patch: Patch::Merge(patch.clone()),
            })
        }));
    }
    if toy.field("/spec/doomed") == Some(&Value::Bool(true)) {
        actions.push(Action::Api(Write::Delete {
            at: toy.seen(),
            how: Propagation::Background,
        }));
    }
    actions
}
