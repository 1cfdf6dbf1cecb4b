//! The releases clusters are installed from, how one is chosen, and the list shown to clients.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Catalog, CatalogError, Version};
use crate::input::error::quoted;
use crate::input::image::normal_architecture;
use crate::input::{Checked, Invalid};

const SETTING: &str = "RELEASE_IMAGES";
const MULTI: &str = "multi";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SupportLevel {
    Beta,
    #[default]
    Production,
    Maintenance,
    EndOfLife,
}

/// One entry of the reference's `RELEASE_IMAGES`, as written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ReleaseJson {
    pub openshift_version: String,
    #[serde(default)]
    pub cpu_architecture: Option<String>,
    #[serde(default)]
    pub cpu_architectures: Vec<String>,
    pub url: String,
    #[serde(default)]
    pub version: Option<String>,
    #[serde(default)]
    pub default: bool,
    #[serde(default)]
    pub support_level: Option<SupportLevel>,
    /// This and the next two are ours alone: the reference asks the release image for them.
    #[serde(default)]
    pub mco_image: String,
    #[serde(default)]
    pub must_gather_image: String,
    #[serde(default)]
    pub coreos_image: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The exact version, such as `4.20.33`; a multi-architecture release ends in `-multi`.
    pub version: String,
    /// One architecture, or `multi`.
    pub cpu_architecture: String,
    /// What it runs on; one entry unless `multi`.
    pub cpu_architectures: Vec<String>,
    /// Pull address of the release image.
    pub url: String,
    pub default: bool,
    pub support_level: SupportLevel,
    /// Runs first on a new node; empty: the installer finds it out.
    pub mco_image: String,
    /// Gathers logs of a failed installation.
    pub must_gather_image: String,
    /// The operating system as a container image, for hosts whose running system is on a disk.
    pub coreos_image: String,
}

impl From<ReleaseJson> for Release {
    fn from(json: ReleaseJson) -> Release {
        let ReleaseJson {
            openshift_version,
            cpu_architecture,
            cpu_architectures,
            url,
            version,
            default,
            support_level,
            mco_image,
            must_gather_image,
            coreos_image,
        } = json;
        let mut all: Vec<String> = cpu_architectures
            .iter()
            .map(|a| normal_architecture(a).to_owned())
            .collect();
        let one = cpu_architecture.or_else(|| (all.len() == 1).then(|| all[0].clone()));
        let one = one.map_or_else(
            || if all.is_empty() { "x86_64" } else { MULTI }.to_owned(),
            |a| normal_architecture(&a).to_owned(),
        );
        if all.is_empty() && one == MULTI {
            all = ["x86_64", "arm64", "ppc64le", "s390x"]
                .map(str::to_owned)
                .to_vec();
        } else if all.is_empty() {
            all.push(one.clone());
        }
        let mut version = version.unwrap_or(openshift_version);
        if one == MULTI && !version.ends_with("-multi") {
            version.push_str("-multi");
        }
        let preview = Version::parse(&version).is_some_and(|version| version.is_prerelease());
        let usual = if preview {
            SupportLevel::Beta
        } else {
            SupportLevel::Production
        };
        let support_level = support_level.unwrap_or(usual);
        Release {
            version,
            cpu_architecture: one,
            cpu_architectures: all,
            url,
            default,
            support_level,
            mco_image,
            must_gather_image,
            coreos_image,
        }
    }
}

impl Release {
    fn number(&self) -> Version {
        Version::parse(&self.version).unwrap_or_default()
    }

    fn is_multi(&self) -> bool {
        self.cpu_architecture == MULTI
    }

    /// Can it install a cluster of `architecture` (one, or `multi`)?
    fn serves(&self, architecture: &str) -> bool {
        if architecture == MULTI {
            self.is_multi()
        } else {
            self.cpu_architectures.iter().any(|a| a == architecture)
        }
    }
}

/// Puts the list in order and leaves exactly one version as default; returns what was decided for the operator.
pub(super) fn check(releases: &mut [Release]) -> Result<Vec<String>, CatalogError> {
    if releases.is_empty() {
        return Err(CatalogError::Empty { setting: SETTING });
    }
    let mut seen = std::collections::BTreeSet::new();
    for release in releases.iter() {
        if Version::parse(&release.version).is_none() {
            return Err(CatalogError::BadVersion {
                setting: SETTING,
                version: release.version.clone(),
            });
        }
        let key = format!("{} for {}", release.version, release.cpu_architecture);
        if !seen.insert(key.clone()) {
            return Err(CatalogError::Twice {
                setting: SETTING,
                what: key,
            });
        }
    }
    releases.sort_by_key(Release::number);
    let mut defaults: Vec<String> = releases
        .iter()
        .filter(|r| r.default)
        .map(|r| r.version.clone())
        .collect();
    defaults.dedup();
    let (chosen, notes) = match defaults.as_slice() {
        [one] => (one.clone(), Vec::new()),
        [] => {
            let newest = newest_default(releases);
            let note = format!("{SETTING} marks no version as default; the hub uses {newest}");
            (newest, vec![note])
        }
        several => {
            return Err(CatalogError::SeveralDefaults {
                versions: several.to_vec(),
            });
        }
    };
    for release in releases.iter_mut() {
        release.default = release.version == chosen;
    }
    Ok(notes)
}

/// The newest production release, for one architecture if there is such; else simply the newest.
fn newest_default(releases: &[Release]) -> String {
    let rank = |r: &&Release| {
        (
            r.support_level == SupportLevel::Production,
            r.number(),
            !r.is_multi(),
        )
    };
    releases
        .iter()
        .max_by_key(rank)
        .map(|release| release.version.clone())
        .unwrap_or_default()
}

/// What the tag of an image tells. The last colon of an image without a tag belongs to a port.
fn tagged(image: &str) -> Option<Release> {
    let name = image.split('@').next().unwrap_or(image);
    let (_, tag) = name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
    let words = ["x86_64", "amd64", "aarch64", "arm64", "ppc64le", "s390x", MULTI];
    let (version, architecture) = words
        .iter()
        .find_map(|word| Some((tag.strip_suffix(word)?.strip_suffix('-')?, *word)))
        .unwrap_or((tag, "x86_64"));
    Version::parse(version).filter(|version| version.patch.is_some())?;
    let architecture = if architecture == "amd64" {
        "x86_64"
    } else {
        architecture
    };
    Some(Release::from(ReleaseJson {
        openshift_version: version.to_owned(),
        cpu_architecture: Some(architecture.to_owned()),
        cpu_architectures: Vec::new(),
        url: image.to_owned(),
        version: None,
        default: false,
        support_level: None,
        mco_image: String::new(),
        must_gather_image: String::new(),
        coreos_image: String::new(),
    }))
}

/// One line of `openshift-versions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenshiftVersion {
    pub display_name: String,
    pub support_level: SupportLevel,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
    pub cpu_architectures: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct VersionFilter {
    /// Only versions that contain this text.
    pub version: Option<String>,
    /// Only the newest of each minor version.
    pub only_latest: bool,
}

impl Catalog {
    /// The release for a cluster: the exact version, else the newest of the minor version. A release for that
    /// architecture alone is preferred to one for many, unless the version says `-multi`.
    pub fn release(&self, wanted: &str, architecture: &str) -> Checked<&Release> {
        let architecture = if wanted.ends_with("-multi") {
            MULTI
        } else {
            normal_architecture(architecture)
        };
        let number = Version::parse(wanted);
        let serving = || {
            self.releases
                .iter()
                .filter(|release| release.serves(architecture))
        };
        let best = |r: &&Release| (!r.number().is_prerelease(), r.number(), !r.is_multi());
        let exact = serving()
            .filter(|release| Some(release.number()) == number)
            .max_by_key(best);
        let newest = || {
            let number = number.as_ref().filter(|number| number.patch.is_none())?;
            serving()
                .filter(|release| release.number().same_minor(number))
                .max_by_key(best)
        };
        exact.or_else(newest).ok_or_else(|| {
            let mut have: Vec<String> = serving().map(|release| release.version.clone()).collect();
            have.dedup();
            let fix = match have.as_slice() {
                [] => "ask the operator of this hub for a release for this architecture".to_owned(),
                have => format!("use one of {}", have.join(", ")),
            };
            let problem = format!(
                "is {}, for which no release for {architecture} is configured",
                quoted(wanted)
            );
            Invalid::rule("openshift_version", problem, fix)
        })
    }

    /// The release whose image this is: from the list, else by the version and architecture that the image's tag
    /// tells, as `4.20.33-x86_64` does. A digest alone tells nothing.
    pub fn release_of_image(&self, image: &str) -> Checked<Release> {
        let image = image.trim();
        if let Some(release) = self.releases.iter().find(|release| release.url == image) {
            return Ok(release.clone());
        }
        tagged(image).ok_or_else(|| {
            let problem = format!("is {}, which names no version", quoted(image));
            let fix = format!("use an image with a tag like 4.20.33-x86_64, or list this one in {SETTING}");
            Invalid::rule("ocp_release_image", problem, fix)
        })
    }

    /// The one version marked as default.
    pub fn default_version(&self) -> &str {
        self.releases
            .iter()
            .find(|release| release.default)
            .map_or("", |release| release.version.as_str())
    }

    /// The map behind `openshift-versions`. Architectures without an OS image are left out: they could be
    /// installed but not discovered here.
    pub fn openshift_versions(&self, filter: &VersionFilter) -> BTreeMap<String, OpenshiftVersion> {
        let bootable = self.architectures();
        let mut map: BTreeMap<String, OpenshiftVersion> = BTreeMap::new();
        for release in self
            .releases
            .iter()
            .filter(|release| self.is_listed(release, filter))
        {
            let line = map
                .entry(release.version.clone())
                .or_insert_with(|| OpenshiftVersion {
                    display_name: release.version.clone(),
                    support_level: release.support_level,
                    default: release.default,
                    cpu_architectures: Vec::new(),
                });
            for architecture in release.cpu_architectures.iter().filter(|a| bootable.contains(a)) {
                if !line.cpu_architectures.contains(architecture) {
                    line.cpu_architectures.push(architecture.clone());
                }
            }
        }
        map.retain(|_, line| !line.cpu_architectures.is_empty());
        map
    }

    fn is_listed(&self, release: &Release, filter: &VersionFilter) -> bool {
        let named = filter
            .version
            .as_ref()
            .is_none_or(|text| release.version.contains(text.as_str()));
        let number = release.number();
        let newer = |other: &Release| {
            other.is_multi() == release.is_multi()
                && other.number().same_minor(&number)
                && other.number() > number
        };
        named && !(filter.only_latest && self.releases.iter().any(newer))
    }
}
