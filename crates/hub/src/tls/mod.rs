//! TLS of the hub's listener: whose certificate it shows, exchanged while it runs, and how that goes.

pub mod pair;
pub mod self_signed;

use anyhow::{Context, Result};
use jiff::Timestamp;
use pair::{Contents, Facts, Files, Pair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use self_signed::SelfSigned;
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Where the hub's certificate comes from.
#[derive(Debug, Clone)]
pub enum Source {
    Files(Files),
    SelfSigned(SelfSigned),
}

/// Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Tls(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: Source,
    config: Arc<ServerConfig>,
    shown: Arc<Shown>,
    seen: RwLock<Seen>,
    /// One looks at a time: what was found later is what counts.
    turn: Mutex<()>,
    handshakes: Handshakes,
}

/// The pair that new connections are shown.
#[derive(Debug)]
struct Shown(RwLock<Pair>);

/// What was last found in the files.
#[derive(Debug)]
struct Seen {
    contents: Contents,
    at: Timestamp,
    reloads: u64,
    failures: u64,
    trouble: Option<String>,
}

/// How connections begin.
#[derive(Debug, Default)]
pub struct Handshakes {
    pub done: AtomicU64,
    pub failed: AtomicU64,
    /// Given up because they took too long.
    pub slow: AtomicU64,
    /// Requests that came without TLS.
    pub plain: AtomicU64,
}

/// How it goes, for people.
#[derive(Debug, Clone)]
pub struct State {
    pub facts: Facts,
    pub is_self_signed: bool,
    pub loaded_at: Timestamp,
    pub reloads: u64,
    pub failures: u64,
    /// Why what is in the files now is not used.
    pub trouble: Option<String>,
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.pair().key)
    }
}

impl Shown {
    fn pair(&self) -> Pair {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Tls {
    /// With a pair that cannot be used there is nothing to start with. One that has expired is shown: those who look at it
    /// learn what is wrong.
    pub fn open(source: Source, now: Timestamp) -> Result<Self> {
        if let Source::SelfSigned(own) = &source {
            own.ensure(now).context("--tls-self-signed")?;
        }
        let files = source.files();
        let contents = files.read()?;
        let pair = files.pair(&contents)?;
        warn(&pair.facts, now);
        let shown = Arc::new(Shown(RwLock::new(pair)));
        Ok(Self(Arc::new(Inner {
            config: Arc::new(config(shown.clone())?),
            shown,
            source,
            seen: RwLock::new(Seen {
                contents,
                at: now,
                reloads: 0,
                failures: 0,
                trouble: None,
            }),
            turn: Mutex::default(),
            handshakes: Handshakes::default(),
        })))
    }

    pub fn config(&self) -> Arc<ServerConfig> {
        self.0.config.clone()
    }

    pub fn handshakes(&self) -> &Handshakes {
        &self.0.handshakes
    }

    /// The certificate that new connections are shown at this moment.
    pub fn certificate(&self) -> CertificateDer<'static> {
        let pair = self.0.shown.pair();
        // A pair without a certificate is not made.
        pair.key
            .cert
            .first()
            .cloned()
            .unwrap_or_else(|| Vec::new().into())
    }

    /// The hub's own authority, where it has one.
    pub fn self_signed(&self) -> Option<&SelfSigned> {
        match &self.0.source {
            Source::Files(_) => None,
            Source::SelfSigned(own) => Some(own),
        }
    }

    /// Takes what is in the files now if it is new and can be used; reads from the disk. Connections that are there stay
    /// as they are.
    pub fn look(&self, now: Timestamp) -> Result<()> {
        let _turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let done = self.changed(now);
        let mut seen = self.0.seen.write().unwrap_or_else(PoisonError::into_inner);
        match done {
            Ok(None) => Ok(()),
            Ok(Some((pair, contents))) => {
                tracing::info!(fingerprint = pair.facts.fingerprint, until = %pair.facts.not_after, "a new certificate is shown");
                warn(&pair.facts, now);
                *self.0.shown.0.write().unwrap_or_else(PoisonError::into_inner) = pair;
                // Put back as they were, the files bring nothing new.
                seen.reloads += u64::from(seen.contents != contents);
                (seen.contents, seen.at, seen.trouble) = (contents, now, None);
                Ok(())
            }
            Err(error) => {
                let why = format!("{error:#}");
                // Once for each mistake, however often it is looked at.
                if seen.trouble.as_ref() != Some(&why) {
                    seen.failures += 1;
                    tracing::error!(
                        error = why,
                        "the new certificate is not used, the one before it stays"
                    );
                    seen.trouble = Some(why);
                }
                Err(error)
            }
        }
    }

    /// A pair that is not the one that was taken last.
    fn changed(&self, now: Timestamp) -> Result<Option<(Pair, Contents)>> {
        if let Source::SelfSigned(own) = &self.0.source {
            own.ensure(now)?;
        }
        let files = self.0.source.files();
        let contents = files.read()?;
        let (is_same, is_well) = {
            let seen = self.0.seen.read().unwrap_or_else(PoisonError::into_inner);
            (seen.contents == contents, seen.trouble.is_none())
        };
        if is_same && is_well {
            return Ok(None);
        }
        let pair = files.pair(&contents)?;
        // What is shown already is not judged again.
        let pair = if is_same {
            pair
        } else {
            pair.valid_at(now, &files.cert)?
        };
        Ok(Some((pair, contents)))
    }

    pub fn state(&self) -> State {
        let seen = self.0.seen.read().unwrap_or_else(PoisonError::into_inner);
        State {
            facts: self.0.shown.pair().facts,
            is_self_signed: self.self_signed().is_some(),
            loaded_at: seen.at,
            reloads: seen.reloads,
            failures: seen.failures,
            trouble: seen.trouble.clone(),
        }
    }
}

impl Source {
    fn files(&self) -> Files {
        match self {
            Self::Files(files) => files.clone(),
            Self::SelfSigned(own) => own.files(),
        }
    }
}

/// TLS 1.2 and 1.3, and nothing older.
fn config(shown: Arc<Shown>) -> Result<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(shown);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Agents connect anew for each poll; with tickets that costs neither of us a signature, and us no memory.
    config.ticketer = ring::Ticketer::new()?;
    Ok(config)
}

fn warn(facts: &Facts, now: Timestamp) {
    if !facts.is_valid_at(now) {
        tracing::warn!(from = %facts.not_before, to = %facts.not_after, "the hub's certificate is not valid now; clients refuse it");
    }
    if facts.is_authority {
        tracing::warn!(
            "the hub's certificate is one of an authority; agents and this program's commands refuse it as a server's: \
             make one with basicConstraints CA:FALSE"
        );
    }
}

/// What a certificate of ours is for: all names under which this hub is reached, as certificates write them.
pub fn names<'a>(
    urls: impl IntoIterator<Item = &'a str>,
    allowed: &'a [String],
    listens: impl IntoIterator<Item = IpAddr>,
) -> Vec<String> {
    let hosts = urls.into_iter().filter_map(|url| {
        let authority = url.parse::<axum::http::Uri>().ok()?.into_parts().authority?;
        Some(authority.host().trim_matches(['[', ']']).to_owned())
    });
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let listens = listens.into_iter().map(|ip| ip.to_string());
    let usual = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let all = usual.into_iter().chain([machine]).chain(listens);
    let all = all.chain(hosts).chain(allowed.iter().cloned());
    let all = all.filter_map(|name| as_in_certificates(&name));
    let mut all: Vec<String> = all.collect();
    all.sort();
    all.dedup();
    all
}

/// `None` for what no client could ask for.
fn as_in_certificates(name: &str) -> Option<String> {
    if let Ok(ip) = name.parse::<IpAddr>() {
        return (!ip.is_unspecified()).then(|| ip.to_string());
    }
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.*".contains(&byte);
    (!name.is_empty() && name.bytes().all(is_plain)).then_some(name)
}

/// For `/metrics`; nothing without TLS.
pub fn metrics(text: &mut String, tls: &Tls) {
    let state = tls.state();
    let mut one = |name: &str, kind: &str, about: &str, value: i128| {
        let _ = writeln!(
            text,
            "# HELP {name} {about}\n# TYPE {name} {kind}\n{name} {value}"
        );
    };
    let until = state.facts.not_after.as_second();
    let about = "When the hub's certificate expires, since 1970.";
    one(
        "muster_tls_certificate_expiry_timestamp_seconds",
        "gauge",
        about,
        until.into(),
    );
    let about = "New certificates that were taken while the hub ran.";
    one("muster_tls_reloads_total", "counter", about, state.reloads.into());
    let about = "New certificates that could not be used.";
    one(
        "muster_tls_reload_failures_total",
        "counter",
        about,
        state.failures.into(),
    );
    let about = "1 while the files hold a certificate that cannot be used, and an earlier one is shown.";
    one(
        "muster_tls_reload_failing",
        "gauge",
        about,
        state.trouble.is_some().into(),
    );
    let Handshakes {
        done,
        failed,
        slow,
        plain,
    } = tls.handshakes();
    let name = "muster_tls_handshakes_total";
    let _ = writeln!(
        text,
        "# HELP {name} How connections began.\n# TYPE {name} counter"
    );
    for (result, count) in [
        ("done", done),
        ("failed", failed),
        ("slow", slow),
        ("plain", plain),
    ] {
        let _ = writeln!(text, "{name}{{result=\"{result}\"}} {}", count.load(Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_for_every_name_under_which_the_hub_is_reached() {
        let urls = ["https://Hub.example.com.:8090", "https://[fd00::5]:8443"];
        let allowed = ["*.lab.example".to_owned()];
        let listens = ["0.0.0.0".parse().unwrap(), "10.0.0.5".parse().unwrap()];
        let all = names(urls, &allowed, listens);
        for name in [
            "hub.example.com",
            "fd00::5",
            "*.lab.example",
            "10.0.0.5",
            "localhost",
            "127.0.0.1",
            "::1",
        ] {
            assert!(all.iter().any(|one| one == name), "{name} is not in {all:?}");
        }
        assert!(!all.contains(&"0.0.0.0".to_owned()), "{all:?}");
    }
}
