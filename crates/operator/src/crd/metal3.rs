//! BareMetalHost and PreprovisioningImage of metal3: the parts that are read here. Everything else is kept as it came,
//! and only written by merge patches of what differs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A machine with a power controller.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "metal3.io",
    version = "v1alpha1",
    kind = "BareMetalHost",
    plural = "baremetalhosts",
    namespaced,
    schema = "disabled",
    status = "BareMetalHostStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct BareMetalHostSpec {
    #[serde(default, rename = "bootMACAddress", skip_serializing_if = "String::is_empty")]
    pub boot_mac_address: String,
    #[serde(default)]
    pub online: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmc: Option<Bmc>,
    /// What is booted or written to disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// What is done instead of writing an image to disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_deploy: Option<CustomDeploy>,
    /// `metadata`, or `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automated_cleaning_mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_device_hints: Option<RootDeviceHints>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The power controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bmc {
    #[serde(default)]
    pub address: String,
    /// Secret of the same namespace with `username` and `password`.
    #[serde(default)]
    pub credentials_name: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_certificate_verification: bool,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Image {
    #[serde(default)]
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CustomDeploy {
    #[serde(default)]
    pub method: String,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Which disk is meant; all that are given must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RootDeviceHints {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hctl: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_size_gigabytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    /// Among others `wwnWithExtension` and `wwnVendorExtension`, which no inventory contains.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl RootDeviceHints {
    /// Those that say something. Templates write empty texts for what nobody filled in, and every disk has zero bytes.
    pub fn given(&self) -> Self {
        let text = |hint: &Option<String>| hint.clone().filter(|text| !text.is_empty());
        let says = |value: &Value| !value.is_null() && value.as_str() != Some("");
        let rest = self.rest.iter().filter(|(_, value)| says(value));
        Self {
            device_name: text(&self.device_name),
            hctl: text(&self.hctl),
            model: text(&self.model),
            vendor: text(&self.vendor),
            serial_number: text(&self.serial_number),
            min_size_gigabytes: self.min_size_gigabytes.filter(|size| *size != 0),
            wwn: text(&self.wwn),
            rotational: self.rotational,
            rest: rest.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }
}

/// As it came, word by word: it is saved for a restore, and newer versions have fields that nobody knows here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BareMetalHostStatus(pub Value);

impl BareMetalHost {
    /// What the bare metal operator does with the machine; empty before it has begun.
    pub fn state(&self) -> &str {
        self.status_text("/provisioning/state")
    }

    pub fn operational_status(&self) -> &str {
        self.status_text("/operationalStatus")
    }

    /// Empty until the bare metal operator knows what the machine is made of.
    pub fn hardware_hostname(&self) -> &str {
        self.status_text("/hardware/hostname")
    }

    fn status_text(&self, pointer: &str) -> &str {
        let status = self.status.as_ref();
        status
            .and_then(|status| status.0.pointer(pointer)?.as_str())
            .unwrap_or_default()
    }
}

/// Values of `status.provisioning.state`.
pub mod state {
    pub const READY: &str = "ready";
    pub const AVAILABLE: &str = "available";
    pub const PROVISIONING: &str = "provisioning";
    pub const PROVISIONED: &str = "provisioned";
    pub const DEPROVISIONING: &str = "deprovisioning";
    pub const EXTERNALLY_PROVISIONED: &str = "externally provisioned";
    pub const POWERING_OFF: &str = "powering off before delete";
    pub const DELETING: &str = "deleting";
}

/// A value of `automatedCleaningMode`: nothing is wiped, and no image is booted for it.
pub const NO_CLEANING: &str = "disabled";

/// The deploy step by which Ironic's agent starts discovery.
pub const START_DISCOVERY: &str = "start_assisted_install";

/// A value of `status.operationalStatus`: the bare metal operator has let go of the machine.
pub const DETACHED: &str = "detached";

/// An image that machines boot before they are provisioned. The bare metal operator makes one for each BareMetalHost,
/// with its name and labels.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "metal3.io",
    version = "v1alpha1",
    kind = "PreprovisioningImage",
    plural = "preprovisioningimages",
    namespaced,
    schema = "disabled",
    status = "PreprovisioningImageStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct PreprovisioningImageSpec {
    /// Secret with network settings that the image should contain.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub network_data_name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// `iso`, `initrd`, or both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept_formats: Vec<String>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreprovisioningImageStatus {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image_url: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel_url: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub extra_kernel_params: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// The Secret with network settings that the image was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretStatus>,
    #[serde(default)]
    pub conditions: Vec<Condition>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A Secret in the version that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretStatus {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_known_here_survives() {
        let object = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": {"name": "n"},
            "spec": {
                "online": false, "bootMACAddress": "AA:BB", "bootMode": "UEFI",
                "bmc": {"address": "redfish://x", "credentialsName": "c", "future": 1},
                "image": {"url": "u", "checksum": "s"}, "customDeploy": {"method": "m", "future": [1]},
                "rootDeviceHints": {"wwnWithExtension": "w"},
            },
            "status": {"provisioning": {"state": "ready", "future": {"a": null}}, "operationalStatus": "OK"},
        });
        let host: BareMetalHost = serde_json::from_value(object.clone()).unwrap();
        assert_eq!((host.state(), host.operational_status()), ("ready", "OK"));
        assert_eq!(serde_json::to_value(&host).unwrap(), object);
    }

    #[test]
    fn a_host_that_nobody_has_reconciled_has_no_state() {
        let host: BareMetalHost = serde_json::from_value(json!({ "metadata": {}, "spec": {} })).unwrap();
        assert_eq!((host.state(), host.operational_status()), ("", ""));
    }
}
