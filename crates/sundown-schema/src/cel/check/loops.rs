//! Loops over lists and maps, and the two that look into an optional value.

use std::rc::Rc;

use super::super::ast::{Loop, LoopKind};
use super::super::estimate::{self, LIST_COST, MAP_COST, Size};
use super::super::ty::Ty;
use super::{Checker, Info};

impl Checker<'_> {
    pub(super) fn looping(&mut self, at: usize, it: &Loop) -> Info {
        let over = self.visit(&it.over);
        if matches!(it.kind, LoopKind::OptMap | LoopKind::OptFlatMap) {
            return self.optional(at, it, &over);
        }
        let is_range = matches!(over.ty, Ty::List(_) | Ty::Map(..) | Ty::Dyn);
        if !is_range {
            let ty = &over.ty;
            let why = format!(
                "expression of type '{ty}' cannot be range of a comprehension (must be list, map, or \
                 dynamic)"
            );
            self.fault(it.over.at, why);
        }
        let depth = self.names.len();
        // Upstream takes what has no place in the schema for the root; so are its bounds.
        let lost = Some(self.root).filter(|_| over.place.is_none());
        let variable = |is_value: bool| match lost {
            Some(root) => over.item(is_value).at(Some(Rc::clone(root))),
            None => over.item(is_value),
        };
        if let Some(second) = &it.second {
            let (key, value) = (variable(false), variable(true));
            self.names.push((it.name.clone(), key));
            self.names.push((second.clone(), value));
        } else {
            let is_list = !matches!(over.ty, Ty::Map(..));
            let item = variable(is_list);
            self.names.push((it.name.clone(), item));
        }
        let filter = it.filter.as_ref().map(|filter| {
            let info = self.visit(filter);
            self.wants_bool(&info.ty, filter.at);
            info
        });
        let body = self.visit(&it.body);
        self.names.truncate(depth);
        let element = over.item(!matches!(over.ty, Ty::Map(..)) || it.second.is_some());
        self.looped(at, it, &over, &element, filter.as_ref(), &body)
    }

    fn looped(
        &mut self,
        at: usize,
        it: &Loop,
        over: &Info,
        element: &Info,
        filter: Option<&Info>,
        body: &Info,
    ) -> Info {
        let count = over.size.unwrap_or(Size::UNKNOWN);
        let (round, once) = costs(it.kind, body.cost, filter.map_or(0, |it| it.cost));
        let cost = count
            .max
            .saturating_mul(round)
            .saturating_add(once)
            .saturating_add(over.cost);
        let wants = matches!(
            it.kind,
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne
        );
        if wants {
            self.wants_bool(&body.ty, it.body.at);
        }
        let listed = |ty: Ty, each: &Info| Info {
            entries: Some((
                Size::exact(1),
                Size {
                    min: 0,
                    ..each.size.unwrap_or(Size::UNKNOWN)
                },
            )),
            size: Some(count),
            ..Info::of(Ty::list(ty), cost)
        };
        match it.kind {
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne => Info::of(Ty::Bool, cost),
            LoopKind::Filter => {
                if !matches!(body.ty, Ty::Bool | Ty::Dyn) {
                    let list = Ty::list(element.ty.clone());
                    let why = format!(
                        "found no matching overload for '_?_:_' applied to '({}, {list}, {list})'",
                        body.ty
                    );
                    self.fault(at, why);
                }
                listed(element.ty.clone(), element)
            }
            LoopKind::Map => listed(body.ty.clone(), body),
            LoopKind::SortBy => {
                let sorted = listed(element.ty.clone(), element);
                let (own, _) = estimate::call("sortBy", Some(&sorted.part()), &[]);
                Info {
                    cost: cost.saturating_add(own),
                    ..sorted
                }
            }
            LoopKind::TransformMap | LoopKind::TransformMapEntry => {
                let key = Rc::new(over.item(false).ty);
                let ty = match &body.ty {
                    Ty::Map(..) if it.kind == LoopKind::TransformMapEntry => body.ty.clone(),
                    other => Ty::Map(key, Rc::new(other.clone())),
                };
                Info::of(ty, cost).sized(Some(count))
            }
            LoopKind::OptMap | LoopKind::OptFlatMap => Info::of(body.ty.clone(), cost),
        }
    }

    fn optional(&mut self, at: usize, it: &Loop, over: &Info) -> Info {
        let inner = match &over.ty {
            Ty::Optional(of) => (**of).clone(),
            Ty::Dyn => Ty::Dyn,
            other => {
                let why =
                    format!("found no matching overload for 'hasValue' applied to '{other}.()'");
                self.fault(at, why);
                Ty::Dyn
            }
        };
        self.names.push((it.name.clone(), Info::of(inner, 1)));
        let body = self.visit(&it.body);
        self.names.pop();
        let cost = over.cost.saturating_add(body.cost).saturating_add(3);
        let ty = match it.kind {
            LoopKind::OptMap => Ty::Optional(Rc::new(body.ty)),
            _ => body.ty,
        };
        Info::of(ty, cost)
    }
}

/// What upstream's expansion of a macro costs: per round, and once.
fn costs(kind: LoopKind, body: u64, filtered: u64) -> (u64, u64) {
    match kind {
        LoopKind::All => (body.saturating_add(3), 1),
        LoopKind::Exists => (body.saturating_add(4), 1),
        LoopKind::ExistsOne => (body.saturating_add(2), 2),
        LoopKind::Filter => (body.saturating_add(LIST_COST + 3), LIST_COST + 1),
        LoopKind::Map | LoopKind::SortBy => {
            let own = body.saturating_add(LIST_COST + 2);
            (own.saturating_add(filtered), LIST_COST + 1)
        }
        LoopKind::TransformMap | LoopKind::TransformMapEntry => {
            let own = body.saturating_add(MAP_COST + 3);
            (own.saturating_add(filtered), MAP_COST + 1)
        }
        LoopKind::OptMap | LoopKind::OptFlatMap => (body, 1),
    }
}
