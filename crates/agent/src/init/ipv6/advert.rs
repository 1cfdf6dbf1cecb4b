//! What routers tell their neighbours (RFC 4861, RFC 8106), as far as the kernel leaves it to us: whether DHCPv6 is to
//! be asked, and who knows names. By hand, because no crate that reads it comes without a packet library around it.

use hickory_proto::rr::Name;
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder};
use std::net::Ipv6Addr;
use std::time::Duration;

pub const SOLICITATION: u8 = 133;
pub const ADVERTISEMENT: u8 = 134;
const MANAGED: u8 = 0x80;
const OTHER: u8 = 0x40;
/// Where options begin.
const HEADER: usize = 16;
const SERVERS: u8 = 25;
const SEARCH: u8 = 31;

/// Asks routers to speak up. The kernel fills in the checksum.
pub const QUESTION: [u8; 8] = [SOLICITATION, 0, 0, 0, 0, 0, 0, 0];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advert {
    /// DHCPv6 gives addresses.
    pub managed: bool,
    /// Other things are, such as name servers.
    pub other: bool,
    pub servers: Vec<Ipv6Addr>,
    pub search: Vec<String>,
    /// How long the names are good for; the shorter one of both lists.
    pub names_for: Duration,
}

pub fn read(packet: &[u8]) -> Option<Advert> {
    let (head, mut options) = packet.split_at_checked(HEADER)?;
    if head[0] != ADVERTISEMENT || head[1] != 0 {
        return None;
    }
    let mut advert = Advert {
        managed: head[5] & MANAGED != 0,
        other: head[5] & OTHER != 0,
        ..Advert::default()
    };
    let mut seconds: Option<u32> = None;
    while let [kind, length, ..] = options {
        // RFC 4861: a length of nothing makes the whole message worthless.
        let length = usize::from(*length) * 8;
        if length == 0 {
            return None;
        }
        let (option, rest) = options.split_at_checked(length)?;
        options = rest;
        let lifetime = || Some(u32::from_be_bytes(option.get(4..8)?.try_into().ok()?));
        match *kind {
            SERVERS => advert.servers.extend(addresses(option.get(8..)?)),
            SEARCH => advert.search.extend(names(option.get(8..)?)),
            _ => continue,
        }
        let told = lifetime()?;
        seconds = Some(seconds.map_or(told, |known| known.min(told)));
    }
    advert.names_for = Duration::from_secs(seconds.unwrap_or_default().into());
    Some(advert)
}

/// An address on the link alone names no interface, and nothing else in this agent could tell which.
fn addresses(bytes: &[u8]) -> impl Iterator<Item = Ipv6Addr> {
    let all = bytes.chunks_exact(16);
    all.filter_map(|bytes| <[u8; 16]>::try_from(bytes).ok())
        .map(Ipv6Addr::from)
        .filter(|ip| !ip.is_unicast_link_local())
}

fn names(bytes: &[u8]) -> Vec<String> {
    let mut decoder = BinDecoder::new(bytes);
    let mut found = Vec::new();
    while let Ok(name) = Name::read(&mut decoder) {
        let name = name.to_ascii().trim_end_matches('.').to_owned();
        // Empty names fill the option up.
        if !name.is_empty() {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(flags: u8, options: &[&[u8]]) -> Vec<u8> {
        let mut packet = vec![0; HEADER];
        packet[0] = ADVERTISEMENT;
        packet[5] = flags;
        packet.extend(options.concat());
        packet
    }

    fn servers(seconds: u8, ips: &[&str]) -> Vec<u8> {
        let mut option = vec![SERVERS, 1 + 2 * ips.len() as u8, 0, 0, 0, 0, 0, seconds];
        for ip in ips {
            option.extend(ip.parse::<Ipv6Addr>().unwrap().octets());
        }
        option
    }

    #[test]
    fn an_advertisement_is_read_whole() {
        let mut search = vec![SEARCH, 3, 0, 0, 0, 0, 0, 30];
        search.extend_from_slice(b"\x03lab\x07example\x00\0\0\0");
        let prefix = [3, 4].into_iter().chain([0; 30]).collect::<Vec<u8>>();
        let found = read(&packet(
            0xc0,
            &[&prefix, &servers(60, &["2001:db8::53", "fe80::1"]), &search],
        ));
        let expected = Advert {
            managed: true,
            other: true,
            servers: vec!["2001:db8::53".parse().unwrap()],
            search: vec!["lab.example".into()],
            names_for: Duration::from_secs(30),
        };
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn flags_say_who_gives_addresses() {
        for (flags, managed, other) in [(0, false, false), (0x80, true, false), (0x40, false, true)] {
            let advert = read(&packet(flags, &[])).unwrap();
            assert_eq!((advert.managed, advert.other), (managed, other), "{flags:x}");
        }
    }

    #[test]
    fn broken_ones_are_refused_whole() {
        let whole = packet(0, &[&servers(60, &["2001:db8::53"])]);
        assert!(read(&whole).is_some());
        for length in [0, 1, 15, 18, 24, 39] {
            assert_eq!(read(&whole[..length]), None, "{length}");
        }
        assert_eq!(read(&packet(0, &[&[1, 0, 0, 0]])), None, "an option of no length");
        assert_eq!(read(&QUESTION), None);
    }
}
