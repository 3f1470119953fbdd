//! Amounts of cpu and memory, such as `500m` and `1Gi`, as numbers. How they are written is the API
//! server's business.

/// Thousandths of a unit: the finest that a pod can ask for.
const MILLI: i128 = 1_000;

/// What an amount is in thousandths, rounded up; None when the text is no quantity.
pub fn milli(text: &str) -> Option<i128> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-' && c != '+')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (times, over) = factor(suffix)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_negative = whole.starts_with('-');
    let digits = part.len().min(18);
    let scale = 10_i128.pow(u32::try_from(digits).ok()?);
    let whole: i128 = match whole {
        "" | "-" | "+" => 0,
        whole => whole.parse().ok()?,
    };
    let part: i128 = match &part[..digits] {
        "" => 0,
        part => part.parse().ok()?,
    };
    let signed = if is_negative { -part } else { part };
    let exact = whole.checked_mul(scale)?.checked_add(signed)?;
    let amount = exact.checked_mul(times)?.checked_mul(MILLI)?;
    Some(ceil(amount, over.checked_mul(scale)?))
}

/// An amount in whole units, rounded up.
pub fn units(text: &str) -> Option<i128> {
    milli(text).map(|milli| ceil(milli, MILLI))
}

fn factor(suffix: &str) -> Option<(i128, i128)> {
    let whole = |times| Some((times, 1));
    match suffix {
        "" => whole(1),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1_000)),
        "k" => whole(1_000),
        "M" => whole(1_000_000),
        "G" => whole(1_000_000_000),
        "T" => whole(1_000_000_000_000),
        "P" => whole(1_000_000_000_000_000),
        "E" => whole(1_000_000_000_000_000_000),
        "Ki" => whole(1 << 10),
        "Mi" => whole(1 << 20),
        "Gi" => whole(1 << 30),
        "Ti" => whole(1 << 40),
        "Pi" => whole(1 << 50),
        "Ei" => whole(1 << 60),
        _ => exponent(suffix),
    }
}

/// `e3` and `E-2`.
fn exponent(suffix: &str) -> Option<(i128, i128)> {
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    if !(-18..=18).contains(&power) {
        return None;
    }
    let ten = 10_i128.pow(power.unsigned_abs());
    Some(if power < 0 { (1, ten) } else { (ten, 1) })
}

fn ceil(amount: i128, over: i128) -> i128 {
    let down = amount.div_euclid(over);
    if amount.rem_euclid(over) == 0 {
        down
    } else {
        down + 1
    }
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
        for text in [
            "x",
            "1x",
            "1.2.3",
            "99999999999999999999999999999999999999E",
        ] {
            assert_eq!(milli(text), None, "{text}");
        }
        assert_eq!(milli(""), Some(0));
    }
}
