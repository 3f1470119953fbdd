//! A decided write: the transaction, and how the answer is made once its revision is known.

use std::sync::Arc;

use jiff::Timestamp;
use sundown_store::{Committed, Store, Stored, Transaction};

use crate::Response;
use crate::registry::Type;
use crate::render::{self, Form};
use crate::scale::ScalePaths;
use crate::table::Table;

/// A decided write that waits for its place in the order of commits.
#[derive(Debug, Clone)]
pub struct Commit {
    pub(crate) transaction: Transaction,
    pub(crate) answer: Answer,
    /// Who may do what, as it was when this was decided.
    pub(crate) access: Access,
}

/// A state of all roles and bindings: another one after each change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Access(pub(crate) u64);

/// A read dependency changed: handle the request again on the newer snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the snapshot is no longer current")]
pub struct Stale;

/// The answer to a write, but for its revision.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Known before the commit.
    Fixed(Response),
    /// The object as one of the writes made it.
    Written {
        write: usize,
        code: u16,
        shown: Shown,
    },
    /// The object as one of the writes made it, which the last one removed.
    Marked { write: usize, shown: Shown },
    /// Another answer, shown as a Table.
    Table {
        of: Box<Answer>,
        table: Box<Table>,
        now: Timestamp,
    },
    /// Another answer, with a warning of its own.
    Warned { of: Box<Answer>, warning: Arc<str> },
    /// Another answer, shown as the Scale of its object.
    Scale {
        of: Box<Answer>,
        paths: Arc<ScalePaths>,
    },
    /// The last state of an object that one of the writes removed.
    Removed {
        write: usize,
        last: Arc<Stored>,
        shown: Shown,
    },
}

/// How an object in an answer is shown, and with which warnings.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) ty: Arc<Type>,
    pub(crate) form: Form,
    pub(crate) warnings: Vec<String>,
}

impl Shown {
    /// An answer with a stored object.
    pub(crate) fn stored(&self, code: u16, stored: &Stored) -> Response {
        self.body(code, render::object(stored, &self.ty, self.form))
    }

    /// An answer with these bytes.
    pub(crate) fn body(&self, code: u16, body: Vec<u8>) -> Response {
        Response {
            warnings: self.warnings.clone(),
            ..render::response(code, body)
        }
    }
}

impl Commit {
    pub(crate) fn new(transaction: Transaction, answer: Answer) -> Self {
        let access = Access::default();
        Self {
            transaction,
            answer,
            access,
        }
    }

    /// The same write, decided on this state of roles and bindings.
    pub(crate) fn judged_on(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// Whether the caller may still be allowed what it was allowed when this was decided.
    pub(crate) fn is_judged_on(&self, access: Access) -> bool {
        self.access == access
    }

    /// The transaction that is to be committed; a durable server writes it to its log.
    pub fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    /// Commits whatever happened in between: the race of kubernetes#77988, which the simulator has to find.
    #[cfg(feature = "mutants")]
    pub fn forget_reads(&mut self) {
        self.transaction.reads.clear();
    }

    /// The same write, answered with a warning.
    pub(crate) fn warned(self, warning: &Arc<str>) -> Self {
        let (of, warning) = (Box::new(self.answer), Arc::clone(warning));
        let answer = Answer::Warned { of, warning };
        Self { answer, ..self }
    }

    /// The same write, answered by a Table.
    pub(crate) fn shown_as(self, table: Table, now: Timestamp) -> Self {
        let answer = Answer::Table {
            of: Box::new(self.answer),
            table: Box::new(table),
            now,
        };
        Self { answer, ..self }
    }

    pub(crate) fn apply(&self, store: &mut Store, now: Timestamp) -> Result<Response, Stale> {
        let committed = store.commit(&self.transaction, now).map_err(|_| Stale)?;
        Ok(self.answer.complete(&committed))
    }
}

impl Answer {
    fn complete(&self, committed: &Committed) -> Response {
        match self {
            Self::Fixed(response) => response.clone(),
            Self::Written { write, code, shown } => {
                let (_, stored) = &committed.writes[*write];
                let stored = stored.as_ref().expect("the answer names a put");
                shown.stored(*code, stored)
            }
            Self::Marked { write, shown } => {
                let (_, stored) = &committed.writes[*write];
                let stored = stored.as_ref().expect("the answer names a put");
                let (revision, _) = committed.writes.last().expect("there are writes");
                shown.stored(200, &stored.restamped(*revision))
            }
            Self::Table { of, table, now } => table.answer(of.complete(committed), *now),
            Self::Warned { of, warning } => of.complete(committed).warned(warning),
            Self::Scale { of, paths } => paths.answer(of.complete(committed)),
            Self::Removed { write, last, shown } => {
                let (revision, _) = committed.writes[*write];
                shown.stored(200, &last.restamped(revision))
            }
        }
    }
}
