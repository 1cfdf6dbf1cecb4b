//! How a client of the hub speaks https: whose certificates it believes, and what it says of one that it does not.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Whose certificates are believed.
#[derive(Debug, Clone)]
pub enum Trust {
    /// Those that these authorities signed, and no others.
    Authorities(Arc<[CertificateDer<'static>]>),
    /// That of the hub in this process, whatever names are in it.
    Own(Own),
}

impl Default for Trust {
    /// Nobody's: for http, which shows no certificate.
    fn default() -> Self {
        Self::Authorities(Arc::new([]))
    }
}

/// Asks the hub in this process which certificate it shows at this moment.
#[derive(Clone)]
pub struct Own(Arc<dyn Fn() -> CertificateDer<'static> + Send + Sync>);

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Own")
    }
}

/// A file that names no authority.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    #[error("cannot read {path}: {why}")]
    Unread { path: String, why: String },
    #[error("{0} holds no certificate in PEM")]
    Empty(String),
    #[error("{0} holds a certificate that cannot be read")]
    Broken(String),
}

impl Trust {
    /// The authorities in a PEM file.
    pub fn from_file(path: &Path) -> Result<Self, TrustError> {
        let shown = path.display().to_string();
        match std::fs::read(path) {
            Ok(pem) => Self::from_pem(&pem, &shown),
            Err(error) => Err(TrustError::Unread {
                path: shown,
                why: error.to_string(),
            }),
        }
    }

    /// `whence` is for errors.
    pub fn from_pem(pem: &[u8], whence: &str) -> Result<Self, TrustError> {
        let broken = || TrustError::Broken(whence.to_owned());
        let all: Vec<_> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|_| broken())?;
        if all.is_empty() {
            return Err(TrustError::Empty(whence.to_owned()));
        }
        let mut store = RootCertStore::empty();
        for certificate in &all {
            store.add(certificate.clone()).map_err(|_| broken())?;
        }
        Ok(Self::Authorities(all.into()))
    }

    /// Those that this system trusts, as its administrator chose them.
    #[cfg(feature = "client")]
    pub fn system() -> Self {
        Self::Authorities(rustls_native_certs::load_native_certs().certs.into())
    }

    pub fn own(shown: impl Fn() -> CertificateDer<'static> + Send + Sync + 'static) -> Self {
        Self::Own(Own(Arc::new(shown)))
    }

    /// For clients that are built on something else; nothing when it is the hub in this process that is trusted.
    pub fn authorities(&self) -> &[CertificateDer<'static>] {
        match self {
            Self::Authorities(all) => all,
            Self::Own(_) => &[],
        }
    }

    /// TLS 1.2 and 1.3.
    pub fn config(&self) -> ClientConfig {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("ring speaks both versions of TLS");
        match self {
            Self::Authorities(all) => {
                let mut store = RootCertStore::empty();
                // Systems carry some that nobody can read.
                store.add_parsable_certificates(all.iter().cloned());
                builder.with_root_certificates(store).with_no_client_auth()
            }
            Self::Own(own) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Exactly {
                    own: own.clone(),
                    provider,
                }))
                .with_no_client_auth(),
        }
    }
}

/// Believes one certificate, byte for byte: its key is in this process, so nobody else can show it.
#[derive(Debug)]
struct Exactly {
    own: Own,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Exactly {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if end_entity.as_ref() == (self.own.0)().as_ref() {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// What is wrong with a hub's certificate, when that is why a call failed.
pub fn distrust(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(Error::InvalidCertificate(why)) = error.downcast_ref::<Error>() {
        return Some(told(why));
    }
    // An I/O error gives its cause away as what it holds, and as its source only what is behind that.
    let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match held {
        Some(held) => distrust(held),
        None => distrust(error.source()?),
    }
}

fn told(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "its certificate is not signed by an authority that is trusted here".to_owned()
        }
        CertificateError::NotValidForName => "its certificate is for other names than this".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "its certificate is for {}, not for {}",
            names(presented),
            expected.to_str()
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired, or the clock here is wrong".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet, or the clock here is wrong".to_owned()
        }
        // Not our enum, and it grows.
        other => format!("its certificate is not accepted ({other})"),
    }
}

fn names(presented: &[String]) -> String {
    if presented.is_empty() {
        return "no name".to_owned();
    }
    // As rustls writes them: `DnsName("hub")`, `IpAddress(10.0.0.1)`.
    let bare = |name: &String| {
        let inner = name.split_once('(').map_or(name.as_str(), |(_, rest)| rest);
        inner.trim_end_matches(')').trim_matches('"').to_owned()
    };
    presented.iter().map(bare).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_names_no_authority_is_told_apart_from_one_that_cannot_be_read() {
        let broken = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        let of = |pem: &str| Trust::from_pem(pem.as_bytes(), "ca.pem").unwrap_err();
        assert_eq!(of(""), TrustError::Empty("ca.pem".into()));
        assert_eq!(of("no certificate"), TrustError::Empty("ca.pem".into()));
        assert_eq!(of(broken), TrustError::Broken("ca.pem".into()));
        let missing = Trust::from_file(Path::new("/nowhere/ca.pem")).unwrap_err();
        assert!(missing.to_string().contains("/nowhere/ca.pem"), "{missing}");
    }

    #[test]
    fn a_certificate_that_is_not_believed_is_found_behind_other_errors() {
        let wrong = || Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let held = io::Error::new(io::ErrorKind::InvalidData, wrong());
        let deep = io::Error::other(io::Error::other(wrong()));
        for error in [held, deep] {
            let told = distrust(&error).unwrap();
            assert!(told.contains("not signed by an authority"), "{told}");
        }
        assert_eq!(distrust(&io::Error::other("reset")), None);
        assert_eq!(distrust(&io::Error::from(io::ErrorKind::TimedOut)), None);
    }

    #[test]
    fn names_are_shown_as_people_write_them() {
        let given = [
            "DnsName(\"hub.example.com\")".to_owned(),
            "IpAddress(10.0.0.1)".to_owned(),
        ];
        assert_eq!(names(&given), "hub.example.com, 10.0.0.1");
        assert_eq!(names(&[]), "no name");
    }
}
