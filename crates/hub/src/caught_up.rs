//! Whoever changed something reads what follows from it: the hub reconciles a stale cluster before it is shown, decided
//! about, or planned with.

use crate::Hub;
use crate::worker::{feed, reconcile};
use axum::http::{Method, Uri};
use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId};
use std::time::Duration;
use uuid::Uuid;

/// Then the answer is given as it is: a reader is not kept from what is known.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// A run that moves a phase is followed by another. Nobody waits for a cluster that changes all the time.
const ROUNDS: usize = 4;

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Cluster(ClusterId),
    Host(HostKey),
    /// A list, or the history.
    Several,
    /// Who answers finds out which cluster it is about.
    Unknown,
}

impl Hub {
    /// Waits until what follows from the changes of this cluster is known, for a moment at most.
    /// Says whether there was anything to wait for.
    pub async fn caught_up(&self, cluster: ClusterId) -> bool {
        self.catch_up(Some(cluster)).await
    }

    /// The same for the cluster of a host.
    pub async fn caught_up_host(&self, host: HostKey) {
        let cluster = self.index.slot(host).and_then(|slot| slot.row().cluster);
        if let Some(cluster) = cluster {
            self.catch_up(Some(cluster)).await;
        }
    }

    /// Whether anything was stale; `None` wants all clusters.
    async fn catch_up(&self, wanted: Option<ClusterId>) -> bool {
        if self.stale_clusters.of(wanted, self.now()).is_empty() {
            return false;
        }
        // In a task of its own: a run that began goes on when its reader does not wait any longer.
        let hub = self.clone();
        let running = tokio::spawn(async move { refresh(&hub, wanted).await });
        drop(tokio::time::timeout(LONGEST_WAIT, running).await);
        true
    }
}

async fn refresh(hub: &Hub, wanted: Option<ClusterId>) {
    for _ in 0..ROUNDS {
        let stale = hub.stale_clusters.of(wanted, hub.now());
        if stale.is_empty() {
            return;
        }
        for id in stale {
            if let Some(pause) = hub.stale_clusters.pause(id) {
                tokio::time::sleep(pause).await;
            }
            if let Err(error) = reconcile::catch_up(hub, id).await {
                tracing::warn!(cluster = %id, %error, "reconciling a cluster failed; it is shown without what follows from its newest changes");
            }
        }
    }
}

/// Before a request is answered that shows clusters and their hosts, or depends on how they are.
pub async fn first(hub: &Hub, method: &Method, uri: &Uri) {
    let Some(about) = about(method, uri) else {
        return;
    };
    if hub.shares_database() {
        // What another hub learned a moment ago.
        let followed = tokio::time::timeout(LONGEST_WAIT, feed::catch_up(hub)).await;
        if let Ok(Err(error)) = followed {
            tracing::warn!(%error, "cannot follow the changes of other hubs");
        }
    }
    match about {
        About::Cluster(id) => drop(hub.caught_up(id).await),
        About::Host(key) => hub.caught_up_host(key).await,
        About::Several => drop(hub.catch_up(None).await),
        About::Unknown => {}
    }
}

fn about(method: &Method, uri: &Uri) -> Option<About> {
    let reads = *method == Method::GET || *method == Method::HEAD;
    let decides = uri.path().ends_with("/actions/install");
    // An agent that asks for work, by far the most frequent request, is given it as fast as can be.
    if !(reads || decides) || uri.path().ends_with("/instructions") {
        return None;
    }
    let path = [muster_contract::v2::BASE, muster_contract::v1::BASE]
        .iter()
        .find_map(|base| uri.path().strip_prefix(base))?;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let id = |text: &str| Uuid::try_parse(text).ok();
    match parts.as_slice() {
        // Images, files and logs are as they are.
        [.., "logs"] | [.., "downloads", _] => None,
        ["clusters", cluster, ..] => id(cluster).map(|id| About::Cluster(ClusterId(id))),
        ["infra-envs", pool, "hosts", host, ..] => Some(About::Host(HostKey {
            infra_env: InfraEnvId(id(pool)?),
            host: HostId(id(host)?),
        })),
        ["events"] => Some(match of_cluster(uri.query().unwrap_or_default()) {
            Some(cluster) => About::Cluster(cluster),
            None => About::Several,
        }),
        ["clusters" | "hosts"] | ["infra-envs", _, "hosts" | "explain"] => Some(About::Several),
        ["hosts", _] => Some(About::Unknown),
        _ => None,
    }
}

fn of_cluster(query: &str) -> Option<ClusterId> {
    let wanted = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("cluster_id="))?;
    Uuid::try_parse(wanted).ok().map(ClusterId)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "11111111-2222-3333-4444-555555555555";

    fn asks(method: &str, path: &str) -> Option<About> {
        let uri = path.replace("ID", ID).parse().unwrap();
        about(&method.parse().unwrap(), &uri)
    }

    #[test]
    fn reads_and_installs_are_about_what_their_path_names() {
        let id = Uuid::try_parse(ID).unwrap();
        let (cluster, infra_env, host) = (ClusterId(id), InfraEnvId(id), HostId(id));
        let key = HostKey { infra_env, host };
        for (method, path, wanted) in [
            (
                "GET",
                "/api/assisted-install/v2/clusters/ID",
                About::Cluster(cluster),
            ),
            (
                "HEAD",
                "/api/assisted-install/v2/clusters/ID/hosts",
                About::Cluster(cluster),
            ),
            (
                "POST",
                "/api/assisted-install/v2/clusters/ID/actions/install",
                About::Cluster(cluster),
            ),
            (
                "GET",
                "/api/assisted-install/v2/events?order=asc&cluster_id=ID",
                About::Cluster(cluster),
            ),
            (
                "GET",
                "/api/muster/v1/clusters/ID/explain",
                About::Cluster(cluster),
            ),
            (
                "GET",
                "/api/assisted-install/v2/infra-envs/ID/hosts/ID",
                About::Host(key),
            ),
            (
                "POST",
                "/api/assisted-install/v2/infra-envs/ID/hosts/ID/actions/install",
                About::Host(key),
            ),
            (
                "GET",
                "/api/muster/v1/infra-envs/ID/hosts/ID/explain",
                About::Host(key),
            ),
            (
                "GET",
                "/api/assisted-install/v2/infra-envs/ID/hosts",
                About::Several,
            ),
            (
                "GET",
                "/api/assisted-install/v2/clusters?with_hosts=true",
                About::Several,
            ),
            ("GET", "/api/assisted-install/v2/events", About::Several),
            ("GET", "/api/muster/v1/hosts", About::Several),
            ("GET", "/api/muster/v1/hosts/ID", About::Unknown),
        ] {
            assert_eq!(asks(method, path), Some(wanted), "{method} {path}");
        }
    }

    #[test]
    fn agents_writers_and_those_who_download_wait_for_nothing() {
        for (method, path) in [
            (
                "GET",
                "/api/assisted-install/v2/infra-envs/ID/hosts/ID/instructions",
            ),
            (
                "POST",
                "/api/assisted-install/v2/infra-envs/ID/hosts/ID/instructions",
            ),
            ("POST", "/api/assisted-install/v2/infra-envs/ID/hosts"),
            (
                "POST",
                "/api/assisted-install/v2/infra-envs/ID/hosts/ID/actions/bind",
            ),
            ("PATCH", "/api/assisted-install/v2/clusters/ID"),
            (
                "GET",
                "/api/assisted-install/v2/infra-env/ID/hosts/ID/downloads/ignition",
            ),
            (
                "GET",
                "/api/assisted-install/v2/clusters/ID/downloads/files?file_name=master.ign",
            ),
            ("GET", "/api/assisted-install/v2/clusters/ID/logs"),
            ("GET", "/api/muster/v1/changes?after=1"),
            ("GET", "/health"),
        ] {
            assert_eq!(asks(method, path), None, "{method} {path}");
        }
    }
}
