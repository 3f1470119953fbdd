//! What expressions may cost at worst, by the sizes that schemas allow: upstream's estimate, number
//! for number, so that the same rules are refused.

use super::ty::Ty;

/// The fewest and the most items, members, characters or bytes of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// What an estimate needs to know of a part.
#[derive(Debug, Clone)]
pub(crate) struct Part<'t> {
    pub(crate) ty: &'t Ty,
    pub(crate) size: Option<Size>,
    /// The size of its items, if it is a list.
    pub(crate) items: Option<Size>,
    /// The value, if it is a literal whole number.
    pub(crate) number: Option<u64>,
}

/// What creating a list costs.
pub(crate) const LIST_COST: u64 = 10;
/// What creating a map costs.
pub(crate) const MAP_COST: u64 = 30;

const PER_CHARACTER: f64 = 0.1;
const PER_PATTERN: f64 = 0.25;
/// The longest regular expression behind a named format.
const FORMAT_PATTERN: f64 = 128.0;

impl Size {
    pub(crate) const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    pub(crate) fn exact(size: u64) -> Self {
        Self {
            min: size,
            max: size,
        }
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// The most it costs at so much per unit.
    fn cost(self, factor: f64) -> u64 {
        scaled(self.max, factor)
    }
}

/// A count times a factor, rounded up.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate; the conversion back saturates"
)]
pub(crate) fn scaled(count: u64, factor: f64) -> u64 {
    (count as f64 * factor).ceil() as u64
}

impl Part<'_> {
    fn size(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }
}

/// What a call costs besides its parts, and how large its result is if that is known.
pub(crate) fn call(name: &str, on: Option<&Part<'_>>, args: &[Part<'_>]) -> (u64, Option<Size>) {
    match (name, on, args) {
        ("_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_", None, [one, two]) => {
            (compare(name, one, two), None)
        }
        ("_+_", None, [one, two]) => concatenate(one, two),
        ("@in", None, [_, list]) if matches!(list.ty, Ty::List(_)) => (list.size().cost(1.0), None),
        (
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes",
            Some(on),
            _,
        ) => (traverse(name, on), None),
        ("url", None, [arg]) => (arg.size().cost(PER_CHARACTER), Some(arg.size())),
        ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(on), _) => {
            (on.size().cost(PER_CHARACTER), Some(on.size()))
        }
        ("replace", Some(on), [old, new, ..]) => {
            let size = replaced(on.size(), old.size(), new.size());
            (on.size().cost(2.0 * PER_CHARACTER), Some(size))
        }
        ("split", Some(on), _) => {
            let limit = args.get(1).and_then(|arg| arg.number);
            let size = Size {
                min: 0,
                max: limit.unwrap_or(on.size().max),
            };
            (on.size().cost(2.0 * PER_CHARACTER), Some(size))
        }
        ("join", Some(on), _) => {
            let size = joined(on, args.first());
            (size.cost(PER_CHARACTER), Some(size))
        }
        ("find" | "findAll", Some(on), [pattern, ..]) => {
            let size = Size {
                min: 0,
                max: on.size().max,
            };
            (matching(on.size(), pattern.size()), Some(size))
        }
        ("matches", Some(text), [pattern]) | ("matches", None, [text, pattern]) => {
            (matching(text.size(), pattern.size()), None)
        }
        ("startsWith" | "endsWith", Some(_), [arg]) => (arg.size().cost(PER_CHARACTER), None),
        ("contains", Some(on), [arg]) => {
            let (one, two) = (
                on.size().cost(PER_CHARACTER),
                arg.size().cost(PER_CHARACTER),
            );
            (one.saturating_mul(two), None)
        }
        ("format", Some(on), _) => (on.size().cost(PER_CHARACTER), None),
        ("strings.quote", None, [arg]) => {
            let size = arg.size().plus(arg.size()).plus(Size::exact(2));
            (arg.size().cost(PER_CHARACTER), Some(size))
        }
        ("bytes" | "string", None, [arg]) if matches!(arg.ty, Ty::Text | Ty::Bytes | Ty::Dyn) => {
            converted(name, arg)
        }
        _ => libraries(name, on, args),
    }
}

fn libraries(name: &str, on: Option<&Part<'_>>, args: &[Part<'_>]) -> (u64, Option<Size>) {
    let listed = |factor: f64, size: Size| {
        let cost = size.cost(factor).saturating_add(1 + LIST_COST);
        (cost, Some(size))
    };
    match (name, on, args) {
        (
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver",
            None,
            [arg, ..],
        ) => (arg.size().cost(PER_CHARACTER), None),
        ("ip.isCanonical", None, [arg]) => (arg.size().cost(2.0 * PER_CHARACTER), None),
        ("containsIP" | "containsCIDR", Some(_), [arg]) => {
            let base = if name == "containsIP" { 4 } else { 7 };
            let parsed = match arg.ty {
                Ty::Text => arg.size().cost(PER_CHARACTER),
                _ => 0,
            };
            (parsed.saturating_add(base), None)
        }
        ("validate", Some(_), [arg]) => {
            let cost = scaled(arg.size().cost(PER_CHARACTER), FORMAT_PATTERN * PER_PATTERN);
            (cost, None)
        }
        ("sets.contains" | "sets.intersects", None, [one, two]) => (
            one.size().times(two.size()).cost(1.0).saturating_add(1),
            None,
        ),
        ("sets.equivalent", None, [one, two]) => (
            one.size().times(two.size()).cost(2.0).saturating_add(1),
            None,
        ),
        ("slice", Some(on), [from, to]) => {
            let to = to.number.unwrap_or(on.size().max);
            listed(
                1.0,
                Size::exact(to.saturating_sub(from.number.unwrap_or(0))),
            )
        }
        ("lists.range", None, [count]) => {
            listed(1.0, Size::exact(count.number.unwrap_or(u64::MAX)))
        }
        ("reverse" | "flatten", Some(on), _) => listed(1.0, on.size()),
        ("distinct", Some(on), _) => listed(2.0, on.size().times(on.size())),
        ("sort" | "sortBy", Some(on), _) => {
            let is_text = matches!(on.ty, Ty::List(of) if matches!(**of, Ty::Text | Ty::Bytes));
            let factor = if is_text { 2.1 } else { 2.0 };
            listed(factor, on.size().times(on.size()))
        }
        _ => (1, None),
    }
}

fn compare(name: &str, one: &Part<'_>, two: &Part<'_>) -> u64 {
    if matches!((one.ty, two.ty), (Ty::Opaque(_), Ty::Opaque(_))) {
        return 1;
    }
    let is_text = |part: &Part<'_>| matches!(part.ty, Ty::Text | Ty::Bytes);
    if name != "_==_" && name != "_!=_" && !(is_text(one) && is_text(two)) {
        return 1;
    }
    let smaller = one.size().max.min(two.size().max);
    scaled(smaller, PER_CHARACTER)
}

fn concatenate(one: &Part<'_>, two: &Part<'_>) -> (u64, Option<Size>) {
    let size = one.size().plus(two.size());
    match one.ty {
        Ty::List(_) => (1, Some(size)),
        Ty::Text | Ty::Bytes | Ty::Dyn => (size.cost(PER_CHARACTER), Some(size)),
        _ => (1, None),
    }
}

fn traverse(name: &str, on: &Part<'_>) -> u64 {
    let Ty::List(of) = on.ty else {
        let factor = if name == "includes" {
            1.0
        } else {
            PER_CHARACTER
        };
        return on.size().cost(factor);
    };
    let mut each = 1_u64;
    if matches!(**of, Ty::Text | Ty::Bytes) {
        each = each.saturating_add(on.items.unwrap_or(Size::UNKNOWN).cost(PER_CHARACTER));
    }
    on.size().max.saturating_mul(each)
}

fn replaced(text: Size, old: Size, new: Size) -> Size {
    let (count, kept) = if old.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if new.max <= old.min {
        (0, text.max)
    } else {
        (text.max.div_ceil(old.min), 0)
    };
    Size {
        min: 0,
        max: count.saturating_mul(new.max).saturating_add(kept),
    }
}

fn joined(list: &Part<'_>, separator: Option<&Part<'_>>) -> Size {
    let each = list.items.unwrap_or(Size::UNKNOWN);
    let mut size = list.size().times(each);
    if let Some(separator) = separator {
        let between = Size {
            min: list.size().min.saturating_sub(1),
            max: list.size().max.saturating_sub(1),
        };
        size = size.plus(separator.size().times(between));
    }
    size
}

fn matching(text: Size, pattern: Size) -> u64 {
    let text = text.plus(Size::exact(1)).cost(PER_CHARACTER);
    text.saturating_mul(pattern.cost(PER_PATTERN))
}

fn converted(name: &str, arg: &Part<'_>) -> (u64, Option<Size>) {
    let size = arg.size();
    match (name, arg.ty) {
        ("bytes", Ty::Text | Ty::Dyn) => {
            let size = Size {
                min: size.min,
                max: size.max.saturating_mul(4),
            };
            (arg.size().cost(PER_CHARACTER), Some(size))
        }
        ("string", Ty::Bytes | Ty::Dyn) => (size.cost(PER_CHARACTER), Some(size)),
        _ => (1, None),
    }
}
