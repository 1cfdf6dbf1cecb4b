//! The AgentClusterInstall of a cluster of Cluster API, and where its hosts fetch their ignition.

use crate::controller::agent_cluster::snapshot::{Snapshot, install_key};
use crate::crd::agent_cluster_install::{
    AgentClusterInstallSpec, IgnitionEndpoint, Networking, ProvisionRequirements,
};
use crate::crd::reference::LocalRef;
use crate::crd::{AgentClusterInstall, ClusterDeployment};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use std::net::Ipv6Addr;

/// What installed clusters are described with; nobody counts these.
const CONTROL_PLANE_AGENTS: i64 = 3;

pub fn install(snapshot: &Snapshot, deployment: &ClusterDeployment) -> Result<AgentClusterInstall, String> {
    let key = install_key(deployment);
    let endpoint = snapshot.cluster.spec.ignition_endpoint.as_ref();
    let endpoint = endpoint.map(|endpoint| {
        Ok::<_, String>(IgnitionEndpoint {
            url: without_path(&endpoint.url)?,
            ca_certificate_reference: endpoint.ca_certificate_reference.clone(),
        })
    });
    Ok(AgentClusterInstall {
        metadata: ObjectMeta {
            name: Some(key.name),
            namespace: Some(key.namespace),
            owner_references: Some(vec![OwnerReference {
                api_version: ClusterDeployment::api_version(&()).into_owned(),
                kind: ClusterDeployment::kind(&()).into_owned(),
                name: deployment.name_any(),
                uid: deployment.uid().unwrap_or_default(),
                controller: None,
                block_owner_deletion: None,
            }]),
            ..ObjectMeta::default()
        },
        spec: AgentClusterInstallSpec {
            cluster_deployment_ref: LocalRef {
                name: deployment.name_any(),
            },
            // Nobody in the cluster manages hosts: certificates are approved here.
            networking: Networking {
                user_managed_networking: Some(true),
                ..Networking::default()
            },
            provision_requirements: ProvisionRequirements {
                control_plane_agents: CONTROL_PLANE_AGENTS,
                ..ProvisionRequirements::default()
            },
            ignition_endpoint: endpoint.transpose()?,
            ..AgentClusterInstallSpec::default()
        },
        status: None,
    })
}

/// Scheme, host and port. The path comes back as the name of each host's pool, which is the last part of the address it
/// fetches from.
pub fn without_path(url: &str) -> Result<String, String> {
    let bad = || format!("spec.ignitionEndpoint.url {url:?} is not a URL.");
    if url.is_empty() {
        return Ok(String::new());
    }
    let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if scheme.is_empty() || authority.is_empty() {
        return Err(bad());
    }
    Ok(format!("{scheme}://{}", bracketed(authority)))
}

/// Addresses of version 6 are written without brackets by some. What can be an address as a whole is one; else the last
/// part is the port.
fn bracketed(authority: &str) -> String {
    let is_address = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    if is_address(authority) {
        return format!("[{authority}]");
    }
    match authority.rsplit_once(':') {
        Some((host, port)) if is_address(host) => format!("[{host}]:{port}"),
        _ => authority.to_owned(),
    }
}
