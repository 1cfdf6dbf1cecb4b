//! What hosts do in a measurement of the operator: arrive, poll, change.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use crate::bench::fleet::Fleet;
use crate::bench::load::Work;

/// An agent that starts: register, ask, report.
pub struct Arrivals<'a>(pub &'a Fleet);

impl Work for Arrivals<'_> {
    fn request(&self, item: u64, step: usize, out: &mut Vec<u8>) -> bool {
        let host = item as u32;
        match step {
            0 => self.0.register(host, out),
            1 => self.0.ask(host, now(), out),
            2 => self.0.reply(host, out),
            _ => return false,
        }
        true
    }
}

pub struct Polls<'a> {
    pub fleet: &'a Fleet,
    /// How many were begun, over all runs.
    pub begun: AtomicU64,
}

impl Work for Polls<'_> {
    fn request(&self, _: u64, step: usize, out: &mut Vec<u8>) -> bool {
        if step > 0 {
            return false;
        }
        let turn = self.begun.fetch_add(1, Ordering::Relaxed);
        self.fleet
            .ask((turn % u64::from(self.fleet.hosts)) as u32, now(), out);
        true
    }
}

/// Hosts that report another name than before, one after the other.
pub struct Changes<'a> {
    pub fleet: &'a Fleet,
    /// When each was sent.
    pub sent: RefCell<Vec<Instant>>,
}

impl Changes<'_> {
    /// In every round over the fleet all get the other name.
    pub fn host(&self, item: u64) -> (u32, bool) {
        let hosts = u64::from(self.fleet.hosts);
        ((item % hosts) as u32, (item / hosts).is_multiple_of(2))
    }
}

impl Work for Changes<'_> {
    fn request(&self, item: u64, step: usize, out: &mut Vec<u8>) -> bool {
        if step > 0 {
            return false;
        }
        let (host, renamed) = self.host(item);
        self.fleet.report(host, renamed, out);
        // Items begin in their order.
        self.sent.borrow_mut().push(Instant::now());
        true
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
