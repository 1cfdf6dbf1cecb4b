//! A keep-alive HTTP/1.1 connection that does just what the agents of a fleet need, for little CPU.

use crate::request::Request;
use crate::stream::Stream;
use rustls::ClientConfig;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// No answer to an agent is larger; a hub that sends more is broken.
const BODY_LIMIT: usize = 64 << 20;
const HEAD_LIMIT: usize = 64 << 10;

/// Where the hub listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubAddress {
    /// `host:port`, also the `Host` header.
    pub authority: String,
    /// What stands before the API's own path; usually nothing.
    pub prefix: String,
    /// Whether https is spoken there.
    pub is_secure: bool,
}

impl HubAddress {
    pub fn parse(url: &str) -> Result<Self, String> {
        let (is_secure, rest) = match url.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some((other, _)) => {
                return Err(format!(
                    "cannot speak {other}; use an http:// or https:// address"
                ));
            }
            None => (false, url),
        };
        let (host, prefix) = rest
            .split_once('/')
            .map_or((rest, ""), |(host, path)| (host, path));
        if host.is_empty() || host.contains('@') {
            return Err(format!("{url:?} names no host"));
        }
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let authority = if has_port {
            host.to_owned()
        } else {
            format!("{host}:{}", if is_secure { 443 } else { 80 })
        };
        let prefix = prefix.trim_end_matches('/');
        let prefix = if prefix.is_empty() {
            String::new()
        } else {
            format!("/{prefix}")
        };
        Ok(Self {
            authority,
            prefix,
            is_secure,
        })
    }
}

/// A connection to the hub, opened again when it was closed.
#[derive(Debug)]
pub struct Wire {
    hub: HubAddress,
    tls: Arc<ClientConfig>,
    token: String,
    stream: Option<Stream>,
    out: Vec<u8>,
    read: Vec<u8>,
}

impl Wire {
    pub fn new(hub: HubAddress, tls: Arc<ClientConfig>, token: String) -> Self {
        Self {
            hub,
            tls,
            token,
            stream: None,
            out: Vec::new(),
            read: Vec::new(),
        }
    }

    /// Sends the request and reads the whole answer: status and body.
    pub async fn send(&mut self, request: &Request) -> io::Result<(u16, Vec<u8>)> {
        let result = self.exchange(request).await;
        if result.is_err() {
            self.stream = None;
        }
        result
    }

    /// Drops the connection, for a caller that stopped waiting in the middle of an answer.
    pub fn close(&mut self) {
        self.stream = None;
    }

    async fn exchange(&mut self, request: &Request) -> io::Result<(u16, Vec<u8>)> {
        self.write_request(request);
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => Stream::open(&self.hub, &self.tls).await?,
        };
        stream.write_all(&self.out).await?;
        stream.flush().await?;
        self.read.clear();
        let head = read_head(&mut stream, &mut self.read).await?;
        let body = match head.length {
            Length::Known(length) => read_exactly(&mut stream, &mut self.read, head.end, length).await?,
            Length::Chunked => read_chunks(&mut stream, &mut self.read, head.end).await?,
            Length::UntilClose => {
                stream.read_to_end(&mut self.read).await?;
                self.read.split_off(head.end)
            }
        };
        if head.keep_alive {
            self.stream = Some(stream);
        }
        Ok((head.status, body))
    }

    fn write_request(&mut self, request: &Request) {
        let out = &mut self.out;
        out.clear();
        let line = [
            request.method.as_str(),
            " ",
            &self.hub.prefix,
            &request.path,
            " HTTP/1.1\r\nhost: ",
        ];
        line.iter()
            .for_each(|part| out.extend_from_slice(part.as_bytes()));
        out.extend_from_slice(self.hub.authority.as_bytes());
        for (name, value) in request.headers(&self.token) {
            for part in ["\r\n", name, ": ", &value] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        if request.method != http::Method::GET {
            for part in ["\r\ncontent-type: ", request.content_type, "\r\ncontent-length: "] {
                out.extend_from_slice(part.as_bytes());
            }
            out.extend_from_slice(request.body.len().to_string().as_bytes());
        }
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(&request.body);
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    length: Length,
    keep_alive: bool,
    /// Where the body starts.
    end: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum Length {
    Known(usize),
    Chunked,
    UntilClose,
}

async fn read_head(stream: &mut Stream, buffer: &mut Vec<u8>) -> io::Result<Head> {
    loop {
        fill(stream, buffer).await?;
        let Some(end) = buffer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .map(|at| at + 4)
        else {
            if buffer.len() > HEAD_LIMIT {
                return Err(broken("the head of the answer does not end"));
            }
            continue;
        };
        let head = parse_head(&buffer[..end], end)?;
        // 100 Continue and the like come before the real answer.
        if head.status >= 200 {
            return Ok(head);
        }
        buffer.drain(..end);
    }
}

fn parse_head(bytes: &[u8], end: usize) -> io::Result<Head> {
    let text = std::str::from_utf8(bytes).map_err(|_| broken("the head of the answer is not text"))?;
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let status = line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1));
    let status: u16 = status
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| broken("the answer is not HTTP/1"))?;
    let mut length = if matches!(status, 204 | 304) {
        Length::Known(0)
    } else {
        Length::UntilClose
    };
    let mut keep_alive = !line.starts_with("HTTP/1.0");
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            length = Length::Known(
                value
                    .parse()
                    .map_err(|_| broken("the length of the answer is no number"))?,
            );
        } else if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
            length = Length::Chunked;
        } else if name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("close") {
            keep_alive = false;
        }
    }
    keep_alive &= length != Length::UntilClose;
    Ok(Head {
        status,
        length,
        keep_alive,
        end,
    })
}

async fn read_exactly(
    stream: &mut Stream,
    buffer: &mut Vec<u8>,
    start: usize,
    length: usize,
) -> io::Result<Vec<u8>> {
    if length > BODY_LIMIT {
        return Err(broken("the answer is too large"));
    }
    while buffer.len() < start + length {
        fill(stream, buffer).await?;
    }
    Ok(buffer[start..start + length].to_vec())
}

async fn read_chunks(stream: &mut Stream, buffer: &mut Vec<u8>, start: usize) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    let mut at = start;
    loop {
        let line_end = read_line(stream, buffer, at).await?;
        let size = std::str::from_utf8(&buffer[at..line_end])
            .ok()
            .and_then(|line| line.split(';').next());
        let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let size = size.ok_or_else(|| broken("a chunk of the answer has no size"))?;
        at = line_end + 2;
        if size == 0 {
            // Trailers, if any, and the empty line that ends them.
            loop {
                let end = read_line(stream, buffer, at).await?;
                if end == at {
                    return Ok(body);
                }
                at = end + 2;
            }
        }
        if body.len() + size > BODY_LIMIT {
            return Err(broken("the answer is too large"));
        }
        while buffer.len() < at + size + 2 {
            fill(stream, buffer).await?;
        }
        body.extend_from_slice(&buffer[at..at + size]);
        at += size + 2;
    }
}

/// The position of the next line end.
async fn read_line(stream: &mut Stream, buffer: &mut Vec<u8>, at: usize) -> io::Result<usize> {
    loop {
        if let Some(end) = buffer
            .get(at..)
            .and_then(|rest| rest.windows(2).position(|two| two == b"\r\n"))
        {
            return Ok(at + end);
        }
        fill(stream, buffer).await?;
    }
}

async fn fill(stream: &mut Stream, buffer: &mut Vec<u8>) -> io::Result<()> {
    match stream.read_buf(buffer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn broken(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
