//! Machines: what each may with the tokens it has.

use super::*;
use jiff::SignedDuration;

const OTHER_HOST: HostKey = HostKey {
    infra_env: ENV,
    host: HostId(Uuid::from_bytes([9; 16])),
};

fn machines() -> [(&'static str, Caller); 9] {
    let generation = Generation(1);
    let host = |host, serial| Who::Host {
        host,
        generation,
        serial,
    };
    let foreign = HostKey {
        infra_env: InfraEnvId(uuid(7)),
        ..HOST
    };
    [
        (
            "agent",
            Who::Agent {
                infra_env: ENV,
                generation,
            },
        ),
        ("host", host(HOST, 5)),
        ("neighbour", host(OTHER_HOST, 5)),
        (
            "cluster",
            Who::Cluster {
                cluster: CLUSTER,
                generation,
            },
        ),
        (
            "reader",
            Who::Reader {
                infra_env: ENV,
                generation,
            },
        ),
        (
            "foreign agent",
            Who::Agent {
                infra_env: InfraEnvId(uuid(7)),
                generation,
            },
        ),
        ("foreign host", host(foreign, 5)),
        (
            "foreign cluster",
            Who::Cluster {
                cluster: ClusterId(uuid(7)),
                generation,
            },
        ),
        (
            "foreign reader",
            Who::Reader {
                infra_env: InfraEnvId(uuid(7)),
                generation,
            },
        ),
    ]
    .map(|(name, who)| (name, Caller::machine(who)))
}

const TOKENS: TokenFacts = TokenFacts {
    generation: Generation(1),
    before_reads_until: None,
    serial: Some(5),
};

fn facts(host: HostFacts<'static>) -> Facts<'static> {
    Facts {
        tokens: Some(TOKENS),
        infra_env: Some(infra_env()),
        host: Some(host),
        cluster: Some(cluster()),
        registering: Some(HOST),
        continues: false,
    }
}

fn row(machines_may: Machines, facts: &Facts<'_>) -> String {
    let operation = operation(Action::Report, machines_may);
    machines()
        .iter()
        .map(|(_, caller)| sign(may(caller, &operation, facts, NOW)))
        .collect()
}

/// What each may with a bound host: first one without a credential of its own, then one with.
const TABLE: &[(Machines, &str, &str)] = &[
    //                      agent, host, neighbour, cluster, reader; the same of others
    (Machines::NoOne, "xxxxx xxxx", "xxxxx xxxx"),
    (Machines::OfInfraEnv, "+++-x ---x", "+++-x ---x"),
    (Machines::Readers, "+++-+ ---x", "+++-+ ---x"),
    (Machines::Media, "+++-+ ---x", "+++-+ ---x"),
    (Machines::Registering, "++x-x ---x", "++x-x ---x"),
    (Machines::Itself, "++-xx ---x", "x+-xx ---x"),
    (Machines::ItselfOrCluster, "++-+x ---x", "x+-+x ---x"),
    (Machines::OfCluster, "++-+x ---x", "++-+x ---x"),
];

#[test]
fn each_machine_may_what_the_table_says() {
    let with_credential = HostFacts {
        has_credential: true,
        ..bound()
    };
    for (machines, without, with) in TABLE {
        assert_eq!(
            row(*machines, &facts(bound())),
            without.replace(' ', ""),
            "{machines:?} without"
        );
        assert_eq!(
            row(*machines, &facts(with_credential)),
            with.replace(' ', ""),
            "{machines:?} with"
        );
    }
    assert_eq!(
        TABLE.len() + 1,
        Machines::ALL.len(),
        "that of what is named has a test of its own"
    );
}

#[test]
fn a_token_is_good_for_what_is_named_and_something_must_be() {
    let none = Facts {
        tokens: Some(TOKENS),
        ..Facts::default()
    };
    let infra_env = Facts {
        infra_env: Some(infra_env()),
        ..none
    };
    let cluster = Facts {
        cluster: Some(cluster()),
        ..none
    };
    let both = Facts {
        infra_env: infra_env.infra_env,
        ..cluster
    };
    let host = Facts {
        host: Some(bound()),
        ..none
    };
    for (facts, wanted) in [
        (none, "----x---x"),
        (infra_env, "+++-x---x"),
        (cluster, "++-+x---x"),
        (both, "++--x---x"),
        (host, "++-+x---x"),
    ] {
        assert_eq!(row(Machines::OfWhatIsNamed, &facts), wanted);
    }
}

#[test]
fn revoked_tokens_are_good_for_nothing() {
    let old = [
        (
            TokenFacts {
                generation: Generation(2),
                ..TOKENS
            },
            "rrrrrrrrr",
        ),
        // A database from a backup does not make newer tokens good.
        (
            TokenFacts {
                generation: Generation::FIRST,
                ..TOKENS
            },
            "rrrrrrrrr",
        ),
    ];
    for machines in Machines::ALL {
        for (tokens, wanted) in old {
            let facts = Facts {
                tokens: Some(tokens),
                ..facts(bound())
            };
            assert_eq!(row(machines, &facts), wanted, "{machines:?}");
        }
        let gone = Facts {
            tokens: None,
            ..facts(bound())
        };
        assert_eq!(row(machines, &gone), "rrrrrrrrr", "{machines:?}");
    }
}

#[test]
fn only_the_last_credential_of_a_host_speaks_for_it() {
    let [_, (_, host), ..] = machines();
    let asked = |serial| {
        let facts = Facts {
            tokens: Some(TokenFacts { serial, ..TOKENS }),
            ..facts(bound())
        };
        may(&host, &operation(Action::Report, Machines::Itself), &facts, NOW)
    };
    assert_eq!(asked(Some(5)), Verdict::Allowed);
    for other in [Some(4), Some(6), None] {
        assert_eq!(asked(other), Verdict::Forbidden(Reason::OldCredential));
    }
}

#[test]
fn media_that_were_begun_are_read_to_their_end_and_nothing_else() {
    let until = NOW + SignedDuration::from_secs(100);
    let after = |generation, continues| Facts {
        tokens: Some(TokenFacts {
            generation: Generation(generation),
            before_reads_until: Some(until),
            serial: Some(5),
        }),
        continues,
        ..facts(bound())
    };
    let asked = |machines_may, facts: &Facts<'_>, now| -> String {
        let operation = operation(Action::ReadImage, machines_may);
        machines()
            .iter()
            .take(5)
            .map(|(_, caller)| sign(may(caller, &operation, facts, now)))
            .collect()
    };
    let late = until - SignedDuration::from_secs(1);
    assert_eq!(asked(Machines::Media, &after(2, true), late), "+rrr+");
    assert_eq!(asked(Machines::Media, &after(2, true), until), "rrrrr");
    assert_eq!(asked(Machines::Media, &after(2, false), NOW), "rrrrr");
    assert_eq!(asked(Machines::Media, &after(3, true), NOW), "rrrrr");
    // A configuration that is made now holds the tokens of now.
    assert_eq!(asked(Machines::Readers, &after(2, true), NOW), "rrrrr");
    for machines in Machines::ALL {
        if machines != Machines::Media {
            assert_eq!(asked(machines, &after(2, true), NOW), "rrrrr", "{machines:?}");
        }
    }
}

#[test]
fn a_host_registers_as_itself_and_an_agent_as_any() {
    let [(_, agent), (_, host), ..] = machines();
    let registers = operation(Action::Report, Machines::Registering);
    for (registering, by_agent, by_host) in [
        (Some(HOST), '+', '+'),
        (Some(OTHER_HOST), '+', 'x'),
        (None, '+', 'x'),
    ] {
        let facts = Facts {
            registering,
            ..facts(free())
        };
        assert_eq!(sign(may(&agent, &registers, &facts, NOW)), by_agent);
        assert_eq!(sign(may(&host, &registers, &facts, NOW)), by_host);
    }
}

#[test]
fn a_machine_that_is_not_bound_learns_nothing_of_a_cluster() {
    let nobody_there = ClusterFacts {
        hosts: &[],
        ..cluster()
    };
    let facts = Facts {
        cluster: Some(nobody_there),
        ..facts(free())
    };
    assert_eq!(row(Machines::OfCluster, &facts), "---+x---x");
}

#[test]
fn machines_make_nothing_and_people_report_nothing() {
    for operation in table::all() {
        let alone = operation.machines == Machines::NoOne && operation.action != Action::Open;
        for (name, caller) in machines() {
            let verdict = may(&caller, operation, &facts(bound()), NOW);
            assert!(!alone || !verdict.is_allowed(), "{name} {}", operation.id);
        }
        for (name, caller) in people() {
            let verdict = may(&caller, operation, &facts(bound()), NOW);
            let reports = operation.action == Action::Report;
            assert!(!reports || !verdict.is_allowed(), "{name} {}", operation.id);
        }
    }
}
