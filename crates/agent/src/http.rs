//! The HTTP client of the agent: blocking, small, with its own name lookups.

use crate::dns::Resolver;
use crate::settings::Settings;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver as UreqResolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

pub use ureq::Agent as Http;

/// Where distributions keep the certificates they trust.
const SYSTEM_TRUST: [&str; 3] = [
    "etc/ssl/certs/ca-certificates.crt",
    "etc/pki/tls/certs/ca-bundle.crt",
    "etc/ssl/cert.pem",
];
/// Where people, or the config of an image, put more of them: one file each.
pub const ANCHORS: &str = "etc/pki/ca-trust/source/anchors";
const CONNECT: Duration = Duration::from_secs(10);
/// A hub under load may take its time; a dead one is noticed.
const ANSWER: Duration = Duration::from_secs(60);

/// Whose certificates are believed.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    pub root: PathBuf,
    pub insecure: bool,
    pub cacert: Option<PathBuf>,
    /// PEM that came with an order.
    pub extra: String,
}

impl Trust {
    /// As the agent trusts its hub.
    pub fn of(settings: &Settings) -> Self {
        Self {
            root: settings.root.clone(),
            insecure: settings.insecure,
            cacert: settings.cacert.clone(),
            extra: String::new(),
        }
    }
}

/// Looks names up itself; the C library's way needs files that small images do not have.
#[derive(Debug)]
struct Names {
    own: Resolver,
    system: DefaultResolver,
}

impl UreqResolver for Names {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let port = uri.port_u16().or_else(|| match uri.scheme_str() {
            Some("https") => Some(443),
            Some("http") => Some(80),
            _ => None,
        });
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        if let Some(port) = port {
            let found = self.own.lookup(host);
            if !found.is_empty() {
                let mut list = self.empty();
                // The list has room for 16.
                found
                    .addresses()
                    .take(16)
                    .for_each(|ip| list.push((ip, port).into()));
                return Ok(list);
            }
        }
        self.system.resolve(uri, config, timeout)
    }
}

pub fn client(trust: &Trust) -> anyhow::Result<Http> {
    let config = ureq::config::Config::builder()
        .http_status_as_error(false)
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(ANSWER))
        .timeout_per_read(Some(ANSWER))
        .timeout_per_write(Some(ANSWER))
        .user_agent(concat!("muster-agent/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls(trust)?)
        .build();
    let names = Names {
        own: Resolver::new(&trust.root),
        system: DefaultResolver::default(),
    };
    Ok(Http::with_parts(config, DefaultConnector::default(), names))
}

fn tls(trust: &Trust) -> anyhow::Result<TlsConfig> {
    let mut certificates = Vec::new();
    if let Some(path) = &trust.cacert {
        let pem = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        certificates.extend(read_pem(&pem));
        anyhow::ensure!(
            !certificates.is_empty(),
            "{} holds no certificate",
            path.display()
        );
    }
    certificates.extend(read_pem(trust.extra.as_bytes()));
    certificates.extend(anchors(&trust.root));
    let system = SYSTEM_TRUST
        .iter()
        .find_map(|path| std::fs::read(trust.root.join(path)).ok());
    let roots = match system {
        None if certificates.is_empty() => RootCerts::WebPki,
        // What is trusted in addition takes nothing away.
        None => specific(certificates, public()),
        Some(pem) => specific(certificates, read_pem(&pem)),
    };
    Ok(TlsConfig::builder()
        .disable_verification(trust.insecure)
        .root_certs(roots)
        .build())
}

fn specific(mut own: Vec<Certificate<'static>>, more: Vec<Certificate<'static>>) -> RootCerts {
    own.extend(more);
    RootCerts::Specific(Arc::new(own))
}

/// The same as `RootCerts::WebPki`, which cannot be added to.
fn public() -> Vec<Certificate<'static>> {
    let all = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
    all.iter()
        .map(|der| Certificate::from_der(der).to_owned())
        .collect()
}

fn anchors(root: &Path) -> Vec<Certificate<'static>> {
    let files = std::fs::read_dir(root.join(ANCHORS))
        .into_iter()
        .flatten()
        .flatten();
    files
        .filter_map(|file| std::fs::read(file.path()).ok())
        .flat_map(|pem| read_pem(&pem))
        .collect()
}

fn read_pem(pem: &[u8]) -> Vec<Certificate<'static>> {
    let items = parse_pem(pem).filter_map(Result::ok);
    items
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect()
}
