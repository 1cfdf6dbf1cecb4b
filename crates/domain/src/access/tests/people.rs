//! Roles and belongings: what each person may.

use super::*;

/// Who may what: + yes, - does not learn that it exists, x is told no. First with a free host, then with one that Cleo's
/// cluster has borrowed.
const TABLE: &[(Action, &str, &str)] = &[
    //                           root, ina, ivo; cleo, carl; rita, nora; gina, gus, cleo alone
    (Action::Open, "+++ ++ ++ +++", "+++ ++ ++ +++"),
    (Action::Look, "+++ ++ ++ +++", "+++ ++ ++ +++"),
    (Action::List, "+++ ++ ++ +++", "+++ ++ ++ +++"),
    (Action::Watch, "+xx xx +x x++", "+xx xx +x x++"),
    (Action::Report, "xxx xx xx xxx", "xxx xx xx xxx"),
    (Action::ReadHistory, "+++ ++ +- ---", "+++ ++ +- ---"),
    (Action::Plan, "+++ ++ +- ---", "+++ ++ +- ---"),
    (Action::MakeInfraEnv, "+++ xx xx +x+", "+++ xx xx +x+"),
    (Action::ReadInfraEnv, "+++ -- +- ---", "+++ -- +- ---"),
    (Action::WriteInfraEnv, "+++ -- x- ---", "+++ -- x- ---"),
    (Action::PutInfraEnv, "+++ -- x- ---", "+++ -- x- ---"),
    (Action::ReadImage, "x++ -- x- ---", "x++ -- x- ---"),
    (Action::ListHosts, "+++ ++ +- ---", "+++ ++ +- ---"),
    (Action::ReadHost, "+++ ++ +- ---", "+++ ++ +- ---"),
    (Action::ChangeHost, "+++ xx x- ---", "+++ +x x- ---"),
    (Action::RunHost, "+++ xx x- ---", "+++ xx x- ---"),
    (Action::Lend, "+-- +x x- ---", "+-- xx x- ---"),
    (Action::Return, "+++ xx x- ---", "+++ +x x- ---"),
    (Action::Move, "+-- +x x- ---", "+-- +x x- ---"),
    (Action::InstallHost, "+++ xx x- ---", "+xx +x x- ---"),
    (Action::ReadHostSecrets, "x++ xx x- ---", "xxx +x x- ---"),
    (Action::MakeCluster, "+xx ++ xx x++", "+xx ++ xx x++"),
    (Action::ReadCluster, "+-- ++ +- ---", "+-- ++ +- ---"),
    (Action::WriteCluster, "+-- +x x- ---", "+-- +x x- ---"),
    (Action::PutCluster, "+-- +x x- ---", "+-- +x x- ---"),
    (Action::ReadClusterSecrets, "x-- +x x- ---", "x-- +x x- ---"),
];

fn row(action: Action, host: HostFacts<'static>) -> String {
    let operation = operation(action, Machines::NoOne);
    let facts = named(action, host);
    people()
        .iter()
        .map(|(_, caller)| sign(may(caller, &operation, &facts, NOW)))
        .collect()
}

#[test]
fn each_role_may_what_the_table_says() {
    for action in Action::ALL {
        let (_, with_free, with_bound) = TABLE.iter().find(|(named, ..)| *named == action).unwrap();
        assert_eq!(
            row(action, free()),
            with_free.replace(' ', ""),
            "{action:?} with a free host"
        );
        assert_eq!(
            row(action, bound()),
            with_bound.replace(' ', ""),
            "{action:?} with a bound host"
        );
    }
    assert_eq!(TABLE.len(), Action::ALL.len());
}

#[test]
fn what_does_not_exist_looks_like_what_is_not_seen() {
    for action in Action::ALL {
        let operation = operation(action, Machines::NoOne);
        if named(action, free()) == Facts::default() {
            continue;
        }
        for (name, caller) in people() {
            let verdict = may(&caller, &operation, &Facts::default(), NOW);
            let makes = matches!(action, Action::PutInfraEnv | Action::PutCluster);
            // Nothing is named: the list of everything that is seen, or a plan that the domain refuses.
            let whole = matches!(action, Action::ReadHistory | Action::Plan);
            match (makes, whole) {
                (false, false) => assert_eq!(verdict, Verdict::NotFound, "{action:?} by {name}"),
                (true, false) => assert_ne!(verdict, Verdict::NotFound, "{action:?} by {name}"),
                (_, true) => assert_eq!(verdict, Verdict::Allowed, "{action:?} by {name}"),
            }
        }
    }
}

#[test]
fn without_authentication_everything_is_allowed() {
    for operation in table::all() {
        let verdict = may(&Caller::admin(), operation, &Facts::default(), NOW);
        assert_eq!(verdict, Verdict::Allowed, "{}", operation.id);
    }
}

#[test]
fn whoever_shows_nothing_may_what_tells_nothing() {
    let nobody = Caller::machine(Who::Nobody);
    let open: Vec<_> = table::all()
        .filter(|operation| may(&nobody, operation, &Facts::default(), NOW).is_allowed())
        .map(|operation| operation.id)
        .collect();
    assert_eq!(
        open,
        [
            "trust",
            "livez",
            "isReady",
            "readyz",
            "health",
            "start",
            "docs",
            "openapi",
            "openapiBelowBase",
            "openapiOfV2",
            "bootArtifact"
        ]
    );
}

#[test]
fn free_hosts_are_seen_by_those_to_whom_they_are_offered() {
    let globex = ["globex".to_owned()];
    let orgs = Offer::Orgs(&globex);
    let [.., gina, gus, _] = people().map(|(_, caller)| caller);
    let [_, _, _, cleo, ..] = people().map(|(_, caller)| caller);
    let own = Owner {
        user: "gus",
        org: "globex",
    };
    for (offer, by_cleo, by_gus, by_gina) in [
        (Offer::Nobody, '-', '-', '-'),
        (Offer::OwnOrg, '+', '-', '-'),
        (orgs, '+', '+', '-'),
        (Offer::Everybody, '+', '+', '-'),
    ] {
        let infra_env = InfraEnvFacts { offer, ..infra_env() };
        let host = HostFacts { infra_env, ..free() };
        let facts = |owner| Facts {
            host: Some(host),
            cluster: Some(ClusterFacts { owner, ..cluster() }),
            infra_env: Some(infra_env),
            ..Facts::default()
        };
        for action in [Action::ReadHost, Action::ListHosts, Action::Lend] {
            let asked = |caller: &Caller, owner| {
                sign(may(
                    caller,
                    &operation(action, Machines::NoOne),
                    &facts(owner),
                    NOW,
                ))
            };
            assert_eq!(asked(&cleo, CLEO), by_cleo, "{action:?} {offer:?}");
            assert_eq!(asked(&gus, own), by_gus, "{action:?} {offer:?}");
            assert_eq!(asked(&gina, own), by_gina, "{action:?} {offer:?}");
        }
        // What is lent is seen by nobody else, whomever it was offered to.
        let lent = Facts {
            host: Some(HostFacts {
                cluster: Some(cluster()),
                ..host
            }),
            ..Facts::default()
        };
        assert_eq!(
            sign(may(
                &gus,
                &operation(Action::ReadHost, Machines::NoOne),
                &lent,
                NOW
            )),
            '-'
        );
        // The image holds the pull secret of its owner.
        let image = facts(own);
        assert_eq!(
            sign(may(
                &gus,
                &operation(Action::ReadImage, Machines::NoOne),
                &image,
                NOW
            )),
            '-'
        );
    }
}

#[test]
fn an_infra_env_for_a_cluster_needs_that_cluster() {
    let both = Caller::person(
        "ina",
        "acme",
        [AccessRole::InfraAdmin, AccessRole::ClusterCreator],
    );
    let foreign = ClusterFacts {
        owner: Owner {
            user: "gus",
            org: "globex",
        },
        ..cluster()
    };
    let own = ClusterFacts {
        owner: INA,
        ..cluster()
    };
    for action in [Action::MakeInfraEnv, Action::WriteInfraEnv, Action::PutInfraEnv] {
        for (cluster, wanted) in [(own, '+'), (cluster(), 'x'), (foreign, '-')] {
            let facts = Facts {
                cluster: Some(cluster),
                ..named(action, free())
            };
            let verdict = may(&both, &operation(action, Machines::NoOne), &facts, NOW);
            assert_eq!(sign(verdict), wanted, "{action:?}");
        }
    }
}

#[test]
fn an_admin_reads_their_own_secrets_and_no_others() {
    let root = Caller::person("root", "", [AccessRole::Admin]);
    let owner = Owner {
        user: "root",
        org: "",
    };
    let own = Facts {
        infra_env: Some(InfraEnvFacts { owner, ..infra_env() }),
        cluster: Some(ClusterFacts { owner, ..cluster() }),
        ..Facts::default()
    };
    for action in [Action::ReadImage, Action::ReadClusterSecrets] {
        let operation = operation(action, Machines::NoOne);
        assert_eq!(may(&root, &operation, &own, NOW), Verdict::Allowed);
        let others = may(&root, &operation, &named(action, free()), NOW);
        assert_eq!(others, Verdict::Forbidden(Reason::OwnersOnly));
    }
}

#[test]
fn every_refusal_says_what_to_do() {
    let reasons = [
        Reason::NotKnown,
        Reason::OldCredential,
        Reason::Revoked,
        Reason::NeedsRole(AccessRole::Admin),
        Reason::NotOwner,
        Reason::OwnersOnly,
        Reason::MachinesOnly,
        Reason::PeopleOnly,
        Reason::AnotherMachine,
    ];
    for reason in reasons {
        assert!(
            reason.to_string().ends_with('.') && reason.next_action().ends_with('.'),
            "{reason}"
        );
        assert!(
            reason
                .word()
                .chars()
                .all(|letter| letter == '-' || letter.is_ascii_lowercase())
        );
    }
}
