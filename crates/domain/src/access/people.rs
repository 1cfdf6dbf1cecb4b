//! What people may: by their roles, and by what belongs to them or to their organisation.

use super::caller::Caller;
use super::facts::{ClusterFacts, Facts, HostFacts, InfraEnvFacts, Owner};
use super::operation::Action;
use super::sight::Sight;
use super::verdict::{Reason, Verdict};
use muster_vocabulary::AccessRole;

pub(super) fn may(caller: &Caller, action: Action, facts: &Facts<'_>) -> Verdict {
    let person = Person {
        caller,
        sight: caller.sight(),
    };
    match action {
        Action::Open | Action::Look | Action::List => Verdict::Allowed,
        Action::Watch => person.with_role(AccessRole::ReadOnly),
        Action::Report => Verdict::Forbidden(Reason::MachinesOnly),
        Action::ReadHistory | Action::Plan => person.sees_all(facts),

        Action::MakeInfraEnv => person
            .with_role(AccessRole::InfraAdmin)
            .and(|| person.writes_beside(facts)),
        Action::ReadInfraEnv => person.infra_env(facts, |_| Verdict::Allowed),
        Action::WriteInfraEnv => {
            let writes = |infra_env: &InfraEnvFacts<'_>| {
                person.allowed(person.writes_infra_env(infra_env), Reason::NotOwner)
            };
            person
                .infra_env(facts, writes)
                .and(|| person.writes_beside(facts))
        }
        Action::PutInfraEnv => match facts.infra_env {
            Some(_) => may(caller, Action::WriteInfraEnv, facts),
            None => may(caller, Action::MakeInfraEnv, facts),
        },
        Action::ReadImage => person.infra_env(facts, |it| {
            person.allowed(person.owns_infra_env(it), Reason::OwnersOnly)
        }),
        Action::ListHosts => match &facts.infra_env {
            Some(infra_env) if person.sight.hosts_of(infra_env) => Verdict::Allowed,
            Some(_) | None => Verdict::NotFound,
        },

        Action::ReadHost => person.host(facts, |_| Verdict::Allowed),
        Action::ChangeHost | Action::Return => {
            person.host(facts, |host| person.allowed(person.holds(host), Reason::NotOwner))
        }
        Action::RunHost => {
            let runs = |host: &HostFacts<'_>| person.writes_infra_env(&host.infra_env);
            person.host(facts, |host| person.allowed(runs(host), Reason::NotOwner))
        }
        Action::InstallHost => person.host(facts, |host| {
            person.allowed(person.installs(host), Reason::NotOwner)
        }),
        Action::Lend => person.host_to_cluster(facts, |host| {
            person.writes_infra_env(&host.infra_env) || person.borrows(host)
        }),
        Action::Move => person.host_to_cluster(facts, |host| person.holds(host) || person.borrows(host)),
        Action::ReadHostSecrets => person.host(facts, |host| {
            person.allowed(person.owns_installation(host), Reason::OwnersOnly)
        }),

        Action::MakeCluster => person.with_role(AccessRole::ClusterCreator),
        Action::ReadCluster => person.cluster(facts, |_| Verdict::Allowed),
        Action::WriteCluster => person.cluster(facts, |it| {
            person.allowed(person.writes_cluster(it), Reason::NotOwner)
        }),
        Action::PutCluster => match facts.cluster {
            Some(_) => may(caller, Action::WriteCluster, facts),
            None => may(caller, Action::MakeCluster, facts),
        },
        Action::ReadClusterSecrets => person.cluster(facts, |it| {
            person.allowed(person.owns_cluster(it), Reason::OwnersOnly)
        }),
    }
}

struct Person<'a> {
    caller: &'a Caller,
    sight: Sight<'a>,
}

/// Whether something is true of what is named.
impl Person<'_> {
    fn is_admin(&self) -> bool {
        self.caller.has(AccessRole::Admin)
    }

    fn owns(&self, owner: Owner<'_>) -> bool {
        !self.caller.user.is_empty() && owner.user == self.caller.user && owner.org == self.caller.org
    }

    fn shares(&self, owner: Owner<'_>) -> bool {
        !self.caller.org.is_empty() && owner.org == self.caller.org
    }

    /// The InfraEnvs of an organisation are run by all its infrastructure admins.
    fn runs_infra_env(&self, infra_env: &InfraEnvFacts<'_>) -> bool {
        self.caller.has(AccessRole::InfraAdmin)
            && (self.owns(infra_env.owner) || self.shares(infra_env.owner))
    }

    fn writes_infra_env(&self, infra_env: &InfraEnvFacts<'_>) -> bool {
        self.is_admin() || self.runs_infra_env(infra_env)
    }

    /// An admin owns what they made themselves.
    fn owns_infra_env(&self, infra_env: &InfraEnvFacts<'_>) -> bool {
        self.runs_infra_env(infra_env) || (self.is_admin() && self.owns(infra_env.owner))
    }

    fn owns_cluster(&self, cluster: &ClusterFacts<'_>) -> bool {
        let may_own = self.is_admin() || self.caller.has(AccessRole::ClusterCreator);
        may_own && self.owns(cluster.owner)
    }

    fn writes_cluster(&self, cluster: &ClusterFacts<'_>) -> bool {
        self.is_admin() || self.owns_cluster(cluster)
    }

    /// As its owner, or because it was lent to a cluster of the caller.
    fn holds(&self, host: &HostFacts<'_>) -> bool {
        let borrowed = host
            .cluster
            .as_ref()
            .is_some_and(|cluster| self.writes_cluster(cluster));
        borrowed || self.writes_infra_env(&host.infra_env)
    }

    /// What it is installed with is the cluster's.
    fn installs(&self, host: &HostFacts<'_>) -> bool {
        let infra_env = || self.writes_infra_env(&host.infra_env);
        host.cluster
            .as_ref()
            .map_or_else(infra_env, |cluster| self.writes_cluster(cluster))
    }

    fn owns_installation(&self, host: &HostFacts<'_>) -> bool {
        let infra_env = || self.owns_infra_env(&host.infra_env);
        host.cluster
            .as_ref()
            .map_or_else(infra_env, |cluster| self.owns_cluster(cluster))
    }

    /// A free host that is offered to the caller.
    fn borrows(&self, host: &HostFacts<'_>) -> bool {
        let offered = match &self.sight {
            Sight::Person(person) => person.is_offered(&host.infra_env),
            Sight::Everything => true,
            Sight::Nothing | Sight::InfraEnv(_) | Sight::Host(_) | Sight::Cluster(_) => false,
        };
        host.cluster.is_none() && offered && self.caller.has(AccessRole::ClusterCreator)
    }
}

/// First whether it is seen, then whether it may be done: nobody learns of an object by being refused.
impl Person<'_> {
    fn allowed(&self, is: bool, otherwise: Reason) -> Verdict {
        match is {
            true => Verdict::Allowed,
            false => Verdict::Forbidden(otherwise),
        }
    }

    fn with_role(&self, role: AccessRole) -> Verdict {
        self.allowed(self.is_admin() || self.caller.has(role), Reason::NeedsRole(role))
    }

    fn infra_env(&self, facts: &Facts<'_>, then: impl FnOnce(&InfraEnvFacts<'_>) -> Verdict) -> Verdict {
        match &facts.infra_env {
            Some(infra_env) if self.sight.infra_env(infra_env) => then(infra_env),
            Some(_) | None => Verdict::NotFound,
        }
    }

    fn host(&self, facts: &Facts<'_>, then: impl FnOnce(&HostFacts<'_>) -> Verdict) -> Verdict {
        match &facts.host {
            Some(host) if self.sight.host(host) => then(host),
            Some(_) | None => Verdict::NotFound,
        }
    }

    fn cluster(&self, facts: &Facts<'_>, then: impl FnOnce(&ClusterFacts<'_>) -> Verdict) -> Verdict {
        match &facts.cluster {
            Some(cluster) if self.sight.cluster(cluster) => then(cluster),
            Some(_) | None => Verdict::NotFound,
        }
    }

    /// Both are seen before either is refused.
    fn host_to_cluster(&self, facts: &Facts<'_>, is_given: impl FnOnce(&HostFacts<'_>) -> bool) -> Verdict {
        let seen = self
            .host(facts, |_| Verdict::Allowed)
            .and(|| self.cluster(facts, |_| Verdict::Allowed));
        seen.and(|| self.host(facts, |host| self.allowed(is_given(host), Reason::NotOwner)))
            .and(|| {
                self.cluster(facts, |to| {
                    self.allowed(self.writes_cluster(to), Reason::NotOwner)
                })
            })
    }

    /// An InfraEnv whose hosts shall be bound to a cluster as they register lends them all.
    fn writes_beside(&self, facts: &Facts<'_>) -> Verdict {
        match facts.cluster {
            Some(_) => self.cluster(facts, |to| {
                self.allowed(self.writes_cluster(to), Reason::NotOwner)
            }),
            None => Verdict::Allowed,
        }
    }

    /// The InfraEnv of a host that is named is part of its name.
    fn sees_all(&self, facts: &Facts<'_>) -> Verdict {
        let infra_env = || {
            facts
                .infra_env
                .is_none_or(|infra_env| self.sight.infra_env(&infra_env))
        };
        let seen = facts.host.map_or_else(infra_env, |host| self.sight.host(&host))
            && facts.cluster.is_none_or(|cluster| self.sight.cluster(&cluster));
        match seen {
            true => Verdict::Allowed,
            false => Verdict::NotFound,
        }
    }
}
