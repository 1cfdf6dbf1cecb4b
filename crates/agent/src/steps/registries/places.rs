//! Where an image is looked for: the mirrors that `registries.conf` names, and its own registry.

use serde::Deserialize;

/// A registry to ask under a name that may differ from the image's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub name: String,
    /// Its certificate need not be right, and it may speak plain HTTP.
    pub is_insecure: bool,
}

/// The part of `registries.conf` that pulls obey.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Places {
    registry: Vec<Entry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Entry {
    prefix: String,
    location: String,
    insecure: bool,
    blocked: bool,
    mirror_by_digest_only: bool,
    mirror: Vec<Mirror>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Mirror {
    location: String,
    insecure: bool,
    /// `all`, `digest-only` or `tag-only`.
    pull_from_mirror: String,
}

impl Entry {
    fn prefix(&self) -> &str {
        if self.prefix.is_empty() {
            &self.location
        } else {
            &self.prefix
        }
    }

    /// What follows the prefix, when the image is below it.
    fn rest<'a>(&self, image: &'a str) -> Option<&'a str> {
        let prefix = self.prefix();
        let rest = match prefix.strip_prefix("*.") {
            Some(domain) => {
                let (host, _) = image.split_once('/').unwrap_or((image, ""));
                let is_below = host.strip_suffix(domain).is_some_and(|name| name.ends_with('.'));
                return is_below.then(|| &image[host.len()..]);
            }
            None => image.strip_prefix(prefix).filter(|_| !prefix.is_empty())?,
        };
        (rest.is_empty() || rest.starts_with(['/', ':', '@'])).then_some(rest)
    }

    fn uses(&self, mirror: &Mirror, image: &str) -> bool {
        let is_digest = image.contains('@');
        match mirror.pull_from_mirror.as_str() {
            "digest-only" => is_digest,
            "tag-only" => !is_digest,
            _ => is_digest || !self.mirror_by_digest_only,
        }
    }

    fn places(&self, image: &str, rest: &str) -> Vec<Place> {
        let mirrors = self.mirror.iter().filter(|mirror| self.uses(mirror, image));
        let mut list: Vec<Place> = mirrors
            .map(|mirror| Place {
                name: format!("{}{rest}", mirror.location),
                is_insecure: mirror.insecure,
            })
            .collect();
        if !self.blocked {
            // A wildcard has no location of its own.
            let name = if self.location.is_empty() {
                image.to_owned()
            } else {
                format!("{}{rest}", self.location)
            };
            list.push(Place {
                name,
                is_insecure: self.insecure,
            });
        }
        list
    }
}

impl Places {
    /// A file that cannot be read changes nothing.
    pub fn parse(text: &str) -> Self {
        toml::from_str(text).unwrap_or_else(|error| {
            crate::note!("cannot use registries.conf: {error}");
            Self::default()
        })
    }

    /// In the order they are tried. The longest prefix decides.
    pub fn of(&self, image: &str) -> Vec<Place> {
        let matching = self
            .registry
            .iter()
            .filter_map(|entry| Some((entry, entry.rest(image)?)));
        match matching.max_by_key(|(entry, _)| entry.prefix().len()) {
            Some((entry, rest)) => entry.places(image, rest),
            None => vec![Place {
                name: image.to_owned(),
                is_insecure: false,
            }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONF: &str = r#"
        unqualified-search-registries = ["registry.example.com"]
        [[registry]]
        location = "quay.example/release"
        mirror-by-digest-only = true
        [[registry.mirror]]
        location = "mirror.lab:5000/ocp"
        insecure = true
        [[registry]]
        prefix = "quay.example"
        location = "quay.lab"
        [[registry]]
        prefix = "*.closed.example"
        blocked = true
        [[registry.mirror]]
        location = "mirror.lab:5000/closed"
    "#;

    fn names(image: &str) -> Vec<String> {
        let places = Places::parse(CONF).of(image);
        places.into_iter().map(|place| place.name).collect()
    }

    #[test]
    fn mirrors_come_first_and_the_longest_prefix_decides() {
        assert_eq!(
            names("quay.example/release/a@sha256:0"),
            [
                "mirror.lab:5000/ocp/a@sha256:0",
                "quay.example/release/a@sha256:0"
            ]
        );
        assert_eq!(
            names("quay.example/release:1"),
            ["quay.example/release:1"],
            "tags are not mirrored"
        );
        assert_eq!(names("quay.example/releases:1"), ["quay.lab/releases:1"]);
        assert_eq!(names("a.closed.example/x:1"), ["mirror.lab:5000/closed/x:1"]);
        assert_eq!(names("closed.example/x:1"), ["closed.example/x:1"]);
        assert!(Places::parse(CONF).of("quay.example/release@sha256:0")[0].is_insecure);
    }

    #[test]
    fn without_a_file_an_image_is_where_its_name_says() {
        for text in ["", "registry = 7"] {
            let places = Places::parse(text).of("h/a:1");
            assert_eq!(places.len(), 1);
            assert!(places[0].name == "h/a:1" && !places[0].is_insecure);
        }
    }
}
