//! Virtual addresses of a cluster: at most two for API and ingress each, one per address family.

use std::net::IpAddr;

use super::address;
use super::error::{Checked, Invalid};

/// What else is set on the cluster and decides whether virtual addresses may be given.
#[derive(Clone, Copy, Debug, Default)]
pub struct VipSetting {
    pub user_managed_networking: bool,
    pub vip_dhcp_allocation: bool,
    pub user_managed_load_balancer: bool,
}

/// Parses one list; an empty address clears and is left out. `field` is `api_vips` or `ingress_vips`.
pub fn vips(field: &str, items: &[String]) -> Checked<Vec<IpAddr>> {
    let filled = items.iter().enumerate().filter(|(_, text)| !text.is_empty());
    let list: Vec<IpAddr> = filled
        .map(|(index, text)| address::ip(&format!("{field}.{index}.ip"), text))
        .collect::<Checked<_>>()?;
    if list.len() > 2 {
        return Err(Invalid::rule(
            field,
            format!("has {} addresses", list.len()),
            "give at most two",
        ));
    }
    Ok(list)
}

/// Judges both lists together with the rest of the cluster.
pub fn vip_pair(api: &[IpAddr], ingress: &[IpAddr], setting: VipSetting) -> Checked {
    if api.is_empty() && ingress.is_empty() {
        return Ok(());
    }
    if setting.user_managed_networking {
        return Err(refused(
            "cannot be set while you manage the network yourself",
            "leave both lists empty",
        ));
    }
    if setting.vip_dhcp_allocation {
        return Err(refused(
            "cannot be set while the addresses come from DHCP",
            "turn `vip_dhcp_allocation` off or leave both lists empty",
        ));
    }
    if api.len() != ingress.len() {
        let problem = format!(
            "has {} addresses but `ingress_vips` has {}",
            api.len(),
            ingress.len()
        );
        return Err(Invalid::rule(
            "api_vips",
            problem,
            "give as many API addresses as ingress addresses",
        ));
    }
    one_per_family("api_vips", api)?;
    one_per_family("ingress_vips", ingress)?;
    for (index, (a, i)) in api.iter().zip(ingress).enumerate() {
        if a.is_ipv4() != i.is_ipv4() {
            return Err(Invalid::rule(
                format!("ingress_vips.{index}.ip"),
                "is of another address family than the API address at the same place",
                "list both in the same order of families",
            ));
        }
        if a == i && !setting.user_managed_load_balancer {
            return Err(Invalid::rule(
                format!("ingress_vips.{index}.ip"),
                format!("is {i}, the API address too"),
                "give two different addresses (one shared address needs your own load balancer)",
            ));
        }
    }
    Ok(())
}

fn one_per_family(field: &str, list: &[IpAddr]) -> Checked {
    if let [first, second] = list
        && first.is_ipv4() == second.is_ipv4()
    {
        return Err(Invalid::rule(
            field,
            "has two addresses of one family",
            "give one IPv4 and one IPv6 address",
        ));
    }
    Ok(())
}

fn refused(problem: &str, fix: &str) -> Invalid {
    Invalid::rule("api_vips", problem, fix)
}
