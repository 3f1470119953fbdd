//! The world: a server, perhaps an operator, a story, virtual time. It is a value; a clone of it is
//! a parallel future.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sundown_api::{Authorization, Config, Cx, Method, Server, Verdict};
use sundown_engine::{Effect, Input};
use sundown_kinds::crd::{self, RAY_CLUSTER};
use sundown_model::ObjectKey;

use crate::checks::{self, Violation};
use crate::fault::{Variant, Whim};
use crate::ledger::{Actor, Ledger, Version};
use crate::mutation::{Mutation, flaws};
use crate::node::Node;
use crate::op::{It, Op};
use crate::operator::Operator;

use crate::scenario::{Scenario, Stage, Step, Told};
use crate::serve::{Ended, told};
use crate::tape::Tape;
use crate::trace::Trace;
use crate::trouble::{Ongoing, Recovery};

/// How many steps an operator may take to come to rest.
const STEPS_MAX: usize = 20_000;
/// How far time goes on by itself while the operator is not at rest.
const PATIENCE: SignedDuration = SignedDuration::from_secs(120);
/// The same where Ray is: it may give no answer for so long before a job is given up.
const RAY_PATIENCE: SignedDuration = SignedDuration::from_secs(700);
/// How long a world is watched at rest.
const HOLD: SignedDuration = SignedDuration::from_secs(1_800);

/// The one who owns what a meddler has somebody adopt.
pub(crate) const GUARDIAN: It = crate::op::it("ConfigMap", "guardian");
/// The one whose user has whims.
pub(crate) const RAY_JOB: It = crate::op::it("RayJob", "train");
/// The finalizer that a meddler adds.
pub(crate) const HOLD_FINALIZER: &str = "example.com/hold";

/// Everything that there is.
#[derive(Debug, Clone)]
pub struct World {
    pub(crate) now: Timestamp,
    pub(crate) server: Server,
    pub(crate) operator: Option<Operator>,
    pub(crate) node: Option<Node>,
    pub(crate) stage: Stage,
    pub(crate) started: bool,
    pub(crate) ledger: Ledger,
    pub(crate) mutation: Option<Mutation>,
    /// The fault that is to come, at this effect.
    pub(crate) fault: Option<(usize, Variant)>,
    pub(crate) meddled: bool,
    pub(crate) has_whims: bool,
    pub(crate) trouble: Option<Ongoing>,
    pub(crate) recovery: Option<Recovery>,
    /// How many operators there were.
    pub(crate) lives: usize,
    /// How many effects were carried out.
    pub(crate) effects: usize,
    pub(crate) writes: usize,
    pub(crate) pending: Option<Effect>,
    /// Answers that come when their time has come, in order.
    pub(crate) late: VecDeque<(Timestamp, Input)>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) trace: Trace,
    /// A flight recorder, if there is one.
    pub(crate) tape: Option<Tape>,
    entropy: u64,
    script: Arc<[Step]>,
    at: usize,
}

/// Looks at a world just before it carries out an effect.
pub(crate) type Probe<'a> = dyn FnMut(&World, &Effect) + 'a;

impl World {
    /// The beginning of a story.
    pub fn new(scenario: &Scenario, mutation: Option<Mutation>) -> Self {
        Self::with(scenario, mutation, Config::default(), 0)
    }

    pub(crate) fn with(
        scenario: &Scenario,
        mutation: Option<Mutation>,
        config: Config,
        seed: u64,
    ) -> Self {
        let now = Self::birth();
        let mut entropy = seed << 32;
        let mut draw = || mix(&mut entropy);
        // What leaves is judged at the engine's exit; all callers here are the administrator, and the
        // roles of a cluster would be objects that every story carries with it.
        let config = Config {
            authorization: Authorization::AlwaysAllow,
            ..config
        };
        let mut server = Server::new(
            config,
            &mut Cx {
                now,
                entropy: &mut draw,
            },
        );
        if scenario.stage.has_ray() {
            define_ray(&mut server, scenario.stage, now, &mut draw);
        }
        let mut world = Self {
            now,
            ledger: Ledger::default(),
            server,
            operator: None,
            node: scenario
                .stage
                .has_node()
                .then(|| Node::new(flaws(mutation))),
            stage: scenario.stage,
            started: false,
            mutation,
            fault: None,
            meddled: false,
            has_whims: scenario.has_whims,
            trouble: None,
            recovery: None,
            lives: 0,
            effects: 0,
            writes: 0,
            pending: None,
            late: VecDeque::new(),
            violations: Vec::new(),
            trace: Trace::default(),
            tape: None,
            entropy,
            script: scenario.steps.clone().into(),
            at: 0,
        };
        world.begin();
        world
    }

    /// The instant at which every world begins.
    pub(crate) fn birth() -> Timestamp {
        "2030-01-01T00:00:00Z"
            .parse()
            .expect("a date as it is written")
    }

    /// Takes what the server was born with into the ledger, and sets the guardian up.
    fn begin(&mut self) {
        self.ledger.catalog = Arc::new(told(&self.server, self.stage));
        for (key, stored) in self.server.store().iter() {
            let json = serde_json::from_slice(stored.json()).expect("the store holds JSON");
            let version = Version::new(stored.revision().number(), json);
            self.ledger.uids.insert(version.uid.clone());
            self.ledger.live.insert(key.clone(), Arc::new(version));
        }
        self.tell(&Told::Request(Op::create(GUARDIAN, &json!({}))));
    }

    /// Tells the story to its end and judges it.
    pub(crate) fn run(&mut self, probe: &mut Probe<'_>) {
        while let Some(step) = self.script.get(self.at).cloned() {
            match step {
                Step::Do(told) => self.tell(&told),
                Step::Start => self.started = true,
                Step::Stop => {
                    self.started = false;
                    self.crash();
                }
                Step::Submit(id, entrypoint) => self.submit(id, entrypoint),
                Step::Advance(duration) => self.advance(duration),
                Step::Settle => self.settle(probe),
                Step::Work(duration) => self.work(duration, probe),
                Step::Node(mishap) => self.befall(mishap),
                Step::Trouble(trouble) => self.trouble(trouble),
            }
            self.at += 1;
        }
        self.release_holds();
        self.settle(probe);
        if let Some(operator) = &self.operator {
            self.violations
                .extend(checks::at_rest(&self.ledger, &operator.engine, self.now));
        }
        if let Some(node) = &self.node {
            self.violations
                .extend(checks::node_at_rest(&self.ledger, node));
            self.violations
                .extend(checks::ray_at_rest(&self.ledger, node, self.now));
        }
        // Who meddles, or lets heads die, delays as they like.
        if !self.meddled {
            self.violations.extend(checks::neighbours(&self.ledger));
        }
        self.hold_still();
    }

    /// The operator works until there is nothing more to do.
    pub(crate) fn settle(&mut self, probe: &mut Probe<'_>) {
        let patience = match self.stage {
            Stage::Plain | Stage::Roles | Stage::Storage | Stage::Events | Stage::Node => PATIENCE,
            Stage::Ray | Stage::RayKinds => RAY_PATIENCE,
        };
        let until = self.now.saturating_add(patience).unwrap_or(Timestamp::MAX);
        if !self.work_until(until, probe) {
            let text = format!("not at rest after {STEPS_MAX} steps");
            self.violations.push(Violation::new("Q1", text));
        }
    }

    /// The operator works for a while; what goes on then goes on.
    fn work(&mut self, duration: SignedDuration, probe: &mut Probe<'_>) {
        let until = self.now.saturating_add(duration).unwrap_or(Timestamp::MAX);
        self.work_until(until, probe);
        self.now = until.max(self.now);
    }

    /// Works as long as there is something to do before an instant; false if that takes too long.
    fn work_until(&mut self, patient_until: Timestamp, probe: &mut Probe<'_>) -> bool {
        for _ in 0..STEPS_MAX {
            if !self.started {
                return true;
            }
            if self.operator.is_none() {
                self.connect();
            }
            if self.pending.is_none() && (self.hear_late() || self.deliver_all()) {
                continue;
            }
            let now = self.now;
            let engine = &mut self.operator.as_mut().expect("started above").engine;
            let next = self.pending.take().or_else(|| engine.next(now));
            if let Some(tape) = &mut self.tape {
                tape.gave(next.as_ref(), engine, now);
            }
            let own = self.node.as_ref().and_then(Node::next_at);
            let wake_at = [engine.wake_at(), own, self.late_at()];
            let wake_at = wake_at.into_iter().flatten().min();
            if let Some(effect) = next {
                self.pending = Some(effect.clone());
                probe(self, &effect);
                self.pending = None;
                self.perform(&effect);
                continue;
            }
            match wake_at {
                Some(at) if at <= patient_until => self.now = at.max(self.now),
                Some(_) | None => return true,
            }
        }
        false
    }

    /// Watches the world at rest: nobody asks anything, nobody writes anything.
    fn hold_still(&mut self) {
        let (writes, revision) = (self.writes, self.server.revision());
        let until = self.now.saturating_add(HOLD).unwrap_or(Timestamp::MAX);
        // Who looks more seldom hears fewer bookmarks, and that is most of a life with Ray at rest.
        let pace = SignedDuration::from_secs(match self.stage {
            Stage::Plain | Stage::Roles | Stage::Storage | Stage::Events | Stage::Node => 60,
            Stage::Ray | Stage::RayKinds => 600,
        });
        let mut asked = Vec::new();
        while self.now < until && self.violations.is_empty() {
            self.advance(pace);
            self.settle(&mut |_, effect| match effect {
                // A watch ends after a while and is opened again.
                Effect::Watch { .. } | Effect::Unwatch { .. } => {}
                Effect::Discover { .. }
                | Effect::List { .. }
                | Effect::Get { .. }
                | Effect::Barrier { .. }
                | Effect::Write { .. }
                | Effect::Ask { .. }
                | Effect::Do { .. } => asked.push(format!("{effect:?}")),
            });
        }
        if let Some(first) = asked.first() {
            self.violations
                .push(Violation::new("Q2", format!("at rest: {first}")));
        }
        if self.writes != writes || self.server.revision() != revision {
            self.violations
                .push(Violation::new("Q2", "something was written at rest"));
        }
    }

    pub(crate) fn advance(&mut self, duration: SignedDuration) {
        self.now = self.now.saturating_add(duration).unwrap_or(Timestamp::MAX);
        self.note(&format!("time is {}", self.now));
    }

    /// Lets a user do something. Refusals are part of the story.
    pub(crate) fn tell(&mut self, told: &Told) {
        let op = match told {
            Told::Request(op) => op.clone(),
            Told::Own { it, owners, extra } => {
                let mut extra = extra.clone();
                extra["metadata"]["ownerReferences"] = self.references(owners);
                Op::create(*it, &extra)
            }
            Told::Adopt { it, owners } => {
                let patch = json!({ "metadata": { "ownerReferences": self.references(owners) } });
                Op::patch(*it, &patch)
            }
            Told::DeleteClusters => return self.delete_clusters(),
        };
        self.user(&op);
    }

    /// Lets the user of the `RayJob` want something else.
    pub(crate) fn wish(&mut self, whim: Whim) {
        let spec = |spec: Value| Op::patch(RAY_JOB, &json!({ "spec": spec }));
        match whim {
            Whim::Suspend => self.user(&spec(json!({ "suspend": true }))),
            Whim::Nonsense => self.user(&spec(json!({ "activeDeadlineSeconds": 0 }))),
            Whim::Unreadable => self.user(&spec(json!({ "runtimeEnvYAML": "- a" }))),
            Whim::DeleteCluster => self.delete_clusters(),
            Whim::Delete => self.user(&Op::delete(RAY_JOB, "Background")),
        }
    }

    fn delete_clusters(&mut self) {
        let all = self.ledger.live.keys();
        let all = all.filter(|key| key.resource.is(&RAY_CLUSTER));
        for key in all.cloned().collect::<Vec<_>>() {
            let options = json!({ "propagationPolicy": "Background" });
            let label = format!("delete {key}");
            let path = self.path_of(&key);
            self.user(&Op::new(Method::Delete, path, Some(&options), label));
        }
    }

    pub(crate) fn user(&mut self, op: &Op) {
        let code = match self.call(&op.request, &Actor::User, None) {
            Ended::Answered(code, _) => code,
            Ended::Watching(_) => 200,
        };
        self.note(&format!("user: {} -> {code}", op.label));
    }

    /// Owner references with the uids that the owners have now; who is not there gets a made-up one.
    fn references(&self, owners: &[(It, bool)]) -> Value {
        let reference = |(owner, blocking): &(It, bool)| {
            let uid = self.find(*owner).map_or_else(
                || format!("nobody-{}", owner.name),
                |version| version.uid.to_string(),
            );
            json!({
                "apiVersion": owner.api_version(),
                "kind": owner.kind(),
                "name": owner.name,
                "uid": uid,
                "blockOwnerDeletion": blocking,
            })
        };
        owners.iter().map(reference).collect()
    }

    /// The present version of an object, by its kind, namespace and name.
    pub(crate) fn find(&self, it: It) -> Option<&Arc<Version>> {
        self.ledger.live.get(&it.key())
    }

    /// Takes every foreign finalizer away, so that the end can be judged.
    pub(crate) fn release_holds(&mut self) {
        let held = self
            .ledger
            .live
            .iter()
            .filter(|(_, it)| it.has_finalizer(HOLD_FINALIZER));
        for key in held.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            let left: Vec<_> = self.ledger.live[&key]
                .finalizers()
                .filter(|name| *name != HOLD_FINALIZER)
                .map(ToOwned::to_owned)
                .collect();
            let patch = json!({ "metadata": { "finalizers": left } });
            self.user(&self.op_on(&key, &patch));
        }
    }

    /// A patch of an object by its key.
    pub(crate) fn op_on(&self, key: &ObjectKey, patch: &Value) -> Op {
        let method = sundown_api::Method::Patch;
        Op::new(
            method,
            self.path_of(key),
            Some(patch),
            format!("patch {key} {patch}"),
        )
    }

    pub(crate) fn path_of(&self, key: &ObjectKey) -> String {
        let version = self
            .ledger
            .catalog
            .get(&key.resource)
            .map_or("v1", |ty| &*ty.version);
        let base = match key.resource.group() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        let namespace = key
            .namespace
            .as_ref()
            .map_or(String::new(), |it| format!("/namespaces/{it}"));
        format!("{base}{namespace}/{}/{}", key.resource.plural(), key.name)
    }

    /// What is left, for the comparison of two runs.
    pub(crate) fn end_state(&self) -> BTreeMap<ObjectKey, String> {
        checks::end_state(&self.ledger)
    }

    pub(crate) fn draw(&mut self) -> u128 {
        mix(&mut self.entropy)
    }

    pub(crate) fn note(&mut self, line: &str) {
        self.trace.note(line);
    }
}

/// Puts the definitions of Ray on a server that is just born.
fn define_ray(
    server: &mut Server,
    stage: Stage,
    now: Timestamp,
    entropy: &mut dyn FnMut() -> u128,
) {
    for definition in [crd::ray_job(), crd::ray_cluster()] {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned();
        let mut definition: Value =
            serde_json::from_str(&definition).expect("a definition is JSON");
        if stage == Stage::RayKinds {
            open(&mut definition);
        }
        let op = Op::new(Method::Post, path, Some(&definition), String::new());
        let mut cx = Cx {
            now,
            entropy: &mut *entropy,
        };
        let Verdict::Commit(commit) = server.handle(&op.request, &mut cx) else {
            continue;
        };
        server
            .commit(&commit, now)
            .expect("nobody else writes at birth");
    }
}

/// Takes the schemas out of a definition: where definitions are told, each life reads them.
fn open(definition: &mut Value) {
    let versions = definition.pointer_mut("/spec/versions");
    let versions = versions.and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        version["schema"] = json!({ "openAPIV3Schema": anything });
    }
}

/// Well mixed numbers from a counter (`SplitMix64`, twice): uids need no more here.
pub(crate) fn mix(counter: &mut u64) -> u128 {
    let mut half = || {
        *counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*counter ^ (*counter >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u128::from(z ^ (z >> 31))
    };
    (half() << 64) | half()
}
