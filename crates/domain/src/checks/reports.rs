//! What agents report besides the inventory: read tolerantly, kept, and read by the checks.

use crate::host::report::Report as Kind;
use crate::inventory::{Number, report};
use muster_vocabulary::{NtpSourceState, ReplyResult, VipType, VipVerification, Word};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Everything a host has reported so far, parsed once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reports {
    /// `None`: the host has not been asked, or has not answered yet.
    pub ntp_sources: Option<Vec<NtpSource>>,
    pub connectivity: Option<Connectivity>,
    /// By disk identity.
    pub disks_info: BTreeMap<String, DiskInfo>,
    /// By image name.
    pub images_status: BTreeMap<String, ImageStatus>,
    pub domain_resolutions: Option<DomainResolutions>,
    pub api_vip_connectivity: Option<ApiVipConnectivity>,
    pub tang_connectivity: Option<TangConnectivity>,
    pub free_addresses: Vec<FreeNetwork>,
}

impl Reports {
    /// Takes in a stored text. What cannot be read counts as not reported; replies are checked before they are kept.
    pub fn read(&mut self, kind: Kind, text: &str) {
        fn parsed<T: DeserializeOwned>(text: &str) -> Option<T> {
            serde_json::from_str(text).ok()
        }
        match kind {
            Kind::NtpSources => self.ntp_sources = parsed(text),
            Kind::Connectivity => self.connectivity = parsed(text),
            Kind::DisksInfo => self.disks_info = parsed(text).unwrap_or_default(),
            Kind::ImagesStatus => self.images_status = parsed(text).unwrap_or_default(),
            Kind::DomainNameResolutions => self.domain_resolutions = parsed(text),
            Kind::ApiVipConnectivity => self.api_vip_connectivity = parsed(text),
            Kind::TangConnectivity => self.tang_connectivity = parsed(text),
            Kind::FreeAddresses => self.free_addresses = parsed(text).unwrap_or_default(),
            Kind::Inventory | Kind::Validations => {}
        }
    }
}

report!(NtpSource {
    source_name: String,
    source_state: Word<NtpSourceState>
});
report!(NtpReply {; ntp_sources: Vec<NtpSource> });

report!(Connectivity {; remote_hosts: Vec<RemoteHost> });
report!(RemoteHost {
    host_id: String;
    l2_connectivity: Vec<L2>,
    l3_connectivity: Vec<L3>,
    mtu_report: Vec<Mtu>,
});
report!(L2 {
    outgoing_ip_address: String,
    outgoing_nic: String,
    remote_ip_address: String,
    remote_mac: String,
    successful: bool,
});
report!(L3 {
    average_rtt_ms: Number,
    outgoing_nic: String,
    packet_loss_percentage: Number,
    remote_ip_address: String,
    successful: bool,
});
report!(Mtu {
    mtu_successful: bool,
    outgoing_nic: String,
    remote_ip_address: String
});

report!(DiskInfo { disk_speed: Option<DiskSpeed>, path: String });
report!(DiskSpeed {
    exit_code: i64,
    speed_ms: i64,
    tested: bool
});
report!(DiskSpeedReply {
    io_sync_duration: i64,
    path: String
});

report!(ImageStatus {
    download_rate: Number,
    /// Why the agent could not even try.
    error: String,
    name: String,
    result: Word<ReplyResult>,
    size_bytes: Number,
    time: Number
});
report!(ImagesReply {; images: Vec<ImageStatus> });

report!(DomainResolutions {; resolutions: Vec<Resolution> });
report!(Resolution {
    domain_name: String;
    cnames: Vec<String>,
    ipv4_addresses: Vec<String>,
    ipv6_addresses: Vec<String>,
});

report!(ApiVipConnectivity {
    download_error: String,
    ignition: String,
    is_success: bool,
    url: String
});

report!(TangConnectivity {
    /// Why the agent could not ask them.
    error: String,
    is_success: bool;
    tang_server_response: Vec<TangResponse>,
});
report!(TangResponse { payload: String, tang_url: String; signatures: Vec<TangSignature> });
report!(TangSignature {
    protected: String,
    signature: String
});

report!(FreeNetwork { network: String; free_addresses: Vec<String> });

report!(VerifiedVip {
    verification: Word<VipVerification>,
    vip: String,
    vip_type: Word<VipType>
});

report!(DhcpLease {
    api_vip_address: String,
    api_vip_lease: String,
    ingress_vip_address: String,
    ingress_vip_lease: String,
});

report!(UpgradeReply {
    agent_image: String,
    result: Word<ReplyResult>
});

impl Resolution {
    pub fn has_address(&self) -> bool {
        !self.ipv4_addresses.is_empty() || !self.ipv6_addresses.is_empty()
    }
}

impl TangConnectivity {
    /// The check itself failed: what it found before counts no more.
    pub fn failed(error: &str) -> Self {
        Self {
            error: error.to_owned(),
            ..Self::default()
        }
    }
}

impl ImageStatus {
    /// The check itself failed, so nothing is known about the image but why.
    pub fn failed(name: &str, error: &str) -> Self {
        Self {
            name: name.to_owned(),
            result: ReplyResult::Failure.into(),
            error: error.to_owned(),
            ..Self::default()
        }
    }

    /// Slower than this (MB/s) a pull would not end within the installation's time limits.
    pub const LEAST_RATE: f64 = 0.001;

    pub fn is_available(&self) -> bool {
        self.result == ReplyResult::Success
            && (self.size_bytes.0 == 0.0 || self.download_rate.0 >= Self::LEAST_RATE)
    }
}
