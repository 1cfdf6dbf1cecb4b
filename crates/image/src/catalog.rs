//! The base images one may ask for, by version and architecture.

use serde::{Deserialize, Serialize};

/// One line of the list, in the words of the reference's `OS_IMAGES`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsImage {
    pub openshift_version: String,
    pub cpu_architecture: String,
    /// `http://`, `https://`, `file://` or a path. A local file is used where it is.
    pub url: String,
    /// The build of the operating system.
    pub version: String,
    /// What the file must hash to, in hex. Without it only the size is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Catalog {
    pub images: Vec<OsImage>,
}

impl Catalog {
    /// The build's own version counts first, then the release it belongs to.
    pub fn find(&self, version: &str, architecture: &str) -> Option<&OsImage> {
        let mut fitting = self
            .images
            .iter()
            .filter(|image| image.cpu_architecture == architecture);
        let by_build = fitting.clone().find(|image| image.version == version);
        by_build.or_else(|| fitting.find(|image| image.openshift_version == version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_preferred_to_a_release_of_the_same_name() {
        let image = |release: &str, build: &str, arch: &str| OsImage {
            openshift_version: release.into(),
            version: build.into(),
            cpu_architecture: arch.into(),
            ..OsImage::default()
        };
        let catalog = Catalog {
            images: vec![
                image("4.20", "48", "x86_64"),
                image("4.21", "4.20", "x86_64"),
                image("4.20", "48", "arm64"),
            ],
        };
        let find = |version, arch| {
            catalog
                .find(version, arch)
                .map(|image| image.openshift_version.as_str())
        };
        assert_eq!(find("4.20", "x86_64"), Some("4.21"));
        assert_eq!(find("48", "x86_64"), Some("4.20"));
        assert_eq!(find("4.20", "arm64"), Some("4.20"));
        assert_eq!(find("4.21", "arm64"), None);
    }
}
