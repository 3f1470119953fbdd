//! Famous bugs, put back in on purpose: each has to be found, or the simulator proves nothing.
//!
//! A mutation is a value that the world applies where requests leave and answers enter. A mutated
//! rule lives behind the feature `mutants`, which no shipped build has.

#[cfg(feature = "mutants")]
mod lapses;
#[cfg(feature = "mutants")]
mod rules;

use jiff::SignedDuration;
use serde_json::Value;
#[cfg(feature = "mutants")]
use sundown_api::{Commit, Method, Request};
use sundown_decide::ray_job::Limits;
#[cfg(feature = "mutants")]
use sundown_decide::ray_job::{Lapse, RayJobs};
use sundown_decide::{
    Crew, EventTtl, RayConfig, StorageProtection, of_ray, shipped, with_node, with_server,
};
#[cfg(feature = "mutants")]
use sundown_decide::{Namespaces, OwnerGc, Ttl, namespace, owner_gc, ttl};
use sundown_engine::{Config, Engine, wire};
use sundown_kinds::Settings;
use sundown_model::node::Call;
use sundown_model::{Controller, What};

use crate::fault::Variant;
use crate::node::Flaws;
use crate::scenario::Stage;

/// A bug of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// kubernetes#114603: the collector deletes without the revision that it judged.
    CollectWithoutRv,
    /// The TTL controller deletes without the revision that it judged.
    TtlWithoutRv,
    /// kubernetes#77988: a DELETE and an added finalizer race in the server.
    #[cfg(feature = "mutants")]
    DeleteRacesFinalizer,
    /// A write whose answer was lost is taken for one that was not made.
    LostReplyIsFailure,
    /// A submitter submits to whichever session is there: a head that came back runs the job again.
    FenceIgnored,
    /// The same over HTTP: whatever session was stored, the job goes to the one that is there.
    IntentIgnored,
    /// kuberay: a job that was told to stop counts as stopped.
    StopBelieved,
    /// kuberay#4087: whoever asks a dashboard does nothing else before it answers.
    DashboardBlocks,
    /// What runs already is started once more.
    StartsTwice,
    /// A polite signal kills.
    KillsAtOnce,
    /// What is to be removed from the node is only said to be.
    KeepsRemoved,
    /// Who connects to the node anew is told that all ended well.
    ForgetsCodes,
    /// A success of a Job becomes a number and stays on record, to become one again.
    CountsTwice,
    /// A pod of a Job is made again, under another name, when the answer to its creation was lost.
    CreatesAgain,
    /// Only a DELETE looks whether a claim is in use, and none comes after its last user is gone.
    ClaimsStay,
    /// Nobody lets Events expire.
    EventsStay,
    /// A write that failed is sent again at once.
    RetriesAtOnce,
    /// A rule of the collector that is wrong.
    #[cfg(feature = "mutants")]
    Collects(owner_gc::Lapse),
    /// A rule of before of the jobs of Ray.
    #[cfg(feature = "mutants")]
    Lapse(Lapse),
    /// A rule of namespaces that is wrong.
    #[cfg(feature = "mutants")]
    Empties(namespace::Lapse),
    /// A rule of the TTL that is wrong.
    #[cfg(feature = "mutants")]
    Hurries(ttl::Lapse),
    /// Events are followed under both of their names.
    #[cfg(feature = "mutants")]
    FollowsTwice,
    /// A rule of the engine that is wrong.
    #[cfg(feature = "mutants")]
    Fails(sundown_engine::Lapse),
}

/// What is said of a mutation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    pub name: &'static str,
    pub story: &'static str,
}

impl Mutation {
    /// All that this build knows.
    pub const ALL: &'static [Self] = &[
        Self::CollectWithoutRv,
        Self::TtlWithoutRv,
        #[cfg(feature = "mutants")]
        Self::DeleteRacesFinalizer,
        Self::LostReplyIsFailure,
        Self::FenceIgnored,
        Self::IntentIgnored,
        Self::StopBelieved,
        Self::DashboardBlocks,
        Self::StartsTwice,
        Self::KillsAtOnce,
        Self::KeepsRemoved,
        Self::ForgetsCodes,
        Self::CountsTwice,
        Self::CreatesAgain,
        Self::ClaimsStay,
        Self::EventsStay,
        Self::RetriesAtOnce,
        #[cfg(feature = "mutants")]
        Self::Collects(owner_gc::Lapse::UidOnly),
        #[cfg(feature = "mutants")]
        Self::Collects(owner_gc::Lapse::WaitsInCircles),
        #[cfg(feature = "mutants")]
        Self::Collects(owner_gc::Lapse::TrustsCatalog),
        #[cfg(feature = "mutants")]
        Self::Empties(namespace::Lapse::AnyOrder),
        #[cfg(feature = "mutants")]
        Self::Empties(namespace::Lapse::TrustsCatalog),
        #[cfg(feature = "mutants")]
        Self::Empties(namespace::Lapse::HeadOfLine),
        #[cfg(feature = "mutants")]
        Self::Empties(namespace::Lapse::TellsAtOnce),
        #[cfg(feature = "mutants")]
        Self::Hurries(ttl::Lapse::GuessesFinishTime),
        #[cfg(feature = "mutants")]
        Self::Hurries(ttl::Lapse::ForgetsTtl),
        #[cfg(feature = "mutants")]
        Self::FollowsTwice,
        #[cfg(feature = "mutants")]
        Self::Fails(sundown_engine::Lapse::CountsEachEffect),
        #[cfg(feature = "mutants")]
        Self::Fails(sundown_engine::Lapse::WaitsEndRows),
        #[cfg(feature = "mutants")]
        Self::Fails(sundown_engine::Lapse::BelievesAnswers),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::GivesUpUntried),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::BeginsBesidePods),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::ObeysFlaws),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::SuspendsUnasked),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::ForgetsInteractive),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::BelievesOneFailure),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::BelievesOneSubmission),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::AwaitsSubmitter),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::ServiceHoldsUp),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::TrustsSelector),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::LosesGuests),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::JudgesMended),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::WaitsWithoutCluster),
        #[cfg(feature = "mutants")]
        Self::Lapse(Lapse::ReadsNoName),
    ];

    /// The name on the command line.
    pub fn expected(self) -> Expected {
        let (name, story) = match self {
            Self::CollectWithoutRv => (
                "kubernetes#114603",
                "the collector deletes what was adopted in between",
            ),
            Self::TtlWithoutRv => ("ttl-without-rv", "a job goes although its TTL was raised"),
            #[cfg(feature = "mutants")]
            Self::DeleteRacesFinalizer => (
                "kubernetes#77988",
                "an object goes although its finalizer was acknowledged",
            ),
            Self::LostReplyIsFailure => (
                "lost-reply",
                "a write of unknown fate is repeated without a look",
            ),
            Self::FenceIgnored => ("fence-ignored", "a head that came back runs the job again"),
            Self::IntentIgnored => (
                "intent-ignored",
                "a head that came back is given the job again, over HTTP",
            ),
            Self::StopBelieved => (
                "stop-believed",
                "a RayJob is let go, and its cluster with it, while its job still runs",
            ),
            Self::DashboardBlocks => (
                "kuberay#4087",
                "a dashboard that does not answer delays the jobs of others",
            ),
            Self::StartsTwice => ("starts-twice", "a container is started twice"),
            Self::KillsAtOnce => ("kills-at-once", "a pod gets no grace"),
            Self::KeepsRemoved => ("keeps-removed", "a pod is gone and its processes are not"),
            Self::ForgetsCodes => ("forgets-codes", "a failure is recorded as a success"),
            Self::CountsTwice => ("counts-twice", "one success of a Job counts as two"),
            Self::CreatesAgain => (
                "creates-again",
                "a Job has more pods than it wants, because an answer was lost",
            ),
            Self::ClaimsStay => (
                "claims-stay",
                "a claim that was deleted while in use stays, and its namespace with it",
            ),
            Self::RetriesAtOnce => (
                "retries-at-once",
                "a full disk costs as many requests as the machine can make",
            ),
            Self::EventsStay => ("events-stay", "Events stay for ever"),
            #[cfg(feature = "mutants")]
            Self::Collects(lapse) => rules::collects_told(lapse),
            #[cfg(feature = "mutants")]
            Self::Empties(lapse) => rules::empties_told(lapse),
            #[cfg(feature = "mutants")]
            Self::Hurries(lapse) => rules::hurries_told(lapse),
            #[cfg(feature = "mutants")]
            Self::FollowsTwice => ("follows-twice", "each Event is deleted twice"),
            #[cfg(feature = "mutants")]
            Self::Fails(lapse) => rules::fails_told(lapse),
            #[cfg(feature = "mutants")]
            Self::Lapse(lapse) => lapses::told(lapse),
        };
        Expected { name, story }
    }

    /// Whether the shipped binary can put it back as well: it changes requests or answers, no rule.
    pub fn is_shipped(self) -> bool {
        match self {
            Self::CollectWithoutRv
            | Self::TtlWithoutRv
            | Self::LostReplyIsFailure
            | Self::FenceIgnored
            | Self::IntentIgnored
            | Self::StopBelieved
            | Self::DashboardBlocks
            | Self::StartsTwice
            | Self::KillsAtOnce
            | Self::KeepsRemoved
            | Self::ForgetsCodes
            | Self::CountsTwice
            | Self::CreatesAgain
            | Self::ClaimsStay
            | Self::EventsStay
            | Self::RetriesAtOnce => true,
            #[cfg(feature = "mutants")]
            Self::DeleteRacesFinalizer
            | Self::Collects(_)
            | Self::Empties(_)
            | Self::Hurries(_)
            | Self::FollowsTwice
            | Self::Fails(_)
            | Self::Lapse(_) => false,
        }
    }

    /// The story in which it shows, and the fault that it takes; None: it is looked for everywhere.
    pub(crate) fn place(self) -> Option<(&'static str, Variant)> {
        match self {
            Self::FenceIgnored => Some(("ray-submitter", Variant::AllDie)),
            Self::IntentIgnored => Some(("ray-http", Variant::AllDie)),
            Self::StopBelieved => Some(("ray-deleted", Variant::CrashBefore)),
            Self::DashboardBlocks => Some(("ray-mute-neighbour", Variant::CrashBefore)),
            Self::StartsTwice => Some(("pod-succeeds", Variant::CrashAfter)),
            Self::KillsAtOnce | Self::KeepsRemoved => {
                Some(("pod-deleted-deaf", Variant::CrashBefore))
            }
            Self::ForgetsCodes => Some(("pod-restarts", Variant::CrashBefore)),
            Self::CountsTwice => Some(("job-of-three", Variant::CrashBefore)),
            Self::CreatesAgain => Some(("job-of-three", Variant::LostApplied)),
            Self::ClaimsStay => Some(("namespace-with-a-claim", Variant::CrashBefore)),
            Self::CollectWithoutRv | Self::TtlWithoutRv | Self::LostReplyIsFailure => None,
            #[cfg(feature = "mutants")]
            Self::DeleteRacesFinalizer => None,
            Self::EventsStay => Some(("event-expires", Variant::CrashBefore)),
            #[cfg(feature = "mutants")]
            Self::Empties(lapse) => Some((rules::empties_story(lapse), Variant::CrashBefore)),
            #[cfg(feature = "mutants")]
            Self::Hurries(lapse) => Some((rules::hurries_story(lapse), Variant::CrashBefore)),
            #[cfg(feature = "mutants")]
            Self::FollowsTwice => Some(("events-of-a-namespace", Variant::CrashBefore)),
            #[cfg(feature = "mutants")]
            Self::Fails(lapse) => Some((rules::fails_story(lapse), Variant::CrashBefore)),
            Self::RetriesAtOnce => Some(("tree-on-a-full-disk", Variant::CrashBefore)),
            #[cfg(feature = "mutants")]
            Self::Collects(owner_gc::Lapse::UidOnly) => None,
            #[cfg(feature = "mutants")]
            Self::Collects(owner_gc::Lapse::WaitsInCircles) => {
                Some(("circle", Variant::CrashBefore))
            }
            #[cfg(feature = "mutants")]
            Self::Collects(owner_gc::Lapse::TrustsCatalog) => {
                Some(("definition-at-once-orphan", Variant::CrashBefore))
            }
            #[cfg(feature = "mutants")]
            Self::Lapse(lapse) => Some(lapses::place(lapse)),
        }
    }

    /// Finds a mutation by name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|mutation| mutation.expected().name == name)
    }

    /// Changes a write between its decision and its place in the order of commits.
    #[cfg(feature = "mutants")]
    pub(crate) fn on_commit(self, request: &Request, commit: &mut Commit) {
        if self == Self::DeleteRacesFinalizer && request.method == Method::Delete {
            commit.forget_reads();
        }
    }

    /// Changes a request on its way out.
    pub(crate) fn on_call(self, by: &str, call: &mut wire::Call) {
        let is = |mutation: Self, method| self == mutation && call.method == method;
        let has_no_revision = match by {
            "owner_gc" => is(Self::CollectWithoutRv, wire::Method::Delete),
            "ttl" => is(Self::TtlWithoutRv, wire::Method::Delete),
            _ => false,
        };
        let counts_twice = by == "batch_job" && is(Self::CountsTwice, wire::Method::Patch);
        let Ok(mut body) = serde_json::from_slice::<Value>(&call.body) else {
            return;
        };
        if has_no_revision {
            body["preconditions"]["resourceVersion"] = Value::Null;
        } else if counts_twice && body["status"]["succeeded"].is_u64() {
            let status = body["status"].as_object_mut();
            status.map(|status| status.remove("uncountedTerminatedPods"));
        } else {
            return;
        }
        call.body = body.to_string().into_bytes();
    }

    /// What is sent once more, by itself, when the answer to a request was lost.
    pub(crate) fn once_more(self, by: &str, call: &wire::Call) -> Option<wire::Call> {
        let is_meant = self == Self::CreatesAgain && by == "batch_job";
        if !is_meant || call.method != wire::Method::Post {
            return None;
        }
        let mut body: Value = serde_json::from_slice(&call.body).ok()?;
        let name = body["metadata"]["name"].as_str()?;
        body["metadata"]["name"] = format!("{name}-again").into();
        Some(wire::Call {
            body: body.to_string().into_bytes(),
            ..call.clone()
        })
    }

    /// Changes a deed on its way out.
    pub(crate) fn on_deed(self, what: &mut What) {
        if let (Self::KillsAtOnce, What::Node(Call::Signal { signal, .. })) = (self, what) {
            *signal = 9;
        }
    }

    /// Changes an answer on its way in.
    pub(crate) fn on_reply(self, reply: wire::Reply) -> wire::Reply {
        match (self, reply) {
            (Self::LostReplyIsFailure, wire::Reply::Lost(why)) => wire::Reply::NotSent(why),
            (_, reply) => reply,
        }
    }
}

/// What is wrong with the node of a world.
pub(crate) fn flaws(mutation: Option<Mutation>) -> Flaws {
    let is = |it: Mutation| mutation == Some(it);
    Flaws {
        ignores_fence: is(Mutation::FenceIgnored),
        ignores_intent: is(Mutation::IntentIgnored),
        believes_stop: is(Mutation::StopBelieved),
        starts_twice: is(Mutation::StartsTwice),
        keeps_removed: is(Mutation::KeepsRemoved),
        forgets_codes: is(Mutation::ForgetsCodes),
    }
}

/// The controllers of an operator, with a mutated rule if there is one.
pub(crate) fn controllers(engine: Engine, mutation: Option<Mutation>, stage: Stage) -> Engine {
    let mut hands = Hands { engine, mutation };
    shipped(&mut hands);
    // Others are told of no Events.
    if stage == Stage::Events {
        with_server(&mut hands);
    }
    if stage.has_node() {
        with_node(&mut hands);
    }
    if stage.has_ray() {
        of_ray(&mut hands, &ray());
    }
    hands.engine
}

struct Hands {
    engine: Engine,
    mutation: Option<Mutation>,
}

impl Crew for Hands {
    fn take<C: Controller>(&mut self, controller: C) {
        #[cfg(feature = "mutants")]
        if let Some(Mutation::Collects(lapse)) = self.mutation
            && C::NAME == OwnerGc::NAME
        {
            let collector = OwnerGc::default().lapsed(lapse);
            self.engine = self.engine.clone().with(collector);
            return;
        }
        #[cfg(feature = "mutants")]
        if let Some(Mutation::Lapse(lapse)) = self.mutation
            && C::NAME == RayJobs::NAME
        {
            let ray = ray();
            let jobs = RayJobs::new(ray.settings, ray.limits).lapsed(lapse);
            self.engine = self.engine.clone().with(jobs);
            return;
        }
        #[cfg(feature = "mutants")]
        if let Some(Mutation::Empties(lapse)) = self.mutation
            && C::NAME == Namespaces::NAME
        {
            let namespaces = Namespaces::default().lapsed(lapse);
            self.engine = self.engine.clone().with(namespaces);
            return;
        }
        #[cfg(feature = "mutants")]
        if let Some(Mutation::Hurries(lapse)) = self.mutation
            && C::NAME == Ttl::NAME
        {
            let ttl = Ttl::default().lapsed(lapse);
            self.engine = self.engine.clone().with(ttl);
            return;
        }
        #[cfg(feature = "mutants")]
        if self.mutation == Some(Mutation::FollowsTwice) && C::NAME == Namespaces::NAME {
            let twice = namespace::Twice::default();
            self.engine = self.engine.clone().with(twice);
            return;
        }
        let is_missing = match self.mutation {
            Some(Mutation::ClaimsStay) => C::NAME == StorageProtection::NAME,
            Some(Mutation::EventsStay) => C::NAME == EventTtl::NAME,
            Some(_) | None => false,
        };
        if is_missing {
            return;
        }
        self.engine = self.engine.clone().with(controller);
    }
}

/// The engine of an operator, without controllers.
pub(crate) fn engine(mutation: Option<Mutation>) -> Engine {
    let config = Config::default();
    let engine = Engine::new(match mutation {
        Some(Mutation::RetriesAtOnce) => Config {
            retry_first: SignedDuration::ZERO,
            ..config
        },
        Some(_) | None => config,
    });
    #[cfg(feature = "mutants")]
    if let Some(Mutation::Fails(lapse)) = mutation {
        return engine.lapsed(lapse);
    }
    engine
}

/// Ray is asked as often as on a cluster, and pods are not probed: each question is a place where
/// something can go wrong, and all of them are alike.
fn ray() -> RayConfig {
    RayConfig {
        settings: Settings {
            inject_probes: false,
            ..Settings::default()
        },
        limits: Limits::CLUSTER,
        ..RayConfig::default()
    }
}
