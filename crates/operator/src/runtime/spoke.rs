//! Clients of the clusters that were installed: made from the kubeconfig that each cluster leaves behind.

mod kubeconfig;

use super::Context;
use super::joining::NodeWatch;
use super::patch::Writer;
use super::trust;
use crate::crd::keys::{data, label};
use crate::crd::{ClusterDeployment, capi};
use crate::error::{Error, chain};
use crate::key::Key;
use k8s_openapi::api::core::v1::Secret;
use kube::config::KubeConfigOptions;
use kube::{Client, Config, ResourceExt};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Why a cluster cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSpoke {
    /// There is none: the cluster was never installed, or is gone.
    #[error("the cluster has no kubeconfig")]
    NoKubeconfig,
    #[error("{0}")]
    Failed(String),
}

/// Clients that were made before, with a hash of the kubeconfig each was made from.
#[derive(Default)]
pub struct Spokes {
    hasher: RandomState,
    known: Mutex<HashMap<Key, (u64, Client)>>,
}

const WRITER: Writer = Writer("muster-spoke");

/// A cluster that does not answer must not keep its hosts' objects waiting for long.
const CONNECT: Duration = Duration::from_secs(5);
const READ: Duration = Duration::from_secs(20);

/// What a client is made from.
#[derive(Hash)]
struct Access {
    kubeconfig: String,
    /// Instead of the one in there.
    server: Option<String>,
}

impl Context {
    /// A client of the cluster of a ClusterDeployment, which may be gone already.
    pub async fn spoke(&self, cluster: &Key) -> Result<Client, NoSpoke> {
        let access = self.access(cluster).await?;
        self.spokes.client(cluster, &access).await
    }

    /// Watches the node in the cluster that the Agent's host becomes, until it leaves.
    pub async fn watch_node(&self, cluster: &Key, agent: &Key, node: &str) -> Result<NodeWatch, NoSpoke> {
        let access = self.access(cluster).await?;
        let made_from = self.spokes.hasher.hash_one(&access);
        if let Some(node_watch) = self.joining.go_on(cluster, made_from, agent, node) {
            return Ok(node_watch);
        }
        // Nothing is read from a watch as long as nothing happens.
        let client = make(&access, None).await.map_err(NoSpoke::Failed)?;
        Ok(self.joining.begin(cluster, made_from, client, agent, node))
    }

    async fn access(&self, cluster: &Key) -> Result<Access, NoSpoke> {
        let failed = |error: Error| NoSpoke::Failed(chain(&error));
        let deployment = self
            .cache::<ClusterDeployment>()
            .find(cluster)
            .await
            .map_err(failed)?;
        let key = Key::new(&cluster.namespace, secret_name(cluster, deployment.as_deref()));
        let secret = self
            .secret(&key)
            .await
            .map_err(failed)?
            .ok_or(NoSpoke::NoKubeconfig)?;
        let text = secret
            .value(data::KUBECONFIG)
            .filter(|text| !text.trim().is_empty());
        let text = text.ok_or(NoSpoke::NoKubeconfig)?;
        let server = hosted_server(cluster, deployment.as_deref(), |control_plane| {
            self.cache::<capi::ControlPlane>().get(control_plane).is_some()
        });
        if !secret.missing_labels.is_empty() {
            let labelled = self.label::<Secret>(WRITER, &key, &secret.missing_labels).await;
            labelled.map_err(|error| match error {
                // It went meanwhile.
                Error::Gone => NoSpoke::NoKubeconfig,
                error => failed(error),
            })?;
        }
        Ok(Access {
            kubeconfig: text.to_owned(),
            server,
        })
    }
}

/// What the ClusterDeployment says, else the name it is known to have.
fn secret_name(cluster: &Key, deployment: Option<&ClusterDeployment>) -> String {
    let metadata = deployment.and_then(|deployment| deployment.spec.cluster_metadata.as_ref());
    let named = metadata.map(|metadata| metadata.admin_kubeconfig_secret_ref.name.clone());
    named
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| format!("{}-admin-kubeconfig", cluster.name))
}

/// Where the API of a cluster is whose control plane runs here: its kubeconfig names a place for those outside, which may
/// not be reached from inside. `None` when the kubeconfig counts.
fn hosted_server(
    cluster: &Key,
    deployment: Option<&ClusterDeployment>,
    runs_here: impl FnOnce(&Key) -> bool,
) -> Option<String> {
    let deployment = deployment?;
    let of_machines = deployment.labels().contains_key(label::AGENT_CLUSTER);
    let control_plane = Key::new(&cluster.namespace, &deployment.spec.cluster_name);
    (of_machines && runs_here(&control_plane))
        .then(|| format!("https://kube-apiserver.{}.svc:6443", cluster.namespace))
}

impl Spokes {
    async fn client(&self, cluster: &Key, access: &Access) -> Result<Client, NoSpoke> {
        let hash = self.hasher.hash_one(access);
        let known = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(cluster)
            .cloned();
        if let Some((_, client)) = known.filter(|(known, _)| *known == hash) {
            return Ok(client);
        }
        let client = make(access, Some(READ)).await.map_err(NoSpoke::Failed)?;
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(cluster.clone(), (hash, client.clone()));
        Ok(client)
    }
}

/// The causes never quote the kubeconfig: it holds credentials.
async fn config(access: &Access, read: Option<Duration>) -> Result<Config, String> {
    let mut file = kubeconfig::read(&access.kubeconfig)?;
    if let Some(server) = &access.server {
        for cluster in &mut file.clusters {
            if let Some(cluster) = &mut cluster.cluster {
                cluster.server = Some(server.clone());
            }
        }
    }
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(unusable)?;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = read;
    Ok(config)
}

fn unusable<E>(_: E) -> String {
    "cannot use the kubeconfig of the cluster".to_owned()
}

async fn make(access: &Access, read: Option<Duration>) -> Result<Client, String> {
    let config = config(access, read).await?;
    // An authority of this machine that cannot be used must not stand in the way of the cluster's own.
    let with_system = Client::try_from(trusting(config.clone(), trust::of_system()));
    with_system
        .or_else(|_| Client::try_from(config))
        .map_err(unusable)
}

fn trusting(mut config: Config, system: &[Vec<u8>]) -> Config {
    config.root_cert = config.root_cert.map(|own| trust::merged(&own, system));
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::agent_cluster_install::ClusterMetadata;

    #[test]
    fn the_kubeconfig_is_the_one_that_is_named_and_else_that_of_the_usual_name() {
        let key = Key::new("clusters", "blue");
        assert_eq!(secret_name(&key, None), "blue-admin-kubeconfig");
        let mut deployment = ClusterDeployment::default();
        assert_eq!(secret_name(&key, Some(&deployment)), "blue-admin-kubeconfig");
        let mut metadata = ClusterMetadata::default();
        metadata.admin_kubeconfig_secret_ref.name = "other".into();
        deployment.spec.cluster_metadata = Some(metadata);
        assert_eq!(secret_name(&key, Some(&deployment)), "other");
    }

    #[test]
    fn a_cluster_whose_control_plane_runs_here_is_reached_inside() {
        let key = Key::new("hosted-blue", "blue-deployment");
        let mut deployment = ClusterDeployment::default();
        deployment.spec.cluster_name = "blue".into();
        let its_own = |asked: &Key| *asked == Key::new("hosted-blue", "blue");
        assert_eq!(
            hosted_server(&key, Some(&deployment), its_own),
            None,
            "it is no cluster of Cluster API"
        );
        deployment
            .labels_mut()
            .insert(label::AGENT_CLUSTER.into(), "blue".into());
        assert_eq!(
            hosted_server(&key, Some(&deployment), its_own).as_deref(),
            Some("https://kube-apiserver.hosted-blue.svc:6443")
        );
        assert_eq!(
            hosted_server(&key, Some(&deployment), |_| false),
            None,
            "it runs elsewhere"
        );
        assert_eq!(hosted_server(&key, None, |_| true), None, "nobody describes it");
    }

    /// The namespace distinguishes clients made of it.
    fn kubeconfig(namespace: &str) -> String {
        let context = serde_json::json!({ "cluster": "c", "user": "u", "namespace": namespace });
        serde_json::json!({
            "current-context": "c", "contexts": [{ "name": "c", "context": context }],
            "clusters": [{ "name": "c", "cluster": { "server": "https://192.0.2.1" } }],
            "users": [{ "name": "u", "user": { "token": "hunter2" } }],
        })
        .to_string()
    }

    fn access(kubeconfig: String, server: Option<String>) -> Access {
        Access { kubeconfig, server }
    }

    #[tokio::test]
    async fn a_client_is_kept_until_its_kubeconfig_or_its_server_changes() {
        let (spokes, key) = (Spokes::default(), Key::new("clusters", "blue"));
        let inside = || Some("https://kube-apiserver.blue.svc:6443".to_owned());
        let kept = make(&access(kubeconfig("kept"), None), None).await.unwrap();
        let ask = async |namespace: &str, server: Option<String>| {
            let client = spokes
                .client(&key, &access(kubeconfig(namespace), server))
                .await
                .unwrap();
            // Whoever gets this one the next time got it from memory.
            let mut known = spokes.known.lock().unwrap();
            known.get_mut(&key).unwrap().1 = kept.clone();
            client.default_namespace().to_owned()
        };
        assert_eq!(ask("one", None).await, "one");
        assert_eq!(ask("one", None).await, "kept");
        assert_eq!(ask("two", None).await, "two", "another kubeconfig");
        assert_eq!(ask("two", inside()).await, "two", "another server");
        assert_eq!(ask("two", inside()).await, "kept");
    }

    #[tokio::test]
    async fn the_server_inside_counts_instead_of_the_one_in_the_kubeconfig() {
        let server = async |given: Option<&str>| {
            let access = access(kubeconfig("one"), given.map(str::to_owned));
            let made = config(&access, None).await.unwrap();
            made.cluster_url.to_string()
        };
        assert_eq!(server(None).await, "https://192.0.2.1/");
        let inside = "https://kube-apiserver.blue.svc:6443/";
        assert_eq!(server(Some(inside)).await, inside);
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_not_quoted() {
        let refusal = make(&access("token: hunter2".into(), None), None)
            .await
            .err()
            .unwrap_or_default();
        assert!(!refusal.is_empty() && !refusal.contains("hunter2"), "{refusal}");
    }

    #[tokio::test]
    async fn no_client_is_made_that_would_open_files_of_this_machine() {
        let kubeconfig = r#"{"current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1"}}],
            "users": [{"name": "u", "user": {"tokenFile": "/proc/self/status"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}"#;
        let refusal = Spokes::default()
            .client(&Key::new("clusters", "blue"), &access(kubeconfig.into(), None))
            .await;
        assert!(
            matches!(&refusal, Err(NoSpoke::Failed(why)) if why.contains("(tokenFile)")),
            "{:?}",
            refusal.err()
        );
    }

    #[test]
    fn authorities_of_this_machine_are_trusted_beside_the_clusters_own() {
        let url = "https://api.example.com:6443".parse().expect("an address");
        let mut config = Config::new(url);
        let system = [b"system".to_vec()];
        assert_eq!(
            trusting(config.clone(), &system).root_cert,
            None,
            "without its own, all of the machine's count anyway"
        );
        config.root_cert = Some(vec![b"own".to_vec()]);
        let both = trusting(config, &system).root_cert;
        assert_eq!(both, Some(vec![b"own".to_vec(), b"system".to_vec()]));
    }
}
