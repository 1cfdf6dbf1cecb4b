//! The state of a cluster's hosts, counted once per reconcile.

use super::Cluster;
use crate::checks::facts::effective_role;
use crate::host::{Host, Role, Stage, Status, stage};

/// Hosts of one role, by what they are doing. Every host is in exactly one of the groups after `expected`,
/// except that `installing` counts everyone who is still on the way or has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Group {
    pub expected: usize,
    /// Ready, its tests not begun yet.
    pub known: usize,
    pub preparing: usize,
    pub prepared: usize,
    pub prepare_failed: usize,
    /// None of the above and not installing either: lost, unfit, or taken away.
    pub elsewhere: usize,
    /// Prepared, installing, waiting for its boot order to be fixed, or installed.
    pub installing: usize,
    pub installed: usize,
    pub boot_fix: usize,
    pub failed: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// The bootstrap host included.
    pub masters: Group,
    pub arbiters: Group,
    pub workers: Group,
    pub hosts: usize,
    /// Stages that hosts have reached, and all that they will go through.
    pub stages_done: usize,
    pub stages: usize,
    /// Masters that can be switched off by the others.
    pub fenced: usize,
    /// Of a cluster's only host, with prefix length.
    pub node_addresses: Vec<String>,
}

impl Tally {
    pub fn of(hosts: &[&Host]) -> Self {
        let mut tally = Tally::default();
        for host in hosts {
            tally.add(host, hosts.len() == 1);
        }
        tally.node_addresses = match hosts {
            [only] => addresses(only),
            _ => Vec::new(),
        };
        tally
    }

    fn add(&mut self, host: &Host, alone: bool) {
        self.hosts += 1;
        let order = stage::order(host, alone);
        let reached = |stage| order.iter().position(|&known| known == stage);
        self.stages += order.len();
        self.stages_done += match host.progress.stage {
            None => 0,
            // A day-2 host is done as soon as it reboots, and then its stage is none of its list.
            Some(Stage::Done) => order.len(),
            Some(stage) => reached(stage).map_or(0, |index| index + 1),
        };
        let group = match effective_role(host.role, host.suggested_role) {
            Role::Master => {
                self.fenced += usize::from(!host.tenant.fencing.is_empty());
                &mut self.masters
            }
            Role::Arbiter => &mut self.arbiters,
            // A host without a role yet is nobody the cluster could stand on.
            Role::Worker | Role::AutoAssign => &mut self.workers,
        };
        group.add(host.status());
    }

    fn groups(&self) -> [&Group; 3] {
        [&self.masters, &self.arbiters, &self.workers]
    }

    pub fn sum(&self, count: impl Fn(&Group) -> usize) -> usize {
        self.groups().into_iter().map(count).sum()
    }

    /// Enough hosts are where `count` looks for the cluster to work: all of the control plane and, if more than one
    /// worker was wanted, two of them.
    pub fn is_enough(&self, cluster: &Cluster, count: impl Fn(&Group) -> usize) -> bool {
        let wanted = usize::try_from(cluster.control_plane_count).unwrap_or_default();
        if cluster.single_node() {
            return count(&self.masters) >= 1;
        }
        let masters = wanted.max(self.masters.expected);
        // Two masters need somebody who decides between them, or must be able to switch each other off.
        let judged = masters > 2 || self.arbiters.expected > 0 || self.fenced >= 2;
        judged
            && masters >= 2
            && count(&self.masters) >= masters
            && count(&self.arbiters) >= self.arbiters.expected
            && (self.workers.expected < 2 || count(&self.workers) >= 2)
    }

    pub fn enough_installing(&self, cluster: &Cluster) -> bool {
        self.is_enough(cluster, |group| group.installing)
    }

    pub fn enough_installed(&self, cluster: &Cluster) -> bool {
        self.is_enough(cluster, |group| group.installed)
    }

    /// Nobody is on the way any more: each host has arrived or failed.
    pub fn all_ended(&self) -> bool {
        self.sum(|group| group.installed + group.failed) == self.hosts
    }

    /// Whether one more worker may fail.
    pub fn can_lose_worker(&self) -> bool {
        self.workers.expected < 2 || self.workers.installing > 2
    }

    /// How far the hosts are together, in percent of all their stages.
    pub fn percent(&self) -> i64 {
        match self.stages {
            0 => 0,
            stages => i64::try_from(self.stages_done * 100 / stages).unwrap_or_default(),
        }
    }
}

fn addresses(host: &Host) -> Vec<String> {
    let nics = host.digest.nics.iter();
    nics.flat_map(|nic| nic.addresses.iter().cloned()).collect()
}

impl Group {
    fn add(&mut self, status: Status) {
        self.expected += 1;
        match status {
            Status::Known => self.known += 1,
            Status::PreparingForInstallation => self.preparing += 1,
            Status::PreparingSuccessful => {
                self.prepared += 1;
                self.installing += 1;
            }
            Status::PreparingFailed => self.prepare_failed += 1,
            Status::Installing | Status::InstallingInProgress => self.installing += 1,
            Status::InstallingPendingUserAction => {
                self.boot_fix += 1;
                self.installing += 1;
            }
            Status::Installed | Status::AddedToExistingCluster => {
                self.installed += 1;
                self.installing += 1;
            }
            Status::Error => self.failed += 1,
            Status::Discovering
            | Status::Disconnected
            | Status::Insufficient
            | Status::Disabled
            | Status::PendingForInput
            | Status::ResettingPendingUserAction
            | Status::Cancelled
            | Status::Resetting
            | Status::DiscoveringUnbound
            | Status::KnownUnbound
            | Status::DisconnectedUnbound
            | Status::InsufficientUnbound
            | Status::DisabledUnbound
            | Status::Binding
            | Status::Unbinding
            | Status::UnbindingPendingUserAction
            | Status::Reclaiming
            | Status::ReclaimingRebooting => self.elsewhere += 1,
        }
    }
}
