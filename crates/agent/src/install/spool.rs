//! Keeps an image in memory while there is room for it, so that one that was checked need not be fetched again.

use crate::collect::Machine;
use std::io::{self, Read};

/// Of the memory that is free: the rest is for who else needs some meanwhile.
const PART: u64 = 2;
const PIECE: usize = 1 << 20;

/// How much may be kept on this machine.
pub fn room(machine: &Machine) -> u64 {
    let text = machine.text("proc/meminfo");
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024 / PART
}

#[derive(Debug)]
pub struct Spool {
    /// Nothing when there was not enough room.
    pieces: Option<Vec<Vec<u8>>>,
    length: u64,
    room: u64,
}

impl Spool {
    pub fn new(room: u64) -> Self {
        Self {
            pieces: Some(Vec::new()),
            length: 0,
            room,
        }
    }

    /// Adds what comes next.
    pub fn keep(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if self.length > self.room {
            self.pieces = None;
        }
        let Some(pieces) = &mut self.pieces else { return };
        while !bytes.is_empty() {
            if pieces.last().is_none_or(|piece| piece.len() == PIECE) {
                pieces.push(Vec::with_capacity(PIECE));
            }
            let Some(piece) = pieces.last_mut() else { return };
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - piece.len()));
            piece.extend_from_slice(now);
            bytes = later;
        }
    }

    /// All that was kept, from its start.
    pub fn replay(self) -> Option<Replay> {
        Some(Replay {
            pieces: self.pieces?,
            length: self.length,
            at: 0,
        })
    }
}

#[derive(Debug)]
pub struct Replay {
    pieces: Vec<Vec<u8>>,
    length: u64,
    at: u64,
}

impl Replay {
    pub fn percent(&self) -> Option<u64> {
        (self.at * 100).checked_div(self.length)
    }
}

impl Read for Replay {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let at = usize::try_from(self.at).map_err(io::Error::other)?;
        let Some(piece) = self.pieces.get(at / PIECE) else {
            return Ok(0);
        };
        let rest = &piece[(at % PIECE).min(piece.len())..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.at += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_read_back_and_what_does_not_is_dropped() {
        let bytes: Vec<u8> = (0..3 * PIECE / 2).map(|at| (at % 251) as u8).collect();
        let mut spool = Spool::new(bytes.len() as u64);
        bytes.chunks(70_001).for_each(|part| spool.keep(part));
        let mut replay = spool.replay().unwrap();
        let mut back = Vec::new();
        replay.read_to_end(&mut back).unwrap();
        assert!(back == bytes);
        assert_eq!(replay.percent(), Some(100));

        let mut spool = Spool::new(bytes.len() as u64 - 1);
        bytes.chunks(70_001).for_each(|part| spool.keep(part));
        assert!(spool.replay().is_none());
    }

    #[test]
    fn half_of_the_free_memory_is_used() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::at(root.path());
        assert_eq!(room(&machine), 0);
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        let text = "MemTotal: 4000 kB\nMemAvailable:   2000 kB\n";
        std::fs::write(root.path().join("proc/meminfo"), text).unwrap();
        assert_eq!(room(&machine), 1000 * 1024);
    }
}
