//! Carrying out effects: the shipped wire on one side, the shipped API server on the other, and the
//! faults in between. Requests to the server are in a file of their own.

mod requests;

use sundown_engine::{Effect, EffectId, Failure, Input, WatchEvent, broken};
use sundown_model::{DeedOutcome, ObjectKey, Question, Report, What, Write};

use crate::checks::{self, Violation};
use crate::fault::Variant;
use crate::node::{Mishap, Node, nobody_answers, nobody_does};
use crate::operator::Operator;
use crate::world::World;

impl World {
    /// Carries out one effect at once, with the fault that is due, and gives the answer back.
    pub(crate) fn perform(&mut self, effect: &Effect) {
        self.effects += 1;
        let due = self
            .fault
            .take_if(|(at, _)| *at == self.effects)
            .map(|(_, variant)| variant);
        if let Some(input) = self.execute(effect, due) {
            self.take(input);
        }
        self.after(due);
    }

    /// Who dies after an effect dies.
    pub(crate) fn after(&mut self, fault: Option<Variant>) {
        if fault.is_some_and(Variant::kills_after) {
            self.crash();
        }
        if fault == Some(Variant::AllDie) {
            self.meddled = true;
            self.befall(Mishap::HeadsDie);
        }
    }

    /// The ways in which an effect can go wrong here and now.
    pub(crate) fn faults(&self, effect: &Effect) -> Vec<Variant> {
        let has_head = self.node.as_ref().is_some_and(Node::has_heads);
        let all = Variant::of(effect);
        all.filter(|variant| variant.is_wish() == self.has_whims)
            .filter(|variant| has_head || !variant.needs_head())
            .collect()
    }

    pub(crate) fn crash(&mut self) {
        self.note("the operator dies");
        self.operator = None;
        self.late.clear();
    }

    pub(crate) fn take(&mut self, mut input: Input) {
        let now = self.now;
        if let Some(operator) = &mut self.operator {
            if let Some(tape) = &mut self.tape {
                tape.mark(&mut input);
                tape.took(&input, now);
            }
            operator.engine.take(input, now);
        }
    }

    /// Carries out one effect; gives the input that answers it, if an answer comes.
    pub(crate) fn execute(&mut self, effect: &Effect, fault: Option<Variant>) -> Option<Input> {
        self.note(&format!(
            "effect {}: {} {fault:?}",
            self.effects,
            short(effect)
        ));
        if fault == Some(Variant::CrashBefore) {
            self.crash();
            return None;
        }
        if fault == Some(Variant::HeadDies) {
            self.meddled = true;
            self.befall(Mishap::HeadsDie);
        }
        if let Some(Variant::Wished(whim)) = fault {
            self.meddled = true;
            self.wish(whim);
        }
        self.watch_for_unsure(effect);
        let answer = self.answer(effect, fault);
        match fault {
            Some(Variant::Panics) => broken(effect),
            Some(_) | None => answer,
        }
    }

    fn answer(&mut self, effect: &Effect, fault: Option<Variant>) -> Option<Input> {
        match effect {
            Effect::Discover { id } => {
                let answer = self.discover(*id, fault);
                self.delayed(answer)
            }
            Effect::Barrier { id, types } => {
                let positions = types
                    .iter()
                    .map(|ty| self.server.position(&ty.resource))
                    .collect();
                let result = if fault.is_some_and(breaks) {
                    Err(failure())
                } else {
                    Ok(positions)
                };
                Some(Input::Positions { id: *id, result })
            }
            Effect::Unwatch { id } => {
                self.operator.as_mut()?.watches.remove(id);
                None
            }
            Effect::Watch { id, .. } if fault == Some(Variant::Expired) => Some(Input::Watched {
                id: *id,
                event: WatchEvent::Closed { expired: true },
            }),
            Effect::Watch { .. } => self.watch(effect, fault),
            Effect::List { .. } | Effect::Get { .. } | Effect::Write { .. } => {
                self.request(effect, fault)
            }
            Effect::Ask { id, question } => self.ask(*id, question, fault),
            Effect::Do { id, deed, .. } => self.carry_out(*id, &deed.what, fault),
        }
    }

    /// Asks the node. What is lost on the way is not answered.
    fn ask(&mut self, id: EffectId, question: &Question, fault: Option<Variant>) -> Option<Input> {
        if self.hangs(id, question) {
            return None;
        }
        let is_lost = fault.is_some_and(|it| breaks(it) || it == Variant::LostApplied);
        let now = self.now;
        let reply = match &mut self.node {
            Some(node) if !is_lost => {
                node.tick(now);
                node.answer(question)
            }
            Some(_) | None => nobody_answers(question),
        };
        let answer = Input::Answered { id, reply };
        (!fault.is_some_and(Variant::kills_after)).then_some(answer)
    }

    /// Has the node do something, judged before it is done.
    fn carry_out(&mut self, id: EffectId, what: &What, fault: Option<Variant>) -> Option<Input> {
        let now = self.now;
        let is_sent = !fault.is_some_and(breaks);
        let mut what = what.clone();
        if let Some(mutation) = self.mutation {
            mutation.on_deed(&mut what);
        }
        let what = &what;
        let mut outcome = nobody_does();
        if let (Some(node), true) = (&mut self.node, is_sent) {
            node.tick(now);
            if let What::Node(call) = what {
                let early = checks::on_call(call, &self.ledger, node, now);
                self.violations.extend(early);
            }
            outcome = node.carry_out(what, now);
            self.judge_executions();
        }
        if matches!(fault, Some(Variant::LostApplied | Variant::LostUnapplied)) {
            outcome = DeedOutcome::unanswered();
        }
        let done = Input::Done { id, outcome };
        (!fault.is_some_and(Variant::kills_after)).then_some(done)
    }

    /// A new operator begins; the node tells it what there is.
    pub(crate) fn connect(&mut self) {
        self.lives += 1;
        let operator = Operator::start(self.mutation, self.stage, self.now);
        if let Some(tape) = &mut self.tape {
            let fresh = Operator::fresh(self.mutation, self.stage);
            tape.begin(fresh, &operator.engine, self.now);
        }
        self.operator = Some(operator);
        if let Some(node) = &mut self.node {
            node.connect();
        }
    }

    pub(crate) fn befall(&mut self, mishap: Mishap) {
        self.note(&format!("the node: {mishap:?}"));
        let now = self.now;
        if let Some(node) = &mut self.node {
            node.tick(now);
            node.befall(mishap, now);
        }
        self.judge_executions();
    }

    /// Lets a user submit a job by hand, to whichever head runs.
    pub(crate) fn submit(&mut self, id: &str, entrypoint: &str) {
        self.note(&format!("user: submits {id} by hand"));
        let now = self.now;
        if let Some(node) = &mut self.node {
            node.tick(now);
            let head = node.ray.heads().next().cloned();
            head.map(|head| node.ray.submit(&head, &id.into(), entrypoint, now));
        }
    }

    /// Judges what began in Ray since it was last looked at.
    pub(crate) fn judge_executions(&mut self) {
        if let Some(node) = &mut self.node {
            checks::on_execution(&mut node.ray, &self.ledger, &mut self.violations);
        }
    }

    /// Brings what the node has to say to the operator; false when there was nothing.
    fn hear(&mut self) -> bool {
        let now = self.now;
        let Some(node) = &mut self.node else {
            return false;
        };
        node.tick(now);
        let report = node.pop();
        self.judge_executions();
        let Some(report) = report else {
            return false;
        };
        self.note(&format!("report {report:?}"));
        self.take(Input::Reported(Report::Node(report)));
        true
    }

    /// U1: who does not know the fate of a write has to look before the next one.
    fn watch_for_unsure(&mut self, effect: &Effect) {
        let Some(operator) = &mut self.operator else {
            return;
        };
        match effect {
            Effect::Get { key, .. } => {
                operator.unsure.remove(key);
            }
            Effect::Write { write, .. } => {
                if operator.unsure.contains(written(write)) {
                    let text = format!("{} is written again unread", written(write));
                    self.violations.push(Violation::new("U1", text));
                }
            }
            Effect::Discover { .. }
            | Effect::List { .. }
            | Effect::Watch { .. }
            | Effect::Unwatch { .. }
            | Effect::Barrier { .. }
            | Effect::Ask { .. }
            | Effect::Do { .. } => {}
        }
    }

    /// Brings every line of every watch to the operator; false when there was none.
    pub(crate) fn deliver_all(&mut self) -> bool {
        let mut any = false;
        while self.hear() {
            any = true;
        }
        let ids: Vec<_> = self
            .operator
            .iter()
            .flat_map(|it| it.watches.keys().copied())
            .collect();
        for id in ids {
            while self.deliver(id) {
                any = true;
            }
        }
        any
    }

    /// Brings one line, or the end, of one watch to the operator; false when there was nothing.
    pub(crate) fn deliver(&mut self, id: EffectId) -> bool {
        let Some(operator) = &mut self.operator else {
            return false;
        };
        let Some(open) = operator.watches.get_mut(&id) else {
            return false;
        };
        open.poll(&self.server, self.now);
        if let Some((line, input)) = open.pop(id) {
            let broken = open.check.line(&line, &self.ledger);
            self.violations.extend(broken);
            let over = matches!(
                &input,
                Input::Watched {
                    event: WatchEvent::Closed { .. },
                    ..
                }
            );
            if over {
                operator.watches.remove(&id);
            }
            self.note(&format!("watch {id:?}: {}", line.len()));
            self.take(input);
            return true;
        }
        if open.ended {
            operator.watches.remove(&id);
            self.take(Input::Watched {
                id,
                event: WatchEvent::Closed { expired: false },
            });
            return true;
        }
        false
    }
}

pub(crate) fn written(write: &Write) -> &ObjectKey {
    match write {
        Write::Create(draft) => &draft.key,
        Write::Patch { at, .. } | Write::Delete { at, .. } | Write::Finish { at } => at.key(),
    }
}

/// Whether a fault means that no answer of substance comes.
fn breaks(variant: Variant) -> bool {
    matches!(
        variant,
        Variant::Unavailable | Variant::NotSent | Variant::LostUnapplied
    )
}

fn failure() -> Failure {
    Failure {
        message: "not now".to_owned(),
        expired: false,
    }
}

/// An effect in a few words.
pub(crate) fn short(effect: &Effect) -> String {
    match effect {
        Effect::Discover { .. } => "discover".to_owned(),
        Effect::List { ty, .. } => format!("list {}", ty.resource),
        Effect::Watch { ty, from, .. } => format!("watch {} after {from}", ty.resource),
        Effect::Unwatch { .. } => "unwatch".to_owned(),
        Effect::Get { key, .. } => format!("get {key}"),
        Effect::Barrier { types, .. } => format!("barrier over {} kinds", types.len()),
        Effect::Ask { question, .. } => question.in_words(),
        Effect::Do { by, deed, .. } => format!("{by}: {}", deed.in_words()),
        Effect::Write { by, write, .. } => match write {
            Write::Create(draft) => format!("{by}: create {}", draft.key),
            Write::Patch { at, part, .. } => format!("{by}: patch {at:?} {part:?}"),
            Write::Delete { at, how } => format!("{by}: delete {at:?} {how:?}"),
            Write::Finish { at } => format!("{by}: finish {at:?}"),
        },
    }
}
