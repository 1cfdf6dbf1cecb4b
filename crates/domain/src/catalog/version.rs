//! Versions of OpenShift: ordered, with pre-releases before their release.

use std::cmp::Ordering;
use std::fmt;

/// `4.20`, `4.20.33`, `5.0.0-ec.5`, with or without the suffix `-multi` (which is not part of the version).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    /// Absent when only the minor version was named.
    pub patch: Option<u32>,
    /// `ec.5` or `rc.1`; absent for a release.
    pub pre: Option<String>,
}

impl Version {
    /// The very beginning of a minor version: not after any of its builds, pre-releases included.
    pub fn new(major: u32, minor: u32) -> Version {
        Version {
            major,
            minor,
            patch: None,
            pre: None,
        }
    }

    pub fn parse(text: &str) -> Option<Version> {
        let text = text.strip_suffix("-multi").unwrap_or(text);
        let (numbers, pre) = match text.split_once('-') {
            Some((numbers, pre)) if !pre.is_empty() => (numbers, Some(pre.to_owned())),
            Some(_) => return None,
            None => (text, None),
        };
        let parts: Vec<u32> = numbers
            .split('.')
            .map(|part| part.parse().ok())
            .collect::<Option<_>>()?;
        match parts.as_slice() {
            [major, minor] => Some(Version {
                major: *major,
                minor: *minor,
                patch: None,
                pre,
            }),
            [major, minor, patch] => Some(Version {
                major: *major,
                minor: *minor,
                patch: Some(*patch),
                pre,
            }),
            _ => None,
        }
    }

    pub fn same_minor(&self, other: &Version) -> bool {
        (self.major, self.minor) == (other.major, other.minor)
    }

    pub fn is_prerelease(&self) -> bool {
        self.pre.is_some()
    }

    /// Numbers compare as numbers, so that rc.10 comes after rc.9.
    fn pre_key(&self) -> Vec<(u64, String)> {
        let parts = self.pre.iter().flat_map(|pre| pre.split('.'));
        parts
            .map(|part| (part.parse().unwrap_or(u64::MAX), part.to_owned()))
            .collect()
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| self.pre.is_none().cmp(&other.pre.is_none()))
            .then_with(|| self.pre_key().cmp(&other.pre_key()))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if let Some(patch) = self.patch {
            write!(f, ".{patch}")?;
        }
        self.pre.as_ref().map_or(Ok(()), |pre| write!(f, "-{pre}"))
    }
}
