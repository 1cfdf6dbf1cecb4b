//! Who a simulated machine is: its names and numbers, all derived from the seed and its index.

use crate::profile::Profile;
use crate::seed::mix;
use crate::setup::Setup;
use std::net::Ipv4Addr;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

/// The one network of all simulated machines. It holds 4 million hosts and no default network of a cluster.
pub const NETWORK: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 0);
pub const PREFIX: u8 = 10;
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 1);
/// Where names of clusters resolve to. Everything below 10.64.1.0 is free for virtual addresses.
pub const API_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 5);
/// Indexes from here on would share addresses with lower ones.
pub const MAX_HOSTS: u32 = 4_000_000;

/// The addresses 1 to 254 of each /24 are given to hosts.
const PER_SUBNET: u32 = 254;

/// One machine. Small and made on demand; nothing of it is stored per host but its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    pub seed: u64,
    pub index: u32,
    /// Whose serial number and id it shows: its own, unless the board was cloned.
    pub board: u32,
    pub profile: Profile,
}

impl Machine {
    pub fn new(setup: &Setup, index: u32, board: u32) -> Self {
        let profile = setup.profile.unwrap_or_else(|| Profile::pick(setup.seed, index));
        Self {
            seed: setup.seed,
            index,
            board,
            profile,
        }
    }

    /// Like a real agent's: derived from the serial number of the board.
    pub fn id(&self) -> Uuid {
        let name = format!("{}/{}", self.seed, self.serial());
        uuid::Builder::from_random_bytes(xxh3_128(name.as_bytes()).to_be_bytes()).into_uuid()
    }

    pub fn hostname(&self) -> String {
        format!("{}-{:05}", self.profile.spec().prefix, self.index)
    }

    pub fn serial(&self) -> String {
        // The low digits keep serials apart; the others make them look like serials.
        let noise = mix(&[self.seed, u64::from(self.board), 1]);
        format!("MS{:04X}{:06X}", noise & 0xFFFF, self.board)
    }

    pub fn mac(&self, nic: u8) -> String {
        let seed = mix(&[self.seed, 2]) as u8;
        let low = ((self.index << 2) | u32::from(nic & 3)).to_be_bytes();
        format!("52:54:{seed:02x}:{:02x}:{:02x}:{:02x}", low[1], low[2], low[3])
    }

    pub fn address(&self) -> Ipv4Addr {
        address_of(self.index)
    }

    /// The number in a disk's world wide name, distinct per machine and disk.
    pub fn disk_number(&self, disk: usize) -> u64 {
        let seed = mix(&[self.seed, 3]) & 0x3FF;
        (seed << 26) | (u64::from(self.index) << 4) | (disk as u64 & 0xF)
    }
}

/// The address of a host's first interface.
pub fn address_of(index: u32) -> Ipv4Addr {
    let subnet = 1 + index / PER_SUBNET;
    Ipv4Addr::from_bits(NETWORK.to_bits() + subnet * 256 + 1 + index % PER_SUBNET)
}
