//! Takes files out of an ISO and gives others new contents, without a copy: every pointer to what moved is updated.

use super::{Iso, Order, SECTOR, SYSTEM_AREA};
use crate::error::ImageError;
use crate::layout::Layout;
use std::collections::BTreeMap;
use std::ops::Range;

/// What to change.
#[derive(Debug, Default)]
pub struct Changes {
    /// These stay as empty files.
    pub emptied: Vec<String>,
    /// These get new contents, at the end of the image.
    pub replaced: Vec<(String, Layout)>,
}

#[derive(Debug)]
pub struct Rewritten {
    pub layout: Layout,
    /// Where each new content begins, in the order given.
    pub places: Vec<u64>,
    gone: Vec<Range<u64>>,
}

impl Rewritten {
    /// Where a byte of the old image is now.
    pub fn moved(&self, old: u64) -> u64 {
        old - before(&self.gone, old)
    }
}

pub fn rewrite(iso: &Iso, changes: Changes) -> Result<Rewritten, ImageError> {
    let mut sectors = Sectors::new(iso);
    let gone = gone(iso, &changes.emptied)?;
    for pointer in &iso.pointers {
        let old = u64::from(pointer.sector) * SECTOR;
        let new = number((old - before(&gone, old)) / SECTOR)?;
        if new != pointer.sector {
            sectors.write(pointer.at, &spelled(new, pointer.order))?;
        }
    }
    for path in &changes.emptied {
        for record in &find(iso, path)?.records {
            sectors.write(record + 10, &spelled(0, Order::Both))?;
        }
    }
    let cut: u64 = gone.iter().map(|hole| hole.end - hole.start).sum();
    let mut end = (iso.layout.len() - cut).next_multiple_of(SECTOR);
    let mut places = Vec::new();
    for (path, content) in &changes.replaced {
        for record in &find(iso, path)?.records {
            sectors.write(record + 2, &spelled(number(end / SECTOR)?, Order::Both))?;
            sectors.write(record + 10, &spelled(number(content.len())?, Order::Both))?;
        }
        places.push(end);
        end += content.len().next_multiple_of(SECTOR);
    }
    for at in &iso.sizes {
        sectors.write(*at, &spelled(number(end / SECTOR)?, Order::Both))?;
    }
    let mut layout = without(&sectors.applied(!gone.is_empty()), &gone);
    layout.pad_to(SECTOR);
    for (_, content) in changes.replaced {
        layout.append(content);
        layout.pad_to(SECTOR);
    }
    Ok(Rewritten { layout, places, gone })
}

/// The sectors nobody else uses. A file whose sectors are shared (a hard link) keeps them.
fn gone(iso: &Iso, emptied: &[String]) -> Result<Vec<Range<u64>>, ImageError> {
    let mut list = Vec::new();
    for path in emptied {
        let entry = find(iso, path)?;
        let start = u64::from(entry.sector) * SECTOR;
        let hole = start
            ..(start + entry.len)
                .next_multiple_of(SECTOR)
                .min(iso.layout.len() / SECTOR * SECTOR);
        let overlaps = |other: &super::Entry| {
            other.len > 0 && other.range().start < hole.end && other.range().end > hole.start
        };
        let shared = iso
            .entries
            .iter()
            .any(|other| other.path != entry.path && overlaps(other));
        if !shared && hole.start < hole.end {
            list.push(hole);
        }
    }
    list.sort_by_key(|hole| hole.start);
    Ok(list)
}

fn find<'a>(iso: &'a Iso, path: &str) -> Result<&'a super::Entry, ImageError> {
    iso.find(path)
        .ok_or_else(|| ImageError::bad(format!("{path} is missing")))
}

fn before(gone: &[Range<u64>], at: u64) -> u64 {
    gone.iter()
        .filter(|hole| hole.end <= at)
        .map(|hole| hole.end - hole.start)
        .sum()
}

fn without(layout: &Layout, gone: &[Range<u64>]) -> Layout {
    let mut result = Layout::default();
    let mut at = 0;
    for hole in gone {
        result.append(layout.slice(at..hole.start));
        at = hole.end;
    }
    result.append(layout.slice(at..layout.len()));
    result
}

fn number(value: u64) -> Result<u32, ImageError> {
    u32::try_from(value).map_err(|_| ImageError::bad("it would get too large for an ISO"))
}

fn spelled(value: u32, order: Order) -> Vec<u8> {
    match order {
        Order::Little => value.to_le_bytes().to_vec(),
        Order::Big => value.to_be_bytes().to_vec(),
        Order::Both => [value.to_le_bytes(), value.to_be_bytes()].concat(),
    }
}

/// The sectors with changes, in memory: some dozens of them.
struct Sectors<'a> {
    iso: &'a Iso,
    changed: BTreeMap<u64, Vec<u8>>,
}

impl<'a> Sectors<'a> {
    fn new(iso: &'a Iso) -> Sectors<'a> {
        Sectors {
            iso,
            changed: BTreeMap::new(),
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), ImageError> {
        for (place, byte) in (at..).zip(bytes) {
            let number = place / SECTOR;
            let sector = match self.changed.entry(number) {
                std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::btree_map::Entry::Vacant(empty) => {
                    empty.insert(self.iso.bytes(number * SECTOR..number * SECTOR + SECTOR)?)
                }
            };
            let offset = usize::try_from(place % SECTOR).expect("an offset in a sector is small");
            sector[offset] = *byte;
        }
        Ok(())
    }

    /// When sectors moved, the partition tables in the system area (for booting from a USB stick) are no longer
    /// true: better no table than one that leads astray.
    fn applied(self, moved: bool) -> Layout {
        let mut patches: Vec<(u64, Layout)> = self
            .changed
            .into_iter()
            .map(|(number, bytes)| (number * SECTOR, Layout::of_bytes(bytes)))
            .collect();
        if moved {
            patches.retain(|(at, _)| *at >= SYSTEM_AREA);
            patches.push((0, Layout::of_zeros(SYSTEM_AREA)));
        }
        self.iso.layout.overlaid(patches)
    }
}
