//! Label selectors: whether some labels are meant.

use serde_json::Value;

use crate::json::{list, text};

/// Whether a `LabelSelector` means these labels. One that is missing means nothing, an empty one all.
pub(crate) fn selects(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    let Some(selector) = selector else {
        return false;
    };
    let wanted = selector.get("matchLabels");
    is_subset(wanted, labels)
        && list(selector, "matchExpressions")
            .iter()
            .all(|rule| holds(rule, label(labels, text(rule, "key"))))
}

/// Whether all of these pairs stand among the labels.
pub(crate) fn is_subset(wanted: Option<&Value>, labels: Option<&Value>) -> bool {
    let wanted = wanted.and_then(Value::as_object).into_iter().flatten();
    let mut wanted = wanted.map(|(name, value)| (name, value.as_str()));
    wanted.all(|(name, value)| value.is_some() && label(labels, name) == value)
}

/// Whether one requirement holds for a value; an operator that nobody knows never holds.
pub(crate) fn holds(rule: &Value, value: Option<&str>) -> bool {
    let listed = |value: &str| {
        let mut values = list(rule, "values").iter();
        values.any(|it| it.as_str() == Some(value))
    };
    let bound = || list(rule, "values").first()?.as_str()?.parse::<i64>().ok();
    let number = || value?.parse::<i64>().ok();
    match text(rule, "operator") {
        "In" => value.is_some_and(listed),
        "NotIn" => !value.is_some_and(listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number().zip(bound()).is_some_and(|(is, than)| is > than),
        "Lt" => number().zip(bound()).is_some_and(|(is, than)| is < than),
        _ => false,
    }
}

fn label<'a>(labels: Option<&'a Value>, name: &str) -> Option<&'a str> {
    labels?.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::selects;
    use serde_json::json;

    #[test]
    fn labels_are_meant_by_pairs_and_by_rules() {
        let labels = json!({ "app": "x", "size": "3" });
        let rule = |key: &str, operator: &str, values: &[&str]| json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] });
        for (selector, expect) in [
            (json!({}), true),
            (json!({ "matchLabels": { "app": "x" } }), true),
            (json!({ "matchLabels": { "app": "y" } }), false),
            (rule("app", "In", &["x", "y"]), true),
            (rule("app", "NotIn", &["x"]), false),
            (rule("no", "NotIn", &["x"]), true),
            (rule("app", "Exists", &[]), true),
            (rule("app", "DoesNotExist", &[]), false),
            (rule("size", "Gt", &["2"]), true),
            (rule("size", "Lt", &["2"]), false),
            (rule("app", "Odd", &[]), false),
        ] {
            assert_eq!(
                selects(Some(&selector), Some(&labels)),
                expect,
                "{selector}"
            );
        }
        assert!(!selects(None, Some(&labels)));
    }
}
