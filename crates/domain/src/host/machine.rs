//! Which machine a host's id stands for. Boards with the same serial number and cloned virtual machines show the same
//! id; their network cards tell them apart, so that the second does not quietly take the place of the first.

use super::Host;
use crate::inventory::Inventory;
use crate::journal::{Entry, Severity};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Two machines that both run report once a minute; an event says so this often.
const TELL_EVERY: SignedDuration = SignedDuration::from_mins(15);
/// The other one is spoken of until it was not heard for longer than two tellings can be apart.
const SPOKEN_OF: SignedDuration = SignedDuration::from_mins(20);

/// Stays over registrations: a boot makes reports stale, not the machine another one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// In small letters, sorted; empty until the first inventory.
    pub macs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rival: Option<Rival>,
}

/// Another machine that shows the same id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rival {
    pub hostname: String,
    pub macs: Vec<String>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The machine we know, or the first under this id.
    Same,
    /// Other network cards, and the machine that had the old ones is silent: it was rebuilt, or replaced.
    Replaced,
    /// Other network cards, and the machine with the old ones reported a moment ago.
    Rival,
}

/// `heard_at`: when the known machine last reported its hardware. `silence`: after which it counts as gone.
pub fn judge(
    known: &Machine,
    inventory: &Inventory,
    heard_at: Timestamp,
    now: Timestamp,
    silence: SignedDuration,
) -> Verdict {
    let told = macs(inventory);
    let nothing_to_tell_by = known.macs.is_empty() || told.is_empty();
    if nothing_to_tell_by || told.iter().any(|mac| known.macs.binary_search(mac).is_ok()) {
        return Verdict::Same;
    }
    if now.duration_since(heard_at) < silence {
        Verdict::Rival
    } else {
        Verdict::Replaced
    }
}

/// The machine whose report is taken. The history says so when it is another one than before.
pub fn known(host: &mut Host, inventory: &Inventory, verdict: Verdict, now: Timestamp) -> Option<Entry> {
    let told = macs(inventory);
    if told.is_empty() {
        return None;
    }
    let before = std::mem::replace(&mut host.machine.macs, told);
    let replaced = verdict == Verdict::Replaced;
    if replaced || !host.machine.is_contested(now) {
        host.machine.rival = None;
    }
    replaced.then(|| {
        let text = format!(
            "Host {}: its network cards are {} now; the machine with {} is silent and no longer known.",
            host.name(),
            list(&host.machine.macs),
            list(&before),
        );
        host.entry("host_machine_replaced", Severity::Info, text)
    })
}

/// The hub does not take another machine's report; an event says so, but not every minute.
pub fn contested(host: &mut Host, inventory: &Inventory, now: Timestamp) -> Option<Entry> {
    let macs = macs(inventory);
    let told = host
        .machine
        .rival
        .as_ref()
        .is_some_and(|rival| rival.macs == macs && now.duration_since(rival.at) < TELL_EVERY);
    if told {
        return None;
    }
    host.machine.rival = Some(Rival {
        hostname: inventory.hostname.clone(),
        macs,
        at: now,
    });
    let text = format!("Host {}: {}", host.name(), host.machine.warning(now)?);
    Some(host.entry("host_id_not_unique", Severity::Warning, text))
}

/// What to do about it.
pub const REMEDY: &str = "Boot one of the two with the kernel argument `muster.identity=mac` (or start its agent with \
     `--identity mac`), or give it a serial number or UUID of its own.";

impl Machine {
    fn is_contested(&self, now: Timestamp) -> bool {
        let rival = self.rival.as_ref();
        rival.is_some_and(|rival| now.duration_since(rival.at) < SPOKEN_OF)
    }

    /// Said as long as the other machine is about.
    pub fn warning(&self, now: Timestamp) -> Option<String> {
        let rival = self.rival.as_ref().filter(|_| self.is_contested(now))?;
        let name = match rival.hostname.as_str() {
            "" => String::new(),
            name => format!("{name}, "),
        };
        Some(format!(
            "two machines show this id: the one with network cards {}, and another ({name}{}). The hub \
             keeps the first while it is alive, and does not list the other. {REMEDY}",
            list(&self.macs),
            list(&rival.macs),
        ))
    }
}

fn macs(inventory: &Inventory) -> Vec<String> {
    let cards = inventory.interfaces.iter().filter(|card| card.is_real());
    let mut list: Vec<String> = cards.map(|card| card.mac_address.to_ascii_lowercase()).collect();
    list.retain(|mac| mac.bytes().any(|byte| !matches!(byte, b'0' | b':' | b'-')));
    list.sort();
    list.dedup();
    list
}

fn list(macs: &[String]) -> String {
    macs.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::Interface;
    use crate::{HostId, HostKey, InfraEnvId};

    const SILENCE: SignedDuration = SignedDuration::from_mins(3);

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
    }

    fn inventory(hostname: &str, macs: &[&str]) -> Inventory {
        let card = |mac: &&str| Interface {
            mac_address: (*mac).to_owned(),
            ..Interface::default()
        };
        Inventory {
            hostname: hostname.into(),
            interfaces: macs.iter().map(card).collect(),
            ..Inventory::default()
        }
    }

    fn host(macs: &[&str]) -> Host {
        let key = HostKey {
            infra_env: InfraEnvId(uuid::Uuid::from_u128(1)),
            host: HostId(uuid::Uuid::from_u128(2)),
        };
        let mut host = Host::arriving(key, None, at(0));
        let first = inventory("first", macs);
        host.digest.hostname = "first".into();
        assert_eq!(known(&mut host, &first, Verdict::Same, at(0)), None);
        host
    }

    #[test]
    fn a_machine_with_no_card_of_the_known_one_is_a_rival_until_that_is_silent() {
        let known = host(&["02:00:00:00:00:0A", "02:00:00:00:00:0b"]).machine;
        let judged =
            |macs: &[&str], minutes| judge(&known, &inventory("x", macs), at(0), at(minutes), SILENCE);
        assert_eq!(judged(&["02:00:00:00:00:0a"], 1), Verdict::Same);
        assert_eq!(
            judged(&["02:00:00:00:00:0c", "02:00:00:00:00:0B"], 1),
            Verdict::Same,
            "one card was replaced"
        );
        assert_eq!(judged(&["02:00:00:00:00:0c"], 2), Verdict::Rival);
        assert_eq!(judged(&["02:00:00:00:00:0c"], 3), Verdict::Replaced);
        // Nothing to tell machines apart by.
        assert_eq!(judged(&[], 1), Verdict::Same);
        assert_eq!(judged(&["00:00:00:00:00:00"], 1), Verdict::Same);
        let unknown = Machine::default();
        let first = inventory("x", &["02:00:00:00:00:0c"]);
        assert_eq!(judge(&unknown, &first, at(0), at(0), SILENCE), Verdict::Same);
    }

    #[test]
    fn the_cards_of_two_machines_are_not_held_against_each_other() {
        let cards =
            |from: u32| -> Vec<String> { (from..from + 40_000).map(|n| format!("{n:012x}")).collect() };
        let known = Machine {
            macs: cards(1),
            rival: None,
        };
        let judged = |told: Vec<String>| {
            let told: Vec<&str> = told.iter().map(String::as_str).collect();
            judge(&known, &inventory("x", &told), at(0), at(1), SILENCE)
        };
        assert_eq!(judged(cards(40_001)), Verdict::Rival);
        assert_eq!(judged(cards(40_000)), Verdict::Same);
    }

    #[test]
    fn people_are_told_of_both_and_of_the_remedy_but_not_every_minute() {
        let mut host = host(&["02:00:00:00:00:0a"]);
        let second = inventory("second", &["02:00:00:00:00:0c"]);
        let entry = contested(&mut host, &second, at(1)).unwrap();
        assert_eq!(
            (entry.name.as_str(), entry.severity),
            ("host_id_not_unique", Severity::Warning)
        );
        for part in [
            "02:00:00:00:00:0a",
            "02:00:00:00:00:0c",
            "second",
            "muster.identity=mac",
            "--identity mac",
        ] {
            assert!(entry.message.contains(part), "{part}: {}", entry.message);
        }
        assert_eq!(host.machine.macs, ["02:00:00:00:00:0a"], "the first is kept");
        assert_eq!(contested(&mut host, &second, at(2)), None);
        assert!(contested(&mut host, &inventory("third", &["02:00:00:00:00:0d"]), at(2)).is_some());
        assert!(contested(&mut host, &second, at(17)).is_some());
        assert!(host.machine.warning(at(30)).is_some());
        assert_eq!(
            host.machine.warning(at(60)),
            None,
            "the other one was not heard for long"
        );
    }

    #[test]
    fn a_replaced_machine_is_taken_and_the_history_says_so() {
        let mut host = host(&["02:00:00:00:00:0a"]);
        let second = inventory("second", &["02:00:00:00:00:0c"]);
        contested(&mut host, &second, at(1));
        let entry = known(&mut host, &second, Verdict::Replaced, at(5)).unwrap();
        assert!(
            entry.message.contains("02:00:00:00:00:0c now"),
            "{}",
            entry.message
        );
        assert_eq!((host.machine.macs.len(), &host.machine.rival), (1, &None));
        // The report of the machine itself does not hide that there is another.
        contested(&mut host, &inventory("first", &["02:00:00:00:00:0a"]), at(6));
        assert_eq!(known(&mut host, &second, Verdict::Same, at(7)), None);
        assert!(host.machine.warning(at(7)).is_some());
        known(&mut host, &second, Verdict::Same, at(40));
        assert_eq!(host.machine.rival, None);
    }
}
