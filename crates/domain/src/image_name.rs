//! When two names of a container image mean the same image.

/// A digest says everything; without one on both sides the same image may still be spelled with or without its default
/// registry and tag.
pub fn same_image(one: &str, other: &str) -> bool {
    match (digest(one), digest(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => plain(one) == plain(other),
        // Nobody but the registry knows what a tag means today.
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn digest(image: &str) -> Option<&str> {
    image.split_once('@').map(|(_, digest)| digest)
}

fn plain(image: &str) -> &str {
    let image = ["docker.io/", "index.docker.io/"]
        .iter()
        .find_map(|registry| image.strip_prefix(registry))
        .unwrap_or(image);
    let image = image.strip_prefix("library/").unwrap_or(image);
    image.strip_suffix(":latest").unwrap_or(image)
}

#[cfg(test)]
mod tests {
    use super::same_image;

    #[test]
    fn one_image_may_be_spelled_in_several_ways() {
        for (one, other) in [
            ("registry.example.com/agent", "registry.example.com/agent:latest"),
            ("docker.io/library/agent:v1", "agent:v1"),
            ("index.docker.io/team/agent", "team/agent:latest"),
            (
                "mirror.example.com/agent@sha256:aa",
                "registry.example.com/agent@sha256:aa",
            ),
            (
                "registry.example.com/agent:v1@sha256:aa",
                "registry.example.com/agent@sha256:aa",
            ),
        ] {
            assert!(same_image(one, other), "{one} {other}");
            assert!(same_image(other, one), "{other} {one}");
        }
    }

    #[test]
    fn other_tags_and_digests_are_other_images() {
        for (one, other) in [
            ("registry.example.com/agent:v1", "registry.example.com/agent:v2"),
            (
                "registry.example.com/agent@sha256:aa",
                "registry.example.com/agent@sha256:bb",
            ),
            (
                "registry.example.com/agent@sha256:aa",
                "registry.example.com/agent",
            ),
            ("registry.example.com/agent", "other.example.com/agent"),
        ] {
            assert!(!same_image(one, other), "{one} {other}");
        }
    }
}
