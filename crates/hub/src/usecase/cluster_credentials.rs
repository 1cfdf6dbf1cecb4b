//! How to get into an installed cluster.

use crate::Hub;
use crate::error::Error;
use crate::usecase::cluster_files::{cluster_file, find, made, only_while};
use muster_domain::ClusterId;
use muster_domain::cluster::{IgnitionSource, OperatorStatus, Phase, Status};
use muster_domain::refusal::Refused;

const KUBECONFIG: &str = "kubeconfig";
/// The same without the certificate of the ingress: good for the API, not for routes.
const WITHOUT_INGRESS: &str = "kubeconfig-noingress";
const PASSWORD: &str = "kubeadmin-password";

pub struct Credentials {
    pub username: &'static str,
    pub password: String,
    pub console_url: String,
}

/// The file and the name it really has: without the ingress's certificate there is only the other kubeconfig.
pub async fn credential_file(hub: &Hub, id: ClusterId, name: &str) -> Result<(String, Vec<u8>), Error> {
    if name != KUBECONFIG {
        return Ok((name.into(), cluster_file(hub, id, name).await?));
    }
    let cluster = find(hub, id)?;
    only_while(&cluster, name, Status::has_kubeconfig)?;
    match made(hub, &cluster, KUBECONFIG).await? {
        Some(content) => Ok((KUBECONFIG.into(), content)),
        None => Ok((
            WITHOUT_INGRESS.into(),
            cluster_file(hub, id, WITHOUT_INGRESS).await?,
        )),
    }
}

pub async fn credentials(hub: &Hub, id: ClusterId) -> Result<Credentials, Error> {
    let cluster = find(hub, id)?;
    let has_console = cluster
        .operators
        .iter()
        .any(|operator| operator.name == "console" && operator.status == OperatorStatus::Available);
    if cluster.ignition_source != IgnitionSource::Installer && cluster.phase != Phase::Draft {
        let reason = format!(
            "Cluster {} was installed with its owner's ignition, which holds its credentials.",
            cluster.name
        );
        return Err(
            Refused::conflict("no-credentials-here", reason, "Ask whoever wrote that ignition.").into(),
        );
    }
    if !has_console {
        let reason = format!("Cluster {} has no console yet.", cluster.name);
        let next = "Ask again when its operator console is available.";
        return Err(Refused::conflict("no-console-yet", reason, next).into());
    }
    let password = made(hub, &cluster, PASSWORD).await?.ok_or_else(|| {
        let reason = format!(
            "Cluster {} has no password: this hub did not install it.",
            cluster.name
        );
        Refused::conflict("file-not-made", reason, "")
    })?;
    Ok(Credentials {
        username: "kubeadmin",
        password: String::from_utf8_lossy(&password).trim_end().to_owned(),
        console_url: format!(
            "https://console-openshift-console.apps.{}.{}",
            cluster.name, cluster.base_dns_domain
        ),
    })
}
