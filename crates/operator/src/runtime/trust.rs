//! Authorities this machine trusts. A cluster whose API got a new certificate is still trusted when the new one is from
//! one of them, although its kubeconfig names only the old authority.

use std::path::PathBuf;
use std::sync::OnceLock;
use x509_parser::pem::Pem;

/// Where Linux systems and container images keep them; the first that is there counts.
const BUNDLES: [&str; 4] = [
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/cert.pem",
];
/// Names another bundle, as for other programs.
const OTHER_BUNDLE: &str = "SSL_CERT_FILE";

/// Read once: a bundle that changes is a reason to start anew.
pub fn of_system() -> &'static [Vec<u8>] {
    static SYSTEM: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    SYSTEM.get_or_init(|| {
        let other = std::env::var_os(OTHER_BUNDLE).map(PathBuf::from);
        let places = other.into_iter().chain(BUNDLES.map(PathBuf::from));
        let bundle = places.into_iter().find_map(|path| std::fs::read(path).ok());
        certificates(&bundle.unwrap_or_default())
    })
}

/// Those of a bundle that can be read.
fn certificates(bundle: &[u8]) -> Vec<Vec<u8>> {
    let blocks = Pem::iter_from_buffer(bundle).filter_map(Result::ok);
    let readable = blocks.filter(|block| block.label == "CERTIFICATE" && block.parse_x509().is_ok());
    readable.map(|block| block.contents).collect()
}

/// Whether all of it is certificates, and there is one at least.
pub fn is_bundle(text: &[u8]) -> bool {
    let mut blocks = Pem::iter_from_buffer(text).peekable();
    let readable = |block: Result<Pem, _>| {
        block.is_ok_and(|block| block.label == "CERTIFICATE" && block.parse_x509().is_ok())
    };
    blocks.peek().is_some() && blocks.all(readable)
}

/// The cluster's own and the machine's, each once. A kubeconfig that names none is left to the machine's anyway.
pub fn merged(own: &[Vec<u8>], system: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::with_capacity(own.len() + system.len());
    for authority in own.iter().chain(system) {
        if !all.contains(authority) {
            all.push(authority.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_authority_is_trusted_once_and_the_clusters_own_comes_first() {
        let cert = |name: &str| name.as_bytes().to_vec();
        let own = [cert("own"), cert("shared"), cert("own")];
        let system = [cert("shared"), cert("other")];
        assert_eq!(
            merged(&own, &system),
            [cert("own"), cert("shared"), cert("other")]
        );
        assert_eq!(merged(&own[..1], &[]), [cert("own")]);
    }

    #[test]
    fn what_is_no_certificate_is_left_out() {
        let bundle = "# comment\n-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n\
            -----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n";
        assert!(certificates(bundle.as_bytes()).is_empty());
        assert!(certificates(b"\xff nothing").is_empty());
    }
}
