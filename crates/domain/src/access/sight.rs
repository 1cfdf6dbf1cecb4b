//! What a caller sees: the one answer for single objects and for lists, so that neither shows what the other hides.

use super::caller::{Caller, Who};
use super::facts::{ClusterFacts, HostFacts, InfraEnvFacts, Offer, Owner};
use muster_vocabulary::{AccessRole, ClusterId, HostKey, InfraEnvId};

/// Lists ask the store for what is in it, and filter nothing afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight<'a> {
    Everything,
    Nothing,
    Person(PersonSight<'a>),
    /// An InfraEnv and its hosts.
    InfraEnv(InfraEnvId),
    /// One host, its InfraEnv, and the cluster it is bound to.
    Host(HostKey),
    /// A cluster and its hosts.
    Cluster(ClusterId),
}

/// What belongs to the person is seen. What belongs to the organisation is seen as far as the roles say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonSight<'a> {
    pub user: &'a str,
    /// Empty: nobody shares it.
    pub org: &'a str,
    /// InfraEnvs of the organisation, with their hosts.
    pub infra_envs_of_org: bool,
    /// Clusters of the organisation, with their hosts.
    pub clusters_of_org: bool,
    /// Free hosts that are offered to the organisation.
    pub offered_hosts: bool,
}

impl Caller {
    pub fn sight(&self) -> Sight<'_> {
        match &self.who {
            Who::Trusted => Sight::Everything,
            Who::Nobody | Who::Reader { .. } => Sight::Nothing,
            Who::Person { roles } if roles.contains(&AccessRole::Admin) => Sight::Everything,
            Who::Person { roles } if roles.is_empty() => Sight::Nothing,
            Who::Person { roles } => {
                let any = |these: &[AccessRole]| these.iter().any(|role| roles.contains(role));
                Sight::Person(PersonSight {
                    user: &self.user,
                    org: &self.org,
                    infra_envs_of_org: any(&[AccessRole::InfraAdmin, AccessRole::ReadOnly]),
                    clusters_of_org: any(&[AccessRole::ClusterCreator, AccessRole::ReadOnly]),
                    offered_hosts: any(&[AccessRole::ClusterCreator, AccessRole::ReadOnly]),
                })
            }
            Who::Agent { infra_env, .. } => Sight::InfraEnv(*infra_env),
            Who::Host { host, .. } => Sight::Host(*host),
            Who::Cluster { cluster, .. } => Sight::Cluster(*cluster),
        }
    }
}

impl PersonSight<'_> {
    /// Made by this person, for this organisation.
    pub fn owns(&self, owner: Owner<'_>) -> bool {
        !self.user.is_empty() && owner.user == self.user && owner.org == self.org
    }

    pub fn shares(&self, owner: Owner<'_>) -> bool {
        !self.org.is_empty() && owner.org == self.org
    }

    /// Whether free hosts of the InfraEnv may be borrowed.
    pub fn is_offered(&self, infra_env: &InfraEnvFacts<'_>) -> bool {
        let own = self.owns(infra_env.owner) || self.shares(infra_env.owner);
        let named = |orgs: &[String]| !self.org.is_empty() && orgs.iter().any(|org| org == self.org);
        self.offered_hosts
            && match infra_env.offer {
                Offer::Nobody => false,
                Offer::OwnOrg => own,
                Offer::Orgs(orgs) => own || named(orgs),
                Offer::Everybody => true,
            }
    }
}

impl Sight<'_> {
    pub fn infra_env(&self, infra_env: &InfraEnvFacts<'_>) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing | Self::Cluster(_) => false,
            Self::Person(person) => {
                person.owns(infra_env.owner) || (person.infra_envs_of_org && person.shares(infra_env.owner))
            }
            Self::InfraEnv(id) => *id == infra_env.id,
            Self::Host(key) => key.infra_env == infra_env.id,
        }
    }

    pub fn cluster(&self, cluster: &ClusterFacts<'_>) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Person(person) => {
                person.owns(cluster.owner) || (person.clusters_of_org && person.shares(cluster.owner))
            }
            Self::InfraEnv(id) => cluster.hosts.iter().any(|host| host.infra_env == *id),
            Self::Host(key) => cluster.hosts.contains(key),
            Self::Cluster(id) => *id == cluster.id,
        }
    }

    pub fn host(&self, host: &HostFacts<'_>) -> bool {
        let borrowed = host.cluster.as_ref();
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Person(person) => {
                self.infra_env(&host.infra_env)
                    || borrowed.map_or_else(
                        || person.is_offered(&host.infra_env),
                        |cluster| self.cluster(cluster),
                    )
            }
            Self::InfraEnv(id) => *id == host.key.infra_env,
            Self::Host(key) => *key == host.key,
            Self::Cluster(id) => borrowed.is_some_and(|cluster| cluster.id == *id),
        }
    }

    /// Whether there are hosts of the InfraEnv to see, perhaps not all of them.
    pub fn hosts_of(&self, infra_env: &InfraEnvFacts<'_>) -> bool {
        let offered = match self {
            Self::Person(person) => person.is_offered(infra_env),
            Self::Everything | Self::Nothing | Self::InfraEnv(_) | Self::Host(_) | Self::Cluster(_) => false,
        };
        offered || self.infra_env(infra_env)
    }
}
