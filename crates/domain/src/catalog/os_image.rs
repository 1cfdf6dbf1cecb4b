//! The operating system images discovery boots from, and how one is chosen.

use serde::{Deserialize, Serialize};

use super::{Catalog, CatalogError, Version};
use crate::infra_env::ImageType;
use crate::input::image::normal_architecture;
use crate::input::{Checked, Invalid};

const SETTING: &str = "OS_IMAGES";

/// One entry of the reference's `OS_IMAGES`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsImage {
    /// The release line it belongs to, such as `4.20`.
    pub openshift_version: String,
    #[serde(default = "x86_64")]
    pub cpu_architecture: String,
    /// Where the full live ISO is fetched from.
    pub url: String,
    /// The build of the operating system.
    #[serde(default)]
    pub version: String,
    /// What the ISO must hash to, in hex; ours alone, the reference does not check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// What the ISO is for; absent for the live ISO that full and minimal images are made of.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub image_type: Option<ImageType>,
}

fn x86_64() -> String {
    "x86_64".to_owned()
}

impl OsImage {
    /// The image of the same build that is written to a disk; it is kept beside the live ISO under a name of the
    /// same form. `None` when the ISO's name tells nothing.
    pub fn disk_image(&self) -> Option<String> {
        let (folder, file) = self.url.rsplit_once('/')?;
        let name = file.strip_suffix(".iso")?;
        let ending = if file.starts_with("fedora") {
            "raw.xz"
        } else {
            "raw.gz"
        };
        let metal = ["-live-iso.", "-live."]
            .into_iter()
            .find(|mark| name.contains(mark))
            .map(|mark| name.replacen(mark, "-metal.", 1))?;
        Some(format!("{folder}/{metal}.{ending}"))
    }

    fn release_line(&self) -> Version {
        Version::parse(&self.openshift_version).unwrap_or_default()
    }
}

pub(super) fn check(images: &mut Vec<OsImage>) -> Result<(), CatalogError> {
    // Lists written for the reference may name images of machines that install themselves alone. None of ours is made
    // of them, so they must not be taken for a live ISO of the same release.
    images.retain(|image| image.image_type != Some(ImageType::DisconnectedIso));
    if images.is_empty() {
        return Err(CatalogError::Empty { setting: SETTING });
    }
    let mut seen = std::collections::BTreeSet::new();
    for image in images {
        image.cpu_architecture = normal_architecture(&image.cpu_architecture).to_owned();
        if Version::parse(&image.openshift_version).is_none() {
            return Err(CatalogError::BadVersion {
                setting: SETTING,
                version: image.openshift_version.clone(),
            });
        }
        let key = format!("{} for {}", image.openshift_version, image.cpu_architecture);
        if let Some(sum) = &mut image.sha256 {
            *sum = sum.trim().to_ascii_lowercase();
            if sum.len() != 64 || !sum.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(CatalogError::BadChecksum {
                    setting: SETTING,
                    what: key,
                });
            }
        }
        if !seen.insert(key.clone()) {
            return Err(CatalogError::Twice {
                setting: SETTING,
                what: key,
            });
        }
    }
    Ok(())
}

/// Previews come last, whatever their number.
fn newest<'a>(images: &[&'a OsImage]) -> Option<&'a OsImage> {
    images
        .iter()
        .copied()
        .max_by_key(|image| (!image.release_line().is_prerelease(), image.release_line()))
}

impl Catalog {
    /// The image for a wish: the exact entry, else the newest of the same release line, else one whose OS build is
    /// named; without a wish that of the default version, or the newest that is not a preview.
    pub fn os_image(&self, wanted: Option<&str>, architecture: &str) -> Checked<&OsImage> {
        let architecture = normal_architecture(architecture);
        let fitting: Vec<&OsImage> = self
            .os_images
            .iter()
            .filter(|image| image.cpu_architecture == architecture)
            .collect();
        let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else {
            let default = Version::parse(self.default_version());
            let of_default = |image: &&OsImage| {
                default
                    .as_ref()
                    .is_some_and(|default| image.release_line().same_minor(default))
            };
            let same: Vec<&OsImage> = fitting.iter().copied().filter(of_default).collect();
            return newest(&same).or_else(|| newest(&fitting)).ok_or_else(|| {
                Invalid::rule(
                    "cpu_architecture",
                    format!("is {architecture}, for which no OS image is configured"),
                    format!("use one of {}", self.architectures().join(", ")),
                )
            });
        };
        let exact = fitting.iter().find(|image| image.openshift_version == wanted);
        let line = Version::parse(wanted);
        let same_line = || {
            let line = line.as_ref()?;
            let same: Vec<&OsImage> = fitting
                .iter()
                .copied()
                .filter(|image| image.release_line().same_minor(line))
                .collect();
            newest(&same)
        };
        let build = || fitting.iter().find(|image| image.version == wanted).copied();
        exact
            .copied()
            .or_else(same_line)
            .or_else(build)
            .ok_or_else(|| self.no_os_image(wanted, architecture))
    }

    /// The image whose build a label names, as in `rhcos-9.6.20251023-0`.
    pub fn os_image_of_build(&self, label: &str, architecture: &str) -> Option<&OsImage> {
        let architecture = normal_architecture(architecture);
        let named = |build: &str| {
            let before = label.strip_suffix(build).filter(|_| !build.is_empty())?;
            (before.is_empty() || before.ends_with('-')).then_some(())
        };
        self.os_images
            .iter()
            .find(|image| image.cpu_architecture == architecture && named(&image.version).is_some())
    }

    fn no_os_image(&self, wanted: &str, architecture: &str) -> Invalid {
        let mut have: Vec<&str> = self
            .os_images
            .iter()
            .filter(|image| image.cpu_architecture == architecture)
            .map(|image| image.openshift_version.as_str())
            .collect();
        have.dedup();
        let fix = match have.as_slice() {
            [] => format!(
                "choose an architecture with images: {}",
                self.architectures().join(", ")
            ),
            have => format!("use one of {}", have.join(", ")),
        };
        Invalid::rule(
            "openshift_version",
            format!(
                "is {}, for which no OS image for {architecture} is configured",
                crate::input::error::quoted(wanted)
            ),
            fix,
        )
    }

    /// Architectures we have images for, without repetition, in the order of the list.
    pub fn architectures(&self) -> Vec<String> {
        let mut list: Vec<String> = Vec::new();
        for image in &self.os_images {
            if !list.contains(&image.cpu_architecture) {
                list.push(image.cpu_architecture.clone());
            }
        }
        list
    }
}
