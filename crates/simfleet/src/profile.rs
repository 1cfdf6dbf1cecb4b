//! The kinds of machines a fleet is made of.

use crate::seed::mix;

const GB: i64 = 1_000_000_000;

/// A kind of machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    Rack,
    Edge,
    Gpu,
    Vm,
    SmallDisk,
    TooSmall,
    Arm,
}

/// What a kind of machine is made of.
#[derive(Debug)]
pub struct Spec {
    pub word: &'static str,
    /// Hostnames start with it.
    pub prefix: &'static str,
    /// Machines of this kind among 100 of a mixed fleet.
    pub weight: u64,
    pub cores: i64,
    pub architecture: &'static str,
    pub cpu_model: &'static str,
    pub mhz: f64,
    pub memory_gib: i64,
    pub manufacturer: &'static str,
    pub product: &'static str,
    pub is_virtual: bool,
    pub disks: &'static [DiskSpec],
    pub nics: u8,
    pub nic_mbps: i64,
    pub gpus: u8,
    pub tpm: &'static str,
}

#[derive(Debug)]
pub struct DiskSpec {
    pub bus: Bus,
    pub model: &'static str,
    pub vendor: &'static str,
    pub size_bytes: i64,
}

/// How a disk is attached; names and paths follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bus {
    Ata,
    Nvme,
    /// A spinning disk behind a SAS controller.
    Sas,
    /// A disk of a hypervisor.
    Virtual,
}

const SATA_960: DiskSpec = DiskSpec {
    bus: Bus::Ata,
    model: "SIMSSD_960G",
    vendor: "ATA",
    size_bytes: 960_197_124_096,
};
const NVME_1920: DiskSpec = DiskSpec {
    bus: Bus::Nvme,
    model: "SIMNVME_1T9",
    vendor: "",
    size_bytes: 1_920_383_410_176,
};
const NVME_512: DiskSpec = DiskSpec {
    bus: Bus::Nvme,
    model: "SIMNVME_512",
    vendor: "",
    size_bytes: 512_110_190_592,
};
const SAS_4T: DiskSpec = DiskSpec {
    bus: Bus::Sas,
    model: "SIMHDD_4T",
    vendor: "SIM",
    size_bytes: 4_000_787_030_016,
};
const VIRTUAL_120: DiskSpec = DiskSpec {
    bus: Bus::Virtual,
    model: "Virtual_disk",
    vendor: "VMware",
    size_bytes: 120 * GB,
};
const SATA_60: DiskSpec = DiskSpec {
    bus: Bus::Ata,
    model: "SIMSSD_60G",
    vendor: "ATA",
    size_bytes: 60_022_480_896,
};
const SATA_32: DiskSpec = DiskSpec {
    bus: Bus::Ata,
    model: "SIMDOM_32G",
    vendor: "ATA",
    size_bytes: 32_017_047_552,
};

const RACK: Spec = Spec {
    word: "rack",
    prefix: "rack",
    weight: 45,
    cores: 32,
    architecture: "x86_64",
    cpu_model: "Intel(R) Xeon(R) Gold 6242 CPU @ 2.80GHz",
    mhz: 2800.0,
    memory_gib: 128,
    manufacturer: "Dell Inc.",
    product: "PowerEdge R740",
    is_virtual: false,
    disks: &[SATA_960, SATA_960, SATA_960, SATA_960],
    nics: 4,
    nic_mbps: 10_000,
    gpus: 0,
    tpm: "2.0",
};

const EDGE: Spec = Spec {
    word: "edge",
    prefix: "edge",
    weight: 20,
    cores: 8,
    architecture: "x86_64",
    cpu_model: "Intel(R) Xeon(R) D-1736NT CPU @ 2.70GHz",
    mhz: 2700.0,
    memory_gib: 32,
    manufacturer: "Supermicro",
    product: "SYS-E302-12D",
    disks: &[NVME_512, SATA_960],
    nics: 4,
    nic_mbps: 1_000,
    tpm: "2.0",
    ..RACK
};

const GPU: Spec = Spec {
    word: "gpu",
    prefix: "gpu",
    weight: 5,
    cores: 128,
    cpu_model: "AMD EPYC 7763 64-Core Processor",
    mhz: 2450.0,
    memory_gib: 1024,
    manufacturer: "HPE",
    product: "ProLiant XL675d Gen10 Plus",
    disks: &[NVME_1920, NVME_1920],
    nics: 4,
    nic_mbps: 100_000,
    gpus: 4,
    ..RACK
};

const VM: Spec = Spec {
    word: "vm",
    prefix: "vm",
    weight: 20,
    cores: 8,
    memory_gib: 32,
    manufacturer: "VMware, Inc.",
    product: "VMware7,1",
    is_virtual: true,
    disks: &[VIRTUAL_120],
    nics: 1,
    tpm: "none",
    ..RACK
};

const SMALL_DISK: Spec = Spec {
    word: "small-disk",
    prefix: "node60",
    weight: 5,
    cores: 16,
    memory_gib: 64,
    product: "PowerEdge R440",
    disks: &[SATA_60],
    nics: 2,
    ..RACK
};

const TOO_SMALL: Spec = Spec {
    word: "too-small",
    prefix: "tiny",
    weight: 5,
    cores: 2,
    cpu_model: "Intel(R) Atom(TM) CPU E3845 @ 1.91GHz",
    mhz: 1910.0,
    memory_gib: 4,
    manufacturer: "Advantech",
    product: "UNO-2484G",
    disks: &[SATA_32],
    nics: 2,
    nic_mbps: 1_000,
    tpm: "none",
    ..RACK
};

/// Not in the mix: a machine cannot boot an image for another architecture.
const ARM: Spec = Spec {
    word: "arm",
    prefix: "arm",
    weight: 0,
    cores: 80,
    architecture: "aarch64",
    cpu_model: "Neoverse-N1",
    mhz: 3000.0,
    memory_gib: 256,
    manufacturer: "Ampere",
    product: "Mt. Collins",
    disks: &[NVME_1920, SAS_4T],
    nics: 2,
    ..RACK
};

impl Profile {
    pub const ALL: [Self; 7] = [
        Self::Rack,
        Self::Edge,
        Self::Gpu,
        Self::Vm,
        Self::SmallDisk,
        Self::TooSmall,
        Self::Arm,
    ];

    pub fn spec(self) -> &'static Spec {
        match self {
            Self::Rack => &RACK,
            Self::Edge => &EDGE,
            Self::Gpu => &GPU,
            Self::Vm => &VM,
            Self::SmallDisk => &SMALL_DISK,
            Self::TooSmall => &TOO_SMALL,
            Self::Arm => &ARM,
        }
    }

    /// The kind of a machine in a mixed fleet.
    pub fn pick(seed: u64, index: u32) -> Self {
        let mut left = mix(&[seed, u64::from(index), 4]) % 100;
        for profile in Self::ALL {
            match left.checked_sub(profile.spec().weight) {
                Some(rest) => left = rest,
                None => return profile,
            }
        }
        Self::Rack
    }
}

impl std::str::FromStr for Profile {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let words = || Self::ALL.map(|profile| profile.spec().word).join(", ");
        let found = Self::ALL.into_iter().find(|profile| profile.spec().word == word);
        found.ok_or_else(|| format!("there is no hardware profile {word:?}; there are {}", words()))
    }
}

impl std::fmt::Display for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.spec().word)
    }
}
