//! Every combination of phase and facts against the rules as they were laid down, each stated by itself.

use crate::host::rules::{self, PhaseGroup};
use crate::host::{Gates, Host, Media, Outcome, Phase, Status};
use crate::{ClusterId, HostId, HostKey, InfraEnvId};
use jiff::Timestamp;
use std::collections::BTreeSet;
use uuid::Uuid;

/// What the rules of discovery speak of.
#[derive(Debug, Clone, Copy)]
struct Facts {
    /// It polls, and can read its image.
    here: bool,
    /// An installer of an earlier tenant may still write to its disk.
    writing: bool,
    inventory: bool,
    cut: bool,
    hardware: bool,
    disk_ids: bool,
    inputs: bool,
    sufficient: bool,
    slow_disk: bool,
}

impl Facts {
    fn of(host: &Host) -> Self {
        let gates = host.gates;
        Self {
            here: host.connected && host.media != Media::Disconnected,
            writing: host.installer_may_run,
            inventory: gates.inventory,
            cut: gates.inventory_fully_truncated,
            hardware: gates.min_hardware,
            disk_ids: gates.vsphere_disks,
            inputs: gates.inputs,
            sufficient: gates.sufficient,
            slow_disk: gates.disk_speed == Outcome::Failed,
        }
    }

    /// Can be judged by what it reported.
    fn judged(self) -> bool {
        self.here && !self.writing && self.inventory && !self.cut
    }
}

type Rule = (&'static str, fn(Facts) -> bool, &'static str);

/// No order: each says all that it needs, and for everything there is exactly one.
const LENT: &[Rule] = &[
    ("13", |f| !f.here, "disconnected"),
    (
        "a disk that may be written is not offered",
        |f| f.here && f.writing,
        "discovering",
    ),
    (
        "29",
        |f| f.here && !f.writing && !f.inventory && !f.cut,
        "discovering",
    ),
    (
        "an inventory that was cut off",
        |f| f.here && !f.writing && f.cut,
        "insufficient",
    ),
    ("30", |f| f.judged() && !f.hardware, "insufficient"),
    (
        "31",
        |f| f.judged() && f.hardware && f.disk_ids && !f.inputs,
        "pending-for-input",
    ),
    (
        "32",
        |f| f.judged() && f.hardware && (!f.disk_ids || (f.inputs && !f.sufficient)),
        "insufficient",
    ),
    (
        "7",
        |f| f.judged() && all_but_speed(f) && f.slow_disk,
        "insufficient",
    ),
    (
        "33, 34",
        |f| f.judged() && all_but_speed(f) && !f.slow_disk,
        "known",
    ),
];

const FREE: &[Rule] = &[
    ("39, and media that are lost", |f| !f.here, "disconnected-unbound"),
    (
        "a disk that may be written is not offered",
        |f| f.here && f.writing,
        "discovering-unbound",
    ),
    (
        "40",
        |f| f.here && !f.writing && !f.inventory && !f.cut,
        "discovering-unbound",
    ),
    (
        "an inventory that was cut off",
        |f| f.here && !f.writing && f.cut,
        "insufficient-unbound",
    ),
    ("41", |f| f.judged() && !f.hardware, "insufficient-unbound"),
    ("43", |f| f.judged() && f.hardware, "known-unbound"),
];

fn all_but_speed(facts: Facts) -> bool {
    facts.hardware && facts.disk_ids && facts.inputs && facts.sufficient
}

/// What other phases are called, whatever else is true.
const PHASES: [(Phase, &str); 17] = [
    (Phase::Binding, "binding"),
    (Phase::Unbinding, "unbinding"),
    (Phase::ReturnPending, "unbinding-pending-user-action"),
    (Phase::Reclaiming, "reclaiming"),
    (Phase::ReclaimRebooting, "reclaiming-rebooting"),
    (Phase::Preparing, "preparing-for-installation"),
    (Phase::Prepared, "preparing-successful"),
    (Phase::PrepareFailed, "preparing-failed"),
    (Phase::Installing, "installing"),
    (Phase::InProgress, "installing-in-progress"),
    (Phase::BootFix, "installing-pending-user-action"),
    (Phase::Installed, "installed"),
    (Phase::Added, "added-to-existing-cluster"),
    (Phase::Failed, "error"),
    (Phase::Cancelled, "cancelled"),
    (Phase::Resetting, "resetting"),
    (Phase::ResetPending, "resetting-pending-user-action"),
];

fn expected(host: &Host) -> &'static str {
    if host.phase != Phase::Discovery {
        let mut named = PHASES.iter().filter(|(phase, _)| *phase == host.phase);
        return named.next().expect("every phase has a word").1;
    }
    let rules = if host.is_free() { FREE } else { LENT };
    let facts = Facts::of(host);
    let fitting: Vec<&Rule> = rules.iter().filter(|(_, applies, _)| applies(facts)).collect();
    match fitting[..] {
        [(_, _, word)] => word,
        ref all => panic!(
            "{facts:?}: {:?}",
            all.iter().map(|rule| rule.0).collect::<Vec<_>>()
        ),
    }
}

/// All 64 combinations of what is true or not, with every outcome of the two tests.
fn all_gates() -> impl Iterator<Item = Gates> {
    const OUTCOMES: [Outcome; 3] = [Outcome::Unknown, Outcome::Passed, Outcome::Failed];
    (0..64_u8).flat_map(|bits| {
        let is = move |bit: u8| bits & (1 << bit) != 0;
        OUTCOMES.into_iter().flat_map(move |disk_speed| {
            OUTCOMES.into_iter().map(move |images| Gates {
                inventory: is(0),
                inventory_fully_truncated: is(1),
                min_hardware: is(2),
                inputs: is(3),
                vsphere_disks: is(4),
                sufficient: is(5),
                disk_speed,
                images,
            })
        })
    })
}

#[test]
fn every_combination_of_facts_has_the_word_of_exactly_one_rule() {
    let key = HostKey {
        infra_env: InfraEnvId(Uuid::from_u128(1)),
        host: HostId(Uuid::from_u128(2)),
    };
    let mut host = Host::arriving(key, None, Timestamp::UNIX_EPOCH);
    let (mut seen, mut count) = (BTreeSet::new(), 0_u32);
    for bits in 0..8_u8 {
        host.cluster = (bits & 1 != 0).then_some(ClusterId(Uuid::from_u128(3)));
        host.connected = bits & 2 != 0;
        host.installer_may_run = bits & 4 != 0;
        for media in [Media::Unset, Media::Connected, Media::Disconnected] {
            host.media = media;
            for phase in Phase::ALL {
                host.phase = phase;
                for gates in all_gates() {
                    host.gates = gates;
                    let status = host.status();
                    assert_eq!(status.word(), expected(&host), "{phase:?} {:?}", Facts::of(&host));
                    seen.insert(status);
                    count += 1;
                }
            }
        }
    }
    assert_eq!(count, 8 * 3 * 18 * 64 * 9);
    let never: Vec<_> = Status::ALL
        .iter()
        .filter(|status| !seen.contains(status))
        .collect();
    assert_eq!(never, [&Status::Disabled, &Status::DisabledUnbound]);
}

#[test]
fn what_clients_read_from_the_word_is_what_the_rules_decide_from_the_phase() {
    let key = HostKey {
        infra_env: InfraEnvId(Uuid::from_u128(1)),
        host: HostId(Uuid::from_u128(2)),
    };
    let mut host = Host::arriving(key, None, Timestamp::UNIX_EPOCH);
    for phase in Phase::ALL {
        host.phase = phase;
        let tenants = [None, Some(ClusterId(Uuid::from_u128(3)))];
        for cluster in tenants {
            if cluster.is_none() && phase.needs_cluster() || cluster.is_some() && phase.is_returning() {
                continue;
            }
            host.cluster = cluster;
            for gates in all_gates() {
                host.gates = gates;
                let (status, group) = (host.status(), rules::group(phase));
                let free = group == PhaseGroup::Discovery && host.is_free();
                assert_eq!(status.is_unbound(), free, "{status}");
                assert_eq!(status.is_returning(), group == PhaseGroup::Returning, "{status}");
                assert_eq!(status.may_be_edited(), rules::editable(&host).is_ok(), "{status}");
                assert_eq!(status.is_writing(), group == PhaseGroup::Writing, "{status}");
                assert_eq!(
                    status.belongs_to_an_installation(),
                    rules::is_being_installed(&host),
                    "{status}"
                );
            }
        }
    }
}
