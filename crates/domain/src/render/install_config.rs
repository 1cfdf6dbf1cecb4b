//! The install config that the OpenShift installer reads: only what the cluster's creator said, never the pool's secrets.

use crate::checks::facts::effective_role;
use crate::cluster::{Cluster, LoadBalancerType, PlatformType, RoleSet, Vip};
use crate::host::{Host, Nic, Role};
use crate::input::fencing::FencingCredentials;
use crate::input::{Checked, Invalid, install_config, proxy};
use crate::networks::Union;
use serde_json::{Map, Value, json};

const TRUST: &str = "additionalTrustBundle";

/// The config as YAML text, the creator's changes merged over it. `hosts` are the cluster's, with their roles;
/// `trusted` are the authorities their discovery images trust, in PEM: a registry that discovery could pull from must
/// not become unknown to the installed node.
pub fn install_config(cluster: &Cluster, hosts: &[Host], trusted: &[&str]) -> Checked<String> {
    let mut config = json(cluster, hosts);
    let overrides = &cluster.install_config_overrides;
    if !overrides.is_empty() {
        install_config::install_config_overrides(overrides)?;
        let over = serde_json::from_str(overrides).unwrap_or_default();
        merge(&mut config, over);
    }
    trust(&mut config, trusted);
    serde_norway::to_string(&config).map_err(|_| {
        Invalid::rule(
            "install_config",
            "cannot be written as YAML",
            "remove unusual values from install_config_overrides",
        )
    })
}

/// The creator's own authorities come first; none is listed twice. Who may use them beside nodes, is left to the creator
/// (`additionalTrustBundlePolicy` in the overrides).
fn trust(config: &mut Value, trusted: &[&str]) {
    let own = config[TRUST].as_str().unwrap_or_default().trim().to_owned();
    let mut all = Vec::new();
    for bundle in std::iter::once(own.as_str()).chain(trusted.iter().map(|bundle| bundle.trim())) {
        if !bundle.is_empty() && !all.contains(&bundle) {
            all.push(bundle);
        }
    }
    if !all.is_empty() {
        config[TRUST] = all.join("\n").into();
    }
}

/// The config before the creator's changes.
fn json(cluster: &Cluster, hosts: &[Host]) -> Value {
    let count = |role| hosts.iter().filter(|host| role_of(host) == role).count();
    let mut config = json!({
        "apiVersion": "v1",
        "metadata": { "name": cluster.name },
        "baseDomain": cluster.base_dns_domain,
        "networking": networking(cluster),
        "compute": [machines(cluster, hosts, Role::Worker, count(Role::Worker))],
        "controlPlane": control_plane(cluster, hosts),
        "platform": platform(cluster, hosts),
        "pullSecret": cluster.pull_secret,
    });
    if count(Role::Arbiter) > 0 {
        config["arbiter"] = machines(cluster, hosts, Role::Arbiter, count(Role::Arbiter));
    }
    if !cluster.ssh_public_key.is_empty() {
        config["sshKey"] = cluster.ssh_public_key.as_str().into();
    }
    if cluster.single_node()
        && let Some(node) = hosts.first()
    {
        config["bootstrapInPlace"] = json!({ "installationDisk": node.tenant.installation_disk_id });
    }
    if proxy::is_set(&cluster.proxy) {
        config["proxy"] = proxy_of(cluster);
    }
    config
}

fn role_of(host: &Host) -> Role {
    effective_role(host.role, host.suggested_role)
}

fn networking(cluster: &Cluster) -> Value {
    let pods: Vec<Value> = cluster
        .cluster_networks
        .iter()
        .map(|net| json!({ "cidr": net.cidr, "hostPrefix": net.host_prefix }))
        .collect();
    let mut networking = json!({
        "networkType": cluster.network_type,
        "clusterNetwork": pods,
        "serviceNetwork": cluster.service_networks,
    });
    if !cluster.machine_networks.is_empty() {
        let nets = cluster.machine_networks.iter();
        networking["machineNetwork"] = nets.map(|cidr| json!({ "cidr": cidr })).collect();
    }
    networking
}

fn machines(cluster: &Cluster, hosts: &[Host], role: Role, replicas: usize) -> Value {
    json!({
        "name": role.word(),
        "replicas": replicas,
        "hyperthreading": hyperthreading(cluster, role),
        "architecture": architecture(cluster, hosts, role),
        "platform": {},
    })
}

fn control_plane(cluster: &Cluster, hosts: &[Host]) -> Value {
    let replicas = usize::try_from(cluster.control_plane_count).unwrap_or_default();
    let mut plane = machines(cluster, hosts, Role::Master, replicas);
    let fencing = fencing(hosts);
    if cluster.control_plane_count == 2 && !fencing.is_empty() {
        plane["fencing"] = json!({ "credentials": fencing });
    }
    plane
}

/// Two masters without an arbiter must be able to switch each other off.
fn fencing(hosts: &[Host]) -> Vec<Value> {
    let masters = hosts.iter().filter(|host| role_of(host) == Role::Master);
    let known = masters.filter_map(|host| {
        let FencingCredentials {
            address,
            username,
            password,
            certificate_verification,
            mac_address: _,
        } = serde_json::from_str(&host.tenant.fencing).ok()?;
        Some(json!({
            "hostName": host.name(),
            "address": address,
            "username": username,
            "password": password,
            "certificateVerification": certificate_verification,
        }))
    });
    known.collect()
}

fn hyperthreading(cluster: &Cluster, role: Role) -> &'static str {
    let has_it: fn(RoleSet) -> bool = match role {
        Role::Master => RoleSet::has_masters,
        Role::Arbiter => RoleSet::has_arbiters,
        Role::Worker | Role::AutoAssign => RoleSet::has_workers,
    };
    if cluster.hyperthreading.is(has_it) || cluster.hyperthreading.is_empty() {
        "Enabled"
    } else {
        "Disabled"
    }
}

/// In the installer's words; a release for several architectures runs on what its hosts are.
fn architecture(cluster: &Cluster, hosts: &[Host], role: Role) -> String {
    let of_hosts = || {
        let mut same_role = hosts.iter().filter(|host| role_of(host) == role);
        same_role.find_map(|host| Some(&host.digest.architecture).filter(|word| !word.is_empty()))
    };
    let word = match cluster.cpu_architecture.as_str() {
        "multi" | "" => of_hosts().map_or("x86_64", String::as_str),
        word => word,
    };
    match word {
        "x86_64" => "amd64".into(),
        "aarch64" => "arm64".into(),
        other => other.into(),
    }
}

fn platform(cluster: &Cluster, hosts: &[Host]) -> Value {
    match cluster.platform.kind {
        PlatformType::None => json!({ "none": {} }),
        PlatformType::External => {
            let mut external = json!({ "platformName": cluster.platform.external_name });
            let controller = &cluster.platform.external_cloud_controller;
            if !controller.is_empty() {
                external["cloudControllerManager"] = controller.as_str().into();
            }
            json!({ "external": external })
        }
        // One host has no addresses to share.
        PlatformType::Baremetal | PlatformType::Vsphere | PlatformType::Nutanix if cluster.single_node() => {
            json!({ "none": {} })
        }
        PlatformType::Baremetal if cluster.user_managed_networking => json!({ "none": {} }),
        PlatformType::Vsphere => json!({ "vsphere": vips(cluster, vsphere()) }),
        PlatformType::Nutanix => json!({ "nutanix": vips(cluster, Map::new()) }),
        PlatformType::Baremetal => json!({ "baremetal": vips(cluster, baremetal(cluster, hosts)) }),
    }
}

fn vips(cluster: &Cluster, mut platform: Map<String, Value>) -> Value {
    let ips = |vips: &[Vip]| vips.iter().map(|vip| vip.ip.as_str()).collect::<Value>();
    if !cluster.api_vips.is_empty() {
        platform.insert("apiVIPs".into(), ips(&cluster.api_vips));
    }
    if !cluster.ingress_vips.is_empty() {
        platform.insert("ingressVIPs".into(), ips(&cluster.ingress_vips));
    }
    if cluster.load_balancer == LoadBalancerType::UserManaged {
        platform.insert("loadBalancer".into(), json!({ "type": "UserManaged" }));
    }
    Value::Object(platform)
}

/// The installer insists on machines it could power on; nothing of it is used, for the hosts are up already.
fn baremetal(cluster: &Cluster, hosts: &[Host]) -> Map<String, Value> {
    let machine = |host: &Host| {
        json!({
            "name": host.name(),
            "role": role_of(host).word(),
            "bootMACAddress": boot_nic(cluster, host).map(|nic| nic.mac.as_str()).unwrap_or_default(),
            "bootMode": "UEFI",
            "hardwareProfile": "unknown",
        })
    };
    let mut platform = Map::new();
    platform.insert("hosts".into(), hosts.iter().map(machine).collect());
    platform.insert("provisioningNetwork".into(), "Disabled".into());
    platform
}

/// The card in the cluster's network, else the first.
fn boot_nic<'a>(cluster: &Cluster, host: &'a Host) -> Option<&'a Nic> {
    let nets = Union::parse(&cluster.machine_networks);
    let inside = |nic: &&Nic| {
        let mut addresses = nic
            .addresses
            .iter()
            .filter_map(|text| text.parse::<ipnet::IpNet>().ok());
        addresses.any(|address| nets.holds(address.addr()))
    };
    let nics = &host.digest.nics;
    nics.iter().find(inside).or(nics.first())
}

/// The real vCenter is set after the installation; until then the installer wants every field filled.
fn vsphere() -> Map<String, Value> {
    let unset = "unset.example.invalid";
    let filled = json!({
        "vcenters": [{ "server": unset, "user": "unset", "password": "unset", "datacenters": ["unset"] }],
        "failureDomains": [{
            "name": "unset", "region": "unset", "zone": "unset", "server": unset,
            "topology": {
                "computeCluster": "/unset/host/unset", "datacenter": "unset",
                "datastore": "/unset/datastore/unset", "folder": "/unset/vm/unset", "networks": ["unset"],
            },
        }],
    });
    match filled {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn proxy_of(cluster: &Cluster) -> Value {
    let mut value = Map::new();
    let parts = [
        ("httpProxy", &cluster.proxy.http),
        ("httpsProxy", &cluster.proxy.https),
        ("noProxy", &cluster.proxy.no),
    ];
    for (key, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
        value.insert(key.into(), text.as_str().into());
    }
    Value::Object(value)
}

/// Objects are merged by key; anything else is replaced by what the creator said.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

#[cfg(test)]
mod tests;
