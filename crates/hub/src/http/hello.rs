//! How a connection begins where https is spoken: with TLS, or with plain HTTP, which is only told where it is.

use crate::tls::Tls;
use muster_image::serve::outlet::Copied;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub enum Hello {
    Secure(Box<Copied<TlsStream<TcpStream>>>),
    /// It begins like a request.
    Plain(TcpStream),
    /// Nothing came of it.
    None,
}

/// All of it has this time.
pub async fn hello(stream: TcpStream, tls: &Tls, time: Duration) -> Hello {
    let handshakes = tls.handshakes();
    match tokio::time::timeout(time, said(stream, tls)).await {
        Ok(Ok(Hello::Plain(stream))) => {
            handshakes.plain.fetch_add(1, Relaxed);
            Hello::Plain(stream)
        }
        Ok(Ok(hello)) => {
            let done = matches!(hello, Hello::Secure(_));
            handshakes.done.fetch_add(u64::from(done), Relaxed);
            hello
        }
        Ok(Err(error)) => {
            handshakes.failed.fetch_add(1, Relaxed);
            tracing::debug!(%error, "a connection did not come to TLS");
            Hello::None
        }
        Err(_) => {
            handshakes.slow.fetch_add(1, Relaxed);
            tracing::debug!("a connection took too long to come to TLS");
            Hello::None
        }
    }
}

async fn said(stream: TcpStream, tls: &Tls) -> io::Result<Hello> {
    let mut first = [0];
    // Whoever looks whether the port is open goes without a word.
    if stream.peek(&mut first).await? == 0 {
        return Ok(Hello::None);
    }
    // TLS begins with 22, methods of HTTP with a letter.
    if first[0].is_ascii_uppercase() {
        return Ok(Hello::Plain(stream));
    }
    let stream = TlsAcceptor::from(tls.config()).accept(stream).await?;
    Ok(Hello::Secure(Box::new(Copied::new(stream))))
}
