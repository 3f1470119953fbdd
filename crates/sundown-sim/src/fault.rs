//! What can go wrong at one effect: the crash points of level 1 and the replies of level 2.

use sundown_engine::Effect;
use sundown_model::Write;

/// One way in which an effect goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// The operator dies before the request leaves.
    CrashBefore,
    /// The request is carried out, then the operator dies without an answer.
    CrashAfter,
    /// The server says 503; nothing is done.
    Unavailable,
    /// The connection was never made.
    NotSent,
    /// The request is carried out, the answer is lost.
    LostApplied,
    /// The request is lost on the way; the operator cannot know.
    LostUnapplied,
    /// The effect is carried out, then whoever did it panics; what the driver says in its place is
    /// partly untrue, as with a deed that counts as refused.
    Panics,
    /// The history is too short: 410 for lists and watches.
    Expired,
    /// Ray dies in every head before the request leaves, and is started again in place.
    HeadDies,
    /// The request is carried out, then the operator and every head die without an answer.
    AllDie,
    /// Somebody touches the target while the request is being handled.
    Meddled(Meddle),
    /// The user of a `RayJob` wants something else just before the effect.
    Wished(Whim),
}

/// What the user of a `RayJob` may want at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whim {
    Suspend,
    /// A deadline of no seconds, which is refused.
    Nonsense,
    /// A runtime environment that is none, which is refused.
    Unreadable,
    DeleteCluster,
    Delete,
}

impl Whim {
    const ALL: [Self; 5] = [
        Self::Suspend,
        Self::Nonsense,
        Self::Unreadable,
        Self::DeleteCluster,
        Self::Delete,
    ];
}

/// What somebody does to the target of a write at the worst moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meddle {
    /// An annotation: harmless, but the revision moves on.
    Annotate,
    /// The object gets a living owner.
    Adopt,
    /// The TTL of a job is raised far beyond the story.
    RaiseTtl,
    /// A foreign finalizer is added.
    Hold,
    /// The object is deleted.
    Remove,
    /// The object is deleted and another one takes its name.
    Recreate,
}

impl Meddle {
    const ALL: [Self; 6] = [
        Self::Annotate,
        Self::Adopt,
        Self::RaiseTtl,
        Self::Hold,
        Self::Remove,
        Self::Recreate,
    ];
}

impl Variant {
    /// The command line's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CrashBefore => "crash-before",
            Self::CrashAfter => "crash-after",
            Self::Unavailable => "unavailable",
            Self::NotSent => "not-sent",
            Self::LostApplied => "lost-applied",
            Self::LostUnapplied => "lost-unapplied",
            Self::Panics => "panics",
            Self::Expired => "expired",
            Self::HeadDies => "head-dies",
            Self::AllDie => "all-die",
            Self::Meddled(Meddle::Annotate) => "annotate",
            Self::Meddled(Meddle::Adopt) => "adopt",
            Self::Meddled(Meddle::RaiseTtl) => "raise-ttl",
            Self::Meddled(Meddle::Hold) => "hold",
            Self::Meddled(Meddle::Remove) => "remove",
            Self::Meddled(Meddle::Recreate) => "recreate",
            Self::Wished(Whim::Suspend) => "suspend",
            Self::Wished(Whim::Nonsense) => "nonsense",
            Self::Wished(Whim::Unreadable) => "unreadable",
            Self::Wished(Whim::DeleteCluster) => "delete-cluster",
            Self::Wished(Whim::Delete) => "delete",
        }
    }

    /// All variants, in a fixed order.
    pub fn all() -> impl Iterator<Item = Self> {
        let plain = [
            Self::CrashBefore,
            Self::CrashAfter,
            Self::Unavailable,
            Self::NotSent,
            Self::LostApplied,
            Self::LostUnapplied,
            Self::Panics,
            Self::Expired,
            Self::HeadDies,
            Self::AllDie,
        ];
        let meddled = Meddle::ALL.map(Self::Meddled);
        let wished = Whim::ALL.map(Self::Wished);
        plain.into_iter().chain(meddled).chain(wished)
    }

    /// Whether it is what a user wants, and not what goes wrong.
    pub(crate) fn is_wish(self) -> bool {
        matches!(self, Self::Wished(_))
    }

    /// Whether the operator dies after the request was carried out.
    pub(crate) fn kills_after(self) -> bool {
        matches!(self, Self::CrashAfter | Self::AllDie)
    }

    /// Whether it needs a head that can die.
    pub(crate) fn needs_head(self) -> bool {
        matches!(self, Self::HeadDies | Self::AllDie)
    }

    /// The variants that make sense for an effect.
    pub(crate) fn of(effect: &Effect) -> impl Iterator<Item = Self> {
        let effect = effect.clone();
        Self::all().filter(move |variant| variant.fits(&effect))
    }

    fn fits(self, effect: &Effect) -> bool {
        let is_write = matches!(effect, Effect::Write { .. });
        match self {
            Self::CrashBefore | Self::CrashAfter | Self::Unavailable | Self::NotSent => {
                !matches!(effect, Effect::Unwatch { .. })
            }
            Self::LostApplied | Self::LostUnapplied => {
                is_write
                    || matches!(
                        effect,
                        Effect::Get { .. } | Effect::Ask { .. } | Effect::Do { .. }
                    )
            }
            // Of all others the driver says what a lost reply says.
            Self::Panics => matches!(effect, Effect::Ask { .. } | Effect::Do { .. }),
            Self::HeadDies | Self::AllDie => {
                is_write || matches!(effect, Effect::Ask { .. } | Effect::Do { .. })
            }
            Self::Wished(_) => true,
            Self::Expired => matches!(effect, Effect::List { .. } | Effect::Watch { .. }),
            Self::Meddled(_) => {
                is_write
                    && !matches!(
                        effect,
                        Effect::Write {
                            write: Write::Create(_),
                            ..
                        }
                    )
            }
        }
    }
}
