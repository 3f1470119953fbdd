//! Quantities such as `1500m` or `2Gi` in rules, exact to a billionth. How they are read is
//! `sundown_model::Quantity`'s business.

use std::cmp::Ordering;

use sundown_model::Quantity as Amount;

use super::super::eval::{Error, told};
use super::super::value::Val;
use super::Library;

/// A number of billionths: two of them are equal however they were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Quantity(i128);

const UNIT: i128 = 1_000_000_000;

impl Quantity {
    /// Reads a quantity as everywhere else, but for spaces around it: those only JSON may have.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let amount = Amount::parse(text).filter(|_| text.trim() == text);
        amount.map(|amount| Self(amount.billionths()))
    }

    fn amount(self) -> Amount {
        Amount::of_billionths(self.0)
    }

    fn int(self) -> Option<i64> {
        i64::try_from(self.0 / UNIT)
            .ok()
            .filter(|_| self.0 % UNIT == 0)
    }

    pub(super) fn call<'a>(
        self,
        name: &str,
        args: &[Val<'a>],
    ) -> std::result::Result<Option<Val<'a>>, Error> {
        let other = match args {
            [] => None,
            [Val::Int(value)] => i128::from(*value).checked_mul(UNIT).map(Self),
            [Val::Library(it)] => match &**it {
                Library::Quantity(quantity) => Some(*quantity),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let made = |sum: Option<i128>| match sum {
            Some(sum) => Ok(Some(Val::library(Library::Quantity(Self(sum))))),
            None => told("quantity overflow"),
        };
        let sign = |order: Ordering| Val::Int(order as i64);
        Ok(Some(match (name, other) {
            ("sign", None) => sign(self.0.cmp(&0)),
            ("isInteger", None) => Val::Bool(self.int().is_some()),
            ("asInteger", None) => match self.int() {
                Some(value) => Val::Int(value),
                None => return told("cannot convert value to integer"),
            },
            ("asApproximateFloat", None) => Val::Double(self.amount().approximate()),
            ("isGreaterThan", Some(other)) => Val::Bool(self > other),
            ("isLessThan", Some(other)) => Val::Bool(self < other),
            ("compareTo", Some(other)) => sign(self.cmp(&other)),
            ("add", Some(other)) => return made(self.amount().checked_billionths(other.0)),
            ("sub", Some(other)) => return made(self.amount().checked_billionths(-other.0)),
            _ => return Ok(None),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity;

    #[test]
    fn reads_quantities_of_all_suffixes() {
        let same = |one: &str, two: &str| {
            let (one, two) = (Quantity::read(one), Quantity::read(two));
            assert!(one.is_some() && one == two, "{one:?} {two:?}");
        };
        same("1500m", "1.5");
        same("1Ki", "1024");
        same("2e3", "2k");
        same("0.1", "100m");
        same("1E", "1000000000000000000");
        same("-1", "-1000m");
        same("1.5e-2147483648", "1n");
        same(&format!("1.{}", "0".repeat(40)), "1");
        assert!(Quantity::read("1Mi") > Quantity::read("1M"));
        for text in ["", "x", "1.2.3", "1 Gi", " 1", "1Xi", "e3", "."] {
            assert_eq!(Quantity::read(text), None, "{text}");
        }
    }
}
