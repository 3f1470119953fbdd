//! Amounts of cpu and memory, such as `500m` and `1Gi`, as the whole numbers that a node counts in. How
//! they are written is `sundown_model::Quantity`'s business.

use sundown_model::Quantity;

/// Billionths in a thousandth, which is the finest that a pod can ask for.
const THOUSANDTH: i128 = 1_000_000;
/// Thousandths in a unit.
const UNIT: i128 = 1_000;

/// What an amount is in thousandths, rounded up; None when the text is no quantity.
pub fn milli(text: &str) -> Option<i128> {
    let amount = Quantity::parse(text)?;
    Some(ceil(amount.billionths(), THOUSANDTH))
}

/// An amount in whole units, rounded up.
pub fn units(text: &str) -> Option<i128> {
    milli(text).map(|milli| ceil(milli, UNIT))
}

fn ceil(amount: i128, over: i128) -> i128 {
    amount.div_euclid(over) + i128::from(amount.rem_euclid(over) != 0)
}

#[cfg(test)]
mod tests {
    use super::{milli, units};

    #[test]
    fn amounts_are_numbers_in_every_way_of_writing() {
        for (text, thousandths) in [
            ("1", 1_000),
            ("500m", 500),
            ("0.5", 500),
            ("1.5Gi", 1_610_612_736_000),
            ("1e3", 1_000_000),
            ("1n", 1),
            ("-1", -1_000),
            ("2k", 2_000_000),
        ] {
            assert_eq!(milli(text), Some(thousandths), "{text}");
        }
        assert_eq!(units("1500m"), Some(2));
        for text in ["", "x", "1x", "1.2.3"] {
            assert_eq!(milli(text), None, "{text}");
        }
    }
}
