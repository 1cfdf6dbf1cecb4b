//! The Ignition config a host is installed with: its role's, or a pointer to it, with what belongs to this host.

use super::ignition::file;
use super::{merge, quote};
use crate::checks::facts::effective_role;
use crate::cluster::{Cluster, IgnitionSource};
use crate::host::{Host, Role};
use crate::input::{Checked, Invalid, ignition};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

/// The first spec whose readers take headers for merged configs.
const POINTER_VERSION: &str = "3.2.0";
/// Where a running cluster serves its nodes' configs without TLS.
const CONFIG_PORT: u16 = 22624;
const EXECUTABLE: u32 = 0o755;
const READABLE: u32 = 0o644;
const SECRET: u32 = 0o600;
const REPORT: &str = "/usr/local/bin/muster-installed";
const REPORT_HEADERS: &str = "/etc/muster-installed.headers";
const REPORT_CA: &str = "/etc/muster-installed.pem";

/// How a host without a controller in its cluster tells the hub that it came up.
#[derive(Clone, Copy)]
pub struct Reporting<'a> {
    /// Where hosts find the hub.
    pub service_url: &'a str,
    /// What agents of its pool prove their right with; empty without authentication.
    pub agent_token: &'a str,
    /// PEM of the authority behind the hub's certificate; empty: the system's.
    pub service_ca: &'a str,
    pub insecure: bool,
}

/// The whole config. `base` is the role's config; without one the host is pointed to where it is served.
pub fn host_ignition(
    base: Option<&str>,
    host: &Host,
    cluster: &Cluster,
    reporting: Reporting<'_>,
) -> Checked<String> {
    let mut config = match base {
        Some(base) => role_config(base)?,
        None => pointer(host, cluster)?,
    };
    let own = own(&config, host);
    merge::merge(&mut config, own);
    if reports_itself(cluster) {
        let report = report(&config, host, reporting);
        merge::merge(&mut config, report);
    }
    let overrides = &host.tenant.ignition_overrides;
    if !overrides.is_empty() {
        merge::merge(
            &mut config,
            ignition::ignition("ignition_config_overrides", overrides)?,
        );
    }
    Ok(config.to_string())
}

/// Nobody inside the new cluster speaks for its hosts. Of those that join a running one nothing more is expected.
fn reports_itself(cluster: &Cluster) -> bool {
    match cluster.ignition_source {
        IgnitionSource::Installer => false,
        IgnitionSource::Uploaded | IgnitionSource::Endpoint => !cluster.adds_hosts(),
    }
}

fn role_config(base: &str) -> Checked<Value> {
    let config: Value = serde_json::from_str(base).unwrap_or_default();
    if config.get("ignition").is_some_and(Value::is_object) {
        return Ok(config);
    }
    Err(Invalid::rule(
        "ignition",
        "of the role is not an Ignition config",
        "upload it again, or reset the cluster and install it again",
    ))
}

/// A small config that fetches the rest from a running cluster, or from where its owner serves it.
pub fn pointer(host: &Host, cluster: &Cluster) -> Checked<Value> {
    let mut merged = json!({ "source": config_url(host, cluster)? });
    let headers = headers(host);
    if !headers.is_empty() {
        merged["httpHeaders"] = headers.into();
    }
    let mut ignition = json!({ "version": POINTER_VERSION, "config": { "merge": [merged] } });
    let ca = &cluster.ignition_endpoint.ca_certificate;
    if !ca.is_empty() {
        ignition["security"] = json!({ "tls": { "certificateAuthorities": [{ "source": authority(ca) }] } });
    }
    Ok(json!({ "ignition": ignition }))
}

/// Where the config of the host's pool is served.
pub fn config_url(host: &Host, cluster: &Cluster) -> Checked<String> {
    let pool = pool(host);
    let endpoint = cluster.ignition_endpoint.url.trim_end_matches('/');
    if !endpoint.is_empty() {
        return Ok(format!("{endpoint}/{pool}"));
    }
    let named = match (cluster.name.as_str(), cluster.base_dns_domain.as_str()) {
        (name, domain) if !name.is_empty() && !domain.is_empty() => Some(format!("api.{name}.{domain}")),
        _ => None,
    };
    let given = Some(cluster.api_vip_dns_name.clone()).filter(|name| !name.is_empty());
    let vip = cluster.api_vips.first().map(|vip| vip.ip.clone());
    let Some(api) = given.or(named).or(vip) else {
        return Err(Invalid::rule(
            "api_vip_dns_name",
            "is not set, and neither is an ignition endpoint",
            "say where the running cluster can be reached",
        ));
    };
    let api = if api.contains(':') {
        format!("[{api}]")
    } else {
        api
    };
    Ok(format!("http://{api}:{CONFIG_PORT}/config/{pool}"))
}

fn pool(host: &Host) -> &str {
    match host.tenant.machine_config_pool.as_str() {
        "" => match effective_role(host.role, host.suggested_role) {
            Role::AutoAssign => Role::Worker.word(),
            role @ (Role::Master | Role::Arbiter | Role::Worker) => role.word(),
        },
        pool => pool,
    }
}

fn headers(host: &Host) -> Vec<Value> {
    let mut list = Vec::new();
    if !host.tenant.ignition_token.is_empty() {
        list.push(json!({
            "name": "Authorization",
            "value": format!("Bearer {}", host.tenant.ignition_token),
        }));
    }
    let more = host.tenant.ignition_headers.iter();
    list.extend(more.map(|(name, value)| json!({ "name": name, "value": value })));
    list
}

/// The wire carries the certificate in base64 already; people also paste PEM.
fn authority(ca: &str) -> String {
    let encoded = if ca.contains("-----BEGIN") {
        STANDARD.encode(ca)
    } else {
        ca.split_whitespace().collect()
    };
    format!("data:text/plain;charset=utf-8;base64,{encoded}")
}

/// What only this host has: its name and its labels.
fn own(base: &Value, host: &Host) -> Value {
    let mut files = Vec::new();
    let name = host.name();
    // Without a name the node keeps the one its network gives it.
    if name != host.id.to_string() {
        files.push(file("/etc/hostname", READABLE, &name));
    }
    let mut units = Vec::new();
    if !host.tenant.node_labels.is_empty() {
        units.push(json!({ "name": "kubelet.service", "dropins": [{
            "name": "30-node-labels.conf",
            "contents": format!("[Service]\nEnvironment=\"CUSTOM_KUBELET_LABELS={}\"\n", labels(host)),
        }] }));
    }
    addition(base, files, units)
}

fn labels(host: &Host) -> String {
    let pairs = host.tenant.node_labels.iter();
    let pairs: Vec<String> = pairs
        .map(|(key, value)| match value.as_str() {
            "" => key.clone(),
            value => format!("{key}={value}"),
        })
        .collect();
    quote::systemd(&pairs.join(","))
}

/// In the base's own version, for that is what its reader reads.
fn addition(base: &Value, files: Vec<Value>, units: Vec<Value>) -> Value {
    let version = base["ignition"]["version"].as_str().unwrap_or(POINTER_VERSION);
    let mut value = json!({ "ignition": { "version": version } });
    if !files.is_empty() {
        value["storage"] = json!({ "files": files });
    }
    if !units.is_empty() {
        value["systemd"] = json!({ "units": units });
    }
    value
}

/// A unit that tells the hub once, on the first boot from disk, that this host is there.
fn report(base: &Value, host: &Host, reporting: Reporting<'_>) -> Value {
    let mut files = vec![
        file(REPORT, EXECUTABLE, &report_script(host, reporting)),
        file(
            REPORT_HEADERS,
            SECRET,
            &format!(
                "Content-Type: application/json\nX-Secret-Key: {}\n",
                reporting.agent_token
            ),
        ),
    ];
    if !reporting.service_ca.is_empty() {
        files.push(file(REPORT_CA, READABLE, reporting.service_ca));
    }
    let unit = json!({ "name": "muster-installed.service", "enabled": true, "contents": REPORT_UNIT });
    addition(base, files, vec![unit])
}

fn report_script(host: &Host, reporting: Reporting<'_>) -> String {
    let url = format!(
        "{}/api/assisted-install/v2/infra-envs/{}/hosts/{}/progress",
        reporting.service_url.trim_end_matches('/'),
        host.infra_env,
        host.id
    );
    let trust = match (reporting.insecure, reporting.service_ca.is_empty()) {
        (true, _) => " --insecure",
        (false, false) => " --cacert /etc/muster-installed.pem",
        (false, true) => "",
    };
    // A refusal is final: the hub knows better where this host stands. Anything else is tried again.
    format!(
        "#!/bin/bash\n\
         set -u\n\
         tell() {{\n\
         \x20   code=$(curl --silent --max-time 30{trust} --output /dev/null --write-out '%{{http_code}}' \\\n\
         \x20       --request PUT --header @{REPORT_HEADERS} \\\n\
         \x20       --data \"{{\\\"current_stage\\\":\\\"$1\\\"}}\" {url})\n\
         \x20   case \"$code\" in 2??|4??) return 0 ;; *) return 1 ;; esac\n\
         }}\n\
         for stage in Configuring Joined Done; do\n\
         \x20   until tell \"$stage\"; do sleep 5; done\n\
         done\n\
         rm -f {REPORT_HEADERS}\n",
        url = quote::shell(&url),
    )
}

/// Its secret is removed when the report was heard, and with it the reason to run again.
const REPORT_UNIT: &str = "\
[Unit]
Description=Tell the hub that this host runs from its disk
Wants=network-online.target
After=network-online.target
ConditionPathExists=/etc/muster-installed.headers

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=infinity
ExecStart=/usr/local/bin/muster-installed

[Install]
WantedBy=multi-user.target
";

#[cfg(test)]
mod tests;
