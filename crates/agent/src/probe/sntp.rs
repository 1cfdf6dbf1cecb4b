//! Asks a time server for the time, once and simply.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(3);
/// Seconds from 1900, where NTP starts to count, to 1970.
const TO_1970: u64 = 2_208_988_800;

/// What a time server said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// How far this machine's clock is behind, in seconds.
    pub offset: f64,
    /// 0 and 16 mean that the server itself does not know the time.
    pub stratum: u8,
}

pub fn ask(server: IpAddr, port: u16, now: impl Fn() -> Duration) -> io::Result<Answer> {
    let any: IpAddr = if server.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(SocketAddr::new(server, port))?;
    socket.set_read_timeout(Some(WAIT))?;
    let mut packet = [0; 48];
    // Version 4, client.
    packet[0] = 0x23;
    let sent = now();
    packet[40..48].copy_from_slice(&to_ntp(sent));
    socket.send(&packet)?;
    let mut answer = [0; 128];
    let length = socket.recv(&mut answer)?;
    read(&answer[..length], &packet[40..48], sent, now())
        .ok_or_else(|| io::Error::other("cannot read the time server's answer"))
}

fn read(answer: &[u8], cookie: &[u8], sent: Duration, received: Duration) -> Option<Answer> {
    let is_server = answer.len() >= 48 && answer[0] & 7 == 4;
    if !is_server || &answer[24..32] != cookie {
        return None;
    }
    let (theirs_in, theirs_out) = (from_ntp(&answer[32..40])?, from_ntp(&answer[40..48])?);
    let offset = ((theirs_in - sent.as_secs_f64()) + (theirs_out - received.as_secs_f64())) / 2.0;
    Some(Answer {
        offset,
        stratum: answer[1],
    })
}

fn to_ntp(time: Duration) -> [u8; 8] {
    let seconds = (time.as_secs() + TO_1970) as u32;
    let fraction = ((u64::from(time.subsec_nanos()) << 32) / 1_000_000_000) as u32;
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&seconds.to_be_bytes());
    bytes[4..].copy_from_slice(&fraction.to_be_bytes());
    bytes
}

fn from_ntp(bytes: &[u8]) -> Option<f64> {
    let seconds = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
    let fraction = u32::from_be_bytes(bytes.get(4..8)?.try_into().ok()?);
    // From 2036 on the counter starts anew.
    let era = if seconds < 0x8000_0000 { 1u64 << 32 } else { 0 };
    let seconds = (u64::from(seconds) + era).checked_sub(TO_1970)?;
    Some(seconds as f64 + f64::from(fraction) / 4_294_967_296.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_ten_seconds_ahead_is_told_so() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let now = || Duration::from_millis(1_800_000_000_250);
        let thread = std::thread::spawn(move || {
            let mut packet = [0; 128];
            let (_, from) = server.recv_from(&mut packet).unwrap();
            let mut answer = [0; 48];
            answer[0] = 0x24;
            answer[1] = 2;
            answer[24..32].copy_from_slice(&packet[40..48]);
            let ahead = to_ntp(now() + Duration::from_secs(10));
            answer[32..40].copy_from_slice(&ahead);
            answer[40..48].copy_from_slice(&ahead);
            server.send_to(&answer, from).unwrap();
        });
        let answer = ask("127.0.0.1".parse().unwrap(), port, now).unwrap();
        assert!((answer.offset - 10.0).abs() < 0.001, "{answer:?}");
        assert_eq!(answer.stratum, 2);
        thread.join().unwrap();
    }

    #[test]
    fn answers_to_other_questions_are_refused() {
        let mut answer = [0; 48];
        answer[0] = 0x24;
        assert_eq!(read(&answer, &[1; 8], Duration::ZERO, Duration::ZERO), None);
        assert_eq!(read(&answer[..20], &[0; 8], Duration::ZERO, Duration::ZERO), None);
    }
}
