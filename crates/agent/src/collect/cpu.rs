//! Processors.

use super::Machine;
use muster_contract::v2::agent::inventory::Cpu;

pub fn cpu(machine: &Machine) -> Cpu {
    let text = machine.text("proc/cpuinfo");
    let value = |names: &[&str]| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines
            .find(|(name, _)| names.contains(&name.trim()))
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let flags = value(&["flags", "Features", "features"]);
    Cpu {
        count: count(&text),
        architecture: architecture(machine).into(),
        model_name: value(&["model name", "Model", "cpu model"]).into(),
        frequency: frequency(machine, &value(&["cpu MHz", "cpu MHz dynamic"])),
        flags: flags
            .split_ascii_whitespace()
            .map(|flag| flag.to_owned().into())
            .collect(),
    }
}

fn count(text: &str) -> i64 {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let count = lines
        .filter(|(name, _)| name.trim() == "processor" || name.starts_with("processor "))
        .count();
    i64::try_from(count).unwrap_or_default()
}

fn architecture(machine: &Machine) -> String {
    match machine.text("proc/sys/kernel/arch") {
        told if !told.is_empty() => told,
        _ => std::env::consts::ARCH.to_owned(),
    }
}

/// In MHz: the most it can do, or what it does now.
fn frequency(machine: &Machine, now_mhz: &str) -> f64 {
    let most_khz = machine.number("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    if most_khz > 0 {
        return most_khz as f64 / 1000.0;
    }
    now_mhz.parse().unwrap_or_default()
}
