//! Questions to the network: who has this address, does it answer, what time is it.

pub mod arp;
pub mod ping;
pub mod sntp;
