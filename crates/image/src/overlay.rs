//! Discovery images: a base image with a payload laid over it.

use crate::base::Base;
use crate::base::areas::Family;
use crate::base::template::{self, Template};
use crate::consoles;
use crate::cpio;
use crate::error::ImageError;
use crate::layout::{Content, Layout};
use axum::body::Bytes;
use sha2::{Digest, Sha256};

/// What makes a base image the image of one InfraEnv.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// The configuration, JSON text.
    pub ignition: Bytes,
    /// An archive (packed or not) with network settings and the like, for boots that fetch the rest by network.
    pub ramdisk: Option<Bytes>,
    /// Appended to what the image has.
    pub kernel_arguments: Vec<String>,
}

/// The whole image. It brings its root file system, so network settings come with the configuration.
pub fn full(base: &Base, payload: &Payload) -> Result<Layout, ImageError> {
    let arguments = &payload.kernel_arguments;
    filled(base, base.full()?, &archive(base, payload), arguments, None)
}

/// The small image, which fetches its root file system from `rootfs_url`.
pub fn minimal(base: &Base, payload: &Payload, rootfs_url: &str) -> Result<Layout, ImageError> {
    let content = with_ramdisk(archive(base, payload), payload);
    let url = template::has_rootfs(&base.areas).then_some(rootfs_url);
    let first = base.minimal()?;
    let template = if content.len() as u64 > first.payload.len {
        base.roomy_minimal().unwrap_or(first)
    } else {
        first
    };
    filled(base, template, &content, &payload.kernel_arguments, url)
}

/// The initrd for booting by network.
pub fn initrd(base: &Base, payload: &Payload) -> Result<Layout, ImageError> {
    let mut layout = base.part(base.areas.initrd, "initrd")?;
    layout.pad_to(4);
    layout.push_bytes(with_ramdisk(archive(base, payload), payload));
    Ok(layout)
}

/// s390x: the load address as the image has it, then the size of the initrd we serve.
pub fn initrd_addrsize(base: &Base, payload: &Payload) -> Result<Layout, ImageError> {
    let known = base.part(base.areas.initrd_addrsize, "initrd.addrsize")?;
    let mut layout = known.slice(0..8);
    layout.push_bytes(initrd(base, payload)?.len().to_be_bytes().to_vec());
    Ok(layout)
}

/// Names exactly these bytes, given the base image.
pub fn fingerprint(base_sha256: &str, layout: &Layout) -> String {
    let mut hash = Sha256::new();
    hash.update(base_sha256);
    for segment in layout.segments() {
        hash.update(segment.len.to_le_bytes());
        match &segment.content {
            Content::File { at, .. } => {
                hash.update([1]);
                hash.update(at.to_le_bytes());
            }
            Content::Bytes(bytes) => {
                hash.update([2]);
                hash.update(bytes);
            }
            Content::Zeros => hash.update([3]),
        }
    }
    crate::base::hex(&hash.finalize()[..16])
}

fn archive(base: &Base, payload: &Payload) -> Vec<u8> {
    cpio::packed(&cpio::archive(&base.areas.config_path, &payload.ignition))
}

/// The kernel unpacks one archive after the other.
fn with_ramdisk(mut content: Vec<u8>, payload: &Payload) -> Vec<u8> {
    if let Some(ramdisk) = &payload.ramdisk {
        content.extend_from_slice(ramdisk);
        content.resize(content.len().next_multiple_of(4), 0);
    }
    content
}

fn filled(
    base: &Base,
    template: &Template,
    content: &[u8],
    arguments: &[String],
    rootfs_url: Option<&str>,
) -> Result<Layout, ImageError> {
    let (have, room) = (content.len() as u64, template.payload.len);
    if have > room {
        let what = "the discovery configuration, packed,";
        return Err(ImageError::TooLarge { what, have, room });
    }
    let mut area = Layout::of_bytes(content.to_vec());
    // The base image may have had a configuration of its own.
    area.push_zeros(room - have);
    let mut patches = vec![(template.payload.offset, area)];
    if !arguments.is_empty() || rootfs_url.is_some() {
        let kargs = template
            .kargs
            .as_ref()
            .ok_or(ImageError::Absent("room for kernel arguments"))?;
        let line = kernel_line(base.areas.family, &kargs.current, arguments, rootfs_url);
        let written = kargs.written(&line).map_err(|room| ImageError::TooLarge {
            what: "the line of kernel arguments",
            have: line.len() as u64,
            room,
        })?;
        patches.extend(written);
    }
    Ok(template.layout.overlaid(patches))
}

/// The address is quoted: GRUB would take its `&` for the end of the command.
fn kernel_line(family: Family, current: &str, arguments: &[String], rootfs_url: Option<&str>) -> String {
    let current = match family {
        // Its own image names a serial port because somebody must.
        Family::Muster => consoles::without_overruled(current, arguments),
        Family::Coreos | Family::Generic => current.to_owned(),
    };
    let mut words: Vec<String> = Vec::new();
    if rootfs_url.is_some() {
        words.extend(
            current
                .split_whitespace()
                .filter(|word| !template::is_liveiso(word))
                .map(str::to_owned),
        );
    } else {
        words.push(current);
    }
    words.extend(rootfs_url.map(|url| format!("coreos.live.rootfs_url=\"{url}\"")));
    words.extend(arguments.iter().cloned());
    words.join(" ").trim().to_owned()
}
