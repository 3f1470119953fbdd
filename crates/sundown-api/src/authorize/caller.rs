//! Who sends a request, and by what that is known: judged on the state that the request is decided on.
//!
//! A write is decided on one state and committed on another. What its caller was let in by is therefore part
//! of what the write was decided on: the objects behind a token are reads of its transaction, and a commit
//! after any change of roles or bindings is stale. Signatures are left to the shell.

use jiff::Timestamp;
use sundown_model::ObjectKey;
use sundown_store::Revision;

use super::Impersonation;
use crate::failure::Failure;
use crate::{Cx, ISSUER, Request, Response, Server, User, Verdict, tokens};

/// Who sends a request, and as whom it wants to act.
#[derive(Debug, Clone)]
pub struct Caller {
    /// What the caller showed.
    pub proof: Proof,
    /// What the `Impersonate-*` headers ask for.
    pub wanted: Impersonation,
}

/// What a caller is known by.
#[derive(Debug, Clone)]
pub enum Proof {
    /// Something that no write withdraws: a certificate, the administrator's token, the lack of both.
    Known(User),
    /// The claims of a token of a service account. The shell has checked the signature.
    Claims(Vec<u8>),
}

impl From<User> for Caller {
    fn from(user: User) -> Self {
        Self {
            proof: Proof::Known(user),
            wanted: Impersonation::default(),
        }
    }
}

impl Server {
    /// Who the caller is.
    ///
    /// Errors: the answer for a caller whose token is worth nothing on this state.
    pub fn identify(&self, caller: &Caller, now: Timestamp) -> Result<User, Response> {
        match &caller.proof {
            Proof::Known(user) => Ok(user.clone()),
            Proof::Claims(claims) => match self.token_user(claims, &[ISSUER], now) {
                Ok((user, _)) => Ok(user),
                Err(_) => Err(Failure::unauthenticated().response()),
            },
        }
    }

    /// Whether the caller may send this request, which becomes one of the user that the caller acts as.
    /// Looks at the head of the request only, so that the shell can ask before it reads the body.
    ///
    /// Errors: the answer for a caller who may not.
    pub fn admit(
        &self,
        caller: &Caller,
        request: &mut Request,
        now: Timestamp,
    ) -> Result<(), Response> {
        request.user = self.identify(caller, now)?;
        self.impersonate(&caller.wanted, request)?;
        self.authorize(request)
    }

    /// Decides on a request of this caller: reads the snapshot, changes nothing.
    ///
    /// Guarantees: a commit is stale on every state on which the caller might be judged otherwise.
    pub fn decide(&self, caller: &Caller, request: &mut Request, cx: &mut Cx<'_>) -> Verdict {
        if let Err(refused) = self.admit(caller, request, cx.now) {
            return Verdict::Answer(refused);
        }
        let mut verdict = self.handle(request, cx);
        if let Verdict::Commit(commit) = &mut verdict {
            commit.transaction.reads.extend(self.reads_of(caller));
        }
        verdict
    }

    fn reads_of(&self, caller: &Caller) -> Vec<(ObjectKey, Option<Revision>)> {
        match &caller.proof {
            Proof::Known(_) => Vec::new(),
            Proof::Claims(claims) => tokens::reads(self, claims),
        }
    }
}
