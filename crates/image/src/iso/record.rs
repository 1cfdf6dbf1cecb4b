//! Walks the directories of one tree of an ISO and notes every file and every sector number on the way.

use super::{Entry, Iso, Order, Pointer, SECTOR, le32, less};
use crate::error::ImageError;
use std::collections::HashSet;

/// Far above any boot image; a file that says more wants to keep us busy.
const MOST_FILES: usize = 200_000;
const LARGEST_DIRECTORY: u64 = 64 * 1024 * 1024;
/// No system opens a longer one.
const LONGEST_PATH: usize = 4096;
const IS_DIRECTORY: u8 = 0x02;
const HAS_MORE_EXTENTS: u8 = 0x80;

pub(super) struct Walk<'a> {
    iso: &'a Iso,
    second: bool,
    seen: HashSet<u32>,
    noted: HashSet<u64>,
    pub(super) found: Vec<Entry>,
    pub(super) pointers: Vec<Pointer>,
    /// How many bytes may still be read.
    pub(super) left: u64,
}

struct Record {
    sector: u32,
    len: u64,
    flags: u8,
    /// `None` for the entries of the directory itself and its parent.
    name: Option<String>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(iso: &'a Iso, second: bool, left: u64) -> Walk<'a> {
        Walk {
            iso,
            second,
            seen: HashSet::new(),
            noted: HashSet::new(),
            found: Vec::new(),
            pointers: Vec::new(),
            left,
        }
    }

    pub(super) fn start(&mut self, at: u64, bytes: &[u8]) -> Result<(), ImageError> {
        let root = self.record(at, bytes)?;
        let mut waiting = vec![(String::new(), root)];
        while let Some((path, record)) = waiting.pop() {
            if self.seen.insert(record.sector) {
                self.directory(&path, &record, &mut waiting)?;
            }
        }
        Ok(())
    }

    fn directory(
        &mut self,
        path: &str,
        directory: &Record,
        waiting: &mut Vec<(String, Record)>,
    ) -> Result<(), ImageError> {
        if directory.len > LARGEST_DIRECTORY || self.found.len() > MOST_FILES {
            return Err(ImageError::bad("it has more files than any boot image"));
        }
        let start = u64::from(directory.sector) * SECTOR;
        self.left = less(self.left, directory.len)?;
        let bytes = self.iso.bytes(start..start + directory.len)?;
        let mut at = 0;
        let mut unfinished = None;
        while at < bytes.len() {
            let len = usize::from(bytes[at]);
            if len == 0 {
                // Records do not cross sectors: the rest of this one is empty.
                at = (at + 1).next_multiple_of(2048);
                continue;
            }
            if len < 34 || at + len > bytes.len() {
                return Err(broken());
            }
            let place = start + at as u64;
            let record = self.record(place, &bytes[at..at + len])?;
            at += len;
            let Some(name) = record.name.clone() else {
                continue;
            };
            let full = joined(path, name)?;
            let more = record.flags & HAS_MORE_EXTENTS != 0;
            if record.flags & IS_DIRECTORY == 0 {
                let number = self.file(full, &record, place, unfinished)?;
                unfinished = more.then_some(number);
            } else if more || unfinished.is_some() {
                return Err(broken());
            } else {
                waiting.push((full, record));
            }
        }
        Ok(())
    }

    /// `begun` is the file in this directory that said that there is more of it.
    fn file(
        &mut self,
        path: String,
        record: &Record,
        place: u64,
        begun: Option<usize>,
    ) -> Result<usize, ImageError> {
        let Some(number) = begun else {
            self.found.push(Entry {
                path,
                sector: record.sector,
                len: record.len,
                records: vec![place],
            });
            return Ok(self.found.len() - 1);
        };
        let whole = &mut self.found[number];
        if u64::from(whole.sector) * SECTOR + whole.len != u64::from(record.sector) * SECTOR {
            return Err(ImageError::bad(format!("{path} is in pieces that are apart")));
        }
        whole.len += record.len;
        whole.records.push(place);
        Ok(number)
    }

    fn record(&mut self, at: u64, bytes: &[u8]) -> Result<Record, ImageError> {
        let sector = le32(bytes, 2);
        self.pointers.push(Pointer {
            at: at + 2,
            order: Order::Both,
            sector,
        });
        let name_len = usize::from(bytes[32]);
        let raw = bytes.get(33..33 + name_len).ok_or_else(broken)?;
        let name = match raw {
            [0 | 1] => None,
            _ if self.second => Some(joliet(raw)),
            _ => Some(plain(raw)),
        };
        let used = (33 + name_len).next_multiple_of(2);
        let longer = match bytes.get(used..) {
            Some(area) if !self.second => self.rock_ridge(at + used as u64, area)?,
            _ => None,
        };
        Ok(Record {
            sector,
            len: u64::from(le32(bytes, 10)),
            flags: bytes[25],
            name: name.map(|name| longer.unwrap_or(name)),
        })
    }

    /// The true name, if the builder wrote one. Continuation areas are followed and, being sector numbers, noted.
    fn rock_ridge(&mut self, at: u64, area: &[u8]) -> Result<Option<String>, ImageError> {
        let mut name: Option<String> = None;
        let mut waiting = vec![(at, area.to_vec())];
        let mut continuations = 0;
        while let Some((at, area)) = waiting.pop() {
            let mut next = 0;
            while next + 4 <= area.len() {
                let len = usize::from(area[next + 2]);
                if len < 4 || next + len > area.len() {
                    break;
                }
                let field = &area[next..next + len];
                match &field[..2] {
                    b"NM" if len > 5 => {
                        name.get_or_insert_default()
                            .push_str(&String::from_utf8_lossy(&field[5..]));
                    }
                    b"CE" if len >= 28 => {
                        self.note(at + next as u64 + 4, field);
                        let start = u64::from(le32(field, 4)) * SECTOR + u64::from(le32(field, 12));
                        let len = u64::from(le32(field, 20)).min(SECTOR);
                        self.left = less(self.left, len)?;
                        let more = self.iso.bytes(start..start + len)?;
                        continuations += 1;
                        if continuations < 16 {
                            waiting.push((start, more));
                        }
                    }
                    b"CL" | b"PL" if len >= 12 => self.note(at + next as u64 + 4, field),
                    _ => {}
                }
                next += len;
            }
        }
        Ok(name)
    }

    fn note(&mut self, at: u64, field: &[u8]) {
        // Several records may share one continuation area; a place is noted once.
        if self.noted.insert(at) {
            self.pointers.push(Pointer {
                at,
                order: Order::Both,
                sector: le32(field, 4),
            });
        }
    }
}

fn joined(path: &str, name: String) -> Result<String, ImageError> {
    if path.len() + name.len() > LONGEST_PATH {
        return Err(ImageError::bad("a path in it is longer than any system opens"));
    }
    Ok(if path.is_empty() {
        name
    } else {
        format!("{path}/{name}")
    })
}

fn broken() -> ImageError {
    ImageError::bad("a directory in it is broken")
}

fn plain(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw).to_lowercase();
    let text = text.split(';').next().unwrap_or_default();
    text.trim_end_matches('.').to_owned()
}

fn joliet(raw: &[u8]) -> String {
    let units: Vec<u16> = raw
        .chunks_exact(2)
        .map(|two| u16::from_be_bytes([two[0], two[1]]))
        .collect();
    let text = String::from_utf16_lossy(&units);
    text.split(';').next().unwrap_or_default().to_owned()
}
