//! Whether the cluster has the hosts it needs and they are ready.

use super::Subject;
use crate::checks::facts::Peer;
use crate::checks::finding::Outcome;
use crate::host::Role;

/// Certificates and leases tolerate clocks this far apart (seconds).
const CLOCK_GAP_LIMIT: i64 = 4 * 60;

/// Enough names to know where to look, few enough to read.
const NAMES_SHOWN: usize = 5;

pub(super) fn name(peer: &Peer<'_>) -> String {
    if peer.name.is_empty() {
        peer.id.to_string()
    } else {
        peer.name.to_owned()
    }
}

pub(super) fn all_ready(subject: &Subject<'_>) -> Outcome {
    let waiting: Vec<&Peer<'_>> = subject
        .peers
        .iter()
        .filter(|peer| !peer.ready_to_install)
        .collect();
    let mut names: Vec<String> = waiting.iter().take(NAMES_SHOWN).map(|peer| name(peer)).collect();
    if waiting.len() > NAMES_SHOWN {
        names.push(format!("and {} more", waiting.len() - NAMES_SHOWN));
    }
    Outcome::judge(
        waiting.is_empty(),
        "All hosts are ready.",
        format!(
            "Hosts not ready to install: {}. See their findings, or unbind them.",
            names.join(", ")
        ),
    )
}

pub(super) fn masters(subject: &Subject<'_>) -> Outcome {
    let hosts = |role| {
        subject
            .peers
            .iter()
            .filter(move |peer| peer.effective_role() == role)
    };
    let (masters, arbiters) = (hosts(Role::Master).count(), hosts(Role::Arbiter).count());
    let wanted = usize::try_from(subject.facts.control_plane_count).unwrap_or_default();
    let others = subject.peers.len() - masters;
    if subject.facts.is_single_node() {
        return Outcome::judge(
            masters == 1 && others == 0,
            "The single-node cluster has its one host.",
            format!(
                "A single-node cluster is one master and nothing else; there are {masters} masters and {others} other hosts. Bind or unbind hosts."
            ),
        );
    }
    if masters != wanted {
        return Outcome::fail(format!(
            "The cluster wants {wanted} masters and has {masters} suitable ones; bind hosts that meet the master requirements, or change roles or control_plane_count."
        ));
    }
    let fenced = hosts(Role::Master).filter(|peer| peer.has_fencing).count() == masters;
    Outcome::judge(
        wanted != 2 || arbiters > 0 || fenced,
        "The control plane is complete.",
        "Two masters need an arbiter or fencing credentials on both; bind a host as arbiter or add the credentials.",
    )
}

pub(super) fn clocks_agree(subject: &Subject<'_>) -> Outcome {
    let skews = || {
        subject
            .peers
            .iter()
            .filter_map(|peer| Some((peer.clock_skew_seconds?, peer)))
    };
    let slowest = skews().min_by_key(|(skew, _)| *skew);
    let fastest = skews().max_by_key(|(skew, _)| *skew);
    let (Some((low, slow)), Some((high, fast))) = (slowest, fastest) else {
        return Outcome::pass("No host's clock is known to be wrong.");
    };
    Outcome::judge(
        high - low <= CLOCK_GAP_LIMIT,
        "The hosts' clocks agree.",
        format!(
            "The clocks of {} and {} are {} seconds apart; give the cluster a time server its hosts can reach.",
            name(slow),
            name(fast),
            high - low
        ),
    )
}
