//! What holds for all people, machines and objects, whatever the table says.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const NAMES: [&str; 3] = ["ann", "bob", ""];
const ORGS: [&str; 3] = ["acme", "globex", ""];

fn owners() -> impl Strategy<Value = Owner<'static>> {
    (0_usize..3, 0_usize..3).prop_map(|(user, org)| Owner {
        user: NAMES[user],
        org: ORGS[org],
    })
}

fn offers() -> impl Strategy<Value = Offer<'static>> {
    static GLOBEX: std::sync::LazyLock<Vec<String>> =
        std::sync::LazyLock::new(|| vec!["globex".into(), String::new()]);
    prop_oneof![
        Just(Offer::Nobody),
        Just(Offer::OwnOrg),
        Just(()).prop_map(|()| Offer::Orgs(&GLOBEX)),
        Just(Offer::Everybody),
    ]
}

fn roles() -> impl Strategy<Value = BTreeSet<AccessRole>> {
    proptest::collection::btree_set(proptest::sample::select(AccessRole::ALL), 0..4)
}

fn callers() -> impl Strategy<Value = Caller> {
    (owners(), roles()).prop_map(|(who, roles)| Caller::person(who.user, who.org, roles))
}

/// An InfraEnv, a host of it that is free or bound, and a cluster that is the host's or another.
fn worlds() -> impl Strategy<Value = Facts<'static>> {
    (owners(), offers(), owners(), owners(), any::<bool>()).prop_map(
        |(owner, offer, cluster_owner, borrower, is_bound)| {
            let infra_env = InfraEnvFacts {
                id: ENV,
                owner,
                offer,
            };
            let borrowed = ClusterFacts {
                owner: borrower,
                ..cluster()
            };
            Facts {
                infra_env: Some(infra_env),
                host: Some(HostFacts {
                    key: HOST,
                    infra_env,
                    cluster: is_bound.then_some(borrowed),
                    has_credential: false,
                }),
                cluster: Some(ClusterFacts {
                    owner: cluster_owner,
                    ..cluster()
                }),
                ..Facts::default()
            }
        },
    )
}

/// Only what a request for this names.
fn asked(action: Action, world: &Facts<'static>) -> Facts<'static> {
    let shape = named(action, free());
    Facts {
        infra_env: world.infra_env.filter(|_| shape.infra_env.is_some()),
        host: world.host.filter(|_| shape.host.is_some()),
        cluster: world.cluster.filter(|_| shape.cluster.is_some()),
        ..Facts::default()
    }
}

fn verdict(caller: &Caller, action: Action, world: &Facts<'static>) -> Verdict {
    may(
        caller,
        &operation(action, Machines::NoOne),
        &asked(action, world),
        NOW,
    )
}

/// What has to be readable for this.
fn reading(action: Action) -> Option<Action> {
    match action {
        Action::WriteInfraEnv | Action::PutInfraEnv | Action::ReadImage => Some(Action::ReadInfraEnv),
        Action::ChangeHost
        | Action::RunHost
        | Action::Lend
        | Action::Return
        | Action::Move
        | Action::InstallHost
        | Action::ReadHostSecrets => Some(Action::ReadHost),
        Action::WriteCluster | Action::PutCluster | Action::ReadClusterSecrets => Some(Action::ReadCluster),
        Action::Open
        | Action::Look
        | Action::Watch
        | Action::Report
        | Action::List
        | Action::ReadHistory
        | Action::Plan
        | Action::MakeInfraEnv
        | Action::ReadInfraEnv
        | Action::ListHosts
        | Action::ReadHost
        | Action::MakeCluster
        | Action::ReadCluster => None,
    }
}

proptest! {
    #[test]
    fn nobody_is_told_no_about_what_they_do_not_see(caller in callers(), world in worlds()) {
        for action in Action::ALL {
            let Some(reading) = reading(action) else {
                continue;
            };
            let (read, done) = (verdict(&caller, reading, &world), verdict(&caller, action, &world));
            match read {
                Verdict::Allowed => {}
                Verdict::NotFound => prop_assert_eq!(done, Verdict::NotFound, "{:?}", action),
                Verdict::Forbidden(_) => prop_assert!(false, "{:?} is refused and not hidden", reading),
            }
        }
    }

    #[test]
    fn lists_show_what_can_be_read_and_nothing_else(caller in callers(), world in worlds()) {
        let sight = caller.sight();
        let (infra_env, host, cluster) = (world.infra_env.unwrap(), world.host.unwrap(), world.cluster.unwrap());
        for (action, is_seen) in [
            (Action::ReadInfraEnv, sight.infra_env(&infra_env)),
            (Action::ReadHost, sight.host(&host)),
            (Action::ReadCluster, sight.cluster(&cluster)),
            (Action::ListHosts, sight.hosts_of(&infra_env)),
        ] {
            prop_assert_eq!(verdict(&caller, action, &world).is_allowed(), is_seen, "{:?}", action);
        }
    }

    #[test]
    fn another_role_takes_nothing_away(caller in callers(), more in roles(), world in worlds()) {
        let Who::Person { roles } = caller.who.clone() else {
            unreachable!("people were asked for");
        };
        let stronger = Caller::person(caller.user.clone(), caller.org.clone(), roles.union(&more).copied());
        for action in Action::ALL {
            let before = verdict(&caller, action, &world).is_allowed();
            prop_assert!(!before || verdict(&stronger, action, &world).is_allowed(), "{:?}", action);
        }
    }

    /// Without the role of an admin, and unless hosts are offered, organisations do not learn of each other.
    #[test]
    fn organisations_do_not_see_each_other(roles in roles(), user in 0_usize..3, world in worlds()) {
        let stranger = Caller::person(NAMES[user], "initech", roles.into_iter().filter(|role| *role != AccessRole::Admin));
        for action in Action::ALL {
            let named = asked(action, &world);
            if named == Facts::default() {
                continue;
            }
            let offered = world.infra_env.unwrap().offer == Offer::Everybody;
            let lent = named.cluster.is_some() || named.host.is_some_and(|host| host.cluster.is_some());
            if !offered || lent {
                prop_assert_eq!(verdict(&stranger, action, &world), Verdict::NotFound, "{:?}", action);
            }
        }
    }

    /// No role reads a secret of somebody else's cluster.
    #[test]
    fn secrets_of_a_cluster_are_its_makers(caller in callers(), world in worlds()) {
        let made_by = |owner: Owner<'_>| owner.user == caller.user && owner.org == caller.org && !owner.user.is_empty();
        if verdict(&caller, Action::ReadClusterSecrets, &world).is_allowed() {
            prop_assert!(made_by(world.cluster.unwrap().owner));
        }
        if let Some(cluster) = world.host.unwrap().cluster
            && verdict(&caller, Action::ReadHostSecrets, &world).is_allowed()
        {
            prop_assert!(made_by(cluster.owner));
        }
    }

    /// Whoever has no organisation shares nothing with others who have none.
    #[test]
    fn no_organisation_is_no_organisation(roles in roles(), world in worlds()) {
        let alone = Caller::person("zoe", "", roles.into_iter().filter(|role| *role != AccessRole::Admin));
        for action in [Action::ReadInfraEnv, Action::ReadCluster] {
            prop_assert_eq!(verdict(&alone, action, &world), Verdict::NotFound);
        }
    }
}
