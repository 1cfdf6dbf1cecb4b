//! Takes a cluster's secrets out of what a foreign program printed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster_domain::cluster::Cluster;
use serde_json::Value;

/// Shorter ones would also strike out ordinary words.
const SHORTEST: usize = 4;
const STRUCK: &str = "***";

/// Everything in the cluster that must not be repeated, longest first so that no part of one is left.
pub fn secrets(cluster: &Cluster) -> Vec<String> {
    let mut secrets = vec![cluster.pull_secret.clone()];
    if let Ok(parsed) = serde_json::from_str::<Value>(&cluster.pull_secret) {
        // As another program may print it: written anew, or as a string inside of JSON.
        secrets.push(parsed.to_string());
        let registries = parsed["auths"].as_object();
        for registry in registries.into_iter().flat_map(|map| map.values()) {
            for key in ["auth", "password", "identitytoken", "registrytoken"] {
                secrets.extend(registry[key].as_str().map(str::to_owned));
            }
            secrets.extend(registry["auth"].as_str().and_then(decoded).into_iter().flatten());
        }
    }
    for proxy in [&cluster.proxy.http, &cluster.proxy.https] {
        secrets.extend(userinfo(proxy));
    }
    for secret in secrets.clone() {
        let quoted = Value::String(secret).to_string();
        secrets.push(quoted.trim_matches('"').to_owned());
    }
    secrets.retain(|secret| secret.trim().len() >= SHORTEST);
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    secrets
}

/// `user:password` and the password alone.
fn decoded(auth: &str) -> Option<Vec<String>> {
    let text = String::from_utf8(STANDARD.decode(auth).ok()?).ok()?;
    let text = text.trim().to_owned();
    let password = text.split_once(':').map(|(_, password)| password.to_owned());
    Some([text].into_iter().chain(password).collect())
}

fn userinfo(url: &str) -> Vec<String> {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    let Some((userinfo, _)) = authority.rsplit_once('@') else {
        return Vec::new();
    };
    let password = userinfo.split_once(':').map(|(_, password)| password.to_owned());
    [userinfo.to_owned()].into_iter().chain(password).collect()
}

pub fn redact(text: &str, secrets: &[String]) -> String {
    let struck = |text: String, secret: &String| {
        if text.contains(secret.as_str()) {
            text.replace(secret.as_str(), STRUCK)
        } else {
            text
        }
    };
    secrets.iter().fold(text.to_owned(), struck)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(pull_secret: &str, proxy: &str) -> Cluster {
        let hub_time = jiff::Timestamp::UNIX_EPOCH;
        let mut cluster: Cluster = serde_json::from_value(serde_json::json!({
            "id": muster_domain::ClusterId(uuid::Uuid::nil()), "kind": "Cluster", "phase": "draft",
            "since": hub_time, "status_info": "", "status_updated_at": hub_time, "created_at": hub_time,
            "updated_at": hub_time, "name": "c", "openshift_version": "", "ocp_release_image": "",
            "base_dns_domain": "", "control_plane_count": 3, "high_availability_mode": "Full",
            "cluster_networks": [], "service_networks": [], "machine_networks": [], "api_vips": [],
            "ingress_vips": [], "vip_dhcp_allocation": false, "user_managed_networking": false, "platform": {},
            "network_type": "", "pull_secret": pull_secret, "ssh_public_key": "", "additional_ntp_source": "",
            "hyperthreading": "all", "schedulable_masters": false, "cpu_architecture": "x86_64",
            "disk_encryption": {}, "load_balancer": "", "org_soft_timeouts_enabled": false
        }))
        .unwrap();
        cluster.proxy.http = proxy.into();
        cluster
    }

    #[test]
    fn no_form_of_a_secret_is_left() {
        // alice:correct-horse
        let secret = r#"{"auths": {"quay.io": {"auth": "YWxpY2U6Y29ycmVjdC1ob3JzZQ==", "email": "a@b.c"}}}"#;
        let secrets = secrets(&cluster(secret, "http://bob:hunter22@proxy.example.com:3128"));
        let said = format!(
            "bad pullSecret {secret} or {} or {:?}; auth YWxpY2U6Y29ycmVjdC1ob3JzZQ== of alice:correct-horse, \
             password correct-horse, via http://bob:hunter22@proxy.example.com:3128 to quay.io",
            secret.replace(": ", ":").replace(", ", ","),
            secret
        );
        let told = redact(&said, &secrets);
        for leak in ["YWxpY2U6", "correct-horse", "hunter22"] {
            assert!(!told.contains(leak), "{told}");
        }
        assert!(
            told.contains("to quay.io") && told.contains("proxy.example.com"),
            "{told}"
        );
    }

    #[test]
    fn without_secrets_nothing_is_struck_out() {
        assert_eq!(redact("a plain text", &secrets(&cluster("", ""))), "a plain text");
    }
}
