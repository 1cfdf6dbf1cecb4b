//! A cluster: what its creator wants, which hosts it borrows, and how far it has come.

pub mod checks;
pub mod deadline;
pub mod diagram;
pub mod event;
pub mod finalizing;
pub mod install;
pub mod installation;
pub mod joining;
pub mod lifecycle;
pub mod network;
pub mod operator;
pub mod phase;
pub mod roles;
pub mod tally;

pub use event::{Decision, Event, Timers};
pub use finalizing::FinalizingStage;
pub use installation::{ControllerLogs, Finalizing, IgnitionSource, Install, Preparation, Progress};
pub use operator::{Operator, OperatorStatus};
pub use phase::Phase;
pub use tally::Tally;

pub use muster_vocabulary::{
    CloudControllerManager, ClusterKind as Kind, ClusterStatus as Status, DiskEncryptionMode,
    HighAvailabilityMode, LoadBalancerType, NetworkType, PlatformType, PreparationStatus, RoleSet,
    VipVerification,
};

use crate::host::{Host, Role};
use crate::infra_env::Proxy;
use crate::journal::{Entry, Severity};
use crate::refusal::{Class, Refused};
use crate::{ClusterId, HostId};
use jiff::Timestamp;
use muster_vocabulary::Word;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClusterNetwork {
    pub cidr: String,
    pub host_prefix: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Vip {
    pub ip: String,
    /// Empty until somebody tried.
    #[serde(default)]
    pub verification: Word<VipVerification>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Platform {
    pub kind: PlatformType,
    pub external_name: String,
    pub external_cloud_controller: Word<CloudControllerManager>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskEncryption {
    /// Empty: of none.
    pub enable_on: Word<RoleSet>,
    pub mode: Word<DiskEncryptionMode>,
    /// A JSON list of addresses and thumbprints.
    pub tang_servers: String,
}

impl DiskEncryption {
    pub fn is_on(&self) -> bool {
        !self.enable_on.is_empty() && self.enable_on != RoleSet::None
    }

    /// Whether disks of hosts with this role are encrypted; `None`: the role decides and is not known yet.
    pub fn covers(&self, role: Role) -> Option<bool> {
        self.enable_on.known().unwrap_or(RoleSet::None).covers(role)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IgnitionEndpoint {
    pub url: String,
    pub ca_certificate: String,
}

/// What the last round of checks found, in the few answers the lifecycle needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gates {
    pub inputs: bool,
    pub vips_defined: bool,
    pub required: bool,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    pub id: ClusterId,
    /// Set by the store: the revision this value was read at.
    #[serde(skip)]
    pub revision: i64,
    pub kind: Kind,
    pub phase: Phase,
    pub since: Timestamp,
    #[serde(default)]
    pub gates: Gates,
    pub status_info: String,
    pub status_updated_at: Timestamp,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub name: String,
    pub openshift_version: String,
    pub ocp_release_image: String,
    pub base_dns_domain: String,
    pub control_plane_count: i64,
    pub high_availability_mode: Word<HighAvailabilityMode>,
    pub cluster_networks: Vec<ClusterNetwork>,
    pub service_networks: Vec<String>,
    pub machine_networks: Vec<String>,
    /// The machine networks follow the VIPs until somebody sets them.
    #[serde(default)]
    pub machine_networks_given: bool,
    pub api_vips: Vec<Vip>,
    pub ingress_vips: Vec<Vip>,
    pub vip_dhcp_allocation: bool,
    pub user_managed_networking: bool,
    pub platform: Platform,
    pub network_type: Word<NetworkType>,
    pub pull_secret: String,
    pub ssh_public_key: String,
    #[serde(default)]
    pub proxy: Proxy,
    pub additional_ntp_source: String,
    #[serde(default)]
    pub ntp_sources: String,
    #[serde(default)]
    pub operators: Vec<Operator>,
    pub hyperthreading: Word<RoleSet>,
    pub schedulable_masters: bool,
    pub cpu_architecture: String,
    pub disk_encryption: DiskEncryption,
    #[serde(default)]
    pub ignition_endpoint: IgnitionEndpoint,
    #[serde(default)]
    pub tags: String,
    pub load_balancer: Word<LoadBalancerType>,
    #[serde(default)]
    pub api_vip_dns_name: String,
    #[serde(default)]
    pub openshift_cluster_id: Option<uuid::Uuid>,
    #[serde(default)]
    pub imported: bool,
    #[serde(default)]
    pub install_config_overrides: String,
    #[serde(default)]
    pub ignored_cluster_validations: String,
    #[serde(default)]
    pub ignored_host_validations: String,
    pub org_soft_timeouts_enabled: bool,
    /// The checks' findings as the wire carries them.
    #[serde(default)]
    pub validations: String,
    #[serde(default)]
    pub connectivity_groups: String,
    /// For each reporting host, the addresses it saw answered by more than one MAC.
    #[serde(default)]
    pub collisions: BTreeMap<HostId, BTreeMap<String, Vec<String>>>,
    /// How far the current installation has come.
    #[serde(default)]
    pub install: Install,
    /// Decided when the installation starts.
    #[serde(default)]
    pub ignition_source: IgnitionSource,
    #[serde(default)]
    pub install_started_at: Option<Timestamp>,
    #[serde(default)]
    pub install_completed_at: Option<Timestamp>,
    #[serde(default)]
    pub user: String,
    #[serde(default)]
    pub org: String,
    #[serde(default)]
    pub email_domain: String,
}

// Holds a pull secret: never printed.
impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// Add-ons somebody asked for; what belongs to every cluster is not among them.
    pub fn chosen_operators(&self) -> impl Iterator<Item = &str> {
        let chosen = self.operators.iter().filter(|operator| !operator.builtin);
        chosen.map(|operator| operator.name.as_str())
    }

    /// The status word of the wire.
    pub fn status(&self) -> Status {
        phase::status(self)
    }

    pub fn single_node(&self) -> bool {
        self.control_plane_count == 1
    }

    pub fn adds_hosts(&self) -> bool {
        self.kind == Kind::AddHostsCluster
    }

    /// Arbiters and fencing keep a control plane of two alive; others have no use for them.
    pub fn fits_settings_of(&self, host: &Host) -> Result<(), Refused> {
        // Of an imported cluster nobody here knows how many there are.
        if matches!(self.control_plane_count, 0 | 2) {
            return Ok(());
        }
        let refused = |code, lacks: &str, next: &str| {
            let reason = format!(
                "Cluster {} has {} control plane hosts and takes {lacks}.",
                self.name, self.control_plane_count
            );
            Err(Refused::new(Class::Invalid, code, reason, next))
        };
        if host.role == Role::Arbiter {
            return refused(
                "role-not-supported",
                "no arbiter",
                "Give the host another role first.",
            );
        }
        if !host.tenant.fencing.is_empty() {
            return refused(
                "fencing-not-supported",
                "no fencing credentials",
                "Take the fencing credentials from the host first, or bind it to a cluster of two.",
            );
        }
        Ok(())
    }

    /// Whether hosts may still join.
    pub fn accepts_hosts(&self) -> bool {
        self.phase.accepts_hosts()
    }

    pub fn state(&self) -> crate::host::event::ClusterState {
        crate::host::event::ClusterState {
            phase: self.phase,
            adds_hosts: self.adds_hosts(),
            single_node: self.single_node(),
            with_operators: self.operators.iter().any(|operator| !operator.builtin),
            soft_timeouts: self.org_soft_timeouts_enabled,
            can_do_without: self.install.can_lose_worker,
        }
    }

    pub fn entry(&self, name: &str, severity: Severity, message: impl Into<String>) -> Entry {
        Entry::new(name, severity, message).of_cluster(self.id)
    }
}
