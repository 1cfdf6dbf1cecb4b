//! Requests byte by byte, for what no well-behaved client would send.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// The hub answers at once or not at all.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub kind: String,
    pub body: Vec<u8>,
}

/// Who says no: each layer has a shape of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `{code, message}`: the layers before an operation.
    Framework,
    /// `{kind, id, href, code, reason}`: an operation of REST v2.
    Operation,
    /// Problem details: an operation of Muster's own API.
    Problem,
    /// The request is not HTTP; there may be nothing but a status.
    Protocol,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        format!(
            "{} {} {}",
            self.status,
            self.kind,
            text.chars().take(400).collect::<String>()
        )
    }

    pub fn has(&self, shape: Shape) -> bool {
        let body = self.json();
        let keys: Vec<&str> = body
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key.as_str())
            .collect();
        let said = |key: &str| body[key].as_str().is_some_and(|text| !text.is_empty());
        match shape {
            Shape::Framework => keys == ["code", "message"] && body["code"] == self.status && said("message"),
            Shape::Operation => {
                let mut keys = keys;
                keys.sort_unstable();
                keys == ["code", "href", "id", "kind", "reason"]
                    && body["kind"] == "Error"
                    && body["id"] == self.status
                    && body["code"].as_str() == Some(self.status.to_string().as_str())
                    && said("reason")
            }
            Shape::Problem => {
                self.kind == "application/problem+json"
                    && body["status"] == self.status
                    && said("code")
                    && said("detail")
            }
            Shape::Protocol => true,
        }
    }
}

/// A whole request with a JSON body, if any.
pub fn request(method: &str, path: &str, body: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n").into_bytes();
    if let Some(body) = body {
        let head = format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        bytes.extend_from_slice(head.as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body.unwrap_or_default());
    bytes
}

/// A request with these lines as its head, and whatever follows.
pub fn head(lines: &[&str], rest: &[u8]) -> Vec<u8> {
    let mut bytes = lines.join("\r\n").into_bytes();
    bytes.extend_from_slice(b"\r\n\r\n");
    bytes.extend_from_slice(rest);
    bytes
}

/// Sends and reads what the hub answers; `None` when it just hangs up.
pub fn send(address: &str, bytes: &[u8]) -> Option<Answer> {
    let mut stream = begin(address, bytes);
    read(&mut stream)
}

/// The same, but nothing can follow what was sent.
pub fn send_cut_off(address: &str, bytes: &[u8]) -> Option<Answer> {
    let mut stream = begin(address, bytes);
    let _ = stream.shutdown(Shutdown::Write);
    read(&mut stream)
}

fn begin(address: &str, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A hub that has heard enough may hang up before everything is sent.
    let _ = stream.write_all(bytes);
    stream
}

/// The first answer on a connection.
pub fn read(stream: &mut TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            // A hub that says nothing is as bad as one that hangs up.
            Err(_) => return None,
        }
        if let Some(answer) = parse(&bytes) {
            return Some(answer);
        }
    }
    parse(&bytes)
}

/// `None` while something is missing.
fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let field = |name: &str| {
        let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
    };
    let length = field("content-length").map_or(0, |length| length.parse().unwrap());
    let body = bytes[end + 4..].get(..length)?;
    Some(Answer {
        status: head.split(' ').nth(1)?.parse().ok()?,
        kind: field("content-type").unwrap_or_default(),
        body: body.to_vec(),
    })
}
