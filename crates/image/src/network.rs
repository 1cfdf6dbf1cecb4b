//! Network descriptions of hosts (NMState): whether they can be understood, and the files NetworkManager reads instead.

use nmstate::NetworkState;
use serde_norway::Value;
use std::collections::BTreeSet;
use std::panic::catch_unwind;

/// Answers of the library are cut here: some list every word they would have liked.
const LONGEST_REASON: usize = 400;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetworkError(pub String);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// Name and content of each file, sorted by name.
    Keyfiles(Vec<(String, String)>),
    /// A policy with captures: what it means is known only on the machine, by `nmstatectl`.
    Policy,
}

pub fn understood(yaml: &str) -> Result<Network, NetworkError> {
    // A library that stumbles over odd input must not take the request down with it.
    catch_unwind(|| parsed(yaml)).unwrap_or_else(|_| Err(NetworkError("NMState fails on it".into())))
}

fn parsed(yaml: &str) -> Result<Network, NetworkError> {
    let value: Value = serde_norway::from_str(yaml).map_err(|error| said(&error.to_string()))?;
    let desired = value.get("desired").or_else(|| value.get("desiredState"));
    match (value.get("capture"), desired) {
        (None, None) => keyfiles(&NetworkState::new_from_yaml(yaml).map_err(reason)?),
        (None, Some(desired)) => keyfiles(&state(desired)?),
        (Some(captures), _) => policy(captures, desired),
    }
}

/// The rules themselves are for the machine to judge; here they must at least look like some.
fn policy(captures: &Value, desired: Option<&Value>) -> Result<Network, NetworkError> {
    let rules = captures
        .as_mapping()
        .ok_or_else(|| said("capture must name rules"))?;
    if rules.values().any(|rule| !rule.is_string()) {
        return Err(said("each rule of capture must be a text"));
    }
    match desired {
        Some(desired) if desired.is_mapping() => Ok(Network::Policy),
        Some(_) | None => Err(said("a policy must say what is desired")),
    }
}

fn state(value: &Value) -> Result<NetworkState, NetworkError> {
    let text = serde_norway::to_string(value).map_err(|error| said(&error.to_string()))?;
    NetworkState::new_from_yaml(&text).map_err(reason)
}

fn keyfiles(state: &NetworkState) -> Result<Network, NetworkError> {
    let mut made = state.gen_conf().map_err(reason)?;
    let mut files = made.remove("NetworkManager").unwrap_or_default();
    files.sort();
    let mut taken = BTreeSet::new();
    for (name, _) in &mut files {
        *name = file_name(name, &taken);
        taken.insert(name.clone());
    }
    files.sort();
    Ok(Network::Keyfiles(files))
}

/// Profiles may be called anything; files may not.
fn file_name(wanted: &str, taken: &BTreeSet<String>) -> String {
    let plain = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | ':' | '@' | '-' => letter,
        _ => '_',
    };
    let stem = wanted.strip_suffix(".nmconnection").unwrap_or(wanted);
    let stem: String = stem.chars().map(plain).take(100).collect();
    let stem = stem.trim_start_matches('.');
    let stem = if stem.is_empty() { "connection" } else { stem };
    let numbered = |number: u32| match number {
        1 => format!("{stem}.nmconnection"),
        _ => format!("{stem}-{number}.nmconnection"),
    };
    (1..)
        .map(numbered)
        .find(|name| !taken.contains(name))
        .expect("there are more numbers than files")
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn reason(error: nmstate::NmstateError) -> NetworkError {
    said(error.msg())
}

fn said(text: &str) -> NetworkError {
    let text = text.trim_start_matches("Invalid YAML string: ").trim();
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = one_line.chars().take(LONGEST_REASON).collect();
    if short.len() < one_line.len() {
        short.push('…');
    }
    NetworkError(short.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOND: &str = "\
interfaces:
- name: bond0
  type: bond
  state: up
  ipv4:
    enabled: true
    dhcp: false
    address:
    - ip: 192.0.2.10
      prefix-length: 24
  link-aggregation:
    mode: active-backup
    port: [eth0, eth1]
- name: eth0.7
  type: vlan
  state: up
  vlan: {base-iface: eth0, id: 7}
dns-resolver:
  config:
    server: [192.0.2.1]
routes:
  config:
  - destination: 0.0.0.0/0
    next-hop-address: 192.0.2.1
    next-hop-interface: bond0
";

    fn files(yaml: &str) -> Vec<(String, String)> {
        match understood(yaml).unwrap() {
            Network::Keyfiles(files) => files,
            Network::Policy => panic!("this is no policy"),
        }
    }

    #[test]
    fn a_description_becomes_keyfiles_that_are_always_the_same() {
        let made = files(BOND);
        let names: Vec<&str> = made.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "bond0.nmconnection",
                "eth0.7.nmconnection",
                "eth0.nmconnection",
                "eth1.nmconnection"
            ]
        );
        let bond = &made[0].1;
        for line in [
            "interface-name=bond0",
            "address0=192.0.2.10/24",
            "dns=192.0.2.1",
            "mode=active-backup",
        ] {
            assert!(bond.contains(line), "{line} is not in\n{bond}");
        }
        assert!(
            bond.contains("route0=0.0.0.0/0") || bond.contains("gateway=192.0.2.1"),
            "{bond}"
        );
        assert!(made[2].1.contains("interface-name=eth0"), "{}", made[2].1);
        for _ in 0..20 {
            assert_eq!(files(BOND), made);
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        let table = [
            (
                "interfaces:\n- name: eth0\n  type: ethernet\n  ipv5: {}\n",
                "ipv5",
            ),
            (
                "interfaces:\n- name: eth0\n  ipv4:\n    enabled: true\n    address:\n    - ip: 1.2.3\n      prefix-length: 24\n",
                "IP address",
            ),
            (
                "interfaces:\n- name: eth0\n  ipv4:\n    enabled: true\n    address:\n    - ip: 1.2.3.4\n      prefix-length: 99\n",
                "99",
            ),
            ("nonsense: 1\n", "nonsense"),
            ("- a\n- b\n", "sequence"),
        ];
        for (yaml, word) in table {
            let error = understood(yaml).unwrap_err();
            assert!(
                error.0.contains(word) && !error.0.contains('\n'),
                "{yaml}: {error}"
            );
            assert!(error.0.chars().count() <= LONGEST_REASON + 1);
        }
    }

    #[test]
    fn a_policy_with_captures_is_left_to_the_machine_and_one_without_is_not() {
        let capture =
            "capture:\n  gw: routes.running.destination==\"0.0.0.0/0\"\ndesired:\n  interfaces: []\n";
        assert_eq!(understood(capture), Ok(Network::Policy));
        let plain = "desiredState:\n  interfaces:\n  - name: eth0\n    type: ethernet\n    state: up\n";
        assert_eq!(files(plain).len(), 1);
        assert!(understood("capture:\n  gw: 7\n").is_err());
    }

    #[test]
    fn names_of_profiles_cannot_leave_their_directory() {
        let yaml = "\
interfaces:
- {name: eth0, type: ethernet, state: up, profile-name: ../../usr/bin/x}
- {name: eth1, type: ethernet, state: up, profile-name: '.._.._usr_bin_x'}
";
        let names: Vec<String> = files(yaml).into_iter().map(|(name, _)| name).collect();
        assert!(
            names
                .iter()
                .all(|name| !name.contains('/') && !name.starts_with('.')),
            "{names:?}"
        );
        assert_eq!(names.len(), 2);
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn broken_descriptions_never_panic() {
        let mut state = 7_usize;
        for _ in 0..400 {
            let mut bytes = BOND.as_bytes().to_vec();
            for _ in 0..4 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let at = (state >> 20) % bytes.len();
                bytes[at] = b" -:abz019{}[]#&*\n"[(state >> 50) % 17];
            }
            understood(&String::from_utf8_lossy(&bytes))
                .map(drop)
                .unwrap_or_default();
        }
    }
}
