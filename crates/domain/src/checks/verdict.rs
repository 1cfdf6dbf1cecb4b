//! What a free host could become: one verdict per role, so that nobody is surprised after binding it.

use super::{disks, hardware};
use crate::host::disks::Judge;
use crate::inventory::Inventory;
use crate::requirements::{Profile, Requirements};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub profile: Profile,
    pub fits: bool,
    /// What is missing, and by how much.
    pub reasons: Vec<String>,
}

const ASKED: [Profile; 4] = [
    Profile::Master,
    Profile::Arbiter,
    Profile::Worker,
    Profile::SingleNode,
];

/// `release`: the version one has in mind, if any.
pub fn verdicts(
    inventory: Option<&Inventory>,
    requirements: &Requirements,
    release: Option<&str>,
) -> Vec<Verdict> {
    let judge = inventory.map(Judge::of);
    ASKED
        .into_iter()
        .map(|profile| verdict(judge.as_ref(), requirements, release, profile))
        .collect()
}

fn verdict(
    judge: Option<&Judge<'_>>,
    requirements: &Requirements,
    release: Option<&str>,
    profile: Profile,
) -> Verdict {
    let Some(judge) = judge else {
        return Verdict {
            profile,
            fits: false,
            reasons: vec!["the host has not reported its inventory yet".into()],
        };
    };
    let inventory = judge.inventory;
    let measured_as = if profile == Profile::Worker && inventory.is_edge() {
        Profile::EdgeWorker
    } else {
        profile
    };
    let needed = requirements.roles(release).get(measured_as);
    let disk = if inventory.disks.is_empty() {
        Some(format!(
            "a disk of {} GB is needed, the host reports none",
            needed.disk_size_gb
        ))
    } else {
        disks::disk_gap(judge, needed.disk_size_gb, release)
    };
    let gaps = [
        hardware::cpu_gap(inventory, needed.cpu_cores),
        hardware::memory_gap(inventory, needed.ram_mib, false),
        disk,
    ];
    let reasons: Vec<String> = gaps.into_iter().flatten().collect();
    Verdict {
        profile,
        fits: reasons.is_empty(),
        reasons,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{Cpu, Disk, Memory};

    fn machine(cores: i64, mib: i64, gb: i64) -> Inventory {
        Inventory {
            cpu: Some(Cpu {
                count: cores,
                architecture: "x86_64".into(),
                ..Cpu::default()
            }),
            memory: Some(Memory {
                physical_bytes: mib << 20,
                ..Memory::default()
            }),
            disks: vec![Disk {
                name: "sda".into(),
                drive_type: "SSD".into(),
                size_bytes: gb * 1_000_000_000,
                ..Disk::default()
            }],
            ..Inventory::default()
        }
    }

    fn fits(inventory: &Inventory) -> Vec<&'static str> {
        let verdicts = verdicts(Some(inventory), &Requirements::default(), Some("4.20"));
        verdicts
            .iter()
            .filter(|verdict| verdict.fits)
            .map(|verdict| verdict.profile.as_str())
            .collect()
    }

    #[test]
    fn a_disk_of_60_gb_makes_an_arbiter_and_nothing_else() {
        let inventory = machine(16, 65536, 60);
        assert_eq!(fits(&inventory), ["arbiter"]);
        let all = verdicts(Some(&inventory), &Requirements::default(), None);
        assert_eq!(
            all[0].reasons,
            ["a disk of 100 GB is needed, the largest (/dev/sda) has 60 GB (40 GB missing)"]
        );
    }

    #[test]
    fn hardware_decides_the_roles() {
        assert_eq!(
            fits(&machine(16, 65536, 200)),
            ["master", "arbiter", "worker", "single-node"]
        );
        assert_eq!(fits(&machine(4, 16384, 100)), ["master", "arbiter", "worker"]);
        assert_eq!(fits(&machine(2, 8192, 100)), ["arbiter", "worker"]);
        assert!(fits(&machine(1, 4096, 10)).is_empty());
    }

    #[test]
    fn an_inventory_without_parts_is_told_what_is_missing() {
        let nothing = verdicts(Some(&Inventory::default()), &Requirements::default(), None);
        assert!(
            nothing
                .iter()
                .all(|verdict| !verdict.fits && verdict.reasons.len() == 3)
        );
        let unknown = verdicts(None, &Requirements::default(), None);
        assert!(
            unknown
                .iter()
                .all(|verdict| !verdict.fits && verdict.reasons.len() == 1)
        );
    }
}
