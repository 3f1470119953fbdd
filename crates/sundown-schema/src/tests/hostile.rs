//! Rules that want too much: refused when they are registered, and stopped when they run all the
//! same. Nothing here waits for a clock: work is counted in steps, and steps pay for memory.

use serde_json::{Value, json};

use crate::{Compiler, check};

fn schema(rule: &str, is_bounded: bool) -> Value {
    let list = |items: Value| {
        let mut list = json!({ "type": "array", "items": items });
        if is_bounded {
            list["maxItems"] = json!(50);
        }
        list
    };
    let mut text = json!({ "type": "string" });
    if is_bounded {
        text["maxLength"] = json!(50);
    }
    json!({
        "type": "object",
        "properties": {
            "s": text, "l": list(text.clone()), "n": list(json!({ "type": "integer" })),
            "m": { "type": "object", "additionalProperties": { "type": "string" } },
        },
        "x-kubernetes-validations": [{ "rule": rule }],
    })
}

/// Each is fine by its types and wants more than there is.
const HOSTILE: &[&str] = &[
    "self.n.all(a, self.n.all(b, a + b >= 0))",
    "self.n.all(a, self.n.all(b, self.n.all(c, a + b + c >= 0)))",
    "self.l.map(a, self.l.map(b, a + b)).size() > 0",
    "self.l.map(a, self.l.join(a)).join('').size() > 0",
    "self.l.exists(a, self.l.join(',').contains(a + a))",
    "self.s.replace('', self.s).replace('', self.s).size() > 0",
    "(self.s + self.s + self.s + self.s).split('').all(a, self.s.contains(a))",
    "self.l.all(a, a.matches(self.s) || self.s.matches(a))",
    "self.l.sortBy(a, self.l.indexOf(a)).size() > 0",
    "self.l.distinct().map(a, self.l.distinct()).size() > 0",
    "sets.equivalent(self.l.map(a, a + self.s), self.l.map(a, self.s + a))",
    "self.m.all(k, self.m.all(j, self.m[k] == self.m[j] || k != j))",
    "lists.range(100000000).size() > 0",
    "self.l.all(a, '%s%s%s'.format([self.l, self.l, a]).contains(a))",
];

/// As large as a request may be, about.
fn large() -> Value {
    let texts: Vec<String> = (0..20_000).map(|index| format!("a{index}")).collect();
    let numbers: Vec<u64> = (0..20_000).collect();
    let map: serde_json::Map<String, Value> = texts
        .iter()
        .map(|text| (text.clone(), json!(text)))
        .collect();
    json!({ "s": "ab".repeat(100_000), "l": texts, "n": numbers, "m": map })
}

#[test]
fn hostile_rules_are_refused_where_nothing_bounds_them() {
    for rule in HOSTILE {
        let problems = check(&schema(rule, false), "s", false);
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let is_refused = texts
            .iter()
            .any(|it| it.contains("estimated rule cost exceeds budget"));
        assert!(is_refused, "{rule}: {texts:?}");
    }
}

#[test]
fn hostile_rules_come_to_an_end_even_if_they_are_run() {
    let object = large();
    for rule in HOSTILE {
        let compiled = Compiler::default().compile(&schema(rule, false));
        let problems = compiled.validate(&object, None);
        assert!(problems.len() <= 1, "{rule}: {problems:?}");
        if let Some(problem) = problems.kept().first() {
            let is_bounded = problem.text.contains("cost") || problem.text.contains("failed rule");
            assert!(is_bounded, "{rule}: {problem}");
        }
    }
}

#[test]
fn one_rule_out_of_budget_ends_the_judgement() {
    let compiled = Compiler::default().compile(&json!({
        "type": "object",
        "properties": { "n": { "type": "array", "items": { "type": "integer" } } },
        "x-kubernetes-validations": [
            { "rule": "self.n.all(a, self.n.all(b, a + b >= 0))" },
            { "rule": "false" },
        ],
    }));
    let problems = compiled.validate(&large(), None);
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "<nil>: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no \
             further validation rules will be run due to call cost exceeds limit for rule: \
             self.n.all(a, self.n.all(b, a + b >= 0))"
        ]
    );
}

#[test]
fn bounds_in_the_schema_make_a_rule_affordable() {
    for rule in [
        "self.n.all(a, self.n.all(b, a + b >= 0))",
        "self.l.exists(a, a.contains(self.s))",
    ] {
        assert_eq!(
            check(&schema(rule, true), "s", false),
            crate::Problems::default(),
            "{rule}"
        );
    }
}

/// Rules made of pieces by a fixed stream of numbers: whatever comes out is refused, or ends.
#[test]
fn rules_of_random_pieces_are_refused_or_end() {
    const PIECES: &[&str] = &[
        "self.s",
        "self.l",
        "self.n",
        "self.m",
        "'a'",
        "1",
        ".all(x, ",
        ".exists(x, ",
        ".map(x, ",
        ")",
        " + ",
        " == ",
        " && ",
        ".size()",
        ".contains(",
        ".replace('', ",
        ".join(",
        ".split(",
        "(",
        "[",
        "]",
        "x",
        " ? ",
        " : ",
        "!",
        "-",
        ".filter(x, ",
        "{",
        "}",
        ", ",
        "\"",
        "\\",
        "in ",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).expect("smaller than the list")
    };
    let object = json!({ "s": "ab".repeat(500), "l": ["a", "b"], "n": [1, 2], "m": { "a": "b" } });
    for _ in 0..3_000 {
        let count = 1 + next(12);
        let rule: String = (0..count).map(|_| PIECES[next(PIECES.len())]).collect();
        check(&schema(&rule, true), "s", false);
        Compiler::default()
            .compile(&schema(&rule, true))
            .validate(&object, None);
    }
}

#[test]
fn deep_and_long_expressions_do_not_exhaust_the_stack() {
    let nested =
        |open: &str, close: &str| format!("{}1{}", open.repeat(5_000), close.repeat(5_000));
    let rules = [
        nested("(", ")"),
        nested("[", "]"),
        nested("-", ""),
        nested("!", ""),
        nested("{1:", "}"),
        format!("1{}", " + 1".repeat(50_000)),
        format!("self{}", ".a".repeat(50_000)),
        format!("true{}", " ? true : true".repeat(5_000)),
        "self.l.all(x, ".repeat(1_000),
    ];
    for rule in &rules {
        let problems = check(&schema(rule, true), "s", false);
        assert!(!problems.is_empty(), "{}", &rule[..40]);
    }
    let chain = format!("true{}", " && self.s != 'x'".repeat(2_000));
    assert_eq!(
        check(&schema(&chain, true), "s", false),
        crate::Problems::default()
    );
    let compiled = Compiler::default().compile(&schema(&chain, true));
    assert_eq!(
        compiled.validate(&json!({ "s": "y" }), None),
        crate::Problems::default()
    );
}
