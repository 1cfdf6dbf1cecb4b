//! The bulky reports kept beside a host's row, each one a JSON text.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    Inventory,
    Connectivity,
    NtpSources,
    DisksInfo,
    ImagesStatus,
    DomainNameResolutions,
    ApiVipConnectivity,
    TangConnectivity,
    FreeAddresses,
    Validations,
}

impl Report {
    pub const ALL: [Report; 10] = [
        Self::Inventory,
        Self::Connectivity,
        Self::NtpSources,
        Self::DisksInfo,
        Self::ImagesStatus,
        Self::DomainNameResolutions,
        Self::ApiVipConnectivity,
        Self::TangConnectivity,
        Self::FreeAddresses,
        Self::Validations,
    ];

    /// The word stored in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Inventory => "inventory",
            Self::Connectivity => "connectivity",
            Self::NtpSources => "ntp_sources",
            Self::DisksInfo => "disks_info",
            Self::ImagesStatus => "images_status",
            Self::DomainNameResolutions => "domain_name_resolutions",
            Self::ApiVipConnectivity => "api_vip_connectivity",
            Self::TangConnectivity => "tang_connectivity",
            Self::FreeAddresses => "free_addresses",
            Self::Validations => "validations",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|report| report.word() == word)
    }
}
