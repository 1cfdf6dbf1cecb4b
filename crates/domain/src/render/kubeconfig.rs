//! The kubeconfig people get: the installer's, made to trust the cluster's ingress as well.

use crate::input::{Checked, Invalid};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_norway::Value;

/// Adds the certificates in `pem` to those every cluster of the kubeconfig is trusted by. Doing it twice adds nothing.
pub fn with_ingress_ca(kubeconfig: &str, pem: &str) -> Checked<String> {
    let pem = pem.trim();
    if !pem.contains("-----BEGIN CERTIFICATE-----") {
        return Err(Invalid::rule(
            "ingress_cert_params",
            "has no PEM certificate",
            "send the router's certificate as PEM text",
        ));
    }
    let mut config: Value = serde_norway::from_str(kubeconfig).map_err(|_| unreadable("is not YAML"))?;
    let clusters = config.get_mut("clusters").and_then(Value::as_sequence_mut);
    let Some(clusters) = clusters.filter(|clusters| !clusters.is_empty()) else {
        return Err(unreadable("names no cluster"));
    };
    for entry in clusters {
        let Some(cluster) = entry.get_mut("cluster").and_then(Value::as_mapping_mut) else {
            return Err(unreadable("has a cluster without settings"));
        };
        let key = Value::from("certificate-authority-data");
        let known = cluster.get(&key).and_then(Value::as_str).unwrap_or_default();
        let known = STANDARD
            .decode(known)
            .map_err(|_| unreadable("has certificates that are not base64"))?;
        let known = String::from_utf8_lossy(&known).into_owned();
        if !known.contains(pem) {
            let both = format!("{}\n{pem}\n", known.trim_end());
            cluster.insert(key, STANDARD.encode(both.trim_start()).into());
        }
    }
    serde_norway::to_string(&config).map_err(|_| unreadable("cannot be written again"))
}

fn unreadable(problem: &str) -> Invalid {
    Invalid::rule("kubeconfig", problem, "reset the cluster and install it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER: &str = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n";

    fn kubeconfig() -> String {
        let own = STANDARD.encode("-----BEGIN CERTIFICATE-----\nT1dO\n-----END CERTIFICATE-----\n");
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: alpha\n  cluster:\n    server: https://api.alpha.example.com:6443\n    certificate-authority-data: {own}\nusers: []\n"
        )
    }

    fn trusted(config: &str) -> String {
        let config: Value = serde_norway::from_str(config).unwrap();
        let data = config["clusters"][0]["cluster"]["certificate-authority-data"]
            .as_str()
            .unwrap();
        String::from_utf8(STANDARD.decode(data).unwrap()).unwrap()
    }

    #[test]
    fn both_authorities_are_trusted_and_the_rest_is_kept() {
        let merged = with_ingress_ca(&kubeconfig(), ROUTER).unwrap();
        let pem = trusted(&merged);
        assert!(pem.contains("T1dO") && pem.contains("QUJD"), "{pem}");
        assert_eq!(pem.matches("BEGIN CERTIFICATE").count(), 2);
        assert!(merged.contains("https://api.alpha.example.com:6443"));
    }

    #[test]
    fn the_same_certificate_twice_is_once() {
        let once = with_ingress_ca(&kubeconfig(), ROUTER).unwrap();
        assert_eq!(with_ingress_ca(&once, ROUTER).unwrap(), once);
    }

    #[test]
    fn what_is_no_certificate_or_no_kubeconfig_is_refused() {
        assert!(with_ingress_ca(&kubeconfig(), "hello").is_err());
        assert!(with_ingress_ca("clusters: []", ROUTER).is_err());
        assert!(with_ingress_ca("- 1", ROUTER).is_err());
    }
}
