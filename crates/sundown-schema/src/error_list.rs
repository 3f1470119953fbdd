//! A list of errors that stays small however much is wrong: what was refused is told to people, and a
//! body of a few megabytes can hold a million faults. What an error says is its own type's business.

/// How many errors are kept. Upstream keeps all of them; a definition of which each rule is told to be
/// wrong has a few hundred.
pub const ERRORS_MAX: usize = 1_000;
/// No more are kept once those that are there have as many bytes: one can list thousands of values.
const ERRORS_BYTES_MAX: usize = 1024 * 1024;

/// What can be told as an error.
pub trait Told {
    /// How many bytes it holds.
    fn byte_count(&self) -> usize;
}

/// The first errors, and how many there are in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorList<T> {
    kept: Vec<T>,
    bytes: usize,
    count: usize,
    /// Errors are counted and none is made.
    counts_only: bool,
}

impl<T> Default for ErrorList<T> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            bytes: 0,
            count: 0,
            counts_only: false,
        }
    }
}

impl<T> ErrorList<T> {
    /// A list that counts errors and keeps none: for a question whose answer is a number.
    pub fn counting() -> Self {
        Self {
            counts_only: true,
            ..Self::default()
        }
    }

    /// An empty list for errors that go into this one later: it makes none that could not be kept here.
    #[must_use]
    pub fn part(&self) -> Self {
        Self {
            counts_only: !self.has_room(),
            ..Self::default()
        }
    }

    /// Whether one more would be kept.
    pub fn has_room(&self) -> bool {
        !self.counts_only && self.kept.len() < ERRORS_MAX && self.bytes < ERRORS_BYTES_MAX
    }

    /// Counts errors that are told nowhere.
    pub fn count_more(&mut self, count: usize) {
        self.count += count;
    }

    /// Those that are kept.
    pub fn kept(&self) -> &[T] {
        &self.kept
    }

    /// How many there are, with those that are not kept.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Goes over those that are kept.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.kept.iter()
    }

    /// How many are not kept.
    pub fn dropped(&self) -> usize {
        self.count - self.kept.len()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Puts those that are kept in order.
    pub fn sort_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K) {
        self.kept.sort_by_key(key);
    }
}

impl<T: Told> ErrorList<T> {
    /// Adds one, or counts it.
    pub fn push(&mut self, error: T) {
        self.push_with(|| error);
    }

    /// The same of one that costs much: it is made only if it is kept.
    pub fn push_with(&mut self, error: impl FnOnce() -> T) {
        self.count += 1;
        if self.has_room() {
            let error = error();
            self.bytes += error.byte_count();
            self.kept.push(error);
        }
    }

    /// Adds all of another list, with those that it counted only.
    pub fn append(&mut self, other: Self) {
        self.count += other.dropped();
        self.extend(other.kept);
    }

    /// The same errors in another form.
    pub fn map<U: Told>(self, form: impl FnMut(T) -> U) -> ErrorList<U> {
        let dropped = self.dropped();
        let mut mapped: ErrorList<U> = self.kept.into_iter().map(form).collect();
        mapped.count += dropped;
        mapped
    }
}

impl<'a, T> IntoIterator for &'a ErrorList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Told> Extend<T> for ErrorList<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, errors: I) {
        for error in errors {
            self.push(error);
        }
    }
}

impl<T: Told> FromIterator<T> for ErrorList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(errors: I) -> Self {
        let mut list = Self::default();
        list.extend(errors);
        list
    }
}

impl<T: Told, const N: usize> From<[T; N]> for ErrorList<T> {
    fn from(errors: [T; N]) -> Self {
        errors.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{ERRORS_BYTES_MAX, ERRORS_MAX, ErrorList, Told};

    impl Told for String {
        fn byte_count(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn the_first_errors_are_kept_and_all_are_counted() {
        let mut list: ErrorList<String> = (0..1_250).map(|it| it.to_string()).collect();
        assert_eq!(
            (list.kept().len(), list.len(), list.dropped()),
            (ERRORS_MAX, 1_250, 250)
        );
        let mut outer = ErrorList::from(["first".to_owned()]);
        outer.append(list.clone());
        assert_eq!((outer.kept().len(), outer.len()), (ERRORS_MAX, 1_251));
        assert_eq!(outer.kept()[1], "0");
        assert_eq!(list.clone().map(|it| it + "!").len(), 1_250);
        list.push_with(|| unreachable!("no more are made than kept"));
        assert_eq!(list.len(), 1_251);
    }

    #[test]
    fn errors_that_say_much_are_fewer_and_the_first_is_always_told() {
        let large = "x".repeat(ERRORS_BYTES_MAX);
        let list: ErrorList<String> = (0..5).map(|_| large.clone()).collect();
        assert_eq!((list.kept().len(), list.len()), (1, 5));
        let mut part = list.part();
        part.push_with(|| unreachable!("there is no room where it would go"));
        assert_eq!((part.kept().len(), part.len()), (0, 1));
    }

    #[test]
    fn a_list_that_counts_makes_no_error() {
        let mut list: ErrorList<String> = ErrorList::counting();
        list.push_with(|| unreachable!("only the number is asked for"));
        list.count_more(2);
        assert_eq!((list.kept().len(), list.len()), (0, 3));
        let mut told = ErrorList::from(["first".to_owned()]);
        told.append(list);
        assert_eq!((told.kept().len(), told.len()), (1, 4));
        assert!(told.part().has_room());
    }
}
