//! Requests to the API server: the wire's calls go in, its answers come out, and a fault is what becomes of
//! them on the way. What is judged here is what a read shows.

use std::collections::VecDeque;

use serde_json::{Value, json};
use sundown_api::{Method, Request};
use sundown_decide::kinds::EVENT;
use sundown_engine::{Effect, EffectId, Input, wire};
use sundown_model::{ObjectKey, Write};

use super::{breaks, written};
use crate::checks::{Violation, WatchCheck};
use crate::fault::Variant;
use crate::ledger::{Actor, Version};
use crate::operator::OpenWatch;
use crate::serve::{Ended, only_told};
use crate::world::World;

impl World {
    pub(super) fn discover(&mut self, id: EffectId, fault: Option<Variant>) -> Input {
        let replies = wire::discovery_calls().map(|call| match fault {
            Some(variant) if breaks(variant) => unavailable(),
            Some(_) | None => answered(self.call(&request_of(&call), &Actor::User, None)),
        });
        Input::Discovered {
            id,
            result: wire::discovered(replies).map(|catalog| only_told(&catalog, self.stage)),
        }
    }

    pub(super) fn watch(&mut self, effect: &Effect, fault: Option<Variant>) -> Option<Input> {
        let Effect::Watch { id, ty, form, from } = effect else {
            return None;
        };
        let call = wire::call(effect)?;
        if fault.is_some_and(breaks) {
            return wire::answered(effect, unavailable());
        }
        match self.call(&request_of(&call), &Actor::User, None) {
            Ended::Answered(code, body) => {
                wire::answered(effect, wire::Reply::Answered { code, body })
            }
            Ended::Watching(watch) => {
                let from = from.to_string().parse().unwrap_or(0);
                let check = WatchCheck::new(watch.resource().clone(), from);
                let open = OpenWatch {
                    watch: *watch,
                    ty: ty.clone(),
                    form: form.clone(),
                    lines: VecDeque::new(),
                    ended: false,
                    check,
                };
                self.operator.as_mut()?.watches.insert(*id, open);
                None
            }
        }
    }

    pub(super) fn request(&mut self, effect: &Effect, fault: Option<Variant>) -> Option<Input> {
        let mut call = wire::call(effect)?;
        let by = match effect {
            Effect::Write { by, .. } => by.clone(),
            Effect::Discover { .. }
            | Effect::List { .. }
            | Effect::Watch { .. }
            | Effect::Unwatch { .. }
            | Effect::Get { .. }
            | Effect::Barrier { .. }
            | Effect::Ask { .. }
            | Effect::Do { .. } => "reader".to_owned(),
        };
        if let Some(mutation) = self.mutation {
            mutation.on_call(&by, &mut call);
        }
        let again = self.mutation.and_then(|it| it.once_more(&by, &call));
        let actor = Actor::Controller(by);
        let meddle = match fault {
            Some(Variant::Meddled(meddle)) => Some((meddle, target(effect)?.clone())),
            Some(_) | None => None,
        };
        let go = |world: &mut Self| {
            let trouble = world.troubled(effect);
            trouble.unwrap_or_else(|| {
                answered(world.call(&request_of(&call), &actor, meddle.as_ref()))
            })
        };
        let reply = match fault {
            Some(Variant::Unavailable) => unavailable(),
            Some(Variant::NotSent) => wire::Reply::NotSent("refused".to_owned()),
            Some(Variant::LostUnapplied) => wire::Reply::Lost("timeout".to_owned()),
            Some(Variant::LostApplied) => {
                go(self);
                if let Some(again) = again {
                    self.call(&request_of(&again), &actor, None);
                }
                wire::Reply::Lost("timeout".to_owned())
            }
            Some(Variant::Expired) => wire::Reply::Answered {
                code: 410,
                body: Vec::new(),
            },
            Some(
                Variant::CrashBefore
                | Variant::CrashAfter
                | Variant::Panics
                | Variant::HeadDies
                | Variant::AllDie
                | Variant::Meddled(_)
                | Variant::Wished(_),
            )
            | None => go(self),
        };
        if fault.is_some_and(Variant::kills_after) {
            return None;
        }
        self.judge_read(effect, &reply);
        if let (Effect::Write { write, .. }, wire::Reply::Lost(_)) = (effect, &reply)
            && !is_word(write)
        {
            let unsure = written(write).clone();
            self.operator.as_mut()?.unsure.insert(unsure);
        }
        let reply = match self.mutation {
            Some(mutation) => mutation.on_reply(reply),
            None => reply,
        };
        wire::answered(effect, reply)
    }

    /// S4: a read shows what was written last.
    fn judge_read(&mut self, effect: &Effect, reply: &wire::Reply) {
        let (Effect::Get { key, .. }, wire::Reply::Answered { code: 200, body }) = (effect, reply)
        else {
            return;
        };
        let shown: Option<Value> = serde_json::from_slice(body).ok();
        let shown = shown.map(|json| {
            let rv = json
                .pointer("/metadata/resourceVersion")
                .and_then(Value::as_str);
            let revision = rv.and_then(|rv| rv.parse().ok()).unwrap_or(0);
            (Version::new(revision, json).uid, revision)
        });
        let live = self.ledger.live.get(key);
        if shown != live.map(|version| (version.uid.clone(), version.revision)) {
            let text = format!("{key}: read {shown:?}");
            self.violations.push(Violation::new("S4", text));
        }
    }
}

fn request_of(call: &wire::Call) -> Request {
    Request {
        method: match call.method {
            wire::Method::Get => Method::Get,
            wire::Method::Post => Method::Post,
            wire::Method::Patch => Method::Patch,
            wire::Method::Delete => Method::Delete,
        },
        path: call.path.clone(),
        query: call
            .query
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        content_type: call.content_type.map(ToOwned::to_owned),
        accept: Some(call.accept.to_owned()),
        user_agent: Some("sundown-sim".to_owned()),
        if_none_match: None,
        user: sundown_api::User::admin(),
        body: call.body.clone(),
    }
}

fn answered(ended: Ended) -> wire::Reply {
    match ended {
        Ended::Answered(code, body) => wire::Reply::Answered { code, body },
        Ended::Watching(_) => wire::Reply::Lost("a watch where an answer was due".to_owned()),
    }
}

fn target(effect: &Effect) -> Option<&ObjectKey> {
    match effect {
        Effect::Write { write, .. } => Some(written(write)),
        Effect::Get { key, .. } => Some(key),
        Effect::Discover { .. }
        | Effect::List { .. }
        | Effect::Watch { .. }
        | Effect::Unwatch { .. }
        | Effect::Barrier { .. }
        | Effect::Ask { .. }
        | Effect::Do { .. } => None,
    }
}

fn unavailable() -> wire::Reply {
    let body = json!({ "kind": "Status", "reason": "ServiceUnavailable", "message": "not now" });
    wire::Reply::Answered {
        code: 503,
        body: body.to_string().into_bytes(),
    }
}

/// Whether it makes an Event. Nothing waits for one, and it is not made again: what is written next about it is
/// written by who saw it.
fn is_word(write: &Write) -> bool {
    matches!(write, Write::Create(draft) if draft.key.resource.is(&EVENT))
}
