//! Images with room for a payload, made once from a base image and never written to disk.

use super::areas::{Area, Areas, Family, Kargs, Place};
use super::{menu, miniso};
use crate::error::ImageError;
use crate::iso::Iso;
use crate::iso::rewrite::{Changes, Rewritten, rewrite};
use crate::layout::Layout;

/// Configuration as CoreOS has it, and as much again for network settings as the reference gives them.
const ROOM: u64 = 256 * 1024 + 1024 * 1024;
/// Boot menus are some kilobytes.
const LARGEST_MENU: u64 = 1024 * 1024;
/// The table has a slot of 16 KiB in the images we know.
const LARGEST_TABLE: u64 = 1024 * 1024;

/// An image with places to fill.
#[derive(Clone, Debug)]
pub struct Template {
    pub layout: Layout,
    pub payload: Area,
    pub kargs: Option<Kargs>,
}

/// The whole image. One without an embed area gets it behind its initrd.
pub fn full(iso: &Iso, areas: &Areas) -> Result<Template, ImageError> {
    match areas.payload {
        Some(payload) => Ok(Template {
            layout: iso.layout.clone(),
            payload,
            kargs: areas.kargs.clone(),
        }),
        None => roomy(iso, areas, &|_| true),
    }
}

/// The image without its root file system, which is fetched by HTTP while booting. The table the image carries gives
/// what its builder meant, bootable from a USB stick too, but its area is small.
pub fn minimal(iso: &Iso, areas: &Areas) -> Result<Template, ImageError> {
    if areas.rootfs.is_none() {
        return full(iso, areas);
    }
    let Some(table) = areas.miniso else {
        return rewritten_minimal(iso, areas);
    };
    if table.len > LARGEST_TABLE {
        return Err(ImageError::bad(
            "its table for the minimal image is larger than any we know",
        ));
    }
    let layout = miniso::layout(&iso.layout, &iso.bytes(table.range())?)?;
    let small = Iso::open(layout)?;
    let mut found = super::coreos_areas(&small)?;
    let payload = found
        .payload
        .take()
        .ok_or(ImageError::Absent("room for a configuration"))?;
    Ok(Template {
        layout: small.layout,
        payload,
        kargs: found.kargs,
    })
}

/// The same made by ourselves, with more room.
pub fn rewritten_minimal(iso: &Iso, areas: &Areas) -> Result<Template, ImageError> {
    let Some(rootfs) = areas.rootfs else {
        return full(iso, areas);
    };
    let path = |area: Area| {
        iso.entries
            .iter()
            .find(|entry| entry.range() == area.range())
            .map(|e| e.path.clone())
    };
    let rootfs = path(rootfs).ok_or(ImageError::Absent("root file system"))?;
    // On s390x the area is part of the one initrd its loader takes, so it cannot be moved.
    let area = areas
        .payload
        .and_then(path)
        .ok_or(ImageError::Absent("minimal form"))?;
    let mut changes = Changes {
        emptied: vec![rootfs],
        replaced: vec![(area, Layout::of_zeros(ROOM))],
    };
    let menus = if areas.kargs.is_some() {
        Vec::new()
    } else {
        menus(iso, &|word| !is_liveiso(word))?
    };
    for (path, menu) in &menus {
        changes
            .replaced
            .push((path.clone(), Layout::of_bytes(menu.text.clone())));
    }
    let image = rewrite(iso, changes)?;
    let kargs = match &areas.kargs {
        Some(kargs) => Some(moved(kargs, &image)),
        None => menu_kargs(&menus, &image.places[1..]),
    };
    Ok(Template {
        payload: Area {
            offset: image.places[0],
            len: ROOM,
        },
        kargs,
        layout: image.layout,
    })
}

/// Names the medium the root file system is on; without it, it is fetched.
pub fn is_liveiso(word: &str) -> bool {
    word.starts_with("coreos.liveiso=")
}

/// Room behind the initrd and in the boot menus, for images that have none.
fn roomy(iso: &Iso, areas: &Areas, keep: &dyn Fn(&str) -> bool) -> Result<Template, ImageError> {
    let initrd = areas.initrd.ok_or(ImageError::Absent("initrd"))?;
    let entry = iso.entries.iter().find(|entry| entry.range() == initrd.range());
    let path = entry.ok_or(ImageError::Absent("initrd"))?.path.clone();
    let mut content = iso.layout.slice(initrd.range());
    content.pad_to(4);
    let skip = content.len();
    content.push_zeros(ROOM);
    let menus = menus(iso, keep)?;
    let mut changes = Changes::default();
    changes.replaced.push((path, content));
    for (path, menu) in &menus {
        changes
            .replaced
            .push((path.clone(), Layout::of_bytes(menu.text.clone())));
    }
    let image = rewrite(iso, changes)?;
    Ok(Template {
        payload: Area {
            offset: image.places[0] + skip,
            len: ROOM,
        },
        kargs: menu_kargs(&menus, &image.places[1..]),
        layout: image.layout,
    })
}

fn menus(iso: &Iso, keep: &dyn Fn(&str) -> bool) -> Result<Vec<(String, menu::Roomy)>, ImageError> {
    let mut list = Vec::new();
    for entry in menu::PATHS.iter().filter_map(|path| iso.find(path)) {
        let bytes = iso.read(entry, LARGEST_MENU)?;
        let menu = menu::roomy(&String::from_utf8_lossy(&bytes), keep);
        if !menu.places.is_empty() {
            list.push((entry.path.clone(), menu));
        }
    }
    Ok(list)
}

fn menu_kargs(menus: &[(String, menu::Roomy)], starts: &[u64]) -> Option<Kargs> {
    let places: Vec<Place> = menus
        .iter()
        .zip(starts)
        .flat_map(|((_, menu), start)| menu.places.iter().map(move |place| start + place))
        .map(|offset| Place {
            offset,
            end: String::new(),
            pad: ' ',
        })
        .collect();
    (!places.is_empty()).then_some(Kargs {
        current: String::new(),
        size: menu::ROOM,
        places,
    })
}

fn moved(kargs: &Kargs, image: &Rewritten) -> Kargs {
    let mut kargs = kargs.clone();
    for place in &mut kargs.places {
        place.offset = image.moved(place.offset);
    }
    kargs
}

/// Which images of this family are available.
pub fn has_rootfs(areas: &Areas) -> bool {
    match areas.family {
        Family::Coreos => areas.rootfs.is_some(),
        Family::Muster | Family::Generic => false,
    }
}
