//! Rows that cannot be read are set aside: a request for one is refused with the reason, and a decision that needs one
//! waits.
//!
//! "Not found" would be a lie that clients and agents act on. A cluster that misses a host is not counted while its
//! installation depends on it, and nothing that such rows hang on is deleted.

use crate::Hub;
use crate::error::Error;
use muster_contract::v1::status::SetAside;
use muster_domain::cluster::Cluster;
use muster_domain::infra_env::InfraEnv;
use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId, Refused};
use muster_store::{StoreError, UnreadableRow};
use std::sync::Arc;
use uuid::Uuid;

/// As many as people read.
const NAMED: usize = 20;
/// As many as one page shows; the number of all stands beside it.
const SHOWN: usize = 100;

impl Hub {
    /// An error if the row of the host, or one of its reports, cannot be read.
    pub fn readable_host(&self, key: HostKey) -> Result<(), Error> {
        readable(self.store.unreadable_host(key))
    }

    pub fn readable_cluster(&self, id: ClusterId) -> Result<(), Error> {
        readable(self.store.unreadable_row(id.into()))
    }

    pub fn readable_infra_env(&self, id: InfraEnvId) -> Result<(), Error> {
        readable(self.store.unreadable_row(id.into()))
    }

    /// How many rows are set aside, and the first of them.
    pub fn set_aside(&self) -> (usize, Vec<SetAside>) {
        let rows = self.store.unreadable();
        let shown = rows.iter().take(SHOWN).map(|row| SetAside {
            kind: row.kind.word().into(),
            id: row.id.clone(),
            reason: row.reason.clone(),
        });
        (rows.len(), shown.collect())
    }

    /// Hosts of the cluster that cannot be read.
    pub fn unreadable_of_cluster(&self, id: ClusterId) -> Vec<Arc<UnreadableRow>> {
        let is_its_own = |row: &Arc<UnreadableRow>| {
            let known = || self.index.slot(row.host?)?.row().cluster;
            row.cluster.or_else(known) == Some(id)
        };
        self.store.unreadable().into_iter().filter(is_its_own).collect()
    }

    fn unreadable_of_infra_env(&self, id: InfraEnvId) -> Vec<Arc<UnreadableRow>> {
        let is_its_own = |row: &Arc<UnreadableRow>| row.host.is_some_and(|key| key.infra_env == id);
        self.store.unreadable().into_iter().filter(is_its_own).collect()
    }

    /// What concerns a cluster and all of its hosts cannot be decided without some of them.
    pub fn whole_cluster(&self, cluster: &Cluster) -> Result<(), Refused> {
        let missing = self.unreadable_of_cluster(cluster.id);
        whole(&format!("Cluster {}", cluster.name), &missing)
    }

    /// The same for an InfraEnv.
    pub fn whole_infra_env(&self, infra_env: &InfraEnv) -> Result<(), Refused> {
        let missing = self.unreadable_of_infra_env(infra_env.id);
        whole(&format!("InfraEnv {}", infra_env.name), &missing)
    }
}

fn readable(found: Option<Arc<UnreadableRow>>) -> Result<(), Error> {
    found.map_or(Ok(()), |row| Err(StoreError::Unreadable(row).into()))
}

fn whole(who: &str, missing: &[Arc<UnreadableRow>]) -> Result<(), Refused> {
    if missing.is_empty() {
        return Ok(());
    }
    let mut names: Vec<_> = missing
        .iter()
        .take(NAMED)
        .filter_map(|row| Some(row.host?.host.to_string()))
        .collect();
    if missing.len() > NAMED {
        names.push(format!("and {} more", missing.len() - NAMED));
    }
    Err(Refused::conflict(
        "hosts-are-set-aside",
        format!(
            "{who} has hosts that this hub cannot read in its database: {}.",
            names.join(", ")
        ),
        "`muster status` says why. Mend those rows and restart the hub, or start the program that wrote them.",
    ))
}

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    InfraEnv(InfraEnvId),
    Cluster(ClusterId),
    Host(HostKey),
}

/// An error if the row that a request is about cannot be read.
pub fn readable_named(hub: &Hub, path: &str) -> Result<(), Error> {
    match named(path) {
        Some(Named::Host(key)) => hub.readable_host(key),
        Some(Named::Cluster(id)) => hub.readable_cluster(id),
        Some(Named::InfraEnv(id)) => hub.readable_infra_env(id),
        None => Ok(()),
    }
}

/// Hosts are asked about without their InfraEnv: whoever needs that, too, finds out.
fn named(path: &str) -> Option<Named> {
    let path = [muster_contract::v2::BASE, muster_contract::v1::BASE]
        .iter()
        .find_map(|base| path.strip_prefix(base))?;
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let noun = parts.next()?;
    let id = Uuid::try_parse(parts.next()?).ok()?;
    match (noun, parts.next(), parts.next()) {
        ("clusters", _, _) => Some(Named::Cluster(ClusterId(id))),
        ("infra-envs" | "infra-env", Some("hosts"), host) => Some(Named::Host(HostKey {
            infra_env: InfraEnvId(id),
            host: HostId(Uuid::try_parse(host?).ok()?),
        })),
        ("infra-envs" | "infra-env", _, _) => Some(Named::InfraEnv(InfraEnvId(id))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "11111111-2222-3333-4444-555555555555";

    #[test]
    fn a_path_is_about_the_last_thing_it_names() {
        let id = Uuid::try_parse(ID).unwrap();
        let (infra_env, host) = (InfraEnvId(id), HostId(id));
        let of_host = Some(Named::Host(HostKey { infra_env, host }));
        for (path, expected) in [
            (
                "/api/assisted-install/v2/clusters/ID",
                Some(Named::Cluster(ClusterId(id))),
            ),
            (
                "/api/muster/v1/clusters/ID/import",
                Some(Named::Cluster(ClusterId(id))),
            ),
            (
                "/api/assisted-install/v2/infra-envs/ID",
                Some(Named::InfraEnv(infra_env)),
            ),
            (
                "/api/assisted-install/v2/infra-envs/ID/downloads/image-url",
                Some(Named::InfraEnv(infra_env)),
            ),
            (
                "/api/assisted-install/v2/infra-envs/ID/hosts/ID/instructions",
                of_host,
            ),
            (
                "/api/assisted-install/v2/infra-env/ID/hosts/ID/downloads/ignition",
                of_host,
            ),
            // A registration names its host elsewhere, and a list is of those that can be read.
            ("/api/assisted-install/v2/infra-envs/ID/hosts", None),
            ("/api/assisted-install/v2/clusters", None),
            ("/api/muster/v1/hosts/ID", None),
            ("/health", None),
        ] {
            assert_eq!(named(&path.replace("ID", ID)), expected, "{path}");
        }
    }
}
