//! What a host says about itself: read tolerantly (nothing is required), written back the way clients expect.

use crate::host::{Digest, Nic};
use crate::input::bounds;
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize};
use std::net::IpAddr;

/// Absent, `null` and the zero value mean the same to agents, so they mean the same here.
pub(crate) fn null_is_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A list is no object, although the reader would take it for an object's fields in order.
fn object(text: &str) -> Result<&str, String> {
    match text.trim_start().chars().next() {
        None => Err("it is empty".into()),
        Some('{') => Ok(text),
        Some(_) => Err("it is not a JSON object".into()),
    }
}

fn unreadable(why: impl std::fmt::Display) -> String {
    format!("the hub cannot read the inventory: {why}")
}

/// A wire object in which everything is optional. Fields after the semicolon are written even when empty.
macro_rules! report {
    ($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $kind:ty),* $(,)? $(; $($(#[$kept_attr:meta])* $kept:ident: $kept_kind:ty),+ $(,)?)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $(
                $(#[$attr])*
                #[serde(
                    default,
                    deserialize_with = "crate::inventory::null_is_default",
                    skip_serializing_if = "crate::inventory::is_default"
                )]
                pub $field: $kind,
            )*
            $($(
                $(#[$kept_attr])*
                #[serde(default, deserialize_with = "crate::inventory::null_is_default")]
                pub $kept: $kept_kind,
            )+)?
        }
    };
}
pub(crate) use report;

report!(Inventory {
    bmc_address: String,
    bmc_v6address: String,
    boot: Option<Boot>,
    cpu: Option<Cpu>,
    hostname: String,
    memory: Option<Memory>,
    system_vendor: Option<SystemVendor>,
    tpm_version: String,
    truncation: Option<Truncation>;
    disks: Vec<Disk>,
    gpus: Vec<Gpu>,
    interfaces: Vec<Interface>,
    routes: Vec<Route>,
});

report!(Boot {
    command_line: String,
    current_boot_mode: String,
    device_type: String,
    pxe_interface: String,
    secure_boot_state: String,
});

report!(Cpu { architecture: String, count: i64, frequency: Number, model_name: String; flags: Vec<String> });

/// A measured number, written without a fraction when it has none, as the reference does.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Deserialize)]
#[serde(transparent)]
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        // 2⁵³: the largest range in which every whole number is exact.
        if self.0.fract() == 0.0 && self.0.abs() < 9_007_199_254_740_992.0 {
            to.serialize_i64(self.0 as i64)
        } else {
            to.serialize_f64(self.0)
        }
    }
}

report!(Memory {
    physical_bytes: i64,
    physical_bytes_method: String,
    usable_bytes: i64
});

report!(SystemVendor {
    manufacturer: String,
    product_name: String,
    serial_number: String,
    #[serde(rename = "virtual")]
    is_virtual: bool,
});

report!(Truncation {
    /// `partial` or `full`.
    #[serde(rename = "type")]
    extent: String;
    reasons: Vec<String>
});

report!(Disk {
    bootable: bool,
    by_id: String,
    by_path: String,
    drive_type: String,
    has_uuid: bool,
    hctl: String,
    holders: String,
    id: String,
    io_perf: Option<IoPerf>,
    is_installation_media: bool,
    iscsi: Option<Iscsi>,
    model: String,
    name: String,
    #[serde(rename = "partitionTypes")]
    partition_types: String,
    path: String,
    removable: bool,
    serial: String,
    size_bytes: i64,
    smart: String,
    vendor: String,
    wwn: String;
    installation_eligibility: Eligibility,
});

report!(IoPerf { sync_duration: i64 });
report!(Iscsi {
    host_ip_address: String
});

/// Whether the system may be installed to a disk; the reasons are `null` on the wire when there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Eligibility {
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "is_default"
    )]
    pub eligible: bool,
    #[serde(
        default,
        deserialize_with = "null_is_default",
        serialize_with = "empty_is_null"
    )]
    pub not_eligible_reasons: Vec<String>,
}

fn empty_is_null<S: serde::Serializer>(reasons: &Vec<String>, to: S) -> Result<S::Ok, S::Error> {
    if reasons.is_empty() {
        to.serialize_none()
    } else {
        reasons.serialize(to)
    }
}

report!(Interface {
    biosdevname: String,
    client_id: String,
    has_carrier: bool,
    mac_address: String,
    mtu: i64,
    name: String,
    product: String,
    speed_mbps: i64,
    #[serde(rename = "type")]
    kind: String,
    vendor: String;
    flags: Vec<String>,
    ipv4_addresses: Vec<String>,
    ipv6_addresses: Vec<String>,
});

report!(Gpu {
    address: String,
    device_id: String,
    name: String,
    vendor: String,
    vendor_id: String
});

report!(Route {
    destination: String,
    family: i64,
    gateway: String,
    interface: String,
    metric: i64
});

impl Interface {
    /// Addresses with their network; what does not parse is left out.
    pub fn addresses(&self) -> impl Iterator<Item = IpNet> + '_ {
        self.ipv4_addresses
            .iter()
            .chain(&self.ipv6_addresses)
            .filter_map(|text| text.parse().ok())
    }

    /// Kinds a cluster can use; bridges, tunnels and container devices come and go.
    pub fn is_real(&self) -> bool {
        matches!(self.kind.as_str(), "" | "physical" | "vlan" | "bond")
    }
}

impl Route {
    pub fn is_default(&self) -> bool {
        !self.gateway.is_empty()
            && matches!(self.destination.as_str(), "0.0.0.0" | "::" | "0.0.0.0/0" | "::/0")
    }
}

impl Inventory {
    /// What the hub wrote down itself.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = object(text).map_err(unreadable)?;
        serde_json::from_str(text).map_err(|error| unreadable(bounds::place(&error)))
    }

    /// What an agent sent, which may be anything and of any size.
    pub fn reported(text: &str) -> Result<Self, String> {
        object(text).and_then(bounds::reported).map_err(unreadable)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings, numbers and lists always serialise")
    }

    pub fn cpu_count(&self) -> Option<i64> {
        self.cpu.as_ref().map(|cpu| cpu.count).filter(|count| *count > 0)
    }

    pub fn architecture(&self) -> &str {
        self.cpu.as_ref().map_or("", |cpu| &cpu.architecture)
    }

    pub fn physical_bytes(&self) -> Option<i64> {
        self.memory
            .as_ref()
            .map(|memory| memory.physical_bytes)
            .filter(|bytes| *bytes > 0)
    }

    pub fn product_name(&self) -> &str {
        self.system_vendor
            .as_ref()
            .map_or("", |vendor| &vendor.product_name)
    }

    pub fn manufacturer(&self) -> &str {
        self.system_vendor
            .as_ref()
            .map_or("", |vendor| &vendor.manufacturer)
    }

    pub fn is_vmware(&self) -> bool {
        self.manufacturer().contains("VMware")
    }

    /// A data processing unit: installed as a small worker.
    pub fn is_edge(&self) -> bool {
        matches!(self.architecture(), "aarch64" | "arm64") && self.product_name().contains("BlueField SoC")
    }

    /// Every address with its network, over all interfaces.
    pub fn addresses(&self) -> impl Iterator<Item = IpNet> + '_ {
        self.interfaces.iter().flat_map(Interface::addresses)
    }

    /// Whether the hub kept nothing of the inventory because it was too large.
    pub fn is_cut(&self, extent: &str) -> bool {
        self.truncation
            .as_ref()
            .is_some_and(|truncation| truncation.extent == extent)
    }

    pub fn keep_real_interfaces(&mut self) {
        self.interfaces.retain(Interface::is_real);
    }

    /// The part other hosts' checks need. Run it after disk eligibility was decided.
    pub fn digest(&self) -> Digest {
        let eligible = self
            .disks
            .iter()
            .filter(|disk| disk.installation_eligibility.eligible);
        Digest {
            hostname: self.hostname.clone(),
            cpus: self.cpu_count().unwrap_or_default(),
            memory_mib: self.physical_bytes().unwrap_or_default() >> 20,
            disk_gb: eligible
                .map(|disk| disk.size_bytes / 1_000_000_000)
                .max()
                .unwrap_or_default(),
            architecture: self.architecture().to_owned(),
            nics: self.interfaces.iter().map(nic).collect(),
            has_gpu: !self.gpus.is_empty(),
            virtual_machine: self
                .system_vendor
                .as_ref()
                .is_some_and(|vendor| vendor.is_virtual),
            persistent_boot: self.boot.as_ref().is_some_and(Boot::is_persistent),
            booted_build: self.boot.as_ref().map(Boot::build).unwrap_or_default().to_owned(),
            booted_version: self.boot.as_ref().and_then(Boot::version).unwrap_or_default(),
            bmc: self.bmc(),
        }
    }

    /// Agents write `0.0.0.0` and `::/0` when there is none.
    fn bmc(&self) -> Vec<IpAddr> {
        let given = [&self.bmc_address, &self.bmc_v6address];
        let plain = |text: &&String| text.split('/').next().unwrap_or_default().parse::<IpAddr>().ok();
        let addresses = given.iter().filter_map(plain);
        addresses.filter(|address| !address.is_unspecified()).collect()
    }
}

impl Boot {
    fn is_persistent(&self) -> bool {
        self.device_type == "persistent"
    }

    fn argument(&self, name: &str) -> Option<&str> {
        let mut all = self.command_line.split_whitespace();
        all.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    /// Live images carry the name of their build as the label of their file system.
    fn build(&self) -> &str {
        self.argument("coreos.liveiso").unwrap_or_default()
    }

    /// A machine that booted without media, or a small image, has arguments that say where the rest is.
    fn version(&self) -> Option<String> {
        let (_, query) = self.argument("coreos.live.rootfs_url")?.split_once('?')?;
        let version = query.split('&').find_map(|pair| pair.strip_prefix("version="))?;
        Some(version.to_owned())
    }
}

fn nic(interface: &Interface) -> Nic {
    Nic {
        name: interface.name.clone(),
        mac: interface.mac_address.clone(),
        addresses: interface
            .ipv4_addresses
            .iter()
            .chain(&interface.ipv6_addresses)
            .cloned()
            .collect(),
    }
}

#[cfg(test)]
mod tests;
