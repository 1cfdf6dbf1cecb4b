//! Platform, who manages the network, and the kind of pod network: which combinations make a cluster.

use std::net::IpAddr;

use super::error::{Checked, Invalid};
use super::schema;
use crate::catalog::Version;

use muster_vocabulary::{CloudControllerManager, NetworkType, Word};

pub use muster_vocabulary::PlatformType as Platform;

/// Fills in what was not said and refuses what contradicts itself. A single node has no virtual addresses to
/// manage, so its network is always the user's.
pub fn platform_and_networking(
    platform: Option<Platform>,
    user_managed_networking: Option<bool>,
    control_plane_count: i64,
) -> Checked<(Platform, bool)> {
    let managed_by_user = |fix: &str| match user_managed_networking {
        Some(false) => Err(contradiction("cannot be false here", fix)),
        Some(true) | None => Ok(true),
    };
    if control_plane_count == 1 {
        let platform = match platform.unwrap_or(Platform::None) {
            platform @ (Platform::None | Platform::External) => platform,
            // What clients send when they spell out the default.
            Platform::Baremetal => Platform::None,
            Platform::Nutanix | Platform::Vsphere => {
                return Err(Invalid::rule(
                    "platform.type",
                    "needs more than one control plane node",
                    "use none or external for a single node",
                ));
            }
        };
        return Ok((
            platform,
            managed_by_user("leave it out or set it to true for a single node")?,
        ));
    }
    match (platform, user_managed_networking) {
        (None, Some(true)) => Ok((Platform::None, true)),
        (None, Some(false) | None) => Ok((Platform::Baremetal, false)),
        (Some(platform @ (Platform::None | Platform::External)), _) => Ok((
            platform,
            managed_by_user("set it to true with platform none or external")?,
        )),
        (Some(Platform::Vsphere), umn) => Ok((Platform::Vsphere, umn.unwrap_or(false))),
        (Some(platform @ (Platform::Baremetal | Platform::Nutanix)), Some(true)) => Err(contradiction(
            &format!("cannot be true with platform {}", platform.word()),
            "use platform none when you manage the network",
        )),
        (Some(platform @ (Platform::Baremetal | Platform::Nutanix)), Some(false) | None) => {
            Ok((platform, false))
        }
    }
}

/// What an external platform has to say of itself: its name, and on Oracle's cloud that a controller of that cloud runs.
pub fn external_platform(platform: Platform, name: &str, cloud_controller_manager: &str) -> Checked {
    match (platform, name) {
        (Platform::External, "") => Err(Invalid::rule(
            "platform.external.platform_name",
            "is missing, and an external platform is known by it",
            "name the infrastructure",
        )),
        (Platform::External, "oci")
            if cloud_controller_manager != CloudControllerManager::External.word() =>
        {
            Err(Invalid::rule(
                "platform.external.cloud_controller_manager",
                "must be External with platform_name oci",
                "set it to External",
            ))
        }
        (Platform::External, _)
        | (Platform::Baremetal | Platform::None | Platform::Nutanix | Platform::Vsphere, _) => Ok(()),
    }
}

fn contradiction(problem: &str, fix: &str) -> Invalid {
    Invalid::rule("user_managed_networking", problem, fix)
}

/// What the choice of a pod network depends on.
#[derive(Clone, Debug)]
pub struct NetworkTypeSetting<'a> {
    pub version: &'a str,
    pub single_node: bool,
    pub vip_dhcp_allocation: bool,
    pub user_managed_networking: bool,
    pub any_ipv6: bool,
}

/// The pod network to use: the requested one if it fits, else the version's default.
///
/// The default together with DHCP addresses is let through, as the reference does; the cluster check
/// `network-type-valid` then tells. Asking for both by name is refused here.
pub fn network_type(requested: Option<&str>, setting: &NetworkTypeSetting<'_>) -> Checked<NetworkType> {
    let field = "network_type";
    vip_dhcp(setting)?;
    let version = Version::parse(setting.version).unwrap_or_default();
    let Some(word) = requested.filter(|word| !word.is_empty()) else {
        let modern = version >= Version::new(4, 12) || setting.single_node;
        return Ok(if modern {
            NetworkType::OVNKubernetes
        } else {
            NetworkType::OpenShiftSDN
        });
    };
    let wanted = schema::word::<NetworkType>(field, word)?;
    if wanted == NetworkType::OVNKubernetes && setting.vip_dhcp_allocation {
        return Err(Invalid::rule(
            field,
            "is OVNKubernetes, which cannot take its virtual addresses from DHCP",
            "turn `vip_dhcp_allocation` off and give `api_vips` and `ingress_vips`",
        ));
    }
    let obstacle = [
        (version >= Version::new(4, 15), "no longer exists in this version"),
        (setting.single_node, "does not run on a single node"),
        (setting.any_ipv6, "has no IPv6"),
    ];
    match obstacle
        .iter()
        .find(|(hit, _)| *hit && wanted == NetworkType::OpenShiftSDN)
    {
        Some((_, why)) => Err(Invalid::rule(
            field,
            format!("is OpenShiftSDN, which {why}"),
            "use OVNKubernetes",
        )),
        None => Ok(wanted),
    }
}

/// Nobody here asks a DHCP server for the virtual addresses, so a cluster that waits for them waits for ever. With
/// OVNKubernetes the cluster check `network-type-valid` tells, as the reference does; with any other network this does.
pub fn vip_dhcp_served(network_type: &Word<NetworkType>, vip_dhcp_allocation: bool) -> Checked {
    if !vip_dhcp_allocation || *network_type == NetworkType::OVNKubernetes {
        return Ok(());
    }
    Err(Invalid::rule(
        "vip_dhcp_allocation",
        "is on, and this hub takes no virtual addresses from DHCP",
        "turn it off and give `api_vips` and `ingress_vips`",
    ))
}

fn vip_dhcp(setting: &NetworkTypeSetting<'_>) -> Checked {
    if setting.vip_dhcp_allocation && setting.user_managed_networking {
        return Err(Invalid::rule(
            "vip_dhcp_allocation",
            "cannot be on while you manage the network yourself",
            "turn it off",
        ));
    }
    if setting.vip_dhcp_allocation && setting.any_ipv6 {
        return Err(Invalid::rule(
            "vip_dhcp_allocation",
            "works with IPv4 only",
            "turn it off and give the addresses",
        ));
    }
    Ok(())
}

/// True when any of the addresses or networks is IPv6.
pub fn any_ipv6<'a>(addresses: impl IntoIterator<Item = &'a IpAddr>) -> bool {
    addresses.into_iter().any(IpAddr::is_ipv6)
}
