//! Base images: what import finds in them, and the templates made of them.

pub mod areas;
mod coreos;
pub mod description;
pub mod inspection;
mod menu;
pub mod miniso;
pub mod template;

use crate::error::ImageError;
use crate::iso::Iso;
use crate::layout::Layout;
use areas::{Area, Areas, FORMAT, Family};
use description::Description;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};
use template::Template;

/// Where `muster image build` describes its images.
pub const OWN_DESCRIPTION: &str = "muster/image.json";
/// Where the agent of Muster's own images, and of generic ones, looks for its configuration: the root, as on CoreOS.
pub const OWN_CONFIG_PATH: &str = "config.ign";

/// A base image that is open. The file never changes; requests keep it open even when it is evicted.
#[derive(Debug)]
pub struct Base {
    pub areas: Areas,
    pub file: Arc<File>,
    iso: Iso,
    full: OnceLock<Template>,
    minimal: OnceLock<Template>,
    roomy_minimal: OnceLock<Template>,
}

impl Base {
    /// Reads the directories of the image; `areas` comes from an earlier [`import`].
    pub fn open(file: Arc<File>, areas: Areas) -> Result<Base, ImageError> {
        let len = file.metadata()?.len();
        if len != areas.len {
            return Err(ImageError::bad("its size differs from the recorded one"));
        }
        Ok(Base {
            iso: Iso::open(Layout::of_file(&file, 0..len))?,
            areas,
            file,
            full: OnceLock::new(),
            minimal: OnceLock::new(),
            roomy_minimal: OnceLock::new(),
        })
    }

    pub fn full(&self) -> Result<&Template, ImageError> {
        kept(&self.full, || template::full(&self.iso, &self.areas))
    }

    pub fn minimal(&self) -> Result<&Template, ImageError> {
        kept(&self.minimal, || template::minimal(&self.iso, &self.areas))
    }

    /// For payloads that are too large for [`Base::minimal`].
    pub fn roomy_minimal(&self) -> Result<&Template, ImageError> {
        kept(&self.roomy_minimal, || {
            template::rewritten_minimal(&self.iso, &self.areas)
        })
    }

    pub fn part(&self, area: Option<Area>, name: &'static str) -> Result<Layout, ImageError> {
        let area = area.ok_or(ImageError::Absent(name))?;
        Ok(self.iso.layout.slice(area.range()))
    }
}

/// Two requests may make the same template at once; both are equal, so the first one is kept.
fn kept(
    place: &OnceLock<Template>,
    make: impl FnOnce() -> Result<Template, ImageError>,
) -> Result<&Template, ImageError> {
    match place.get() {
        Some(template) => Ok(template),
        None => {
            let template = make()?;
            Ok(place.get_or_init(|| template))
        }
    }
}

/// Looks at an image for the first time: its areas and its checksum. Reads the whole file; not for async code.
pub fn import(file: &Arc<File>) -> Result<Areas, ImageError> {
    let len = file.metadata()?.len();
    let iso = Iso::open(Layout::of_file(file, 0..len))?;
    iso.whole()?;
    let mut areas = find(&iso)?;
    // A generic image gets its area from us; one that describes itself has none on purpose.
    if areas.family == Family::Muster && areas.payload.is_none() {
        return Err(ImageError::bad(
            "it is a system to be installed (`muster image build --system`), not a discovery image",
        ));
    }
    areas.sha256 = sha256(file, len)?;
    Ok(areas)
}

fn find(iso: &Iso) -> Result<Areas, ImageError> {
    if let Some(entry) = iso.find(OWN_DESCRIPTION) {
        let bytes = iso.read(entry, 1024 * 1024)?;
        return own_areas(iso, &coreos::parse(&bytes, OWN_DESCRIPTION)?);
    }
    let areas = coreos_areas(iso)?;
    if areas.payload.is_some() {
        return Ok(areas);
    }
    generic_areas(iso)
}

fn blank(iso: &Iso, family: Family, config_path: &str) -> Areas {
    Areas {
        format: FORMAT,
        sha256: String::new(),
        len: iso.layout.len(),
        volume: iso.volume.clone(),
        family,
        config_path: config_path.to_owned(),
        payload: None,
        kargs: None,
        kernel: None,
        initrd: None,
        rootfs: None,
        initrd_addrsize: None,
        ins_file: None,
        miniso: None,
    }
}

fn coreos_areas(iso: &Iso) -> Result<Areas, ImageError> {
    let area = |paths: &[&str]| {
        paths
            .iter()
            .find_map(|path| iso.find(path))
            .map(|entry| entry.range().into())
    };
    Ok(Areas {
        payload: coreos::ignition(iso)?,
        kargs: coreos::kargs(iso)?,
        kernel: area(&["images/pxeboot/vmlinuz", "images/pxeboot/kernel.img"]),
        initrd: area(&["images/pxeboot/initrd.img"]),
        rootfs: area(&["images/pxeboot/rootfs.img"]),
        initrd_addrsize: area(&["images/initrd.addrsize"]),
        ins_file: area(&["generic.ins"]),
        miniso: area(&["coreos/miniso.dat"]),
        ..blank(iso, Family::Coreos, "config.ign")
    })
}

fn own_areas(iso: &Iso, own: &Description) -> Result<Areas, ImageError> {
    let area = |path: &str| {
        let entry = iso
            .find(path)
            .ok_or_else(|| ImageError::bad(format!("{path} is missing")))?;
        Ok::<Area, ImageError>(entry.range().into())
    };
    Ok(Areas {
        payload: own
            .payload
            .as_ref()
            .map(|payload| coreos::in_file(iso, payload))
            .transpose()?,
        kargs: own
            .kargs
            .as_ref()
            .map(|kargs| coreos::described(iso, kargs))
            .transpose()?,
        kernel: Some(area(&own.kernel)?),
        initrd: Some(area(&own.initrd)?),
        ..blank(
            iso,
            Family::Muster,
            own.config_path.as_deref().unwrap_or(OWN_CONFIG_PATH),
        )
    })
}

/// Kernel and initrd by the names distributions give them. The rest is made by the template.
fn generic_areas(iso: &Iso) -> Result<Areas, ImageError> {
    let kernels = ["vmlinuz", "linux", "bzimage", "kernel"];
    let initrds = [
        "initrd",
        "initramfs",
        "initrd.img",
        "initrd.gz",
        "initrd.lz",
        "initramfs.img",
        "cpio.gz",
    ];
    let named = |names: &[&str], start: &str| {
        iso.entries
            .iter()
            .filter(|entry| {
                let name = entry
                    .path
                    .rsplit('/')
                    .next()
                    .unwrap_or_default()
                    .to_ascii_lowercase();
                entry.len > 0 && (names.contains(&name.as_str()) || name.starts_with(start))
            })
            // Rescue and memory-test kernels are smaller.
            .max_by_key(|entry| entry.len)
            .map(|entry| entry.range().into())
    };
    let (kernel, initrd) = (named(&kernels, "vmlinuz-"), named(&initrds, "initrd.img-"));
    if kernel.is_none() || initrd.is_none() {
        return Err(ImageError::bad(
            "it has neither an embed area nor a kernel with an initrd",
        ));
    }
    let flatcar = iso.volume.to_ascii_lowercase().contains("flatcar");
    let config_path = if flatcar {
        "usr/share/oem/config.ign"
    } else {
        OWN_CONFIG_PATH
    };
    Ok(Areas {
        kernel,
        initrd,
        ..blank(iso, Family::Generic, config_path)
    })
}

/// In lower-case hex.
pub fn sha256(file: &File, len: u64) -> Result<String, ImageError> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1024 * 1024];
    let mut at = 0;
    while at < len {
        let read = file.read_at(&mut buffer, at)?;
        if read == 0 {
            return Err(ImageError::bad("it shrank while Muster read it"));
        }
        hash.update(&buffer[..read]);
        at += read as u64;
    }
    Ok(hex(&hash.finalize()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
