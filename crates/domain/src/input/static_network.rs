//! Static network configuration: per host a network description in YAML and the MACs that pick it.
//!
//! Whether the YAML means something to NMState is for the renderer to find out; here it must be a mapping.

use serde::{Deserialize, Serialize};

use super::address;
use super::error::{Checked, Invalid};

pub const FIELD: &str = "static_network_config";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StaticNetwork {
    #[serde(default)]
    pub network_yaml: String,
    #[serde(default)]
    pub mac_interface_map: Vec<MacInterface>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MacInterface {
    pub mac_address: String,
    #[serde(default)]
    pub logical_nic_name: String,
}

/// Returns the items in a fixed order with MACs spelled alike, so that equal settings are stored equal.
pub fn static_network(items: &[StaticNetwork]) -> Checked<Vec<StaticNetwork>> {
    let mut seen_macs = std::collections::BTreeSet::new();
    let mut result = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        yaml_mapping(&format!("{FIELD}.{index}.network_yaml"), &item.network_yaml)?;
        let map = mac_map(
            &format!("{FIELD}.{index}.mac_interface_map"),
            &item.mac_interface_map,
        )?;
        for entry in &map {
            if !seen_macs.insert(entry.mac_address.clone()) {
                return Err(Invalid::rule(
                    format!("{FIELD}.{index}.mac_interface_map"),
                    format!(
                        "names the MAC {} that an earlier entry has too",
                        entry.mac_address
                    ),
                    "let every MAC pick one host only",
                ));
            }
        }
        result.push(StaticNetwork {
            network_yaml: item.network_yaml.clone(),
            mac_interface_map: map,
        });
    }
    result.sort();
    Ok(result)
}

fn yaml_mapping(field: &str, text: &str) -> Checked {
    let parsed: Result<serde_norway::Value, _> = serde_norway::from_str(text);
    let problem = match parsed {
        Ok(value) if value.is_mapping() => return Ok(()),
        Ok(_) => "is not a YAML mapping".to_owned(),
        Err(error) => match error.location() {
            Some(place) => format!("is not YAML (line {}, column {})", place.line(), place.column()),
            None => "is not YAML".to_owned(),
        },
    };
    Err(Invalid::rule(
        field,
        problem,
        "give an NMState description that starts with `interfaces:`",
    ))
}

fn mac_map(field: &str, map: &[MacInterface]) -> Checked<Vec<MacInterface>> {
    if map.is_empty() {
        return Err(Invalid::rule(
            field,
            "is empty",
            "list at least one MAC address of the host",
        ));
    }
    let mut result = Vec::with_capacity(map.len());
    for (index, entry) in map.iter().enumerate() {
        let mac_address = address::mac(&format!("{field}.{index}.mac_address"), &entry.mac_address)?;
        let nic = &entry.logical_nic_name;
        // It ends up in a substitution on the host, so nothing that a shell or sed would read otherwise.
        let right = nic.len() <= 64
            && nic
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._:@-".contains(&b));
        if !right {
            return Err(Invalid::rule(
                format!("{field}.{index}.logical_nic_name"),
                "is not an interface name",
                "use the name that stands in the YAML, like eth0",
            ));
        }
        result.push(MacInterface {
            mac_address,
            logical_nic_name: nic.clone(),
        });
    }
    result.sort();
    Ok(result)
}
