//! What the hub can offer: OS images, releases, features, operators and the names of its own images.

mod defaults;
mod features;
mod images;
pub mod olm;
mod os_image;
mod release;
mod version;

pub use features::{Level, architectures, features};
pub use images::Images;
pub use os_image::OsImage;
pub use release::{OpenshiftVersion, Release, ReleaseJson, SupportLevel, VersionFilter};
pub use version::Version;

/// Operators a cluster can be asked to bring along, in the spelling of the wire.
pub const OPERATORS: [&str; 28] = [
    "amd-gpu",
    "authorino",
    "cluster-observability",
    "cnv",
    "fence-agents-remediation",
    "kmm",
    "kube-descheduler",
    "loki",
    "lso",
    "lvm",
    "mce",
    "metallb",
    "mtv",
    "nmstate",
    "node-feature-discovery",
    "node-healthcheck",
    "node-maintenance",
    "numaresources",
    "nvidia-gpu",
    "oadp",
    "odf",
    "openshift-ai",
    "openshift-logging",
    "osc",
    "pipelines",
    "self-node-remediation",
    "serverless",
    "servicemesh",
];

/// Why a configured catalogue cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    #[error("{setting} is not the JSON list it should be: {problem}")]
    NotJson { setting: &'static str, problem: String },
    #[error("{setting} is empty: list at least one entry")]
    Empty { setting: &'static str },
    #[error("{setting} has the version {version:?}, which is not a version: write it like 4.20 or 4.20.33")]
    BadVersion { setting: &'static str, version: String },
    #[error("{setting} has a sha256 for {what} that is not valid: write 64 hexadecimal digits")]
    BadChecksum { setting: &'static str, what: String },
    #[error("{setting} lists {what} twice: keep one of them")]
    Twice { setting: &'static str, what: String },
    #[error("RELEASE_IMAGES marks several versions as default ({}): mark one", .versions.join(", "))]
    SeveralDefaults { versions: Vec<String> },
}

/// OS images and releases, checked: versions parse, nothing is listed twice, exactly one version is the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    pub os_images: Vec<OsImage>,
    pub releases: Vec<Release>,
    /// What we decided on the operator's behalf; for the log at start.
    pub notes: Vec<String>,
}

impl Catalog {
    /// From the JSON of `OS_IMAGES` and `RELEASE_IMAGES`; what is absent or empty comes from our own lists.
    pub fn from_json(os_images: Option<&str>, releases: Option<&str>) -> Result<Catalog, CatalogError> {
        let given = |text: Option<&str>| {
            text.map(str::trim)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let os_images = match given(os_images) {
            Some(text) => parse("OS_IMAGES", &text)?,
            None => defaults::os_images(),
        };
        let releases = match given(releases) {
            Some(text) => parse::<ReleaseJson>("RELEASE_IMAGES", &text)?
                .into_iter()
                .map(Release::from)
                .collect(),
            None => defaults::releases(),
        };
        Catalog::new(os_images, releases)
    }

    pub fn new(mut os_images: Vec<OsImage>, mut releases: Vec<Release>) -> Result<Catalog, CatalogError> {
        os_image::check(&mut os_images)?;
        let notes = release::check(&mut releases)?;
        Ok(Catalog {
            os_images,
            releases,
            notes,
        })
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Catalog::new(defaults::os_images(), defaults::releases()).expect("our own lists are tested")
    }
}

fn parse<T: serde::de::DeserializeOwned>(setting: &'static str, text: &str) -> Result<Vec<T>, CatalogError> {
    serde_json::from_str(text).map_err(|error| CatalogError::NotJson {
        setting,
        problem: error.to_string(),
    })
}

#[cfg(test)]
mod tests;
