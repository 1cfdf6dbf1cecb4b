//! The network address of the machine's power controller, asked through the kernel's IPMI device.

use super::Machine;
use crate::sys::ipmi;
use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, Ipv6Addr};

const DEVICES: [&str; 3] = ["/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0"];
const TRANSPORT: u8 = 0x0c;
const GET_LAN_PARAMETER: u8 = 0x02;
const IPV4: u8 = 3;
/// The first static and the first dynamic IPv6 address.
const IPV6: [u8; 2] = [56, 59];
/// The standard knows channels up to 11; controllers differ in which of them is the network.
const CHANNELS: std::ops::RangeInclusive<u8> = 1..=11;
/// What clients expect where there is no controller.
const NO_V4: &str = "0.0.0.0";
const NO_V6: &str = "::/0";

pub fn addresses(machine: &Machine) -> (String, String) {
    let device = machine.is_live().then(|| {
        DEVICES
            .iter()
            .find_map(|path| OpenOptions::new().read(true).write(true).open(path).ok())
    });
    let Some(device) = device.flatten() else {
        return (NO_V4.to_owned(), NO_V6.to_owned());
    };
    let v4 = CHANNELS
        .clone()
        .find_map(|channel| v4(&parameter(&device, channel, IPV4)?));
    let v6 = CHANNELS.clone().find_map(|channel| {
        IPV6.iter()
            .find_map(|number| v6(&parameter(&device, channel, *number)?))
    });
    (
        v4.map_or_else(|| NO_V4.to_owned(), |ip| ip.to_string()),
        v6.map_or_else(|| NO_V6.to_owned(), |ip| ip.to_string()),
    )
}

fn parameter(device: &File, channel: u8, number: u8) -> Option<Vec<u8>> {
    let answer = ipmi::ask(device, TRANSPORT, GET_LAN_PARAMETER, &mut [channel, number, 0, 0]).ok()?;
    // Completion code, parameter revision, then the data.
    (answer.first() == Some(&0)).then(|| answer[2.min(answer.len())..].to_vec())
}

fn v4(data: &[u8]) -> Option<Ipv4Addr> {
    let ip = Ipv4Addr::from(<[u8; 4]>::try_from(data.get(..4)?).ok()?);
    (!ip.is_unspecified()).then_some(ip)
}

/// Set selector, source, then the address.
fn v6(data: &[u8]) -> Option<Ipv6Addr> {
    let ip = Ipv6Addr::from(<[u8; 16]>::try_from(data.get(2..18)?).ok()?);
    (!ip.is_unspecified() && !ip.is_unicast_link_local()).then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_set_do_not_count() {
        assert_eq!(v4(&[192, 0, 2, 4]), Some(Ipv4Addr::new(192, 0, 2, 4)));
        assert_eq!(v4(&[0, 0, 0, 0]), None);
        assert_eq!(v4(&[1]), None);
        let mut data = vec![0, 0x80];
        data.extend_from_slice(&"2001:db8::4".parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(v6(&data), "2001:db8::4".parse().ok());
    }
}
