//! Which host becomes what: the smallest hosts that will do are masters, the rest work.

use crate::HostId;
use crate::checks::facts::{ClusterFacts, Peer};
use crate::host::{Digest, Role};
use crate::requirements::{MEMORY_SLACK_MIB, Profile, Requirements};
use std::collections::BTreeMap;

/// A suggestion for every host, or `None` while a host's hardware is unknown. Chosen roles are kept. The order of
/// `peers` does not matter.
pub fn suggest(
    cluster: &ClusterFacts,
    peers: &[Peer<'_>],
    needs: &Requirements,
) -> Option<BTreeMap<HostId, Role>> {
    if peers.iter().any(|peer| !peer.has_inventory) {
        return None;
    }
    let mut roles: BTreeMap<HostId, Role> = peers
        .iter()
        .filter(|peer| peer.role != Role::AutoAssign)
        .map(|peer| (peer.id, peer.role))
        .collect();
    let open = by_fitness(peers);
    if cluster.day_two {
        roles.extend(open.iter().map(|peer| (peer.id, Role::Worker)));
        return Some(roles);
    }
    let wanted = usize::try_from(cluster.control_plane_count).unwrap_or_default();
    let fenced = peers.iter().filter(|peer| peer.has_fencing).count() >= 2;
    let chosen = |role| peers.iter().filter(|peer| peer.role == role).count();
    let mut masters = wanted.saturating_sub(chosen(Role::Master));
    let mut arbiters = usize::from(wanted == 2 && !fenced).saturating_sub(chosen(Role::Arbiter));
    for peer in open {
        let can = |role| is_enough(peer.digest, cluster, role, needs);
        let role = if masters > 0 && can(Role::Master) {
            masters -= 1;
            Role::Master
        } else if masters == 0 && arbiters > 0 && can(Role::Arbiter) {
            arbiters -= 1;
            Role::Arbiter
        } else {
            Role::Worker
        };
        roles.insert(peer.id, role);
    }
    Some(roles)
}

/// Hosts without a chosen role: those without accelerators first, then the smallest, then by id.
fn by_fitness<'p, 'a>(peers: &'p [Peer<'a>]) -> Vec<&'p Peer<'a>> {
    let mut open: Vec<&Peer<'_>> = peers
        .iter()
        .filter(|peer| peer.role == Role::AutoAssign)
        .collect();
    open.sort_by_key(|peer| (peer.digest.has_gpu, weight(peer.digest), peer.id));
    open
}

/// How much more than a master needs, in thousandths of a core: a core counts 1, a GiB 0.1, a GB of disk 0.004.
fn weight(digest: &Digest) -> i64 {
    1000 * (digest.cpus - 4) + 100 * (digest.memory_mib - 16 * 1024) / 1024 + 4 * (digest.disk_gb - 100)
}

fn is_enough(digest: &Digest, cluster: &ClusterFacts, role: Role, needs: &Requirements) -> bool {
    let needed = needs
        .roles(cluster.release())
        .get(Profile::of(role, cluster.is_single_node(), false));
    digest.cpus >= needed.cpu_cores
        && digest.memory_mib >= needed.ram_mib - MEMORY_SLACK_MIB
        && digest.disk_gb >= needed.disk_size_gb
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn id(n: u128) -> HostId {
        HostId(Uuid::from_u128(n))
    }

    fn digest(cpus: i64, gib: i64, disk_gb: i64, has_gpu: bool) -> Digest {
        Digest {
            cpus,
            memory_mib: gib * 1024,
            disk_gb,
            has_gpu,
            ..Digest::default()
        }
    }

    fn peer(n: u128, digest: &Digest) -> Peer<'_> {
        Peer {
            id: id(n),
            name: "",
            role: Role::AutoAssign,
            suggested_role: None,
            has_inventory: true,
            digest,
            connectivity: None,
            free_addresses: &[],
            clock_skew_seconds: None,
            ready_to_install: true,
            has_fencing: false,
        }
    }

    fn cluster(count: i64) -> ClusterFacts {
        ClusterFacts {
            control_plane_count: count,
            ..ClusterFacts::default()
        }
    }

    fn words(roles: &BTreeMap<HostId, Role>) -> Vec<&'static str> {
        roles.values().map(|role| role.word()).collect()
    }

    #[test]
    fn the_smallest_hosts_that_will_do_become_masters() {
        let sizes = [
            digest(64, 256, 900, false),
            digest(4, 16, 120, true),
            digest(8, 32, 120, false),
            digest(2, 8, 120, false),
            digest(4, 16, 100, false),
            digest(16, 64, 120, false),
        ];
        let peers: Vec<Peer<'_>> = sizes
            .iter()
            .enumerate()
            .map(|(at, digest)| peer(at as u128, digest))
            .collect();
        let roles = suggest(&cluster(3), &peers, &Requirements::default()).unwrap();
        assert_eq!(
            words(&roles),
            ["worker", "worker", "master", "worker", "master", "master"]
        );
    }

    #[test]
    fn two_masters_want_an_arbiter_unless_they_fence_each_other() {
        let big = digest(8, 32, 200, false);
        let small = digest(2, 8, 60, false);
        let mut peers = vec![peer(1, &big), peer(2, &big), peer(3, &small), peer(4, &big)];
        let roles = suggest(&cluster(2), &peers, &Requirements::default()).unwrap();
        assert_eq!(words(&roles), ["master", "master", "worker", "arbiter"]);
        for peer in &mut peers[..2] {
            peer.has_fencing = true;
        }
        let roles = suggest(&cluster(2), &peers, &Requirements::default()).unwrap();
        assert_eq!(words(&roles), ["master", "master", "worker", "worker"]);
    }

    #[test]
    fn chosen_roles_are_kept_and_counted() {
        let big = digest(8, 32, 200, false);
        let mut peers: Vec<Peer<'_>> = (0..4).map(|n| peer(n, &big)).collect();
        peers[3].role = Role::Master;
        peers[0].role = Role::Worker;
        let roles = suggest(&cluster(2), &peers, &Requirements::default()).unwrap();
        assert_eq!(words(&roles), ["worker", "master", "arbiter", "master"]);
    }

    #[test]
    fn hosts_that_join_a_running_cluster_work() {
        let big = digest(8, 32, 200, false);
        let facts = ClusterFacts {
            day_two: true,
            ..cluster(3)
        };
        let roles = suggest(&facts, &[peer(1, &big)], &Requirements::default()).unwrap();
        assert_eq!(words(&roles), ["worker"]);
    }

    #[test]
    fn nothing_is_suggested_before_all_hardware_is_known() {
        let big = digest(8, 32, 200, false);
        let unknown = Peer {
            has_inventory: false,
            ..peer(2, &big)
        };
        assert!(suggest(&cluster(3), &[peer(1, &big), unknown], &Requirements::default()).is_none());
    }

    proptest! {
        #[test]
        fn the_order_of_rows_never_changes_a_role(
            sizes in proptest::collection::vec((1i64..64, 1i64..256, 10i64..2000, any::<bool>()), 0..12),
            turn in 0usize..12,
            count in 1i64..5,
        ) {
            let digests: Vec<Digest> =
                sizes.iter().map(|(cpus, gib, gb, gpu)| digest(*cpus, *gib, *gb, *gpu)).collect();
            let mut peers: Vec<Peer<'_>> = digests.iter().enumerate().map(|(at, digest)| peer(at as u128, digest)).collect();
            let first = suggest(&cluster(count), &peers, &Requirements::default());
            peers.reverse();
            if !peers.is_empty() {
                let turn = turn % peers.len();
                peers.rotate_left(turn);
            }
            prop_assert_eq!(&first, &suggest(&cluster(count), &peers, &Requirements::default()));
            let masters = first.unwrap().values().filter(|role| **role == Role::Master).count();
            prop_assert!(masters <= usize::try_from(count).unwrap());
        }
    }
}
