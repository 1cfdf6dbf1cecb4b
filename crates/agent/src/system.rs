//! The installed side of Muster's own system: it tells the hub that it runs, and comes back when it is wanted.
//!
//! Other systems have Ignition and systemd for this: the hub adds the unit `muster-installed.service` to the configs it
//! hands out. This one has neither. It takes the same files from the same config and does what the unit would do. Where
//! a cluster has a controller that starts an agent on a host to reclaim it, this system is its own: it keeps asking the
//! hub, and follows no order but the one to boot discovery again.

use crate::clock::{Backoff, Clock};
use crate::collect::Machine;
use crate::hub::{CallError, Ids};
use crate::ignition::Config;
use crate::install::area;
use crate::note;
use crate::runner::Agent;
use crate::settings::Settings;
use anyhow::Context as _;
use muster_contract::v2::BASE;
use muster_vocabulary::Stage;
use std::sync::Arc;
use std::time::Duration;

/// On the kernel's command line of images that are written to disks.
const WORD: &str = "muster.system";
const REPORT: &str = "usr/local/bin/muster-installed";
const HEADERS: &str = "etc/muster-installed.headers";
const TRUST: &str = "etc/muster-installed.pem";
const TOKEN: &str = "X-Secret-Key:";
/// Never a disk that was installed to.
const NOT_DISKS: [&str; 6] = ["loop", "ram", "zram", "nbd", "sr", "fd"];
/// As the unit does.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub fn is_it(machine: &Machine) -> bool {
    let line = machine.text("proc/cmdline");
    line.split_ascii_whitespace().any(|word| word == WORD)
}

/// Finds the config this host was installed with and writes its files. Nothing when no disk has one (yet).
pub fn unpack(machine: &Machine) -> anyhow::Result<Option<()>> {
    let Some((disk, config)) = find(machine) else {
        return Ok(None);
    };
    note!("muster-system: the config of this host is on /dev/{disk}");
    let config = Config::parse(&config).context("cannot read the config of this host")?;
    for file in config.files() {
        if let Err(error) = file.write(&machine.root) {
            note!("muster-system: cannot write {}: {error:#}", file.path);
        }
    }
    Ok(Some(()))
}

fn find(machine: &Machine) -> Option<(String, Vec<u8>)> {
    let disks = machine.list("sys/block").into_iter();
    let mut disks = disks.filter(|name| !NOT_DISKS.iter().any(|prefix| name.starts_with(prefix)));
    disks.find_map(|name| {
        let file = std::fs::File::open(machine.path(&format!("dev/{name}"))).ok()?;
        Some((name, area::read_back(&file)?))
    })
}

/// What the files of the config say about the hub; nothing when this host has nobody to report to.
fn told(machine: &Machine) -> Option<Settings> {
    use clap::Parser;
    let script = machine.text(REPORT);
    let at = script.find(&format!("{BASE}/infra-envs/"))?;
    let start = script[..at].rfind('\'')? + 1;
    let mut words = script[at + BASE.len()..].split(['/', '\'']).skip(2);
    let infra_env_id = words.next()?.parse().ok()?;
    let host_id = words.nth(1)?.parse().ok()?;
    let headers = machine.text(HEADERS);
    let token = headers
        .lines()
        .find_map(|line| line.strip_prefix(TOKEN))
        .unwrap_or_default();
    let trust = machine.path(TRUST);
    let mut settings = Settings::try_parse_from(["muster-agent"]).ok()?;
    settings.root.clone_from(&machine.root);
    settings.url = script[start..at].to_owned();
    settings.infra_env_id = infra_env_id;
    settings.host_id = Some(host_id);
    settings.token = token.trim().into();
    settings.insecure = script.contains(" --insecure");
    settings.cacert = trust.exists().then_some(trust);
    settings.is_installed = true;
    Some(settings)
}

/// Reports, and then watches, for ever. `given` are the settings that do not come from the config.
pub fn run(given: &Settings, clock: Arc<dyn Clock>) -> anyhow::Result<()> {
    let machine = Machine::at(&given.root);
    note!("muster-system: this is {}", machine.hostname());
    let mut settings = loop {
        if let Some(settings) = told(&machine) {
            break settings;
        }
        match unpack(&machine) {
            Ok(Some(())) if told(&machine).is_some() => {}
            Ok(Some(())) => note!("muster-system: the config names no hub to report to"),
            Ok(None) => note!("muster-system: no disk holds a config for this host"),
            Err(error) => note!("muster-system: {error:#}"),
        }
        if told(&machine).is_none() {
            clock.sleep(LONGEST_PAUSE);
        }
    };
    settings.in_image = given.in_image;
    settings.dry_run = given.dry_run;
    settings.reboot_hook.clone_from(&given.reboot_hook);
    settings.poll = given.poll;
    let agent = Agent::new(settings.complete()?, clock)?;
    report(&agent);
    agent.watch();
    Ok(())
}

/// A refusal is final: the hub knows better where this host stands. Anything else is tried again.
fn report(agent: &Agent) {
    let ids = Ids {
        infra_env: agent.settings.infra_env_id,
        host: agent.host,
    };
    for stage in [Stage::Configuring, Stage::Joined, Stage::Done] {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            match agent.hub.progress(ids, stage, None) {
                Ok(()) if stage == Stage::Done => {
                    note!("muster-system: reported installed");
                    break;
                }
                Ok(()) => {
                    note!("muster-system: reported {stage}");
                    break;
                }
                Err(CallError::Refused {
                    status: status @ 400..=499,
                    reason,
                }) if !matches!(status, 408 | 429) => {
                    note!("muster-system: the hub refuses the report of {stage}: {reason}");
                    break;
                }
                Err(error) => note!("muster-system: cannot report {stage}: {error}"),
            }
            agent.clock.sleep(backoff.next_pause());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the hub writes it.
    const SCRIPT: &str = "#!/bin/bash\nset -u\ntell() {\n    code=$(curl --silent --max-time 30 --cacert /etc/muster-installed.pem \
        --output /dev/null --write-out '%{http_code}' \\\n        --request PUT --header @/etc/muster-installed.headers \\\n        \
        --data \"{\\\"current_stage\\\":\\\"$1\\\"}\" \
        'https://hub.example.com:8090/api/assisted-install/v2/infra-envs/431b034d-b436-4a8d-8f84-09948d2454dd/hosts/1de63ff2-0ac8-4d8a-9b83-6b0d3a1d1a6f/progress')\n}\n";

    #[test]
    fn the_hub_is_found_in_what_it_wrote() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::at(root.path());
        assert!(told(&machine).is_none());
        for (path, content) in [
            (REPORT, SCRIPT),
            (HEADERS, "Content-Type: application/json\nX-Secret-Key: tok\n"),
            (TRUST, "PEM"),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let settings = told(&machine).unwrap();
        assert_eq!(settings.url, "https://hub.example.com:8090");
        assert_eq!(
            settings.infra_env_id.to_string(),
            "431b034d-b436-4a8d-8f84-09948d2454dd"
        );
        assert_eq!(
            settings.host_id.unwrap().to_string(),
            "1de63ff2-0ac8-4d8a-9b83-6b0d3a1d1a6f"
        );
        assert_eq!(settings.token.0, "tok");
        assert!(!settings.insecure && settings.cacert.is_some() && settings.is_installed);
    }

    #[test]
    fn only_the_word_itself_makes_an_installed_system() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::at(root.path());
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        for (line, expected) in [
            ("quiet muster.system", true),
            ("muster.systems muster.url=x", false),
        ] {
            std::fs::write(root.path().join("proc/cmdline"), line).unwrap();
            assert_eq!(is_it(&machine), expected, "{line}");
        }
    }
}
