//! What replies leave through: a plain socket, into which the kernel moves file pages by itself (`sendfile`), or a stream
//! that has to see every byte, as TLS does, through one buffer of bounded size.

use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::TcpStream;

/// A client that takes no byte for this long is gone.
const STALL: Duration = Duration::from_secs(300);
/// Four of TLS's records: enough for its speed, little for each of thousands of readers.
const BUFFER: usize = 64 * 1024;

/// Takes parts of replies, as much at a time as it likes.
pub trait Outlet: AsyncRead + AsyncWrite + Unpin + Send {
    /// Some of the bytes; how many.
    fn put(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> + Send;
    /// Some of the file from this place on, `len` bytes at most; how many.
    fn pass_on(
        &mut self,
        file: &Arc<File>,
        at: u64,
        len: u64,
    ) -> impl Future<Output = io::Result<u64>> + Send;
    /// The reply is complete: what is held back goes out.
    fn finish(&mut self) -> impl Future<Output = io::Result<()>> + Send;
}

impl Outlet for TcpStream {
    async fn put(&mut self, bytes: &[u8]) -> io::Result<usize> {
        in_time(self.async_io(Interest::WRITABLE, || self.try_write(bytes))).await
    }

    async fn pass_on(&mut self, file: &Arc<File>, at: u64, len: u64) -> io::Result<u64> {
        if !is_cached(file, at) || !is_cached(file, at + len - 1) {
            warm(file, at, len).await?;
        }
        let stream = &*self;
        let moved = stream.async_io(Interest::WRITABLE, || {
            let mut from = at;
            let most = usize::try_from(len).unwrap_or(usize::MAX);
            match rustix::fs::sendfile(stream, file, Some(&mut from), most) {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(moved) => Ok(moved as u64),
                Err(error) => Err(error.into()),
            }
        });
        in_time(moved).await
    }

    async fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Any other stream: what leaves through it is copied.
#[derive(Debug)]
pub struct Copied<S> {
    stream: S,
    /// Empty between replies: most connections rest.
    buffer: Vec<u8>,
}

impl<S> Copied<S> {
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Outlet for Copied<S> {
    async fn put(&mut self, bytes: &[u8]) -> io::Result<usize> {
        in_time(taken(&mut self.stream, bytes)).await
    }

    async fn pass_on(&mut self, file: &Arc<File>, at: u64, len: u64) -> io::Result<u64> {
        let most = usize::try_from(len).map_or(BUFFER, |len| len.min(BUFFER));
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(BUFFER, 0);
        let (buffer, read) = filled(buffer, most, file, at).await?;
        let mut sent = 0;
        while sent < read {
            sent += in_time(taken(&mut self.stream, &buffer[sent..read])).await?;
        }
        self.buffer = buffer;
        Ok(read as u64)
    }

    async fn finish(&mut self) -> io::Result<()> {
        self.buffer = Vec::new();
        in_time(self.stream.flush()).await
    }
}

async fn taken(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<usize> {
    match stream.write(bytes).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        taken => Ok(taken),
    }
}

/// From the page cache if it is there, or else on a thread that may wait for the disk.
async fn filled(mut buffer: Vec<u8>, most: usize, file: &Arc<File>, at: u64) -> io::Result<(Vec<u8>, usize)> {
    let target = &mut [IoSliceMut::new(&mut buffer[..most])];
    let cached = preadv2(file, target, at, ReadWriteFlags::NOWAIT).unwrap_or(0);
    if cached > 0 {
        return Ok((buffer, cached));
    }
    let file = Arc::clone(file);
    let read = tokio::task::spawn_blocking(move || match file.read_at(&mut buffer[..most], at)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        read => Ok((buffer, read)),
    });
    read.await.map_err(io::Error::other)?
}

async fn in_time<T>(done: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let done = tokio::time::timeout(STALL, done).await;
    done.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Whether the page of this byte is in memory. File systems that cannot tell are believed to be fast.
fn is_cached(file: &File, at: u64) -> bool {
    let mut byte = [0];
    let read = preadv2(
        file,
        &mut [IoSliceMut::new(&mut byte)],
        at,
        ReadWriteFlags::NOWAIT,
    );
    !matches!(read, Err(Errno::AGAIN))
}

/// Brings pages into memory on a thread that may wait for the disk; `sendfile` on ours would stop everybody.
async fn warm(file: &Arc<File>, at: u64, len: u64) -> io::Result<()> {
    let file = Arc::clone(file);
    let read = tokio::task::spawn_blocking(move || {
        let mut buffer = vec![0; 128 * 1024];
        let mut from = at;
        while from < at + len {
            let most = (at + len - from).min(buffer.len() as u64);
            let read = file.read_at(&mut buffer[..usize::try_from(most).unwrap_or_default()], from)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            from += read as u64;
        }
        Ok(())
    });
    read.await.map_err(io::Error::other)?
}

impl<S: AsyncRead + Unpin> AsyncRead for Copied<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Copied<S> {
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
