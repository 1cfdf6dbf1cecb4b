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

    const REAL: &str = include_str!("../controller/bare_metal_host/plan/tests/authority.pem");
    const EMPTY: &str = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n";

    /// What a bundle of one certificate holds.
    fn contents(pem: &str) -> Vec<u8> {
        let block = Pem::iter_from_buffer(pem.as_bytes()).next();
        block.expect("a block").expect("one that can be read").contents
    }

    #[test]
    fn what_is_no_certificate_is_left_out_and_what_is_one_is_read() {
        let bundle = format!("# comment\n{EMPTY}{KEY}{REAL}");
        assert_eq!(certificates(bundle.as_bytes()), [contents(REAL)]);
        let mislabelled = REAL.replace("CERTIFICATE", "PRIVATE KEY");
        assert!(certificates(mislabelled.as_bytes()).is_empty());
        assert!(certificates(b"\xff nothing").is_empty());
    }

    #[test]
    fn a_bundle_is_certificates_and_nothing_else() {
        assert!(is_bundle(REAL.as_bytes()));
        assert!(is_bundle(format!("{REAL}{REAL}").as_bytes()));
        for other in ["", "nothing", EMPTY, KEY] {
            assert!(!is_bundle(other.as_bytes()), "{other}");
            assert!(
                other.is_empty() || other == "nothing" || !is_bundle(format!("{REAL}{other}").as_bytes())
            );
        }
    }
}
