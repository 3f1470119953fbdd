//! `$(NAME)` in commands, arguments and variables, as Kubernetes expands it: `$$` is a dollar, a name
//! that nobody knows stays as it was written.
//!
//! The node's shell calls this after it has looked up Secrets; nothing of them passes through here.

use std::collections::BTreeMap;
use std::fmt;

use super::room::{Full, Room};

/// The value of a variable before expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Template {
    /// From a manifest: may name earlier variables.
    Text(String),
    /// From a `ConfigMap` or Secret: stays as it is.
    Literal(String),
}

/// The longest variable (`NAME=value`) or argument that a program can be started with: the kernel's
/// `MAX_ARG_STRLEN`, which counts the zero byte at its end.
pub const TEXT_BYTES_MAX: usize = 128 * 1024 - 1;
/// How much all variables and arguments may be together. The kernel takes a quarter of the limit on the
/// stack, which is 2 MiB where nobody changed it.
pub const ALL_BYTES_MAX: usize = 1024 * 1024;
/// What each text costs beyond its own bytes: a zero byte and a pointer to it.
const TEXT_COST: usize = 9;
/// How much of a name is told: as much as the name of an object may have.
const SHOWN_LETTERS_MAX: usize = 253;

/// What may still be written for one container. Whatever is put in costs, also if it is replaced later:
/// a few lines of a manifest can stand for more than there is memory.
#[derive(Debug)]
pub struct Budget {
    room: Room,
}

impl Default for Budget {
    fn default() -> Self {
        let room = Room::of(ALL_BYTES_MAX);
        Self { room }
    }
}

/// No program can be started with this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TooLarge {
    Variable {
        name: String,
    },
    Argument {
        number: usize,
    },
    /// Each is small enough, but all up to this one are not.
    Together {
        what: String,
    },
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable { name } => write!(
                f,
                "env {name:?} is too large: with its name and all $(NAME) put in it has more than \
                 {TEXT_BYTES_MAX} bytes"
            ),
            Self::Argument { number } => write!(
                f,
                "argument {number} of the command is too large: with all $(NAME) put in it has \
                 more than {TEXT_BYTES_MAX} bytes"
            ),
            Self::Together { what } => write!(
                f,
                "{what} is too large: up to it, env and command have more than {ALL_BYTES_MAX} \
                 bytes together"
            ),
        }
    }
}

impl TooLarge {
    /// One variable is too large, whatever comes beside it.
    pub(super) fn variable(name: &str) -> Self {
        let name = shown(name);
        Self::Variable { name }
    }

    /// All variables up to this one are too large together.
    pub(super) fn together(name: &str) -> Self {
        let what = format!("env {:?}", shown(name));
        Self::Together { what }
    }
}

/// An environment while it is put together.
#[derive(Debug)]
pub struct Variables<'a> {
    budget: &'a mut Budget,
    known: BTreeMap<String, String>,
    order: Vec<String>,
}

impl Variables<'_> {
    /// Adds a variable. Order counts: a value sees only what stands before it, and a name that comes
    /// again replaces its value in its first place.
    ///
    /// Errors: no program can be started with it.
    pub fn put(&mut self, name: String, template: Template) -> Result<(), TooLarge> {
        let overhead = name.len() + 1;
        let too_large = || TooLarge::variable(&name);
        let room = TEXT_BYTES_MAX.checked_sub(overhead);
        let room = room.ok_or_else(too_large)?;
        let value = match template {
            Template::Text(text) => expand(&text, &self.known, room),
            Template::Literal(text) => Some(text).filter(|it| it.len() <= room),
        };
        let value = value.ok_or_else(too_large)?;
        let spent = self.budget.spend(overhead + value.len());
        spent.map_err(|_| TooLarge::together(&name))?;
        if self.known.insert(name.clone(), value).is_none() {
            self.order.push(name);
        }
        Ok(())
    }

    /// All of them, in the order in which their names came first.
    pub fn finish(mut self) -> Vec<(String, String)> {
        let known = &mut self.known;
        let value = |name: String| {
            let value = known.remove(&name).unwrap_or_default();
            (name, value)
        };
        self.order.into_iter().map(value).collect()
    }
}

impl Budget {
    /// Begins the environment of a container.
    pub fn environment(&mut self) -> Variables<'_> {
        Variables {
            budget: self,
            known: BTreeMap::new(),
            order: Vec::new(),
        }
    }

    /// A command and its arguments with their variables put in.
    ///
    /// Errors: no program can be started with it; the first argument for which that is so.
    pub fn command<'a>(
        &mut self,
        parts: impl Iterator<Item = &'a String>,
        variables: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, TooLarge> {
        let mut command = Vec::new();
        for (number, part) in parts.enumerate() {
            let part = expand(part, variables, TEXT_BYTES_MAX);
            let part = part.ok_or(TooLarge::Argument { number })?;
            self.spend(part.len()).map_err(|_| TooLarge::Together {
                what: format!("argument {number} of the command"),
            })?;
            command.push(part);
        }
        Ok(command)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Full> {
        self.room.take(bytes + TEXT_COST)
    }
}

/// A name as it is told: it may be as large as what is refused.
fn shown(name: &str) -> String {
    match name.char_indices().nth(SHOWN_LETTERS_MAX) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// A text with its variables put in; None as soon as it has more than so many bytes.
fn expand(text: &str, variables: &BTreeMap<String, String>, bytes_max: usize) -> Option<String> {
    let mut out = Bounded {
        text: String::new(),
        bytes_max,
    };
    let mut rest = text;
    // Behind the last `)` nothing is looked for any more, however many `$(` come.
    let last = text.rfind(')').map_or(0, |at| at + 1);
    while let Some(at) = rest.find('$') {
        out.push(&rest[..at])?;
        let tail = &rest[at + 1..];
        let is_closed = text.len() - tail.len() < last;
        let named = tail.strip_prefix('(').filter(|_| is_closed);
        if let Some(after) = tail.strip_prefix('$') {
            out.push("$")?;
            rest = after;
        } else if let Some((name, after)) = named.and_then(|it| it.split_once(')')) {
            if let Some(value) = variables.get(name) {
                out.push(value)?;
            } else {
                out.push("$(")?;
                out.push(name)?;
                out.push(")")?;
            }
            rest = after;
        } else {
            out.push("$")?;
            rest = tail;
        }
    }
    out.push(rest)?;
    Some(out.text)
}

/// A text that never grows beyond a bound.
struct Bounded {
    text: String,
    bytes_max: usize,
}

impl Bounded {
    fn push(&mut self, more: &str) -> Option<()> {
        if self.text.len() + more.len() > self.bytes_max {
            return None;
        }
        self.text.push_str(more);
        Some(())
    }
}

/// A text that is the same after its variables are put in.
pub fn escape(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use super::{ALL_BYTES_MAX, BTreeMap, Budget, TEXT_BYTES_MAX, Template, TooLarge, escape};

    fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
        super::expand(text, variables, TEXT_BYTES_MAX).expect("it is short")
    }

    fn environment(variables: &[(String, Template)]) -> Result<Vec<(String, String)>, TooLarge> {
        within(&mut Budget::default(), variables)
    }

    fn within(
        budget: &mut Budget,
        variables: &[(String, Template)],
    ) -> Result<Vec<(String, String)>, TooLarge> {
        let mut all = budget.environment();
        for (name, template) in variables {
            all.put(name.clone(), template.clone())?;
        }
        Ok(all.finish())
    }

    fn text(name: &str, value: &str) -> (String, Template) {
        (name.to_owned(), Template::Text(value.to_owned()))
    }

    /// Sixty lines stood for 2^61 bytes, and the kernel ended the control plane at each start.
    #[test]
    fn variables_that_double_are_refused_by_name() {
        let mut variables = vec![text("A0", "xx")];
        for number in 1..60 {
            let (before, name) = (number - 1, format!("A{number}"));
            variables.push(text(&name, &format!("$(A{before})$(A{before})")));
        }
        let name = "A16".to_owned();
        assert_eq!(environment(&variables), Err(TooLarge::Variable { name }));
        assert!(
            environment(&variables[..16]).is_ok(),
            "65536 bytes are none too many"
        );
    }

    #[test]
    fn a_variable_counts_with_its_name_and_an_argument_alone() {
        let longest = "x".repeat(TEXT_BYTES_MAX - 2);
        assert!(environment(&[text("A", &longest)]).is_ok());
        let name = "AB".to_owned();
        assert_eq!(
            environment(&[text("AB", &longest)]),
            Err(TooLarge::Variable { name: name.clone() })
        );
        let literal = (name.clone(), Template::Literal(longest.clone()));
        assert_eq!(environment(&[literal]), Err(TooLarge::Variable { name }));
        let endless = (longest.clone() + "xxx", Template::Text(String::new()));
        assert!(
            environment(&[endless]).is_err(),
            "a name alone can be too long"
        );
        let command = |text: String| {
            let parts = ["sh".to_owned(), text];
            Budget::default().command(parts.iter(), &known())
        };
        assert!(command(format!("{longest}$(A)$(A)")).is_ok());
        let number = 1;
        assert_eq!(
            command(format!("{longest}$(A)$(A)$(A)")),
            Err(TooLarge::Argument { number })
        );
    }

    /// The message goes into the pod's status, with a name of megabytes in it.
    #[test]
    fn a_name_is_told_only_as_far_as_a_name_may_go() {
        let name = "ä".repeat(TEXT_BYTES_MAX);
        let told = environment(&[text(&name, "")])
            .expect_err("too large")
            .to_string();
        assert!(
            told.starts_with("env \"ää") && told.contains("ä...\" is too large"),
            "{told}"
        );
        assert_eq!(told.matches('ä').count(), 253);
        let long = "x".repeat(100_000);
        let many: Vec<_> = (0..20).map(|it| text(&format!("{long}{it}"), "")).collect();
        let told = environment(&many).expect_err("too large").to_string();
        assert!(told.len() < 500, "{} bytes", told.len());
        let longest = "x".repeat(253);
        assert_eq!(super::shown(&longest), longest);
    }

    #[test]
    fn all_together_are_bounded_and_what_is_replaced_counts() {
        let large = "x".repeat(100_000);
        let many: Vec<_> = (0..100).map(|it| text(&format!("A{it}"), &large)).collect();
        let what = "env \"A10\"".to_owned();
        assert_eq!(environment(&many), Err(TooLarge::Together { what }));
        let same: Vec<_> = (0..100).map(|_| text("A", &large)).collect();
        assert!(environment(&same).is_err());
        let small: Vec<_> = (0..200_000).map(|it| text(&it.to_string(), "")).collect();
        assert!(
            environment(&small).is_err(),
            "each costs, though it is empty"
        );
        let mut budget = Budget::default();
        let variables = within(&mut budget, &many[..5]).expect("half of it");
        let known: BTreeMap<_, _> = variables.into_iter().collect();
        let parts = vec!["$(A0)".to_owned(); 1_000];
        let told = budget
            .command(parts.iter(), &known)
            .expect_err("a hundred times");
        assert_eq!(
            told.to_string(),
            format!(
                "argument 5 of the command is too large: up to it, env and command have more than \
                 {ALL_BYTES_MAX} bytes together"
            )
        );
    }

    /// Each `$(` looked for its end behind all others: some minutes for a megabyte.
    #[test]
    fn names_without_an_end_cost_no_more_than_their_length() {
        let text = "$(".repeat(4_000_000);
        let bytes_max = text.len();
        assert_eq!(super::expand(&text, &known(), bytes_max), Some(text));
        let empty = BTreeMap::from([("E".to_owned(), String::new())]);
        let text = "$(E)".repeat(1_000_000) + &"$(".repeat(1_000_000);
        let expect = "$(".repeat(1_000_000);
        assert_eq!(super::expand(&text, &empty, bytes_max), Some(expect));
    }

    fn known() -> BTreeMap<String, String> {
        BTreeMap::from([("A".to_owned(), "1".to_owned())])
    }

    #[test]
    fn names_are_replaced_and_unknown_ones_stay() {
        for (text, expect) in [
            ("x$(A)y", "x1y"),
            ("$(B)", "$(B)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$A $", "$A $"),
            ("$(A", "$(A"),
            ("$()", "$()"),
        ] {
            assert_eq!(expand(text, &known()), expect, "{text}");
        }
    }

    #[test]
    fn what_is_escaped_comes_out_as_it_was() {
        for text in ["$(A)", "$$", "a$b", ""] {
            assert_eq!(expand(&escape(text), &known()), text);
        }
    }

    #[test]
    fn a_variable_sees_only_what_stands_before_it() {
        let text = |it: &str| Template::Text(it.to_owned());
        let made = environment(&[
            ("FIRST".to_owned(), text("$(SECOND)")),
            (
                "SECOND".to_owned(),
                Template::Literal("$(FIRST)".to_owned()),
            ),
            ("THIRD".to_owned(), text("$(SECOND)!")),
            ("FIRST".to_owned(), text("again")),
        ])
        .expect("it is short");
        let expect = [
            ("FIRST", "again"),
            ("SECOND", "$(FIRST)"),
            ("THIRD", "$(FIRST)!"),
        ];
        let expect: Vec<_> = expect
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(made, expect);
    }
}
