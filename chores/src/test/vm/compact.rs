//! Four machines on one network become a cluster, and come back all together.

use anyhow::{Result, ensure};

use super::clock;
use super::machine::{Firmware, First, Machine, Media};
use super::net::{self, Switch};
use super::place::{BOOT, INSTALL, Place, TALK};
use super::stage::SYSTEM;
use super::story::SYSTEM_RUNS;

const NAMES: [&str; 4] = ["compact-0", "compact-1", "compact-2", "compact-3"];
/// The last one is the worker.
const MASTERS: usize = 3;

pub fn run(place: &mut Place<'_>) -> Result<()> {
    let switch = Switch::start(place.dir(), &NAMES)?;
    let time = clock::start(place.dir())?;
    let iso = place.iso()?.display().to_string();
    let mut machines = Vec::new();
    for name in NAMES {
        let cd = Media::Cd(iso.clone());
        let mut machine = place.machine(name, Firmware::Bios, cd, switch.plug(name))?;
        machine.start(First::Disk)?;
        machines.push(machine);
    }
    free(place, &mut machines)?;
    let more = [
        "--api-vip",
        "10.0.2.100",
        "--ingress-vip",
        "10.0.2.101",
        "--ntp-sources",
        net::HOST,
    ];
    // Without a time server the hub's own clock is what agents compare theirs with.
    let more = &more[..if time.is_some() { 6 } else { 4 }];
    lend(place, &mut machines, "one", more)?;
    for machine in &machines {
        place.choose_system(machine, &place.stage.installer_args(&format!("{SYSTEM}.zst"))?)?;
    }
    place.install("one")?;
    for machine in &mut machines {
        place.until(machine, "installed", INSTALL)?;
        ensure!(machine.said().contains(SYSTEM_RUNS), "its system has never run");
    }
    place.until_cluster("one", "installed", TALK)?;
    place.delete_cluster("one")?;
    for machine in &mut machines {
        machine.restart(First::Media)?;
    }
    free(place, &mut machines)?;
    lend(place, &mut machines, "two", more)?;
    place.until_cluster("two", "ready", TALK)
}

fn free(place: &Place<'_>, machines: &mut [Machine]) -> Result<()> {
    for machine in machines {
        place.until_registered(machine, BOOT)?;
        // The network of these machines names nobody.
        place.muster(&["host", "update", &machine.uuid, "--name", &machine.spec.name])?;
        place.until(machine, "known-unbound", TALK)?;
    }
    Ok(())
}

fn lend(place: &Place<'_>, machines: &mut [Machine], cluster: &str, more: &[&str]) -> Result<()> {
    place.cluster(cluster, &["master", "worker"], more)?;
    for (at, machine) in machines.iter_mut().enumerate() {
        place.bind(machine, cluster)?;
        let role = if at < MASTERS { "master" } else { "worker" };
        place.muster(&["host", "update", &machine.uuid, "--role", role])?;
    }
    for machine in machines {
        place.until(machine, "known", TALK)?;
    }
    Ok(())
}
