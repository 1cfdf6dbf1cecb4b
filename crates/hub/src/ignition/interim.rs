//! Stand-ins until the domain renders these itself.

use muster_domain::cluster::Cluster;
use muster_domain::host::Host;
use muster_domain::refusal::Refused;
use serde_json::{Value, json};

pub fn host_ignition(base: Option<&str>, _: &Host, cluster: &Cluster, _: &str) -> Result<String, Refused> {
    let pointer = json!({ "ignition": { "version": "3.2.0", "config": { "merge": [{ "source": cluster.ignition_endpoint.url }] } } });
    Ok(base.map_or_else(|| pointer.to_string(), str::to_owned))
}

pub fn install_config(cluster: &Cluster) -> Result<String, Refused> {
    let config: Value = json!({
        "apiVersion": "v1", "baseDomain": cluster.base_dns_domain, "metadata": { "name": cluster.name },
        "pullSecret": cluster.pull_secret, "sshKey": cluster.ssh_public_key,
    });
    Ok(serde_norway::to_string(&config).unwrap_or_default())
}

pub fn with_ingress(kubeconfig: &str, pem: &str) -> Result<String, Refused> {
    Ok(format!("{kubeconfig}\n# {}\n", pem.trim()))
}
