//! Where Ironic is: what its operator's Secret says; else what OpenShift's `Provisioning` and the pod of Ironic say.
//!
//! Neither has to be there: where OpenShift is not, the answer is that nobody knows. Of these only the Secret is
//! watched, once it has the label; the operator polls the others.

use super::ironic::{self, Ironic, Sources};
use crate::crd::keys::label;
use crate::crd::{AgentClusterInstall, ClusterDeployment, InfraEnv};
use crate::error::Error;
use crate::key::Key;
use crate::runtime::Context;
use crate::runtime::secret::Found;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// There is one, of this name.
const PROVISIONING: &str = "provisioning-configuration";
/// The pod that Ironic runs in.
const PODS: &str = "k8s-app=metal3,baremetal.openshift.io/cluster-baremetal-operator=metal3-state";

/// Where Ironic is, and how it is noticed that it moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whereabouts {
    /// What an image for Ironic's agent needs, or what is missing.
    pub ironic: Result<Ironic, String>,
    /// The Secret, and labels that it is to get because it is used; empty when it has them, or nobody would watch it.
    pub secret: Key,
    pub missing_labels: BTreeMap<String, String>,
    /// Whether the Secret says it, and is watched.
    pub is_watched: bool,
    /// What the operator may not read.
    pub hidden: Option<String>,
}

impl Whereabouts {
    /// The operator has not read anything.
    pub fn unknown(secret: &Key, why: String) -> Self {
        Self {
            ironic: Err(why),
            secret: secret.clone(),
            missing_labels: BTreeMap::new(),
            is_watched: false,
            hidden: None,
        }
    }
}

pub async fn find(ctx: &Context, infra_env: &InfraEnv) -> Result<Whereabouts, Error> {
    let right = format!("get secrets in namespace {}", ctx.ironic.namespace);
    let (config, hidden) = split(readable(ctx.secret(&ctx.ironic).await, &right)?);
    let mut sources = Sources {
        config,
        hidden,
        images: ctx.ironic_images.clone(),
        ..Sources::default()
    };
    if !sources.tells() {
        let (addresses, hidden) = split(addresses(ctx).await?);
        sources.addresses = addresses.unwrap_or_default();
        sources.hidden = sources.hidden.or(hidden);
    }
    // One needs no choice.
    if sources.addresses.len() > 1 {
        sources.family = family(ctx, infra_env).await?;
    }
    let is_cached = ctx.cache::<Secret>().covers(&ctx.ironic.namespace);
    let config = sources.config.as_ref().filter(|_| is_cached);
    Ok(Whereabouts {
        ironic: ironic::settings(infra_env, &sources, &ctx.ironic),
        secret: ctx.ironic.clone(),
        missing_labels: config.map(to_be_watched).unwrap_or_default(),
        is_watched: config.is_some() && sources.tells(),
        hidden: sources.hidden,
    })
}

/// Not part of a backup: elsewhere Ironic is elsewhere.
fn to_be_watched(config: &Found) -> BTreeMap<String, String> {
    let mut labels = config.missing_labels.clone();
    labels.retain(|name, _| name == label::WATCH);
    labels
}

/// What there is, or what the operator may not read.
type Readable<T> = Result<Option<T>, String>;

fn split<T>(readable: Readable<T>) -> (Option<T>, Option<String>) {
    match readable {
        Ok(found) => (found, None),
        Err(hidden) => (None, Some(hidden)),
    }
}

/// A missing right does not come by itself: an event says so.
fn readable<T>(answer: Result<Option<T>, Error>, right: &str) -> Result<Readable<T>, Error> {
    let is_refused = |error: &Error| {
        let Error::Kube(error) = error else { return false };
        matches!(&**error, kube::Error::Api(status) if status.code == 403)
    };
    match answer {
        Ok(found) => Ok(Ok(found)),
        Err(Error::Gone) => Ok(Ok(None)),
        Err(error) if is_refused(&error) => Ok(Err(format!("the operator has no right to {right}"))),
        Err(error) => Err(error),
    }
}

async fn addresses(ctx: &Context) -> Result<Readable<Vec<IpAddr>>, Error> {
    let kind = GroupVersionKind::gvk("metal3.io", "v1alpha1", "Provisioning");
    let all: Api<DynamicObject> = Api::all_with(ctx.kube.clone(), &ApiResource::from_gvk(&kind));
    let answer = all.get_opt(PROVISIONING).await.map_err(Error::from);
    let provisioning = match readable(answer, "get provisionings.metal3.io")? {
        Ok(Some(provisioning)) => provisioning,
        Ok(None) => return Ok(Ok(None)),
        Err(hidden) => return Ok(Err(hidden)),
    };
    if let Some(address) = of_network(&provisioning.data["spec"]) {
        return Ok(Ok(Some(address.parse().into_iter().collect())));
    }
    let pods: Api<Pod> = Api::namespaced(ctx.kube.clone(), &ctx.ironic.namespace);
    let answer = pods.list(&ListParams::default().labels(PODS)).await;
    let answer = answer
        .map(|found| Some(of_pods(found.items)))
        .map_err(Error::from);
    let right = format!("list pods in namespace {}", ctx.ironic.namespace);
    readable(answer, &right)
}

/// The address that Ironic has on a network of its own, if machines fetch their images over that.
fn of_network(spec: &Value) -> Option<&str> {
    let own = spec["provisioningNetwork"] != "Disabled" && spec["virtualMediaViaExternalNetwork"] != true;
    own.then(|| spec["provisioningIP"].as_str().unwrap_or_default())
}

/// One that goes is not asked any more.
fn of_pods(pods: Vec<Pod>) -> Vec<IpAddr> {
    let mut pods = pods
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let Some(status) = pods.next().and_then(|pod| pod.status) else {
        return Vec::new();
    };
    let addresses = status.pod_ips.unwrap_or_default();
    let addresses: Vec<IpAddr> = addresses.iter().filter_map(|one| one.ip.parse().ok()).collect();
    match addresses.is_empty() {
        true => status
            .host_ip
            .and_then(|text| text.parse().ok())
            .into_iter()
            .collect(),
        false => addresses,
    }
}

async fn family(ctx: &Context, infra_env: &InfraEnv) -> Result<Option<ironic::Family>, Error> {
    let deployment = match &infra_env.spec.cluster_ref {
        Some(reference) => {
            ctx.cache::<ClusterDeployment>()
                .find(&Key::from(reference))
                .await?
        }
        None => None,
    };
    let named = deployment.as_ref().and_then(|deployment| {
        let namespace = deployment.metadata.namespace.clone()?;
        Some(Key::new(namespace, deployment.install_name()?))
    });
    let install = match named {
        Some(key) => ctx.cache::<AgentClusterInstall>().find(&key).await?,
        None => None,
    };
    Ok(ironic::family(infra_env, install.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(change: impl FnOnce(&mut Value)) -> Pod {
        let mut pod = json!({ "metadata": { "name": "metal3" },
            "status": { "hostIP": "192.0.2.1", "podIPs": [{ "ip": "192.0.2.1" }, { "ip": "2001:db8::1" }] } });
        change(&mut pod);
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn a_network_of_its_own_counts_unless_images_come_over_another() {
        let address = json!({ "provisioningIP": "172.22.0.3", "provisioningNetwork": "Managed" });
        assert_eq!(of_network(&address), Some("172.22.0.3"));
        let disabled = json!({ "provisioningIP": "172.22.0.3", "provisioningNetwork": "Disabled" });
        assert_eq!(of_network(&disabled), None);
        let external = json!({ "provisioningIP": "172.22.0.3", "virtualMediaViaExternalNetwork": true });
        assert_eq!(of_network(&external), None);
    }

    #[test]
    fn the_pod_that_stays_has_the_addresses() {
        let going = pod(|pod| {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            pod["status"]["podIPs"] = json!([{ "ip": "192.0.2.9" }]);
        });
        let texts =
            |pods: Vec<Pod>| -> Vec<String> { of_pods(pods).iter().map(ToString::to_string).collect() };
        assert_eq!(
            texts(vec![going.clone(), pod(|_| ())]),
            ["192.0.2.1", "2001:db8::1"]
        );
        let older = pod(|pod| pod["status"]["podIPs"] = Value::Null);
        assert_eq!(texts(vec![older]), ["192.0.2.1"]);
        assert!(texts(vec![going]).is_empty());
        assert!(texts(vec![pod(|pod| pod["status"] = Value::Null)]).is_empty());
    }
}
