//! Whether a text is a schedule, in the words of the parser that upstream uses. When a schedule is
//! due is the business of its controller.

/// The fields of a schedule: their smallest and largest number, and the names of the numbers.
const FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (
        1,
        12,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    ),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

const DESCRIPTORS: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// What is wrong with a schedule.
pub(super) fn check(text: &str) -> Result<(), String> {
    let schedule = match text.split_once(' ') {
        Some((zone, rest)) if zone.starts_with("TZ=") || zone.starts_with("CRON_TZ=") => {
            rest.trim()
        }
        _ => text,
    };
    if schedule.starts_with('@') {
        return descriptor(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    for (field, bounds) in fields.iter().zip(FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            range(part, bounds)?;
        }
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    if DESCRIPTORS.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(every) if every.starts_with(|c: char| c.is_ascii_digit()) => Ok(()),
        Some(every) => Err(format!(
            "failed to parse duration {text}: time: invalid duration {every:?}"
        )),
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

fn range(text: &str, (min, max, names): (u32, u32, &[&str])) -> Result<(), String> {
    let mut steps = text.split('/');
    let span = steps.next().unwrap_or("");
    let step = steps.next();
    if steps.next().is_some() {
        return Err(format!("too many slashes: {text}"));
    }
    let mut ends = span.split('-');
    let first = ends.next().unwrap_or("");
    let last = ends.next();
    if ends.next().is_some() {
        return Err(format!("too many hyphens: {text}"));
    }
    let (start, end) = if matches!(first, "*" | "?") {
        (min, max)
    } else {
        let start = number(first, names)?;
        let end = match last {
            Some(last) => number(last, names)?,
            None if step.is_some() => max,
            None => start,
        };
        (start, end)
    };
    let step = match step {
        Some(step) => number(step, &[])?,
        None => 1,
    };
    if start < min {
        return Err(format!(
            "beginning of range ({start}) below minimum ({min}): {text}"
        ));
    }
    if end > max {
        return Err(format!(
            "end of range ({end}) above maximum ({max}): {text}"
        ));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {text}"
        ));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn number(text: &str, names: &[&str]) -> Result<u32, String> {
    let lower = text.to_lowercase();
    if let Some(index) = names.iter().position(|name| *name == lower) {
        // Months count from one, days from zero.
        let first = usize::from(names.len() == 12);
        return Ok(u32::try_from(index + first).unwrap_or(0));
    }
    match text.parse::<i64>() {
        Ok(number) => u32::try_from(number)
            .map_err(|_| format!("negative number ({number}) not allowed: {text}")),
        Err(_) => Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn schedules_are_told_from_other_texts() {
        for fine in [
            "* * * * *",
            "*/5 0-3 1,15 jan-mar mon",
            "@hourly",
            "@every 1h30m",
            "5/15 * * * ?",
        ] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for (wrong, why) in [
            ("no", "expected exactly 5 fields, found 1: [no]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            ("@fortnightly", "unrecognized descriptor: @fortnightly"),
        ] {
            assert_eq!(check(wrong), Err(why.to_owned()), "{wrong}");
        }
    }
}
