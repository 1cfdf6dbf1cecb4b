//! The whole: machines boot the discovery image Muster made, are lent, installed, and come back. QEMU without KVM.
//!
//! `MUSTER_TEST_VM=iso,uefi` runs only these scenarios.

mod bases;
mod clock;
mod compact;
mod faults;
mod files;
mod machine;
mod net;
mod place;
mod stage;
mod story;

use std::sync::mpsc;
use std::time::Instant;

use anyhow::{Result, bail};

use super::house::House;
use crate::process;
use place::Place;
use stage::Stage;

struct Scenario {
    name: &'static str,
    about: &'static str,
    machines: usize,
    run: fn(&mut Place<'_>) -> Result<()>,
}

/// The longest and the widest first, so that nothing waits for them at the end.
const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "network",
        about: "the cable is out for five minutes, and again during the download",
        // It mostly waits.
        machines: 0,
        run: faults::network,
    },
    Scenario {
        name: "compact",
        about: "four machines at once, three masters and a worker",
        machines: 4,
        run: compact::run,
    },
    Scenario {
        name: "uefi",
        about: "UEFI",
        machines: 1,
        run: story::uefi,
    },
    Scenario {
        name: "addressed",
        about: "the image carries the machine's network, as NMState describes it",
        machines: 1,
        run: story::addressed,
    },
    Scenario {
        name: "faults",
        about: "damaged image, power cut, hub killed twice",
        machines: 1,
        run: faults::run,
    },
    Scenario {
        name: "reclaim",
        about: "taken back by the installed system itself",
        machines: 1,
        run: story::reclaim,
    },
    Scenario {
        name: "ipxe",
        about: "discovery by iPXE, the hub decides what boots",
        machines: 1,
        run: story::ipxe,
    },
    Scenario {
        name: "generic",
        about: "a base image that knows nothing of Muster gets room behind its initrd; BIOS and UEFI",
        machines: 1,
        run: story::generic,
    },
    Scenario {
        name: "minimal",
        about: "a base image as CoreOS has them, without its root file system, read from the hub",
        machines: 1,
        run: story::minimal,
    },
    Scenario {
        name: "media",
        about: "the CD-ROM is an HTTP address of the hub",
        machines: 1,
        run: story::media,
    },
    Scenario {
        name: "iso",
        about: "the CD-ROM is a file",
        machines: 1,
        run: story::iso,
    },
];

/// Which scenarios to run, when not all.
const CHOSEN: &str = "MUSTER_TEST_VM";

pub fn run(house: &mut House) -> Result<()> {
    let chosen = chosen(&std::env::var(CHOSEN).unwrap_or_default())?;
    let stage = Stage::set(house)?;
    let failed = play(&stage, &chosen);
    if process::interrupted() {
        bail!("interrupted");
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn chosen(wish: &str) -> Result<Vec<&'static Scenario>> {
    let names: Vec<&str> = wish.split(',').filter(|name| !name.is_empty()).collect();
    let known = |name: &&&str| !SCENARIOS.iter().any(|scenario| scenario.name == **name);
    if let Some(unknown) = names.iter().find(known) {
        bail!("{CHOSEN}: there is no scenario {unknown:?}");
    }
    let wanted = |scenario: &&Scenario| names.is_empty() || names.contains(&scenario.name);
    Ok(SCENARIOS.iter().filter(wanted).collect())
}

/// Runs as many at once as the processors can bear: machines wait most of their time, but boot at full speed.
fn play(stage: &Stage, scenarios: &[&'static Scenario]) -> Vec<&'static str> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let room = (cores * 5 / 2).max(4);
    let (done, ended) = mpsc::channel::<(&'static str, usize, bool)>();
    let mut failed = Vec::new();
    std::thread::scope(|scope| {
        let mut used = 0;
        let mut running = 0;
        let mut settle = |used: &mut usize, running: &mut usize| {
            if let Ok((name, machines, good)) = ended.recv() {
                *used -= machines;
                *running -= 1;
                if !good {
                    failed.push(name);
                }
            }
        };
        for scenario in scenarios {
            while used + scenario.machines > room && running > 0 {
                settle(&mut used, &mut running);
            }
            if process::interrupted() {
                break;
            }
            used += scenario.machines;
            running += 1;
            let done = done.clone();
            scope.spawn(move || {
                let good = perform(stage, scenario);
                // The receiver lives until all are done.
                let _ = done.send((scenario.name, scenario.machines, good));
            });
        }
        while running > 0 {
            settle(&mut used, &mut running);
        }
    });
    failed
}

fn perform(stage: &Stage, scenario: &Scenario) -> bool {
    let started = Instant::now();
    println!("  {}: {}", scenario.name, scenario.about);
    let mut evidence = String::new();
    let opened = Place::open(
        stage,
        scenario.name,
        story::base(scenario.name),
        story::infra_env(scenario.name),
    );
    let result = opened.and_then(|mut place| {
        (scenario.run)(&mut place).inspect_err(|_| evidence = place.evidence())?;
        place.close()
    });
    let seconds = started.elapsed().as_secs_f64();
    match &result {
        Ok(()) => println!("  {} passed in {seconds:.1} s", scenario.name),
        Err(error) => println!(
            "{evidence}\n\n  {} FAILED after {seconds:.1} s: {error:#}\n",
            scenario.name
        ),
    }
    result.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_that_does_not_exist_is_refused_and_no_wish_means_all() {
        assert_eq!(chosen("").unwrap().len(), SCENARIOS.len());
        assert_eq!(chosen("iso,uefi").unwrap().len(), 2);
        assert!(chosen("isp").is_err());
    }
}
