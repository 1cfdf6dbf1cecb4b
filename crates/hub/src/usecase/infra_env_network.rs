//! Static network settings of an InfraEnv: checked when they come, turned into keyfiles when an image is made.

use crate::error::Error;
use muster_contract::v2::infra_env as wire;
use muster_domain::infra_env::{ImageType, InfraEnv};
use muster_domain::input::Invalid;
use muster_domain::input::static_network::{FIELD, MacInterface, StaticNetwork, static_network};
use muster_domain::render::static_network::{HostNetwork, from_json};
use muster_image::network::{Network, understood};

/// The stored JSON text; an empty list is an empty text. A refusal names the host by its place in the request.
pub fn network_text(items: &[wire::StaticNetworkConfig]) -> Result<String, Invalid> {
    if items.is_empty() {
        return Ok(String::new());
    }
    let plain: Vec<StaticNetwork> = items.iter().map(network).collect();
    let sorted = static_network(&plain)?;
    for (index, item) in plain.iter().enumerate() {
        if let Err(why) = understood(&item.network_yaml) {
            return Err(Invalid::rule(
                format!("{FIELD}.{index}.network_yaml"),
                format!("cannot be used for host {index}, NMState says: {why}"),
                "correct it; `nmstatectl gc FILE` on a Linux machine says the same",
            ));
        }
    }
    Ok(serde_json::to_string(&sorted).expect("plain texts always serialise"))
}

fn network(item: &wire::StaticNetworkConfig) -> StaticNetwork {
    let macs = item.mac_interface_map.iter().flatten();
    StaticNetwork {
        network_yaml: item.network_yaml.clone().unwrap_or_default(),
        mac_interface_map: macs
            .map(|entry| MacInterface {
                mac_address: entry.mac_address.clone(),
                logical_nic_name: entry.logical_nic_name.clone().unwrap_or_default(),
            })
            .collect(),
    }
}

/// What each host's directory holds.
pub fn networks_of(infra_env: &InfraEnv) -> Vec<HostNetwork> {
    from_json(&infra_env.static_network_config, |yaml| match understood(yaml) {
        Ok(Network::Keyfiles(files)) => Some(files),
        // What was stored before it was checked goes as it is.
        Ok(Network::Policy) | Err(_) => None,
    })
}

/// Captures are resolved by a program that a minimal image has only after it has fetched its system.
pub fn fits_the_image_type(infra_env: &InfraEnv) -> Result<(), Error> {
    match infra_env.image_type {
        ImageType::FullIso | ImageType::DisconnectedIso => return Ok(()),
        ImageType::MinimalIso => {}
    }
    let items: Vec<StaticNetwork> =
        serde_json::from_str(&infra_env.static_network_config).unwrap_or_default();
    let has_captures = |item: &StaticNetwork| understood(&item.network_yaml) == Ok(Network::Policy);
    if items.iter().any(has_captures) {
        return Err(Invalid::rule(
            FIELD,
            "has a policy with captures, which a minimal image cannot resolve",
            "write out the interfaces, or use the full image (full-iso)",
        )
        .into());
    }
    Ok(())
}
