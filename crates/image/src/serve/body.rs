//! A layout as a body for axum: read in large pieces, on the spot when the page cache has them.

use super::Meter;
use crate::layout::{Content, Layout};
use axum::body::{Body, Bytes};
use futures_util::stream;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Large enough that system calls do not show, small enough for four hundred streams.
const PIECE: u64 = 256 * 1024;

static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

struct State {
    layout: Layout,
    segment: usize,
    skip: u64,
    meter: Option<Meter>,
}

pub(super) fn body(layout: Layout, meter: Option<Meter>) -> Body {
    let state = State {
        layout,
        segment: 0,
        skip: 0,
        meter,
    };
    Body::from_stream(stream::try_unfold(state, async |mut state| {
        let Some(bytes) = piece(&mut state).await? else {
            return Ok::<_, io::Error>(None);
        };
        if let Some(meter) = &mut state.meter {
            meter.sent(bytes.len() as u64);
        }
        Ok(Some((bytes, state)))
    }))
}

async fn piece(state: &mut State) -> io::Result<Option<Bytes>> {
    let Some(segment) = state.layout.segments().get(state.segment) else {
        return Ok(None);
    };
    let left = segment.len - state.skip;
    let bytes = match &segment.content {
        Content::Bytes(bytes) => bytes.clone(),
        Content::Zeros => {
            let len = left.min(ZEROS.len() as u64);
            Bytes::from_static(&ZEROS[..usize::try_from(len).unwrap_or(ZEROS.len())])
        }
        Content::File { file, at } => read(file, at + state.skip, left.min(PIECE)).await?,
    };
    state.skip += bytes.len() as u64;
    if state.skip == segment.len {
        (state.segment, state.skip) = (state.segment + 1, 0);
    }
    Ok(Some(bytes))
}

/// At most as much as asked for; nothing is the end of a file that got shorter.
async fn read(file: &Arc<File>, at: u64, len: u64) -> io::Result<Bytes> {
    let mut buffer = vec![0; usize::try_from(len).unwrap_or_default()];
    let read = match preadv2(
        file,
        &mut [IoSliceMut::new(&mut buffer)],
        at,
        ReadWriteFlags::NOWAIT,
    ) {
        Ok(read) if read > 0 => read,
        // Not in the page cache, or a file system that cannot tell: wait for the disk, but not here.
        Ok(_) | Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::INTR) => {
            let file = Arc::clone(file);
            let done =
                tokio::task::spawn_blocking(move || file.read_at(&mut buffer, at).map(|read| (read, buffer)));
            let (read, bytes) = done.await.map_err(io::Error::other)??;
            buffer = bytes;
            read
        }
        Err(error) => return Err(error.into()),
    };
    if read == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    buffer.truncate(read);
    Ok(buffer.into())
}
