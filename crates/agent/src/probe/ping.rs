//! Echo requests: whether an address answers, how fast, and with packets how large.

use crate::sys;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const COUNT: u16 = 3;
const WAIT: Duration = Duration::from_secs(1);
/// Header sizes of IP and ICMP.
const OVERHEAD_V4: usize = 28;
const OVERHEAD_V6: usize = 48;

/// What came back.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Echo {
    pub sent: u16,
    pub received: u16,
    pub average_rtt_ms: f64,
}

impl Echo {
    pub fn loss_percent(&self) -> f64 {
        if self.sent == 0 {
            return 100.0;
        }
        100.0 * f64::from(self.sent - self.received) / f64::from(self.sent)
    }
}

struct Pinger {
    socket: UdpSocket,
    is_raw: bool,
    is_v6: bool,
    target: SocketAddr,
    id: u16,
}

impl Pinger {
    fn open(target: IpAddr, interface: Option<&str>) -> io::Result<Self> {
        let is_v6 = target.is_ipv6();
        let (socket, is_raw) = sys::icmp_socket(is_v6)?;
        if let Some(interface) = interface {
            // Without the right to choose, the routes choose.
            let _ = sys::bind_to_device(&socket, interface);
        }
        let id = (crate::clock::chance() * 65535.0) as u16;
        Ok(Self {
            socket,
            is_raw,
            is_v6,
            target: SocketAddr::new(target, 0),
            id,
        })
    }

    /// The time until the answer; nothing when none came.
    fn once(&self, number: u16, content: usize) -> io::Result<Option<Duration>> {
        let start = Instant::now();
        self.socket
            .send_to(&echo_request(self.is_v6, self.id, number, content), self.target)?;
        let mut buffer = vec![0; content + 128];
        loop {
            let left = WAIT.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left))?;
            let length = match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) if from.ip() == self.target.ip() => length,
                Ok(_) => continue,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            if self.is_answer(&buffer[..length], number) {
                return Ok(Some(start.elapsed()));
            }
        }
    }

    fn is_answer(&self, packet: &[u8], number: u16) -> bool {
        let skip = if self.is_raw && !self.is_v6 {
            usize::from(packet.first().unwrap_or(&0) & 0x0f) * 4
        } else {
            0
        };
        let Some(head) = packet.get(skip..skip + 8) else {
            return false;
        };
        let kind = if self.is_v6 { 129 } else { 0 };
        // The kernel puts its own id into unprivileged ones, and gives us only our answers.
        let is_ours = !self.is_raw || head[4..6] == self.id.to_be_bytes();
        head[0] == kind && is_ours && head[6..8] == number.to_be_bytes()
    }
}

fn echo_request(is_v6: bool, id: u16, number: u16, content: usize) -> Vec<u8> {
    let mut packet = vec![0; 8 + content];
    packet[0] = if is_v6 { 128 } else { 8 };
    packet[4..6].copy_from_slice(&id.to_be_bytes());
    packet[6..8].copy_from_slice(&number.to_be_bytes());
    if !is_v6 {
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

fn checksum(packet: &[u8]) -> u16 {
    let words = packet
        .chunks(2)
        .map(|two| u32::from(u16::from_be_bytes([two[0], *two.get(1).unwrap_or(&0)])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Sends a few requests, one after the other.
pub fn echo(target: IpAddr, interface: Option<&str>) -> io::Result<Echo> {
    let pinger = Pinger::open(target, interface)?;
    let mut echo = Echo::default();
    let mut total = Duration::ZERO;
    for number in 0..COUNT {
        echo.sent += 1;
        if let Some(time) = pinger.once(number, 56)? {
            echo.received += 1;
            total += time;
        }
    }
    if echo.received > 0 {
        echo.average_rtt_ms = total.as_secs_f64() * 1000.0 / f64::from(echo.received);
    }
    Ok(echo)
}

/// Whether packets as large as the interface sends them arrive whole.
pub fn carries_mtu(target: IpAddr, interface: &str, mtu: usize) -> io::Result<bool> {
    let pinger = Pinger::open(target, Some(interface))?;
    sys::forbid_fragments(&pinger.socket, pinger.is_v6)?;
    let overhead = if pinger.is_v6 { OVERHEAD_V6 } else { OVERHEAD_V4 };
    for number in 0..COUNT {
        if pinger.once(number, mtu.saturating_sub(overhead))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_packet_with_its_checksum_is_zero() {
        let packet = echo_request(false, 0x1234, 7, 33);
        assert_eq!(checksum(&packet), 0);
    }

    #[test]
    fn loss_is_told_in_percent() {
        let echo = Echo {
            sent: 4,
            received: 1,
            average_rtt_ms: 1.0,
        };
        assert_eq!(echo.loss_percent(), 75.0);
        assert_eq!(Echo::default().loss_percent(), 100.0);
    }

    #[test]
    fn this_machine_answers_itself_where_pings_are_allowed() {
        let Ok(echo) = echo("127.0.0.1".parse().unwrap(), None) else {
            return;
        };
        assert_eq!(echo.received, 3);
    }
}
