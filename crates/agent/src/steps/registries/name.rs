//! Names of images, taken apart into registry, repository and what of it.

const DOCKER: &str = "docker.io";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Host and port.
    pub registry: String,
    pub repository: String,
    /// A tag or a digest.
    pub reference: String,
}

impl Name {
    pub fn parse(image: &str) -> Self {
        let (rest, digest) = match image.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (image, None),
        };
        // A colon before the last slash belongs to a port.
        let at = rest.rfind('/').map_or(0, |at| at + 1);
        let (rest, tag) = match rest[at..].split_once(':') {
            Some((last, tag)) => (&rest[..at + last.len()], Some(tag)),
            None => (rest, None),
        };
        let (registry, repository) = match rest.split_once('/') {
            Some((first, more)) if is_host(first) => (first, more),
            Some(_) | None => (DOCKER, rest),
        };
        let repository = if registry == DOCKER && !repository.contains('/') {
            format!("library/{repository}")
        } else {
            repository.to_owned()
        };
        Self {
            registry: registry.to_owned(),
            repository,
            reference: digest.or(tag).unwrap_or("latest").to_owned(),
        }
    }

    /// Where the registry is really asked.
    pub fn host(&self) -> &str {
        match self.registry.as_str() {
            DOCKER | "index.docker.io" => "registry-1.docker.io",
            other => other,
        }
    }
}

/// The first part of a name is a registry when it looks like a host.
fn is_host(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        for (image, registry, repository, reference) in [
            ("quay.example/org/app:1", "quay.example", "org/app", "1"),
            (
                "localhost:5000/app@sha256:00",
                "localhost:5000",
                "app",
                "sha256:00",
            ),
            ("localhost/app", "localhost", "app", "latest"),
            ("h:5000/a/b/c:v1@sha256:aa", "h:5000", "a/b/c", "sha256:aa"),
            ("org/busybox", "docker.io", "org/busybox", "latest"),
            ("busybox:1.36", "docker.io", "library/busybox", "1.36"),
        ] {
            let expected = Name {
                registry: registry.into(),
                repository: repository.into(),
                reference: reference.into(),
            };
            assert_eq!(Name::parse(image), expected, "{image}");
        }
        assert_eq!(Name::parse("busybox").host(), "registry-1.docker.io");
    }
}
