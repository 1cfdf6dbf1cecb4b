//! What import found in a base image; kept beside it so that it is found once.

use crate::layout::Layout;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Raised when the meaning of a field changes: records of another version are made anew.
pub const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Areas {
    pub format: u32,
    /// Of the whole file, in lower-case hex.
    pub sha256: String,
    pub len: u64,
    pub volume: String,
    pub family: Family,
    /// The name the configuration has inside the archive.
    pub config_path: String,
    /// Zeros in the image that the boot loader loads as one more initrd.
    pub payload: Option<Area>,
    pub kargs: Option<Kargs>,
    pub kernel: Option<Area>,
    pub initrd: Option<Area>,
    pub rootfs: Option<Area>,
    /// s390x: address and size of the initrd, and the list of what to load where.
    pub initrd_addrsize: Option<Area>,
    pub ins_file: Option<Area>,
    /// A table that makes the minimal image of this very image.
    pub miniso: Option<Area>,
}

/// Who built the image decides how a configuration gets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Live images of Fedora CoreOS, CentOS Stream CoreOS and RHEL CoreOS.
    Coreos,
    /// Made by `muster image build`.
    Muster,
    /// Anything with a kernel, an initrd and a boot menu we can read.
    Generic,
}

/// A range of bytes, counted from the start of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Area {
    pub offset: u64,
    pub len: u64,
}

impl Area {
    pub fn range(self) -> Range<u64> {
        self.offset..self.offset + self.len
    }
}

impl From<Range<u64>> for Area {
    fn from(range: Range<u64>) -> Area {
        Area {
            offset: range.start,
            len: range.end - range.start,
        }
    }
}

/// Where kernel arguments stand, in every boot menu of the image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kargs {
    /// What the image has now.
    pub current: String,
    /// Bytes each place has.
    pub size: u64,
    pub places: Vec<Place>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub offset: u64,
    /// Written once after the arguments.
    pub end: String,
    /// Fills what is left.
    pub pad: char,
}

impl Kargs {
    /// The bytes to lay over the image, or the room there is when they do not fit.
    pub fn written(&self, line: &str) -> Result<Vec<(u64, Layout)>, u64> {
        let mut patches = Vec::with_capacity(self.places.len());
        for place in &self.places {
            let mut text = format!("{line}{}", place.end).into_bytes();
            let size = usize::try_from(self.size).expect("areas of more than 4 GiB are refused at import");
            if text.len() > size {
                return Err(self.size - place.end.len() as u64);
            }
            text.resize(size, u8::try_from(place.pad).unwrap_or(b' '));
            patches.push((place.offset, Layout::of_bytes(text)));
        }
        Ok(patches)
    }

    /// What one place holds: everything before the filling, without the end mark.
    pub fn parsed(bytes: &[u8], place: &Place) -> String {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(place.pad);
        text.strip_suffix(place.end.as_str())
            .unwrap_or(text)
            .trim()
            .to_owned()
    }
}
