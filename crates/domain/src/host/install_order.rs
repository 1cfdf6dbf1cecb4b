//! The order to install, as the installer on the host reads it, and the tests that come before it.

use super::Host;
use crate::catalog::{Catalog, Images, OsImage};
use crate::cluster::{Cluster, IgnitionSource};
use crate::infra_env::InfraEnv;
use crate::input::proxy;
use crate::networks::Union;
use crate::requirements::at_least;
use crate::{ClusterId, HostId, InfraEnvId};
use ipnet::IpNet;
use muster_vocabulary::InstallRole;
use serde::Serialize;
use serde_json::json;
use std::collections::HashSet;

/// How long the images' test may take on the host, in seconds: 16 minutes.
pub const IMAGES_TIMEOUT_SECONDS: i64 = 960;
/// How long the disk's test may take on the host, in seconds and as the agent reads it: 8 minutes.
pub const DISK_SPEED_TIMEOUT: &str = "480.00";

/// Images that belong to the cluster's release; empty where the hub does not know them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReleaseImages<'a> {
    pub machine_config_operator: &'a str,
    /// Used unless the hub's own setting names another.
    pub must_gather: &'a str,
    /// Written to hosts that do not run from a live image.
    pub coreos: &'a str,
}

/// Everything the order is made of.
#[derive(Debug, Clone, Copy)]
pub struct Ingredients<'a> {
    pub cluster: &'a Cluster,
    pub pool: &'a InfraEnv,
    pub images: &'a Images,
    pub release: ReleaseImages<'a>,
    pub catalog: &'a Catalog,
}

// In alphabetical order, as clients have always seen it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstallOrder {
    pub boot_device: String,
    /// Watch the cluster version besides the operators: never, for its operator is not one of those the hub counts.
    pub check_cvo: bool,
    pub cluster_id: ClusterId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_count: Option<i64>,
    pub controller_image: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub coreos_image: String,
    pub disks_to_format: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub enable_skip_mco_reboot: bool,
    pub host_id: HostId,
    pub infra_env_id: InfraEnvId,
    /// A JSON list in a text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installer_args: String,
    pub installer_image: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mco_image: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub must_gather_image: String,
    #[serde(skip_serializing_if = "is_false")]
    pub notify_num_reboots: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<OrderProxy>,
    pub role: InstallRole,
    /// Addresses of the hub for networks without names; none are needed here.
    pub service_ips: Option<Vec<String>>,
    #[serde(skip_serializing_if = "is_false")]
    pub skip_installation_disk_cleanup: bool,
}

// Its addresses may hold a password.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct OrderProxy {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub http_proxy: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub https_proxy: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub no_proxy: String,
}

impl std::fmt::Debug for OrderProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OrderProxy").finish_non_exhaustive()
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl<'a> ReleaseImages<'a> {
    /// As far as the catalogue names them: for the very image, else for the version.
    pub fn of(catalog: &'a Catalog, cluster: &Cluster) -> Self {
        let by_image = catalog
            .releases
            .iter()
            .find(|release| release.url == cluster.ocp_release_image);
        let by_version = || {
            let version = &cluster.openshift_version;
            catalog.release(version, &cluster.cpu_architecture).ok()
        };
        by_image
            .or_else(by_version)
            .map_or_else(Self::default, |release| Self {
                machine_config_operator: &release.mco_image,
                must_gather: &release.must_gather_image,
                coreos: &release.coreos_image,
            })
    }
}

impl InstallOrder {
    pub fn of(host: &Host, with: &Ingredients<'_>) -> Self {
        let cluster = with.cluster;
        let first_day = !cluster.adds_hosts();
        let on_first_day = |text: &str| if first_day { text.to_owned() } else { String::new() };
        let args = installer_args(host, with);
        let must_gather = must_gather(with.images, with.release);
        Self {
            boot_device: host.tenant.installation_disk_id.clone(),
            check_cvo: false,
            cluster_id: cluster.id,
            control_plane_count: (!cluster.imported).then_some(cluster.control_plane_count),
            controller_image: with.images.controller.clone(),
            coreos_image: if host.digest.persistent_boot {
                with.release.coreos.to_owned()
            } else {
                String::new()
            },
            disks_to_format: disks_to_format(host),
            enable_skip_mco_reboot: skips_mco_reboot(host, cluster),
            host_id: host.id,
            infra_env_id: host.infra_env,
            skip_installation_disk_cleanup: keeps_partitions(&args),
            installer_args: match args.as_slice() {
                [] => String::new(),
                args => json!(args).to_string(),
            },
            installer_image: with.images.installer.clone(),
            mco_image: on_first_day(with.release.machine_config_operator),
            must_gather_image: on_first_day(must_gather),
            // Nobody else on our side of the wire could tell how often a host rebooted.
            notify_num_reboots: true,
            openshift_version: on_first_day(&cluster.openshift_version),
            proxy: order_proxy(cluster),
            role: role(host),
            service_ips: None,
        }
    }

    /// The step's only argument.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts, numbers and lists always have a JSON form")
    }
}

fn role(host: &Host) -> InstallRole {
    if host.bootstrap {
        return InstallRole::Bootstrap;
    }
    crate::checks::facts::effective_role(host.role, host.suggested_role).installed_as()
}

/// Disks whose boot sectors are wiped: all that compete, without those a person wants to keep.
pub fn disks_to_format(host: &Host) -> Vec<String> {
    let (wiped, _) = wiped_and_spared(host);
    wiped.into_iter().map(str::to_owned).collect()
}

/// The disks that compete: those that are wiped, and those a person wants to keep.
pub fn wiped_and_spared(host: &Host) -> (Vec<&str>, Vec<&str>) {
    let spared: HashSet<&str> = host.tenant.skip_formatting.iter().map(String::as_str).collect();
    let all = host.disks_to_format.iter().map(String::as_str);
    all.partition(|disk| !spared.contains(disk))
}

fn installer_args(host: &Host, with: &Ingredients<'_>) -> Vec<String> {
    let mut args = host.tenant.installer_args.clone();
    args.extend(network_args(host, with, &args));
    args.extend(image_args(host, with));
    args
}

/// The installed system keeps the network that the discovered one had.
fn network_args(host: &Host, with: &Ingredients<'_>, given: &[String]) -> Vec<String> {
    let has = |flag: &str| given.iter().any(|arg| arg == flag);
    if has("--copy-network") || has("-n") || has("--network-dir") {
        return Vec::new();
    }
    if !with.pool.static_network_config.is_empty() {
        return vec!["--copy-network".into()];
    }
    let asks_for_address = given.iter().any(|arg| arg.starts_with("ip="));
    // The networks of an imported cluster are not known.
    if asks_for_address || with.cluster.imported {
        return Vec::new();
    }
    dhcp_args(host, with.cluster)
}

/// A host with several networks must ask for its address in the cluster's, before anything else is configured.
fn dhcp_args(host: &Host, cluster: &Cluster) -> Vec<String> {
    let nets = Union::parse(&cluster.machine_networks);
    let mut args = Vec::new();
    for nic in &host.digest.nics {
        let inside: Vec<IpNet> = nic
            .addresses
            .iter()
            .filter_map(|text| text.parse::<IpNet>().ok())
            .filter(|address| nets.holds(address.addr()))
            .collect();
        let families = [(true, "dhcp"), (false, "dhcp6")];
        for (v4, word) in families {
            if inside.iter().any(|address| address.addr().is_ipv4() == v4) {
                args.push("--append-karg".to_owned());
                args.push(format!("ip={}:{word}", early_name(nic)));
            }
        }
    }
    args
}

/// The kernel knows a card by its MAC; what is built on top of cards has only its name.
fn early_name(nic: &super::Nic) -> String {
    let stacked = nic.name.contains('.') || nic.name.starts_with("bond") || nic.mac.is_empty();
    if stacked {
        nic.name.clone()
    } else {
        nic.mac.replace(':', "-")
    }
}

/// The cluster's release decides the operating system. The hub tells a host that was discovered with another build
/// where the right disk image is, and fetches it instead of writing the one it runs from.
fn image_args(host: &Host, with: &Ingredients<'_>) -> Vec<String> {
    match System::of(host, with) {
        System::Other(url) => vec!["--image-url".into(), url],
        System::Running | System::Unnamed(_) => Vec::new(),
    }
}

/// Which operating system a host is installed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum System {
    /// The one it runs from, what nobody here can tell apart from it, or what its owner chose.
    Running,
    /// Another, fetched from here.
    Other(String),
    /// Another is needed and cannot be named; the text for people.
    Unnamed(String),
}

impl System {
    pub fn of(host: &Host, with: &Ingredients<'_>) -> Self {
        let cluster = with.cluster;
        let architecture = [&host.digest.architecture, &with.pool.cpu_architecture]
            .into_iter()
            .find(|word| !word.is_empty());
        let decided = cluster.openshift_version.is_empty() || is_chosen(&host.tenant.installer_args);
        let (Some(architecture), false) = (architecture, decided) else {
            return Self::Running;
        };
        if host.digest.persistent_boot {
            return persistent(host, with);
        }
        let booted = booted(host, with, architecture);
        let wanted = with
            .catalog
            .os_image(Some(&cluster.openshift_version), architecture);
        match (booted, wanted) {
            (Some(booted), Ok(wanted)) if booted == wanted => Self::Running,
            (Some(booted), Ok(wanted)) => wanted.disk_image().map_or_else(
                || {
                    Self::Unnamed(format!(
                        "{} runs the image of {}, and the cluster's release {} belongs to that of {}, \
                         whose disk image the hub cannot name: the file of its OS_IMAGES entry should end \
                         in -live.ARCH.iso or -live-iso.ARCH.iso. The hub installs the system that the \
                         host runs; for another one, give the host --image-url among its installer \
                         arguments.",
                        host.name(),
                        booted.openshift_version,
                        cluster.openshift_version,
                        wanted.openshift_version
                    ))
                },
                Self::Other,
            ),
            (Some(booted), Err(_)) => Self::Unnamed(format!(
                "{} runs the image of {}, and OS_IMAGES has none for the cluster's release {} on \
                 {architecture}. The hub installs the system that the host runs; for another one, give the \
                 host --image-url among its installer arguments.",
                host.name(),
                booted.openshift_version,
                cluster.openshift_version
            )),
            // An image of the site's own, or one that is not offered any more: nothing here tells what is in it.
            (None, _) => Self::Running,
        }
    }
}

fn is_chosen(installer_args: &[String]) -> bool {
    installer_args
        .iter()
        .any(|arg| arg.starts_with("--image-url") || arg.starts_with("--image-file"))
}

/// A system on a disk cannot be written from itself.
fn persistent(host: &Host, with: &Ingredients<'_>) -> System {
    if !with.release.coreos.is_empty() {
        return System::Running;
    }
    System::Unnamed(format!(
        "{} runs from a disk, and the hub does not know the operating system image of release {}: add coreos_image to \
         its RELEASE_IMAGES entry.",
        host.name(),
        with.cluster.openshift_version
    ))
}

/// The image a host runs: by what its kernel was started with, else by what its pool offered when it came. What the
/// pool offers now is for those who boot later.
fn booted<'a>(host: &Host, with: &Ingredients<'a>, architecture: &str) -> Option<&'a OsImage> {
    let catalog = with.catalog;
    let by_label = catalog.os_image_of_build(&host.digest.booted_build, architecture);
    let by_version = |version: &str| match version {
        "" => None,
        version => catalog.os_image(Some(version), architecture).ok(),
    };
    by_label
        .or_else(|| by_version(&host.digest.booted_version))
        .or_else(|| by_version(&host.booted_version))
        .or_else(|| by_version(&with.pool.openshift_version))
}

fn keeps_partitions(args: &[String]) -> bool {
    args.iter()
        .any(|arg| arg.starts_with("--save-partlabel") || arg.starts_with("--save-partindex"))
}

/// From 4.15 on the first boot may skip the reboot that follows its configuration; not every machine can.
fn skips_mco_reboot(host: &Host, cluster: &Cluster) -> bool {
    let disk = &host.tenant.installation_disk_path;
    at_least(&cluster.openshift_version, "4.15")
        && host.digest.architecture != "s390x"
        && !disk.starts_with("/dev/dm-")
        && !disk.starts_with("/dev/mapper/")
}

fn order_proxy(cluster: &Cluster) -> Option<OrderProxy> {
    let settings = &cluster.proxy;
    proxy::is_set(settings).then(|| OrderProxy {
        http_proxy: settings.http.clone(),
        https_proxy: settings.https.clone(),
        no_proxy: no_proxy(cluster),
    })
}

/// What must never go through the proxy, whatever else was said.
fn no_proxy(cluster: &Cluster) -> String {
    let given = cluster.proxy.no.trim();
    if given == "*" {
        return given.into();
    }
    let own = format!("api-int.{}.{}", cluster.name, cluster.base_dns_domain);
    let always = ["127.0.0.1", "localhost", ".svc", ".cluster.local", &own];
    let mut list: Vec<&str> = given
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    list.extend(always.iter().filter(|name| !given.contains(**name)));
    list.join(",")
}

/// The disk is not tested when something on it must be kept, or when the system runs from it.
pub fn skips_disk_speed(host: &Host) -> bool {
    keeps_partitions(&host.tenant.installer_args) || host.digest.persistent_boot
}

/// Arguments of the test of the installation disk; `None` when there is nothing to test or something to lose.
pub fn disk_speed(host: &Host) -> Option<Vec<String>> {
    let disk = &host.tenant.installation_disk_id;
    if disk.is_empty() || skips_disk_speed(host) {
        return None;
    }
    Some(vec![
        json!({ "path": disk }).to_string(),
        DISK_SPEED_TIMEOUT.to_owned(),
    ])
}

/// The hub's setting wins over what belongs to the release.
fn must_gather<'a>(images: &'a Images, release: ReleaseImages<'a>) -> &'a str {
    match images.must_gather.as_str() {
        "" => release.must_gather,
        set => set,
    }
}

/// Of a map per operator only the platform's own is needed in any case.
fn must_gather_to_pull(images: &Images, release: ReleaseImages<'_>) -> String {
    let setting = must_gather(images, release);
    match serde_json::from_str::<serde_json::Value>(setting) {
        Ok(map) => map["ocp"].as_str().unwrap_or_default().to_owned(),
        Err(_) => setting.to_owned(),
    }
}

/// Images every host must be able to pull before it is installed.
pub fn wanted_images(cluster: &Cluster, images: &Images, release: ReleaseImages<'_>) -> Vec<String> {
    let must_gather = must_gather_to_pull(images, release);
    let needed = [
        cluster.ocp_release_image.as_str(),
        release.machine_config_operator,
        must_gather.as_str(),
        images.installer.as_str(),
    ];
    let needed: &[&str] = match cluster.ignition_source {
        IgnitionSource::Installer => &needed,
        // Such a cluster need not have anything to do with the release, nor its site with a registry: an agent that
        // writes disks itself pulls nothing, and one that does not says so before it touches a disk.
        IgnitionSource::Uploaded | IgnitionSource::Endpoint => &[],
    };
    let mut list: Vec<String> = Vec::new();
    for image in needed.iter().copied() {
        if !image.is_empty() && !list.iter().any(|known| known == image) {
            list.push(image.to_owned());
        }
    }
    list
}

/// Arguments of the test that pulls images.
pub fn image_availability(images: &[String]) -> Option<Vec<String>> {
    let args = json!({ "images": images, "timeout": IMAGES_TIMEOUT_SECONDS });
    (!images.is_empty()).then(|| vec![args.to_string()])
}

/// Arguments for gathering a host's logs; a bootstrap host also fetches those of the masters it started.
pub fn logs_gather(host: &Host, cluster: ClusterId, master_ips: Option<&[String]>) -> Vec<String> {
    let args = json!({
        "bootstrap": host.bootstrap,
        "cluster_id": cluster,
        "host_id": host.id,
        "infra_env_id": host.infra_env,
        "installer_gather": true,
        "master_ips": master_ips.filter(|others| host.bootstrap && !others.is_empty()),
    });
    vec![args.to_string()]
}

#[cfg(test)]
mod tests;
