//! Plans: which host becomes what, who starts the control plane, and where ignition comes from.

use super::super::super::event::Around;
use super::super::super::install::{self, can_do_without, missing_uploads, plan, source, start};
use super::*;
use crate::host::Phase as On;
use muster_vocabulary::InstallRole;
use proptest::prelude::*;

fn ready_hosts() -> Vec<Host> {
    let mut hosts = masters(On::Discovery);
    for (host, memory) in hosts.iter_mut().zip([16, 64, 64]) {
        (host.role, host.suggested_role) = (Role::AutoAssign, Some(Role::Master));
        host.digest.memory_mib = memory * 1024;
        host.digest.cpus = 8;
    }
    hosts
}

fn begin(
    cluster: &Cluster,
    hosts: &[Host],
    uploaded: &[InstallRole],
) -> Result<install::Start, crate::Refused> {
    let around = Around::from(noon());
    let sources = install::Sources {
        uploaded,
        installer: true,
    };
    start(cluster, hosts, sources, around, &host::event::Timers::default())
}

#[test]
fn suggested_roles_become_real_and_the_largest_master_starts_the_control_plane() {
    let mut hosts = ready_hosts();
    let mut worker = host(4, Role::AutoAssign, On::Discovery);
    worker.suggested_role = Some(Role::Worker);
    worker.digest.memory_mib = 512 * 1024;
    hosts.push(worker);
    let planned = plan(&cluster(Phase::Draft), &hosts).unwrap();
    let told: Vec<_> = planned
        .iter()
        .map(|(_, role, bootstrap)| (role.word(), *bootstrap))
        .collect();
    assert_eq!(
        told,
        [
            ("master", false),
            ("master", true),
            ("master", false),
            ("worker", false)
        ]
    );
}

#[test]
fn a_start_decides_cluster_and_hosts_at_once() {
    let started = begin(&cluster(Phase::Draft), &ready_hosts(), &[]).unwrap();
    assert_eq!(started.decision.cluster.phase, Phase::Preparing);
    assert_eq!(
        started.decision.cluster.ignition_source,
        IgnitionSource::Installer
    );
    assert!(
        started
            .hosts
            .iter()
            .all(|decision| decision.host.role == Role::Master)
    );
    assert_eq!(
        started
            .hosts
            .iter()
            .filter(|decision| decision.host.bootstrap)
            .count(),
        1
    );
}

#[test]
fn what_stands_in_the_way_is_named() {
    let mut hosts = ready_hosts();
    hosts[1].connected = false;
    let refused = plan(&cluster(Phase::Draft), &hosts).unwrap_err();
    assert_eq!(refused.code, "host-not-ready");
    assert!(
        refused.reason.contains("node-2") && refused.reason.contains("disconnected"),
        "{refused}"
    );
    let mut hosts = ready_hosts();
    hosts[0].suggested_role = None;
    assert_eq!(
        plan(&cluster(Phase::Draft), &hosts).unwrap_err().code,
        "role-not-decided"
    );
    assert_eq!(
        plan(&cluster(Phase::Draft), &[]).unwrap_err().code,
        "no-control-plane"
    );
    assert_eq!(
        plan(&cluster(Phase::Installing), &ready_hosts())
            .unwrap_err()
            .code,
        "cluster-is-installing"
    );
}

#[test]
fn ignition_comes_from_uploads_then_from_the_installer_then_from_an_endpoint() {
    let from = |cluster: &Cluster, uploaded: &[InstallRole], installer: bool| {
        source(cluster, install::Sources { uploaded, installer })
    };
    let mut cluster = cluster(Phase::Draft);
    for installer in [true, false] {
        assert_eq!(from(&cluster, &[], installer), IgnitionSource::Installer);
        assert_eq!(
            from(&cluster, &[InstallRole::Bootstrap], installer),
            IgnitionSource::Installer
        );
    }
    cluster.ignition_endpoint.url = "https://ignition.example.com".into();
    assert_eq!(from(&cluster, &[], false), IgnitionSource::Endpoint);
    // It may be meant for hosts that are added later.
    assert_eq!(from(&cluster, &[], true), IgnitionSource::Installer);
    for installer in [true, false] {
        let uploaded = [InstallRole::Master, InstallRole::Worker];
        assert_eq!(from(&cluster, &uploaded, installer), IgnitionSource::Uploaded);
    }
    cluster.ignition_endpoint.url.clear();
    cluster.kind = Kind::AddHostsCluster;
    assert_eq!(from(&cluster, &[], true), IgnitionSource::Endpoint);
    assert_eq!(
        from(&cluster, &[InstallRole::Worker], true),
        IgnitionSource::Uploaded
    );
}

#[test]
fn settings_that_only_our_own_files_carry_out_are_refused_elsewhere() {
    let mut encrypted = cluster(Phase::Draft);
    encrypted.disk_encryption.enable_on = "masters".into();
    let mut with_operator = cluster(Phase::Draft);
    with_operator.operators.push(super::super::super::Operator {
        name: "lso".into(),
        ..Default::default()
    });
    for (field, mut asked) in [("disk_encryption", encrypted), ("olm_operators", with_operator)] {
        begin(&asked, &ready_hosts(), &[]).unwrap();
        let refused = begin(&asked, &ready_hosts(), &[InstallRole::Master]).unwrap_err();
        assert_eq!(
            (refused.class, refused.code.as_str()),
            (crate::refusal::Class::Invalid, "setting-not-honoured")
        );
        assert!(
            refused.reason.contains(field) && refused.reason.contains("uploaded"),
            "{refused}"
        );
        asked.ignition_endpoint.url = "https://ignition.example.com".into();
        let none = install::Sources::default();
        let timers = host::event::Timers::default();
        let refused = start(&asked, &ready_hosts(), none, Around::from(noon()), &timers).unwrap_err();
        assert!(refused.next_action.contains(field), "{refused}");
    }
}

#[test]
fn an_uploaded_cluster_has_a_bootstrap_host_only_with_a_bootstrap_config() {
    let bootstraps = |uploaded: &[InstallRole]| {
        let started = begin(&cluster(Phase::Draft), &ready_hosts(), uploaded).unwrap();
        started
            .hosts
            .iter()
            .filter(|decision| decision.host.bootstrap)
            .count()
    };
    assert_eq!(bootstraps(&[InstallRole::Master]), 0);
    assert_eq!(bootstraps(&[InstallRole::Master, InstallRole::Bootstrap]), 1);
    let mut hosts = masters(On::Discovery);
    hosts.push(host(4, Role::Worker, On::Discovery));
    assert_eq!(missing_uploads(&hosts, &[InstallRole::Master]), ["worker"]);
}

#[test]
fn a_cluster_can_do_without_one_of_three_workers() {
    let of = |workers: u128| {
        let mut hosts = masters(On::InProgress);
        hosts.extend((0..workers).map(|n| host(10 + n, Role::Worker, On::InProgress)));
        hosts
    };
    for (workers, wanted) in [(1, true), (2, false), (3, true)] {
        let hosts = of(workers);
        assert_eq!(
            can_do_without(&tally(&hosts), hosts.last().unwrap()),
            wanted,
            "{workers}"
        );
        assert!(!can_do_without(&tally(&hosts), &hosts[0]));
    }
    let counted = count(&cluster(Phase::Installing), &of(3)).cluster;
    assert!(counted.state().can_do_without);
}

proptest! {
    #[test]
    fn the_order_of_hosts_never_changes_the_plan(
        sizes in proptest::collection::vec((1i64..4, 1i64..4), 1..7),
        turn in 0usize..7,
    ) {
        let mut hosts: Vec<Host> = sizes.iter().enumerate().map(|(n, (memory, cpus))| {
            let mut host = host(n as u128 + 1, Role::Master, On::Discovery);
            (host.digest.memory_mib, host.digest.cpus) = (*memory, *cpus);
            host
        }).collect();
        let first = plan(&cluster(Phase::Draft), &hosts).unwrap();
        let turn = turn % hosts.len();
        hosts.rotate_left(turn);
        prop_assert_eq!(&first, &plan(&cluster(Phase::Draft), &hosts).unwrap());
        prop_assert_eq!(first.iter().filter(|(_, _, bootstrap)| *bootstrap).count(), 1);
    }
}
