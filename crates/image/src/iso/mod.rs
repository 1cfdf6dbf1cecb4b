//! Reads ISO 9660 by hand: we need the place of every pointer to move files without a copy, which no library tells.

mod record;
pub mod rewrite;

use crate::error::ImageError;
use crate::layout::Layout;
use record::Walk;
use std::collections::HashMap;
use std::ops::Range;

pub const SECTOR: u64 = 2048;
/// Bytes before the first volume descriptor; boot loaders and CoreOS headers live here.
pub const SYSTEM_AREA: u64 = 16 * SECTOR;
/// Descriptors are few; a longer list is a broken or hostile file.
const MOST_DESCRIPTORS: u64 = 64;
/// Each tree of directories is read once and lies in the image once: whoever has more to read than this leads us in
/// circles.
const MOST_READINGS: u64 = 4;

/// A file in the image. Directories are not listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The Rock Ridge name where there is one, else the plain name in lower case.
    pub path: String,
    pub sector: u32,
    pub len: u64,
    /// Where the directory records of this file stand (more than one for names in a second tree).
    pub records: Vec<u64>,
}

impl Entry {
    pub fn range(&self) -> Range<u64> {
        let start = u64::from(self.sector) * SECTOR;
        start..start + self.len
    }
}

/// How a sector number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Little,
    Big,
    /// Little, then big endian.
    Both,
}

/// A place in the image that holds a sector number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    pub at: u64,
    pub order: Order,
    pub sector: u32,
}

#[derive(Clone, Debug)]
pub struct Iso {
    pub layout: Layout,
    pub volume: String,
    pub entries: Vec<Entry>,
    pub pointers: Vec<Pointer>,
    /// Where volume descriptors tell the size of the volume.
    pub sizes: Vec<u64>,
    /// How many bytes of tables and directories may still be read.
    left: u64,
}

impl Iso {
    pub fn open(layout: Layout) -> Result<Iso, ImageError> {
        let mut iso = Iso {
            left: layout.len().saturating_mul(MOST_READINGS),
            layout,
            volume: String::new(),
            entries: Vec::new(),
            pointers: Vec::new(),
            sizes: Vec::new(),
        };
        let mut found = false;
        for number in 16..16 + MOST_DESCRIPTORS {
            let at = number * SECTOR;
            let sector = iso.bytes(at..at + SECTOR)?;
            if &sector[1..6] != b"CD001" {
                break;
            }
            match sector[0] {
                0 if sector[7..].starts_with(b"EL TORITO SPECIFICATION") => iso.boot_catalog(at, &sector)?,
                1 => {
                    iso.volume = text(&sector[40..72]);
                    iso.tree(at, &sector, false)?;
                    found = true;
                }
                // Joliet: the same files under other names; they must move together.
                2 => iso.tree(at, &sector, true)?,
                255 => break,
                _ => {}
            }
        }
        if !found {
            return Err(ImageError::bad("it is not an ISO 9660 image"));
        }
        Ok(iso)
    }

    /// Refuses an image that was cut off: what its own descriptors and directories tell of must be there.
    pub fn whole(&self) -> Result<(), ImageError> {
        let mut end = 0;
        for at in &self.sizes {
            let bytes = self.bytes(*at..at + 4)?;
            let sectors = bytes
                .try_into()
                .map_or(0, |four: [u8; 4]| u32::from_le_bytes(four));
            end = end.max(u64::from(sectors) * SECTOR);
        }
        let files = self.entries.iter().map(|entry| entry.range().end);
        end = end.max(files.max().unwrap_or(0));
        let len = self.layout.len();
        if len < end {
            return Err(ImageError::bad(format!(
                "it was cut off after {len} of {end} bytes"
            )));
        }
        Ok(())
    }

    /// Names differ in case between builders and eras.
    pub fn find(&self, path: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.path.eq_ignore_ascii_case(path))
    }

    pub fn read(&self, entry: &Entry, most: u64) -> Result<Vec<u8>, ImageError> {
        if entry.len > most {
            return Err(ImageError::bad(format!(
                "{} is larger than any we know",
                entry.path
            )));
        }
        self.bytes(entry.range())
    }

    pub fn bytes(&self, range: Range<u64>) -> Result<Vec<u8>, ImageError> {
        self.layout.bytes(range).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => ImageError::bad("it ends before its own contents do"),
            _ => ImageError::Io(error),
        })
    }

    fn tree(&mut self, at: u64, descriptor: &[u8], second: bool) -> Result<(), ImageError> {
        self.sizes.push(at + 80);
        self.path_tables(at, descriptor)?;
        let mut walk = Walk::new(self, second, self.left);
        walk.start(at + 156, &descriptor[156..190])?;
        let Walk {
            found,
            pointers,
            left,
            ..
        } = walk;
        self.left = left;
        self.pointers.extend(pointers);
        if second {
            self.beside(found);
        } else {
            self.entries.extend(found);
        }
        Ok(())
    }

    /// The first tree has every file; long names may be cut in either.
    fn beside(&mut self, found: Vec<Entry>) {
        let (mut named, mut placed) = (HashMap::new(), HashMap::new());
        for (number, known) in self.entries.iter().enumerate() {
            named.entry(known.path.to_ascii_lowercase()).or_insert(number);
            placed.entry((known.sector, known.len)).or_insert(number);
        }
        for entry in found {
            let number = named.get(&entry.path.to_ascii_lowercase());
            if let Some(number) = number.or_else(|| placed.get(&(entry.sector, entry.len))) {
                self.entries[*number].records.extend(entry.records);
            }
        }
    }

    /// Both byte orders, and the optional copies of each.
    fn path_tables(&mut self, at: u64, descriptor: &[u8]) -> Result<(), ImageError> {
        let size = u64::from(le32(descriptor, 132)).min(1024 * 1024);
        for (place, order) in [
            (140, Order::Little),
            (144, Order::Little),
            (148, Order::Big),
            (152, Order::Big),
        ] {
            let number = |bytes: &[u8], at| match order {
                Order::Big => be32(bytes, at),
                Order::Little | Order::Both => le32(bytes, at),
            };
            let sector = number(descriptor, place);
            if sector == 0 {
                continue;
            }
            self.pointers.push(Pointer {
                at: at + place as u64,
                order,
                sector,
            });
            let start = u64::from(sector) * SECTOR;
            self.left = less(self.left, size)?;
            let table = self.bytes(start..start + size)?;
            let mut next = 0;
            while next + 8 <= table.len() && table[next] != 0 {
                self.pointers.push(Pointer {
                    at: start + next as u64 + 2,
                    order,
                    sector: number(&table, next + 2),
                });
                next += 8 + usize::from(table[next]).next_multiple_of(2);
            }
        }
        Ok(())
    }

    /// What BIOS and UEFI start from: the catalog, its entries, and the table inside a BIOS loader that tells it where
    /// it stands itself.
    fn boot_catalog(&mut self, at: u64, descriptor: &[u8]) -> Result<(), ImageError> {
        let mut point = |at, sector| {
            self.pointers.push(Pointer {
                at,
                order: Order::Little,
                sector,
            });
        };
        let sector = le32(descriptor, 0x47);
        point(at + 0x47, sector);
        let start = u64::from(sector) * SECTOR;
        let catalog = self.layout.bytes(start..start + SECTOR)?;
        let mut images = Vec::new();
        for number in 1..64 {
            let record = &catalog[number * 32..number * 32 + 32];
            if matches!(record[0], 0x88 | 0x00) && le32(record, 8) != 0 {
                let place = start + number as u64 * 32 + 8;
                point(place, le32(record, 8));
                images.push(le32(record, 8));
            }
        }
        for image in images {
            let start = u64::from(image) * SECTOR;
            let Ok(head) = self.layout.bytes(start..start + 64) else {
                continue;
            };
            if le32(&head, 8) == 16 && le32(&head, 12) == image {
                self.pointers.push(Pointer {
                    at: start + 12,
                    order: Order::Little,
                    sector: image,
                });
            }
        }
        Ok(())
    }
}

/// What is left to read after this.
fn less(left: u64, bytes: u64) -> Result<u64, ImageError> {
    let left = left.checked_sub(bytes);
    left.ok_or_else(|| ImageError::bad("its directories lead in circles"))
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .trim_end_matches([' ', '\0'])
        .to_owned()
}

#[cfg(test)]
mod tests;
