//! The name of an image, taken apart.

/// `registry/repository:tag@digest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Without the registry and without `library/`: `rayproject/ray`, `busybox`.
    pub repository: String,
    /// `latest` where none is named.
    pub tag: String,
}

impl Reference {
    /// Takes a name apart. Every text is some name; whether anything stands for it is another matter.
    pub fn of(image: &str) -> Self {
        let name = image.split('@').next().unwrap_or_default();
        let (path, tag) = match name.rsplit_once(':') {
            // What follows the last colon is a port if a path follows it.
            Some((path, tag)) if !tag.contains('/') => (path, tag),
            Some(_) | None => (name, "latest"),
        };
        let repository = match path.split_once('/') {
            Some((first, rest)) if is_registry(first) => rest,
            Some(_) | None => path,
        };
        let repository = repository.strip_prefix("library/").unwrap_or(repository);
        Self {
            repository: repository.to_owned(),
            tag: tag.to_owned(),
        }
    }
}

fn is_registry(text: &str) -> bool {
    text == "localhost" || text.contains(['.', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let cases = [
            ("busybox", "busybox", "latest"),
            (
                "rayproject/ray:2.52.0-py311",
                "rayproject/ray",
                "2.52.0-py311",
            ),
            (
                "docker.io/rayproject/ray:2.52.0",
                "rayproject/ray",
                "2.52.0",
            ),
            ("docker.io/library/busybox:1.36", "busybox", "1.36"),
            ("localhost:5000/mine:1", "mine", "1"),
            ("localhost:5000/mine", "mine", "latest"),
            ("redis:7@sha256:abc", "redis", "7"),
            ("", "", "latest"),
        ];
        for (image, repository, tag) in cases {
            let found = Reference::of(image);
            assert_eq!(
                (&*found.repository, &*found.tag),
                (repository, tag),
                "{image}"
            );
        }
    }
}
