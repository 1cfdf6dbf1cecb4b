//! Hosts of every kind of cluster get their own config, and nobody else's secrets.

use super::*;
use crate::cluster::Kind;
use crate::{HostId, HostKey, InfraEnvId};
use jiff::Timestamp;
use uuid::Uuid;

const BASE: &str =
    r#"{"ignition":{"version":"3.2.0","config":{"merge":[{"source":"https://api-int/config/master"}]}}}"#;

fn cluster() -> Cluster {
    let mut cluster = crate::cluster::diagram::blank(Timestamp::UNIX_EPOCH);
    cluster.pull_secret = "canary-secret".into();
    cluster
}

fn host() -> Host {
    let key = HostKey {
        infra_env: InfraEnvId(Uuid::from_u128(1)),
        host: HostId(Uuid::from_u128(2)),
    };
    let mut host = Host::arriving(key, None, Timestamp::UNIX_EPOCH);
    host.role = Role::Worker;
    host
}

fn reporting() -> Reporting<'static> {
    Reporting {
        service_url: "https://hub.example.com/",
        agent_token: "canary-agent-token",
        service_ca: "",
        insecure: false,
    }
}

fn render(base: Option<&str>, host: &Host, cluster: &Cluster) -> Value {
    let text = host_ignition(base, host, cluster, reporting()).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn content(config: &Value, path: &str) -> Option<String> {
    let files = config["storage"]["files"].as_array()?;
    let file = files.iter().find(|file| file["path"] == path)?;
    let source = file["contents"]["source"].as_str()?;
    let bytes = STANDARD.decode(source.rsplit_once(',')?.1).ok()?;
    String::from_utf8(bytes).ok()
}

#[test]
fn a_first_day_host_gets_its_roles_config_its_name_and_its_labels() {
    let mut host = host();
    host.tenant.hostname = Some("node-1".into());
    host.tenant.node_labels = vec![("zone".into(), "east".into()), ("gpu".into(), String::new())];
    let config = render(Some(BASE), &host, &cluster());
    assert_eq!(
        config["ignition"]["config"]["merge"][0]["source"],
        "https://api-int/config/master"
    );
    assert_eq!(content(&config, "/etc/hostname").as_deref(), Some("node-1"));
    let unit = &config["systemd"]["units"][0];
    assert_eq!(unit["name"], "kubelet.service");
    assert!(
        unit["dropins"][0]["contents"]
            .as_str()
            .unwrap()
            .contains("CUSTOM_KUBELET_LABELS=zone=east,gpu\"")
    );
    assert!(!config.to_string().contains("canary"));
}

#[test]
fn a_host_without_a_name_keeps_the_base_as_it_is() {
    let config = render(Some(BASE), &host(), &cluster());
    assert_eq!(config, serde_json::from_str::<Value>(BASE).unwrap());
}

#[test]
fn overrides_come_last() {
    let mut host = host();
    host.tenant.hostname = Some("node-1".into());
    host.tenant.ignition_overrides = r#"{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/etc/hostname","mode":384,"contents":{"source":"data:,other"}}]}}"#.into();
    let config = render(Some(BASE), &host, &cluster());
    assert_eq!(config["ignition"]["version"], "3.3.0");
    assert_eq!(config["storage"]["files"][0]["contents"]["source"], "data:,other");
}

#[test]
fn a_host_that_joins_is_pointed_to_the_running_cluster() {
    let mut cluster = cluster();
    cluster.kind = Kind::AddHostsCluster;
    cluster.api_vip_dns_name = "api.mike.example.com".into();
    let mut host = host();
    let source = |host: &Host, cluster: &Cluster| {
        render(None, host, cluster)["ignition"]["config"]["merge"][0]["source"].clone()
    };
    assert_eq!(
        source(&host, &cluster),
        "http://api.mike.example.com:22624/config/worker"
    );
    host.tenant.machine_config_pool = "infra".into();
    assert_eq!(
        source(&host, &cluster),
        "http://api.mike.example.com:22624/config/infra"
    );
    cluster.ignition_endpoint.url = "https://ignition.example.com:31000/ignition/".into();
    assert_eq!(
        source(&host, &cluster),
        "https://ignition.example.com:31000/ignition/infra"
    );
}

#[test]
fn an_endpoint_gets_its_token_its_headers_and_its_authority() {
    let mut cluster = cluster();
    cluster.ignition_endpoint.url = "https://ignition.example.com".into();
    cluster.ignition_endpoint.ca_certificate = STANDARD.encode("-----BEGIN CERTIFICATE-----");
    let mut host = host();
    host.tenant.ignition_token = "token".into();
    host.tenant.ignition_headers = vec![("NodePool".into(), "a".into())];
    let config = render(None, &host, &cluster);
    assert_eq!(config["ignition"]["version"], "3.2.0");
    assert_eq!(
        config["ignition"]["config"]["merge"][0]["httpHeaders"],
        json!([{ "name": "Authorization", "value": "Bearer token" }, { "name": "NodePool", "value": "a" }])
    );
    let authorities = &config["ignition"]["security"]["tls"]["certificateAuthorities"];
    let source = authorities[0]["source"].as_str().unwrap();
    assert!(source.ends_with(&cluster.ignition_endpoint.ca_certificate));
}

#[test]
fn an_uploaded_config_also_tells_the_hub_when_the_host_is_up() {
    let mut cluster = cluster();
    cluster.ignition_source = IgnitionSource::Uploaded;
    let base =
        r#"{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"k3s.service","enabled":true}]}}"#;
    let config = render(Some(base), &host(), &cluster);
    let names: Vec<_> = config["systemd"]["units"]
        .as_array()
        .unwrap()
        .iter()
        .map(|unit| unit["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["k3s.service", "muster-installed.service"]);
    assert_eq!(config["ignition"]["version"], "3.4.0");
    let script = content(&config, REPORT).unwrap();
    assert!(
        script.contains("for stage in Configuring Joined Done"),
        "{script}"
    );
    assert!(
        script.contains(
            "'https://hub.example.com/api/assisted-install/v2/infra-envs/00000000-0000-0000-0000-000000000001/hosts/"
        ),
        "{script}"
    );
    assert!(!script.contains("canary"));
    let headers = content(&config, REPORT_HEADERS).unwrap();
    assert!(headers.contains("X-Secret-Key: canary-agent-token"));
}

#[test]
fn a_pointer_of_the_first_day_also_tells_the_hub_when_the_host_is_up() {
    let mut cluster = cluster();
    cluster.ignition_source = IgnitionSource::Endpoint;
    cluster.ignition_endpoint.url = "https://ignition.example.com/".into();
    let unit = |cluster: &Cluster| render(None, &host(), cluster)["systemd"]["units"][0]["name"].clone();
    assert_eq!(unit(&cluster), "muster-installed.service");
    cluster.kind = crate::cluster::Kind::AddHostsCluster;
    assert_ne!(unit(&cluster), "muster-installed.service", "nobody waits for it");
}

#[test]
fn what_cannot_be_rendered_says_why() {
    let mut nowhere = cluster();
    nowhere.name.clear();
    assert!(host_ignition(None, &host(), &nowhere, reporting()).is_err());
    for base in ["", "[]", "{}", "not json"] {
        assert!(
            host_ignition(Some(base), &host(), &cluster(), reporting()).is_err(),
            "{base}"
        );
    }
}
