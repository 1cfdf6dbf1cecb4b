//! Where Ironic is: what its operator's Secret says; else what OpenShift's `Provisioning` and the pod of Ironic tell.
//!
//! Neither has to be there, and nothing of it is watched: where OpenShift is not, the answer is that nobody knows.

use super::ironic::{self, Ironic, Sources};
use crate::crd::InfraEnv;
use crate::error::Error;
use crate::key::Key;
use crate::runtime::Context;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;
use std::net::IpAddr;

/// There is one, of this name.
const PROVISIONING: &str = "provisioning-configuration";
/// The pod that Ironic runs in.
const PODS: &str = "k8s-app=metal3,baremetal.openshift.io/cluster-baremetal-operator=metal3-state";

/// What an image for Ironic's agent needs, or what is missing.
pub async fn find(ctx: &Context, infra_env: &InfraEnv) -> Result<Result<Ironic, String>, Error> {
    let mut sources = Sources {
        config: ctx.secret(&ctx.ironic).await?,
        images: ctx.ironic_images.clone(),
        ..Sources::default()
    };
    if !sources.tells() {
        sources.addresses = addresses(ctx).await?;
    }
    // One needs no choice.
    if sources.addresses.len() > 1 {
        sources.family = family(ctx, infra_env).await?;
    }
    Ok(ironic::settings(infra_env, &sources, &ctx.ironic))
}

async fn addresses(ctx: &Context) -> Result<Vec<IpAddr>, Error> {
    let kind = GroupVersionKind::gvk("metal3.io", "v1alpha1", "Provisioning");
    let all: Api<DynamicObject> = Api::all_with(ctx.kube.clone(), &ApiResource::from_gvk(&kind));
    let Some(provisioning) = allowed(all.get_opt(PROVISIONING).await)?.flatten() else {
        return Ok(Vec::new());
    };
    if let Some(address) = of_network(&provisioning.data["spec"]) {
        return Ok(address.parse().into_iter().collect());
    }
    let pods: Api<Pod> = Api::namespaced(ctx.kube.clone(), &ctx.ironic.namespace);
    let found = allowed(pods.list(&ListParams::default().labels(PODS)).await)?;
    Ok(of_pods(found.map(|found| found.items).unwrap_or_default()))
}

/// Who has no right to see it does not see it.
fn allowed<T>(answer: kube::Result<T>) -> Result<Option<T>, Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {
            tracing::debug!(%status, "where Ironic is cannot be seen");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
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
            ctx.mirrors
                .cluster_deployments
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
        Some(key) => ctx.mirrors.agent_cluster_installs.find(&key).await?,
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
    fn the_pod_that_stays_tells_its_addresses() {
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
