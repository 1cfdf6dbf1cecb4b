//! Where a hub listens: one door for everybody, with or without TLS, and beside it a plain one for firmware.

use crate::config::{Config, TlsChoice};
use crate::http::crowd::Crowd;
use crate::http::firmware;
use crate::http::server::{Secured, Serving, serve_among};
use crate::serve::{Ready, private_directory};
use crate::tls::self_signed::SelfSigned;
use crate::tls::{self, Source, Tls};
use anyhow::{Context, Result};
use axum::http::Uri;
use axum::middleware;
use jiff::Timestamp;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Bound, and not served yet.
#[derive(Debug)]
pub struct Doors {
    main: TcpListener,
    address: SocketAddr,
    scheme: &'static str,
    plain: Option<(TcpListener, SocketAddr)>,
}

impl Doors {
    pub async fn open(config: &Config) -> Result<Self> {
        let scheme = match config.tls {
            TlsChoice::Off => "http",
            TlsChoice::Files(_) | TlsChoice::SelfSigned => "https",
        };
        anyhow::ensure!(
            scheme == "https" || (config.plain_listen.is_none() && config.plain_url.is_none()),
            "--plain-listen and --plain-url are for a hub that speaks https: add --tls-cert and --tls-key, or \
             --tls-self-signed"
        );
        anyhow::ensure!(
            config.plain_listen.is_some() || config.plain_url.is_none(),
            "--plain-url says how firmware reaches --plain-listen: add that"
        );
        let (main, address) = bound(config.listen).await?;
        let plain = match config.plain_listen {
            Some(wanted) => Some(bound(wanted).await.context("--plain-listen")?),
            None => None,
        };
        Ok(Self {
            main,
            address,
            scheme,
            plain,
        })
    }

    fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    pub fn base_url(&self, config: &Config) -> String {
        config.base_url.clone().unwrap_or_else(|| self.url())
    }

    /// At the host of the base URL, unless somebody says otherwise.
    pub fn plain_url(&self, config: &Config) -> Result<Option<String>> {
        let Some((_, plain)) = &self.plain else {
            return Ok(None);
        };
        if let Some(url) = &config.plain_url {
            let url = url.trim_end_matches('/');
            anyhow::ensure!(
                url.starts_with("http://"),
                "--plain-url: {url:?} does not begin with http://"
            );
            return Ok(Some(url.to_owned()));
        }
        let host = match &config.base_url {
            Some(base) => {
                let authority = base
                    .parse::<Uri>()
                    .ok()
                    .and_then(|url| url.into_parts().authority);
                let authority = authority.with_context(|| format!("--base-url: {base:?} names no host"))?;
                authority.host().to_owned()
            }
            None => match plain {
                SocketAddr::V4(v4) => v4.ip().to_string(),
                SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
            },
        };
        Ok(Some(format!("http://{host}:{}", plain.port())))
    }

    /// `urls` are those under which the hub is reached.
    pub fn tls(&self, config: &Config, urls: &[&str]) -> Result<Option<Tls>> {
        let source = match &config.tls {
            TlsChoice::Off => return Ok(None),
            TlsChoice::Files(files) => Source::Files(files.clone()),
            TlsChoice::SelfSigned => {
                private_directory(&config.data_dir)
                    .with_context(|| format!("cannot create {}", config.data_dir.display()))?;
                let names = tls::names(urls.iter().copied(), &config.allowed_hosts, [self.address.ip()]);
                Source::SelfSigned(SelfSigned::new(&config.data_dir, names))
            }
        };
        Tls::open(source, Timestamp::now()).map(Some)
    }

    pub fn ready(&self, tls: Option<Tls>) -> Ready {
        Ready {
            address: self.address,
            url: self.url(),
            plain: self.plain.as_ref().map(|(_, address)| *address),
            tls,
        }
    }

    /// `base_url` is told to those who come without TLS.
    pub async fn serve(
        self,
        serving: Serving,
        tls: Option<Tls>,
        base_url: &str,
        stop: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let url: Arc<str> = base_url.into();
        let crowd = Crowd::new(serving.limits);
        let (tell, told) = watch::channel(false);
        let plain = self.plain.map(|(listener, _)| {
            let limited = middleware::from_fn_with_state(url.clone(), firmware::only);
            let limited = Serving {
                router: serving.router.clone().layer(limited),
                ..serving.clone()
            };
            serve_among(listener, limited, crowd.clone(), stopped(told.clone()))
        });
        let plain = async {
            match plain {
                Some(served) => served.await,
                None => Ok(()),
            }
        };
        let serving = Serving {
            tls: tls.map(|tls| Secured { tls, url }),
            ..serving
        };
        let main = serve_among(self.main, serving, crowd, stopped(told));
        let stop = async {
            stop.await;
            tell.send_replace(true);
        };
        let (main, plain, ()) = tokio::join!(main, plain, stop);
        main.and(plain)
    }
}

async fn stopped(mut told: watch::Receiver<bool>) {
    // Whoever tells lives as long as those who listen.
    told.wait_for(|stop| *stop).await.map(drop).ok();
}

async fn bound(wanted: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(wanted)
        .await
        .with_context(|| format!("cannot listen on {wanted}"))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
