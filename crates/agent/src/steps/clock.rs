//! Compares the machine's clock with time servers, and sets it where it is ours to set.
//!
//! No time daemon runs beside the agent. A source that agrees within half a second counts as one to be synchronised
//! with. Without any source named, the hub's own clock is compared: all its hosts have that in common.

use super::{Context, json};
use crate::collect::Machine;
use crate::dns::Resolver;
use crate::init::names;
use crate::note;
use crate::probe::sntp;
use crate::sys;
use muster_contract::v2::agent::args::NtpArgs;
use muster_contract::v2::agent::replies::{NtpReply, NtpSource};
use muster_vocabulary::NtpSourceState;
use std::time::Duration;

const NTP: u16 = 123;
const AGREES_SECONDS: f64 = 0.5;
/// HTTP tells whole seconds.
const HUB_AGREES_SECONDS: f64 = 2.0;

pub fn synchronize(context: &Context, args: &NtpArgs) -> anyhow::Result<String> {
    let named = args
        .ntp_source
        .split(',')
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty());
    let mut names: Vec<String> = named.collect();
    if names.is_empty() {
        names = configured(&context.machine.text("etc/chrony.conf"));
    }
    let ntp_sources = if names.is_empty() {
        told_or_hub(context)
    } else {
        ask_all(context, &names)
    };
    json(&NtpReply { ntp_sources })
}

/// Nobody named a source. What the network tells of time servers counts when it is right; otherwise the hub's clock does.
fn told_or_hub(context: &Context) -> Vec<NtpSource> {
    let told = told(&context.machine);
    let answers = if told.is_empty() {
        Vec::new()
    } else {
        ask_all(context, &told)
    };
    let is_in_step = |source: &NtpSource| source.source_state.is(NtpSourceState::agrees);
    if answers.iter().any(is_in_step) {
        answers
    } else {
        vec![hub_clock(context)]
    }
}

/// Time servers of the networks of this machine.
fn told(machine: &Machine) -> Vec<String> {
    let files = machine.list(names::TIME_SERVERS).into_iter();
    let mut all: Vec<String> = files
        .flat_map(|file| configured(&machine.text(&format!("{}/{file}", names::TIME_SERVERS))))
        .collect();
    all.sort();
    all.dedup();
    all
}

fn configured(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    lines
        .filter(|words| matches!(words.first(), Some(&"server" | &"pool")))
        .filter_map(|words| Some((*words.get(1)?).to_owned()))
        .collect()
}

fn ask_all(context: &Context, names: &[String]) -> Vec<NtpSource> {
    let resolver = Resolver::new(&context.machine.root);
    let ask = |name: &String| {
        let mut addresses = resolver.lookup(name).addresses().collect::<Vec<_>>().into_iter();
        addresses.find_map(|ip| sntp::ask(ip, NTP, || context.clock.now()).ok())
    };
    let mut answers: Vec<Option<sntp::Answer>> = names.iter().map(ask).collect();
    let best = answers
        .iter()
        .flatten()
        .find(|answer| is_sound(answer))
        .map(|answer| answer.offset);
    if let Some(offset) = best.filter(|offset| offset.abs() > AGREES_SECONDS)
        && set_clock(context, offset)
    {
        answers
            .iter_mut()
            .flatten()
            .for_each(|answer| answer.offset -= offset);
    }
    let mut synced = false;
    names
        .iter()
        .zip(answers)
        .map(|(name, answer)| source(name, state(answer, &mut synced)))
        .collect()
}

fn source(name: &str, state: NtpSourceState) -> NtpSource {
    NtpSource {
        source_name: name.to_owned(),
        source_state: state.into(),
    }
}

fn is_sound(answer: &sntp::Answer) -> bool {
    (1..16).contains(&answer.stratum)
}

fn state(answer: Option<sntp::Answer>, synced: &mut bool) -> NtpSourceState {
    match answer {
        None => NtpSourceState::Unreachable,
        Some(answer) if !is_sound(&answer) => NtpSourceState::Error,
        Some(answer) if answer.offset.abs() > AGREES_SECONDS => NtpSourceState::NotCombined,
        Some(_) if std::mem::replace(synced, true) => NtpSourceState::Combined,
        Some(_) => NtpSourceState::Synced,
    }
}

/// Only a machine that runs nothing but us.
fn set_clock(context: &Context, offset: f64) -> bool {
    if context.settings.dry_run || !context.settings.in_image {
        return false;
    }
    let now = context.clock.now().as_secs_f64() + offset;
    note!("set the clock: it was off by {offset:.3} s");
    now > 0.0 && sys::set_clock(Duration::from_secs_f64(now)).is_ok()
}

fn hub_clock(context: &Context) -> NtpSource {
    let name = context.settings.url.clone();
    let answer = context.hub.http.head(&name).call();
    let date = answer
        .ok()
        .and_then(|answer| http_date(answer.headers().get("date")?.to_str().ok()?));
    let Some(date) = date else {
        return source(&name, NtpSourceState::Unreachable);
    };
    let offset = date as f64 + 0.5 - context.clock.now().as_secs_f64();
    let agrees = offset.abs() <= HUB_AGREES_SECONDS || set_clock(context, offset);
    match agrees {
        true => source(&name, NtpSourceState::Synced),
        false => source(&name, NtpSourceState::NotCombined),
    }
}

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<i64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let words: Vec<&str> = text.split([' ', ':']).collect();
    let [_, day, month, year, hours, minutes, seconds, "GMT"] = words[..] else {
        return None;
    };
    let month = i64::try_from(MONTHS.find(month)? / 3).ok()? + 1;
    let number = |text: &str| text.parse::<i64>().ok();
    // Days since 1970 of a Gregorian date, with years that start in March.
    let year = number(year)? - i64::from(month <= 2);
    let month = (month + 9) % 12;
    let days =
        year * 365 + year / 4 - year / 100 + year / 400 + (month * 306 + 5) / 10 + number(day)? - 1 - 719_468;
    Some(days * 86_400 + number(hours)? * 3600 + number(minutes)? * 60 + number(seconds)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_read() {
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(http_date("Thu, 29 Feb 2024 12:00:00 GMT"), Some(1_709_208_000));
        assert_eq!(http_date("yesterday"), None);
    }

    #[test]
    fn the_first_source_that_agrees_is_the_one() {
        let answer = |offset: f64, stratum: u8| Some(sntp::Answer { offset, stratum });
        let mut synced = false;
        let answers = [
            None,
            answer(0.0, 0),
            answer(3.0, 2),
            answer(0.1, 2),
            answer(-0.1, 3),
        ];
        let states = answers.map(|answer| state(answer, &mut synced).word());
        assert_eq!(
            states,
            ["unreachable", "error", "not_combined", "synced", "combined"]
        );
    }

    #[test]
    fn time_servers_of_all_networks_are_read_once() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::at(root.path());
        assert_eq!(told(&machine), [""; 0]);
        for (interface, ips) in [
            ("eth0", ["192.0.2.1", "192.0.2.2"]),
            ("eth1", ["192.0.2.2", "192.0.2.3"]),
        ] {
            let ips = ips.map(|ip| ip.parse().unwrap());
            names::tell_time_servers(&machine, interface, names::Source::Dhcp, &ips);
        }
        assert_eq!(told(&machine), ["192.0.2.1", "192.0.2.2", "192.0.2.3"]);
    }

    #[test]
    fn sources_of_a_running_system_are_read() {
        assert_eq!(
            configured("# x\npool 2.pool.example iburst\nserver 192.0.2.1\nrtcsync\n"),
            ["2.pool.example", "192.0.2.1"]
        );
    }
}
