//! Takes images out of their compression, which their first bytes name.

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::io::{self, BufRead, BufReader, Read};

/// Large enough that the network, not the calls, sets the pace.
const BUFFER: usize = 256 * 1024;
/// Frames of images made for speed use windows up to this size.
const LARGEST_WINDOW: u64 = 128 << 20;

pub fn decoder<'a>(source: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut source = BufReader::with_capacity(BUFFER, source);
    let head = source.fill_buf()?;
    Ok(if head.starts_with(&[0x1f, 0x8b]) {
        Box::new(MultiGzDecoder::new(source))
    } else if head.starts_with(b"\xfd7zXZ\0") {
        Box::new(XzReader::new(source, true))
    } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Box::new(Frames {
            source: Some(source),
            frame: None,
        })
    } else {
        Box::new(source)
    })
}

/// Zstandard: one frame after the other, each with its sum checked.
struct Frames<R: BufRead> {
    source: Option<R>,
    frame: Option<StreamingDecoder<R, FrameDecoder>>,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let length = frame.read(buffer)?;
                if length > 0 {
                    return Ok(length);
                }
            }
            if let Some(frame) = self.frame.take() {
                let (source, decoder) = frame.into_parts();
                let (told, found) = (
                    decoder.get_checksum_from_data(),
                    decoder.get_calculated_checksum(),
                );
                if told.is_some() && told != found {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the sum of a frame is wrong",
                    ));
                }
                self.source = Some(source);
            }
            let Some(mut source) = self.source.take() else {
                return Ok(0);
            };
            if source.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let frame = StreamingDecoder::new_with_max_window_size(source, LARGEST_WINDOW);
            self.frame = Some(frame.map_err(io::Error::other)?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn content() -> Vec<u8> {
        (0..300_000u32).map(|at| (at % 251) as u8).collect()
    }

    fn gz(content: &[u8]) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), Compression::fast());
        out.write_all(content).unwrap();
        out.finish().unwrap()
    }

    fn xz(content: &[u8]) -> Vec<u8> {
        let mut out = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
        out.write_all(content).unwrap();
        out.finish().unwrap()
    }

    fn zst(content: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn decoded(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        decoder(bytes)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn every_format_gives_the_same_bytes() {
        for packed in [content(), gz(&content()), xz(&content()), zst(&content())] {
            assert!(decoded(&packed).unwrap() == content());
        }
    }

    #[test]
    fn pieces_packed_one_after_the_other_are_all_read() {
        let twice = [content(), content()].concat();
        for pack in [gz, xz, zst] {
            let packed = [pack(&content()), pack(&content())].concat();
            assert!(decoded(&packed).unwrap() == twice);
        }
    }

    #[test]
    fn cut_and_damaged_files_are_refused() {
        for packed in [gz(&content()), xz(&content()), zst(&content())] {
            assert!(decoded(&packed[..packed.len() - 20]).is_err());
            let mut damaged = packed.clone();
            let middle = damaged.len() / 2;
            damaged[middle] ^= 0x55;
            assert!(decoded(&damaged).map_or(true, |out| out != content()));
        }
    }
}
