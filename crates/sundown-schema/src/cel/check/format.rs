//! `format` with a list that is written out: what its clauses would refuse whenever it runs.

use super::super::ast::Expr;
use super::super::clause::{Piece, pieces};
use super::super::estimate::{self, LIST_COST};
use super::super::ty::Ty;
use super::{Checker, Info};

impl Checker<'_> {
    /// Its list may hold whatever the clauses take.
    pub(super) fn format(&mut self, at: usize, on: &Expr, items: &[Expr]) -> Info {
        let text = on.literal().map(str::to_owned);
        let on = self.visit(on);
        self.mixed += 1;
        let infos: Vec<Info> = items.iter().map(|it| self.visit(it)).collect();
        self.mixed -= 1;
        if let Some(text) = text {
            self.clauses(at, &text, items, &infos);
        }
        let (own, _) = estimate::call("format", Some(&on.part()), &[]);
        let costs = infos.iter().chain([&on]).map(|it| it.cost);
        let cost = costs.fold(own.saturating_add(LIST_COST), u64::saturating_add);
        Info::of(Ty::Text, cost)
    }

    fn clauses(&mut self, at: usize, text: &str, items: &[Expr], infos: &[Info]) {
        let mut used = 0;
        for piece in pieces(text) {
            let clause = match piece {
                Ok(Piece::Char(_)) => continue,
                Ok(Piece::Clause(clause)) => clause,
                Err(why) => {
                    self.fault(at, why);
                    return;
                }
            };
            let (Some(item), Some(info)) = (items.get(used), infos.get(used)) else {
                self.fault(at, format!("index {used} out of range"));
                return;
            };
            used += 1;
            let ty = match &info.ty {
                Ty::Null => "null_type".to_owned(),
                other => other.to_string(),
            };
            let ty = ty.split('(').next().unwrap_or_default();
            if !clause.takes(ty) {
                let why = clause.refuses(ty);
                self.fault(item.at, format!("error during formatting: {why}"));
                return;
            }
        }
        if used < items.len() {
            let count = items.len();
            let why = format!(
                "too many arguments supplied to string.format (expected {used}, got {count})"
            );
            self.fault(at, why);
        }
    }
}
