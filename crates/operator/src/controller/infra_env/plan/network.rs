//! Which NMStateConfigs an InfraEnv chooses, and what they become.

use crate::crd::{InfraEnv, NMStateConfig};
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use muster_contract::v2::infra_env::{MacInterface, StaticNetworkConfig};

/// An error when the selector itself is wrong.
pub fn chooses(infra_env: &InfraEnv, config: &NMStateConfig) -> Result<bool, String> {
    let Some(selector) = selector(infra_env)? else {
        return Ok(false);
    };
    Ok(infra_env.namespace() == config.namespace() && selector.matches(config.labels()))
}

/// An empty selector chooses nothing here, unlike elsewhere.
fn selector(infra_env: &InfraEnv) -> Result<Option<Selector>, String> {
    let Some(wanted) = &infra_env.spec.nm_state_config_label_selector else {
        return Ok(None);
    };
    let selector =
        Selector::try_from(wanted.clone()).map_err(|error| format!("nmStateConfigLabelSelector: {error}"))?;
    Ok((!selector.selects_all()).then_some(selector))
}

/// As the hub takes it.
pub fn wire(config: &NMStateConfig) -> StaticNetworkConfig {
    let yaml = config
        .spec
        .config
        .as_ref()
        .map(|state| serde_norway::to_string(state).unwrap_or_default());
    let interface = |interface: &crate::crd::nmstate_config::Interface| MacInterface {
        mac_address: interface.mac_address.clone(),
        logical_nic_name: Some(interface.name.clone()),
    };
    StaticNetworkConfig {
        network_yaml: Some(yaml.unwrap_or_default()),
        mac_interface_map: Some(config.spec.interfaces.iter().map(interface).collect()),
    }
}
