//! Images over HTTP/1.1 by a way of their own: on plain sockets without copying (`sendfile`), which no HTTP library
//! offers. Requests for anything else go on to the ordinary server, with nothing lost.

use super::outlet::Outlet;
use super::path::is_ours;
use super::{Answer, Asked, Images};
use crate::layout::{Content, Layout};
use crate::serve::Meter;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version, header};
use rustix::io::{ReadWriteFlags, preadv2};
use std::io::{self, IoSliceMut};
use std::net::IpAddr;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::watch;
use tokio::time::Instant;

/// A request with more than this before its body is not from a boot loader.
const LARGEST_HEAD: usize = 16 * 1024;
const MOST_HEADERS: usize = 64;
/// How long a connection may rest between requests. BMCs keep theirs for minutes.
const IDLE: Duration = Duration::from_secs(300);
/// Up to here the bytes go out with the head in one call, which is faster than two.
const SMALL: u64 = 64 * 1024;
/// What is handed to the kernel at once: others on this thread wait that long at most.
const STEP: u64 = 1024 * 1024;

static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// A connection and the bytes read from it already.
#[derive(Debug)]
pub struct Begun<S> {
    stream: S,
    head: Vec<u8>,
    at: usize,
}

/// Whose connection this is: what it may ask for, and who learns what it does.
pub trait Attended: Sync {
    /// Whether requests are answered that name this host; one that names none has an empty one.
    fn admits(&self, host: &str) -> bool;
    /// A request is there and is answered now.
    fn works(&self);
    /// Nothing is asked now.
    fn rests(&self);
    /// A head has begun to come.
    fn begins(&self);
    /// How long the whole of a head may take to come.
    fn head_time(&self) -> Duration;
}

/// Serves requests for images on this connection. `Some`: a request that is not for us; it and all that follow belong
/// to the ordinary server. `None`: the connection is over. When `stopping` becomes true, the reply that is on its way
/// is the last one.
pub async fn attend<S: Outlet>(
    stream: S,
    peer: IpAddr,
    images: &Images,
    guest: &impl Attended,
    mut stopping: watch::Receiver<bool>,
) -> io::Result<Option<Begun<S>>> {
    let mut connection = Begun::new(stream);
    let mut patience = guest.head_time();
    loop {
        let stopped = async { stopping.wait_for(|stop| *stop).await.map(drop).ok() };
        let next = tokio::select! {
            next = connection.next_head(patience, guest) => next?,
            _ = stopped => return Ok(None),
        };
        let Some(len) = next else {
            return Ok((!connection.head.is_empty()).then_some(connection));
        };
        patience = IDLE;
        // The ordinary server knows what to say to names that are not ours, too.
        let Some(request) = parsed(&connection.head[..len]).filter(|request| is_admitted(request, guest))
        else {
            return Ok(Some(connection));
        };
        guest.works();
        let asked = Asked {
            method: &request.method,
            uri: &request.uri,
            headers: &request.headers,
            client: peer,
        };
        let answer = images.answer(&asked).await;
        connection.head.drain(..len);
        send(&mut connection.stream, answer, request.keep).await?;
        if !request.keep {
            connection.stream.shutdown().await?;
            return Ok(None);
        }
        guest.rests();
    }
}

fn is_admitted(request: &Request, guest: &impl Attended) -> bool {
    let host = request
        .headers
        .get(header::HOST)
        .map(|host| host.to_str().unwrap_or("?."));
    let target = request.uri.authority().map(|authority| authority.as_str());
    guest.admits(host.unwrap_or_default()) && guest.admits(target.unwrap_or_default())
}

struct Request {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    keep: bool,
}

/// `None` when it is not a plain question for an image; the ordinary server knows what to say to it.
fn parsed(head: &[u8]) -> Option<Request> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut fields);
    request.parse(head).ok()?;
    let method = match request.method? {
        "GET" => Method::GET,
        "HEAD" => Method::HEAD,
        _ => return None,
    };
    let uri: Uri = request.path?.parse().ok()?;
    if !is_ours(uri.path()) {
        return None;
    }
    let mut headers = HeaderMap::with_capacity(request.headers.len());
    for field in request.headers.iter() {
        let name: HeaderName = field.name.parse().ok()?;
        headers.append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    let others = [
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::EXPECT,
    ];
    let hosts = headers.get_all(header::HOST).iter().count();
    let version = if request.version? == 1 {
        Version::HTTP_11
    } else {
        Version::HTTP_10
    };
    if others.iter().any(|name| headers.contains_key(name)) || (version == Version::HTTP_11 && hosts != 1) {
        return None;
    }
    let says = |word: &str| {
        let fields = headers.get_all(header::CONNECTION);
        let mut words = fields
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|text| text.split(','));
        words.any(|one| one.trim().eq_ignore_ascii_case(word))
    };
    let keep = if version == Version::HTTP_11 {
        !says("close")
    } else {
        says("keep-alive")
    };
    Some(Request {
        method,
        uri,
        headers,
        keep,
    })
}

impl<S: AsyncRead + Unpin> Begun<S> {
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            head: Vec::with_capacity(1024),
            at: 0,
        }
    }

    /// The length of the next head, or `None` when the peer is done or what it sent is not for us to judge. `patience`
    /// is for its first byte; from then on all of it has the time of one head, however it is dealt out.
    async fn next_head(&mut self, patience: Duration, guest: &impl Attended) -> io::Result<Option<usize>> {
        let mut has_begun = false;
        let mut until = Instant::now() + patience;
        loop {
            if !has_begun && !self.head.is_empty() {
                has_begun = true;
                guest.begins();
                until = Instant::now() + guest.head_time();
            }
            if let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n") {
                return Ok(Some(end + 4));
            }
            if self.head.len() >= LARGEST_HEAD {
                return Ok(None);
            }
            // A first line that is not for us needs no waiting for its end.
            if self.head.len() > 64 && !self.head.starts_with(b"GET /") && !self.head.starts_with(b"HEAD /") {
                return Ok(None);
            }
            match tokio::time::timeout_at(until, self.stream.read_buf(&mut self.head)).await {
                Ok(Ok(0)) => {
                    self.head.clear();
                    return Ok(None);
                }
                Ok(read) => read?,
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            };
        }
    }
}

async fn send(stream: &mut impl Outlet, answer: Answer, keep: bool) -> io::Result<()> {
    let Answer { reply, mut meter } = answer;
    let mut head = Vec::with_capacity(1024);
    let reason = reply.status.canonical_reason().unwrap_or("Unknown");
    head.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", reply.status.as_u16()).as_bytes());
    for (name, value) in &reply.headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    let date = httpdate::fmt_http_date(std::time::SystemTime::now());
    head.extend_from_slice(format!("date: {date}\r\n").as_bytes());
    head.extend_from_slice(if keep {
        b"\r\n"
    } else {
        b"connection: close\r\n\r\n"
    });
    if reply.body.len() <= SMALL {
        let len = reply.body.len();
        append(&mut head, reply.body).await?;
        write(stream, &head, None).await?;
        if let Some(meter) = &mut meter {
            meter.sent(len);
        }
        return stream.finish().await;
    }
    write(stream, &head, None).await?;
    transmit(stream, &reply.body, meter.as_mut()).await?;
    stream.finish().await
}

/// The bytes of a small body, from the page cache if it has them.
async fn append(head: &mut Vec<u8>, body: Layout) -> io::Result<()> {
    for segment in body.segments() {
        let start = head.len();
        head.resize(start + usize::try_from(segment.len).unwrap_or_default(), 0);
        match &segment.content {
            Content::Zeros => {}
            Content::Bytes(bytes) => head[start..].copy_from_slice(bytes),
            Content::File { file, at } => {
                let mut target = [IoSliceMut::new(&mut head[start..])];
                let read = preadv2(file, &mut target, *at, ReadWriteFlags::NOWAIT);
                if read.is_ok_and(|read| read as u64 == segment.len) {
                    continue;
                }
                let (file, at, len) = (Arc::clone(file), *at, head.len() - start);
                let bytes = tokio::task::spawn_blocking(move || {
                    let mut bytes = vec![0; len];
                    file.read_exact_at(&mut bytes, at).map(|()| bytes)
                });
                head[start..].copy_from_slice(&bytes.await.map_err(io::Error::other)??);
            }
        }
    }
    Ok(())
}

async fn transmit(stream: &mut impl Outlet, body: &Layout, mut meter: Option<&mut Meter>) -> io::Result<()> {
    for segment in body.segments() {
        match &segment.content {
            Content::Bytes(bytes) => write(stream, bytes, meter.as_deref_mut()).await?,
            Content::Zeros => {
                let mut left = segment.len;
                while left > 0 {
                    let len = left.min(ZEROS.len() as u64);
                    write(
                        stream,
                        &ZEROS[..usize::try_from(len).unwrap_or_default()],
                        meter.as_deref_mut(),
                    )
                    .await?;
                    left -= len;
                }
            }
            Content::File { file, at } => {
                let mut at = *at;
                let end = at + segment.len;
                while at < end {
                    let moved = stream.pass_on(file, at, (end - at).min(STEP)).await?;
                    if let Some(meter) = meter.as_deref_mut() {
                        meter.sent(moved);
                    }
                    at += moved;
                }
            }
        }
    }
    Ok(())
}

async fn write(stream: &mut impl Outlet, mut bytes: &[u8], mut meter: Option<&mut Meter>) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = stream.put(bytes).await?;
        if let Some(meter) = meter.as_deref_mut() {
            meter.sent(written as u64);
        }
        bytes = &bytes[written..];
    }
    Ok(())
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.at < self.head.len() {
            let len = buffer.remaining().min(self.head.len() - self.at);
            buffer.put_slice(&self.head[self.at..self.at + len]);
            self.at += len;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        list: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, list)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
