//! Makes the minimal image of a CoreOS image from the table it carries (`coreos/miniso.dat`), as a layout: most of it
//! is ranges of the full image, the rest some hundred kilobytes in memory.

use crate::error::ImageError;
use crate::iso::SECTOR;
use crate::layout::Layout;
use lzma_rust2::XzReader;
use sha2::{Digest, Sha256};
use std::io::Read;

/// Unpacked bytes are directories and padding: some hundred kilobytes. More is not what we think it is.
const LARGEST_REST: u64 = 64 * 1024 * 1024;

/// `data` is the file as it is in the image; what follows the table is padding.
pub fn layout(full: &Layout, data: &[u8]) -> Result<Layout, ImageError> {
    let mut reader = Reader { rest: data };
    if reader.take(8)? != b"MINISO\0\0" || reader.number()? != 1 {
        return Err(ImageError::bad(
            "its table for the minimal image is of a kind we do not know",
        ));
    }
    // The version of the tool that made it.
    let len = reader.length()?;
    reader.take(len)?;
    let entries = (0..reader.number()?)
        .map(|_| Ok([reader.number()?, reader.number()?, reader.number()?]))
        .collect::<Result<Vec<_>, ImageError>>()?;
    let digest = reader.take(32)?.to_vec();
    let len = reader.length()?;
    let mut unpacked = Vec::new();
    XzReader::new(reader.take(len)?, true)
        .take(LARGEST_REST)
        .read_to_end(&mut unpacked)
        .map_err(|_| ImageError::bad("its table for the minimal image is damaged"))?;
    let minimal = assembled(full, &entries, unpacked)?;
    if sha256(&minimal)? != digest {
        return Err(ImageError::bad(
            "its table for the minimal image belongs to another image",
        ));
    }
    Ok(minimal)
}

fn assembled(full: &Layout, entries: &[[u64; 3]], unpacked: Vec<u8>) -> Result<Layout, ImageError> {
    let broken = || ImageError::bad("its table for the minimal image is damaged");
    let mut rest = axum::body::Bytes::from(unpacked);
    let mut minimal = Layout::default();
    for [to, from, len] in entries {
        let place = |sector: &u64| sector.checked_mul(SECTOR).ok_or_else(broken);
        let gap = place(to)?.checked_sub(minimal.len()).ok_or_else(broken)?;
        let gap = usize::try_from(gap).map_err(|_| broken())?;
        let from = place(from)?;
        let end = from
            .checked_add(*len)
            .filter(|end| *end <= full.len())
            .ok_or_else(broken)?;
        // It leaves things out; one that is larger repeats itself.
        if gap > rest.len() || minimal.len() + len > full.len() {
            return Err(broken());
        }
        minimal.push_bytes(rest.split_to(gap));
        minimal.append(full.slice(from..end));
    }
    minimal.push_bytes(rest);
    Ok(minimal)
}

/// The minimal image is read whole once, a piece at a time.
fn sha256(layout: &Layout) -> Result<Vec<u8>, ImageError> {
    let mut hash = Sha256::new();
    let mut at = 0;
    while at < layout.len() {
        let end = layout.len().min(at + 1024 * 1024);
        hash.update(layout.bytes(at..end)?);
        at = end;
    }
    Ok(hash.finalize().to_vec())
}

/// Numbers are one byte up to 250; larger ones follow a mark that tells their width.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], ImageError> {
        let (now, later) = self
            .rest
            .split_at_checked(len)
            .ok_or_else(|| ImageError::bad("its table for the minimal image is cut off"))?;
        self.rest = later;
        Ok(now)
    }

    fn number(&mut self) -> Result<u64, ImageError> {
        let width = match self.take(1)?[0] {
            small @ 0..=250 => return Ok(u64::from(small)),
            251 => 2,
            252 => 4,
            _ => 8,
        };
        let bytes = self.take(width)?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn length(&mut self) -> Result<usize, ImageError> {
        usize::try_from(self.number()?)
            .map_err(|_| ImageError::bad("its table for the minimal image is damaged"))
    }
}
