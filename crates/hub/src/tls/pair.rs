//! A certificate with its chain and its key, checked before anybody is shown them.

use jiff::Timestamp;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Where a pair is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// What both files hold.
#[derive(Clone, PartialEq, Eq)]
pub struct Contents {
    pub cert: Vec<u8>,
    pub key: Vec<u8>,
}

/// One of them is a secret.
impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Contents")
    }
}

/// Ready to be shown.
#[derive(Debug, Clone)]
pub struct Pair {
    pub key: Arc<CertifiedKey>,
    pub facts: Facts,
}

/// What people want to know of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// SHA-256 of the certificate, as browsers and `openssl x509 -fingerprint -sha256` show it.
    pub fingerprint: String,
    /// Host names and addresses it is for.
    pub names: Vec<String>,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    /// It may sign others; as the certificate of a server, strict clients refuse it.
    pub is_authority: bool,
}

/// Why a pair cannot be used. Each names the setting that has to be changed.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    #[error("--tls-cert: cannot read {}", .0.display())]
    CertUnread(PathBuf, #[source] io::Error),
    #[error("--tls-key: cannot read {}", .0.display())]
    KeyUnread(PathBuf, #[source] io::Error),
    #[error("--tls-cert: {} holds no certificate in PEM", .0.display())]
    NoCert(PathBuf),
    #[error("--tls-cert: {} holds a certificate that cannot be read", .0.display())]
    BrokenCert(PathBuf),
    #[error("--tls-key: {} holds no private key in PEM without a passphrase", .0.display())]
    NoKey(PathBuf),
    #[error("--tls-key: the key in {} cannot be used: RSA, ECDSA (P-256, P-384) and Ed25519 can", .0.display())]
    UnusableKey(PathBuf),
    #[error("--tls-key: the key in {} does not belong to the certificate in {}", .key.display(), .cert.display())]
    Mismatch { cert: PathBuf, key: PathBuf },
    #[error("--tls-cert: the certificate in {} is valid from {from} to {to} only", .path.display())]
    NotNow {
        path: PathBuf,
        from: Timestamp,
        to: Timestamp,
    },
}

impl Files {
    pub fn read(&self) -> Result<Contents, PairError> {
        let cert = std::fs::read(&self.cert);
        let key = std::fs::read(&self.key);
        Ok(Contents {
            cert: cert.map_err(|error| PairError::CertUnread(self.cert.clone(), error))?,
            key: key.map_err(|error| PairError::KeyUnread(self.key.clone(), error))?,
        })
    }

    /// The first certificate is the hub's own, those after it lead to an authority.
    pub fn pair(&self, contents: &Contents) -> Result<Pair, PairError> {
        let chain = self.chain(&contents.cert)?;
        let own = chain
            .first()
            .ok_or_else(|| PairError::NoCert(self.cert.clone()))?;
        let facts = Facts::of(own).ok_or_else(|| PairError::BrokenCert(self.cert.clone()))?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key);
        let key = key.map_err(|_| PairError::NoKey(self.key.clone()))?;
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider());
        Ok(Pair {
            key: Arc::new(key.map_err(|error| self.unusable(&error))?),
            facts,
        })
    }

    fn chain(&self, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, PairError> {
        let all: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(text).collect();
        all.map_err(|_| PairError::BrokenCert(self.cert.clone()))
    }

    fn unusable(&self, error: &rustls::Error) -> PairError {
        match error {
            rustls::Error::InconsistentKeys(_) => PairError::Mismatch {
                cert: self.cert.clone(),
                key: self.key.clone(),
            },
            rustls::Error::InvalidCertificate(_) => PairError::BrokenCert(self.cert.clone()),
            // Not our enum; all the rest is about the key.
            _ => PairError::UnusableKey(self.key.clone()),
        }
    }
}

impl Pair {
    /// Refuses one that no client would believe now.
    pub fn valid_at(self, now: Timestamp, path: &Path) -> Result<Self, PairError> {
        if self.facts.is_valid_at(now) {
            return Ok(self);
        }
        Err(PairError::NotNow {
            path: path.to_owned(),
            from: self.facts.not_before,
            to: self.facts.not_after,
        })
    }
}

impl Facts {
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        let validity = parsed.validity();
        let at = |seconds| Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
        let names = parsed.subject_alternative_name().ok().flatten();
        let names = names.iter().flat_map(|names| &names.value.general_names);
        Some(Self {
            fingerprint: fingerprint(certificate),
            names: names.filter_map(shown).collect(),
            not_before: at(validity.not_before.timestamp()),
            not_after: at(validity.not_after.timestamp()),
            is_authority: parsed.is_ca(),
        })
    }

    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }
}

pub fn fingerprint(certificate: &[u8]) -> String {
    let bytes = Sha256::digest(certificate);
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}

fn shown(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(|v4| IpAddr::from(Ipv4Addr::from(v4)));
            let v6 = <[u8; 16]>::try_from(*bytes).map(|v6| IpAddr::from(Ipv6Addr::from(v6)));
            v4.or(v6).ok().map(|ip| ip.to_string())
        }
        // Not our enum: the others are no names of servers.
        _ => None,
    }
}
