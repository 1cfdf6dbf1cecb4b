//! What machines may: each within its InfraEnv, and the cluster it is lent to.

use super::caller::{Caller, Who};
use super::facts::{Facts, HostFacts};
use super::operation::Machines;
use super::sight::Sight;
use super::verdict::{Reason, Verdict};
use jiff::Timestamp;
use muster_vocabulary::Generation;

pub(super) fn may(caller: &Caller, machines: Machines, facts: &Facts<'_>, now: Timestamp) -> Verdict {
    let sight = caller.sight();
    standing(caller, machines, facts, now).and(|| match machines {
        Machines::NoOne => Verdict::Forbidden(Reason::PeopleOnly),
        Machines::OfInfraEnv => of_infra_env(caller, sight, facts),
        Machines::Readers | Machines::Media => match reads(caller, facts) {
            true => Verdict::Allowed,
            false => of_infra_env(caller, sight, facts),
        },
        Machines::Registering => registering(caller, sight, facts),
        Machines::Itself => machine(caller).and(|| itself(caller, sight, facts)),
        Machines::ItselfOrCluster => machine(caller).and(|| match &facts.host {
            Some(host) if in_same_cluster(caller, sight, host) => Verdict::Allowed,
            Some(_) | None => itself(caller, sight, facts),
        }),
        Machines::OfCluster => machine(caller).and(|| match &facts.cluster {
            Some(cluster) => found(sight.cluster(cluster)),
            None => Verdict::NotFound,
        }),
        Machines::OfWhatIsNamed => machine(caller).and(|| named(sight, facts)),
    })
}

/// Whether the token is still worth something.
fn standing(caller: &Caller, machines: Machines, facts: &Facts<'_>, now: Timestamp) -> Verdict {
    let Some(tokens) = facts.tokens else {
        return Verdict::Forbidden(Reason::Revoked);
    };
    let current = |generation: Generation| generation == tokens.generation;
    let ended = |generation: Generation| generation.next() == tokens.generation;
    let in_grace = tokens.before_reads_until.is_some_and(|until| now < until);
    match &caller.who {
        Who::Agent { generation, .. } | Who::Cluster { generation, .. } if current(*generation) => {
            Verdict::Allowed
        }
        Who::Host {
            generation, serial, ..
        } if current(*generation) => match tokens.serial == Some(*serial) {
            true => Verdict::Allowed,
            false => Verdict::Forbidden(Reason::OldCredential),
        },
        Who::Reader { generation, .. } if current(*generation) => Verdict::Allowed,
        // With an address from before, or with a machine's token in one. Whoever begins anew gets nothing: what is made now
        // holds the tokens of now.
        Who::Reader { generation, .. } | Who::Agent { generation, .. }
            if machines == Machines::Media && facts.continues && ended(*generation) && in_grace =>
        {
            Verdict::Allowed
        }
        Who::Agent { .. } | Who::Host { .. } | Who::Cluster { .. } | Who::Reader { .. } => {
            Verdict::Forbidden(Reason::Revoked)
        }
        Who::Trusted | Who::Nobody | Who::Person { .. } => Verdict::Forbidden(Reason::MachinesOnly),
    }
}

fn found(is: bool) -> Verdict {
    match is {
        true => Verdict::Allowed,
        false => Verdict::NotFound,
    }
}

/// Whoever was given an address of this image.
fn reads(caller: &Caller, facts: &Facts<'_>) -> bool {
    match caller.who {
        Who::Reader { infra_env, .. } => facts.infra_env.is_some_and(|asked| asked.id == infra_env),
        Who::Trusted
        | Who::Nobody
        | Who::Person { .. }
        | Who::Agent { .. }
        | Who::Host { .. }
        | Who::Cluster { .. } => false,
    }
}

/// Whoever was given an address of an image is no machine.
fn machine(caller: &Caller) -> Verdict {
    match caller.who {
        Who::Agent { .. } | Who::Host { .. } | Who::Cluster { .. } => Verdict::Allowed,
        Who::Reader { .. } | Who::Trusted | Who::Nobody | Who::Person { .. } => {
            Verdict::Forbidden(Reason::PeopleOnly)
        }
    }
}

fn of_infra_env(caller: &Caller, sight: Sight<'_>, facts: &Facts<'_>) -> Verdict {
    machine(caller).and(|| {
        found(
            facts
                .infra_env
                .is_some_and(|infra_env| sight.infra_env(&infra_env)),
        )
    })
}

/// A machine that has lost its credential, as it does when it boots again, registers with the token of its image.
fn registering(caller: &Caller, sight: Sight<'_>, facts: &Facts<'_>) -> Verdict {
    of_infra_env(caller, sight, facts).and(|| match &caller.who {
        Who::Host { host, .. } if facts.registering.is_none_or(|named| named != *host) => {
            Verdict::Forbidden(Reason::AnotherMachine)
        }
        Who::Host { .. } | Who::Agent { .. } => Verdict::Allowed,
        Who::Cluster { .. } | Who::Reader { .. } | Who::Trusted | Who::Nobody | Who::Person { .. } => {
            Verdict::Forbidden(Reason::PeopleOnly)
        }
    })
}

fn itself(caller: &Caller, sight: Sight<'_>, facts: &Facts<'_>) -> Verdict {
    let Some(host) = &facts.host else {
        return Verdict::NotFound;
    };
    match &caller.who {
        Who::Agent { .. } if host.has_credential && sight.host(host) => {
            Verdict::Forbidden(Reason::AnotherMachine)
        }
        Who::Agent { .. } | Who::Host { .. } => found(sight.host(host)),
        // A cluster is none of its hosts.
        Who::Cluster { .. } if sight.host(host) => Verdict::Forbidden(Reason::AnotherMachine),
        Who::Cluster { .. } | Who::Reader { .. } | Who::Trusted | Who::Nobody | Who::Person { .. } => {
            Verdict::NotFound
        }
    }
}

/// The controller of a cluster reports for all its hosts, with the cluster's own token or with that of one of their InfraEnvs.
/// The latter is what any machine there has, so it is not good for a host with a credential of its own; and a credential of a
/// host is good for that host alone.
fn in_same_cluster(caller: &Caller, sight: Sight<'_>, host: &HostFacts<'_>) -> bool {
    let shared = host.cluster.is_some_and(|cluster| sight.cluster(&cluster));
    match caller.who {
        Who::Agent { .. } => shared && !host.has_credential,
        Who::Cluster { .. } => shared,
        Who::Host { .. } | Who::Reader { .. } | Who::Trusted | Who::Nobody | Who::Person { .. } => false,
    }
}

/// All that is named is the caller's, and something is.
fn named(sight: Sight<'_>, facts: &Facts<'_>) -> Verdict {
    if facts.infra_env.is_none() && facts.host.is_none() && facts.cluster.is_none() {
        return Verdict::NotFound;
    }
    let seen = facts
        .infra_env
        .is_none_or(|infra_env| sight.infra_env(&infra_env))
        && facts.host.is_none_or(|host| sight.host(&host))
        && facts.cluster.is_none_or(|cluster| sight.cluster(&cluster));
    found(seen)
}
