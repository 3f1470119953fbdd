//! Paths of fields as messages name them, such as `spec.groups[0].name`, built on the way down.
//!
//! They are bounded: one name of a megabyte would else be copied for each of the thousands below it.

/// The longest path that is told in full. Names that people give have at most a few hundred bytes.
const PATH_BYTES_MAX: usize = 4 * 1024;

/// What a path that is not told in full ends with.
const MORE: &str = "...";

/// One step from a value into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// A member that the type of an object has.
    Member(&'a str),
    /// A key of a map, or an element that has a name.
    Key(&'a str),
    /// An element of a list.
    Index(usize),
}

/// The path of what lies one step below another; a path that is long enough stays as it is.
pub fn below(path: &str, step: Step<'_>) -> String {
    if path.len() > PATH_BYTES_MAX {
        return path.to_owned();
    }
    match step {
        Step::Member(name) if path.is_empty() => bounded(name),
        Step::Member(name) => bounded(&format!("{path}.{name}")),
        Step::Key(name) => bounded(&format!("{path}[{name}]")),
        Step::Index(index) => format!("{path}[{index}]"),
    }
}

/// A path as it may be told.
pub(crate) fn bounded(path: &str) -> String {
    if path.len() <= PATH_BYTES_MAX {
        return path.to_owned();
    }
    let end = path.floor_char_boundary(PATH_BYTES_MAX);
    format!("{}{MORE}", &path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_upstream_writes_them() {
        let path = below("", Step::Member("spec"));
        let path = below(&path, Step::Member("groups"));
        let path = below(&path, Step::Index(3));
        assert_eq!(below(&path, Step::Key("a")), "spec.groups[3][a]");
        assert_eq!(below(&path, Step::Member("b")), "spec.groups[3].b");
    }

    #[test]
    fn a_path_that_is_too_long_is_cut_once_and_stays() {
        for name in ["x".repeat(1 << 20), "ä".repeat(1 << 19)] {
            let path = below("spec", Step::Key(&name));
            assert!(path.len() < PATH_BYTES_MAX + 4 && path.ends_with(MORE));
            assert_eq!(below(&path, Step::Member("b")), path);
        }
    }
}
