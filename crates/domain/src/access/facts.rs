//! What has to be known of objects to say who may do what with them. Whoever asks fills in what the request names.

use jiff::Timestamp;
use muster_vocabulary::{ClusterId, Generation, HostKey, InfraEnvId};

/// Who made an InfraEnv or a cluster, and for which organisation. Hosts have none of their own: they are their InfraEnv's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    pub user: &'a str,
    pub org: &'a str,
}

/// Who may borrow free hosts of an InfraEnv.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer<'a> {
    Nobody,
    /// The organisation that owns them.
    OwnOrg,
    /// That one, and these.
    Orgs(&'a [String]),
    Everybody,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfraEnvFacts<'a> {
    pub id: InfraEnvId,
    pub owner: Owner<'a>,
    pub offer: Offer<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterFacts<'a> {
    pub id: ClusterId,
    pub owner: Owner<'a>,
    /// The hosts bound to it, for machines that ask; those of other InfraEnvs than the caller's may be left out.
    pub hosts: &'a [HostKey],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostFacts<'a> {
    pub key: HostKey,
    pub infra_env: InfraEnvFacts<'a>,
    /// Which cluster has borrowed it; a host without one is free.
    pub cluster: Option<ClusterFacts<'a>>,
    /// Its agent was given a credential of its own, so nobody else speaks for it.
    pub has_credential: bool,
}

/// What the tokens of an InfraEnv or a cluster have to say to be worth something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenFacts {
    pub generation: Generation,
    /// Until then the generation before may go on with media that it began to read.
    pub before_reads_until: Option<Timestamp>,
    /// For a host: the last credential that it was given.
    pub serial: Option<u32>,
}

/// What a request is about. `None`: it names no such object, or there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts<'a> {
    /// Of the InfraEnv, host or cluster that a machine says it belongs to; `None` if it does not exist any more.
    pub tokens: Option<TokenFacts>,
    pub infra_env: Option<InfraEnvFacts<'a>>,
    pub host: Option<HostFacts<'a>>,
    /// The one that is asked for, or the one that a host shall go to.
    pub cluster: Option<ClusterFacts<'a>>,
    /// The host that a registration names, which may be new.
    pub registering: Option<HostKey>,
    /// The client goes on with media that it began to read with the same token, and that stay as they were.
    pub continues: bool,
}
