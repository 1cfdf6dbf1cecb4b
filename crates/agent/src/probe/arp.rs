//! Asks on one interface who has an IPv4 address. Needs the right to send raw packets.

use crate::sys::packet::{BROADCAST, Mac, PacketSocket};
use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

const ETHERTYPE: u16 = 0x0806;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
/// A neighbour answers within milliseconds; a sleepy one gets a second and a second chance.
const ROUND: Duration = Duration::from_millis(1000);
const ROUNDS: usize = 2;
/// Between requests of a whole network, so that switches do not take them for a storm.
const GAP: Duration = Duration::from_micros(300);

pub fn request(mac: Mac, from: Ipv4Addr, to: Ipv4Addr) -> [u8; 28] {
    let mut packet = [0; 28];
    packet[..8].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, REQUEST]);
    packet[8..14].copy_from_slice(&mac);
    packet[14..18].copy_from_slice(&from.octets());
    packet[24..28].copy_from_slice(&to.octets());
    packet
}

/// Who tells to have which address.
pub fn answer(packet: &[u8]) -> Option<(Ipv4Addr, Mac)> {
    let is_reply = packet.get(..8)? == [0, 1, 8, 0, 6, 4, 0, REPLY];
    let mac: Mac = packet.get(8..14)?.try_into().ok()?;
    let ip: [u8; 4] = packet.get(14..18)?.try_into().ok()?;
    is_reply.then_some((Ipv4Addr::from(ip), mac))
}

/// Asks for all addresses at once and returns those somebody has. `from` may be unspecified: nobody learns it then.
pub fn scan(
    interface: &str,
    mac: Mac,
    from: Ipv4Addr,
    wanted: &[Ipv4Addr],
) -> io::Result<HashMap<Ipv4Addr, Vec<Mac>>> {
    let socket = PacketSocket::open(interface, ETHERTYPE)?;
    let mut found: HashMap<Ipv4Addr, Vec<Mac>> = HashMap::new();
    for _ in 0..ROUNDS {
        for to in wanted
            .iter()
            .filter(|ip| !found.contains_key(ip))
            .copied()
            .collect::<Vec<_>>()
        {
            socket.send(BROADCAST, &request(mac, from, to))?;
            listen(&socket, wanted, Instant::now() + GAP, &mut found)?;
        }
        listen(&socket, wanted, Instant::now() + ROUND, &mut found)?;
        if wanted.iter().all(|ip| found.contains_key(ip)) {
            break;
        }
    }
    Ok(found)
}

fn listen(
    socket: &PacketSocket,
    wanted: &[Ipv4Addr],
    until: Instant,
    found: &mut HashMap<Ipv4Addr, Vec<Mac>>,
) -> io::Result<()> {
    let mut buffer = [0; 128];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Some(length) = socket.receive(left, &mut buffer)? else {
            return Ok(());
        };
        if let Some((ip, mac)) = answer(&buffer[..length])
            && wanted.contains(&ip)
        {
            let macs = found.entry(ip).or_default();
            if !macs.contains(&mac) {
                macs.push(mac);
            }
        }
        // One address is wanted, and it is there: others that have it too would answer in the same moment.
        if wanted.len() == 1 && !found.is_empty() && left > ROUND / 4 {
            return listen(socket, wanted, Instant::now() + ROUND / 10, found);
        }
        if left.is_zero() {
            return Ok(());
        }
    }
}

pub fn parse_mac(text: &str) -> Option<Mac> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

pub fn mac_text(mac: &Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_its_answer_fit_together() {
        let (us, them) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let (from, to) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        let mut packet = request(us, from, to);
        assert_eq!(answer(&packet), None);
        packet[7] = REPLY;
        packet[8..14].copy_from_slice(&them);
        packet[14..18].copy_from_slice(&to.octets());
        assert_eq!(answer(&packet), Some((to, them)));
        assert_eq!(answer(&packet[..20]), Some((to, them)));
        assert_eq!(answer(&packet[..10]), None);
    }

    #[test]
    fn macs_are_read_and_written() {
        assert_eq!(
            parse_mac("52:54:00:aA:00:01")
                .map(|mac| mac_text(&mac))
                .as_deref(),
            Some("52:54:00:aa:00:01")
        );
        for wrong in ["", "52:54", "52:54:00:aa:00:01:02", "52:54:00:aa:00:zz"] {
            assert_eq!(parse_mac(wrong), None, "{wrong}");
        }
    }
}
