//! How to get into the cluster: kept as secrets, and named by the objects.

use super::adoption::owner;
use super::stage::{Kind, Stage};
use super::{Snapshot, Step};
use crate::controller::cluster_deployment::snapshot::Row;
use crate::crd::agent_cluster_install::{AgentClusterInstallSpec, ClusterMetadata};
use crate::crd::keys::{data, label};
use crate::crd::reference::LocalRef;
use crate::crd::{AgentClusterInstall, ClusterDeployment};
use crate::key::Key;
use crate::runtime::secret::Found;
use kube::ResourceExt;
use muster_contract::Secret;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A secret that belongs to the ClusterDeployment.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSecret {
    pub key: Key,
    /// There is one already, with other values.
    pub exists: bool,
    pub labels: BTreeMap<String, String>,
    pub owner: Value,
    pub values: BTreeMap<&'static str, Secret>,
}

/// Hive's marks: where it is, it fills in what it owns.
const HIVE_FINALIZER: &str = "hive.openshift.io/deprovision";
const HIVE_PLATFORM: &str = "hive.openshift.io/cluster-platform";

pub fn steps(snapshot: &Snapshot, install: &AgentClusterInstall, row: &Row) -> Vec<Step> {
    let Some(deployment) = &snapshot.deployment else {
        return Vec::new();
    };
    let mut steps = Vec::new();
    if let Some(kubeconfig) = &row.credentials.kubeconfig {
        let values = BTreeMap::from([(data::KUBECONFIG, kubeconfig.clone())]);
        steps.extend(secret(
            deployment,
            snapshot.kubeconfig_key(),
            snapshot.kept.kubeconfig.as_ref(),
            "kubeconfig",
            values,
        ));
    }
    if let Some(login) = &row.credentials.login {
        let values = BTreeMap::from([
            (data::USERNAME, Secret(login.username.clone())),
            (data::PASSWORD, login.password.clone()),
        ]);
        steps.extend(secret(
            deployment,
            snapshot.password_key(),
            snapshot.kept.password.as_ref(),
            "kubeadmincreds",
            values,
        ));
    }
    steps.extend(metadata(snapshot, row).and_then(|metadata| named(&install.spec, &metadata)));
    if steps.is_empty() {
        steps.extend(stand_in(snapshot, deployment, row));
    }
    steps
}

fn secret(
    deployment: &ClusterDeployment,
    key: Key,
    kept: Option<&Found>,
    type_: &str,
    values: BTreeMap<&'static str, Secret>,
) -> Option<Step> {
    let same = kept.is_some_and(|kept| {
        values
            .iter()
            .all(|(name, value)| kept.value(name) == Some(&value.0))
    });
    if same {
        return None;
    }
    let mut owner = owner(deployment);
    owner["blockOwnerDeletion"] = json!(true);
    let labels = [
        (label::HIVE_CLUSTER_DEPLOYMENT, deployment.name_any()),
        (label::HIVE_SECRET_TYPE, type_.into()),
    ];
    Some(Step::PutSecret(Box::new(NewSecret {
        key,
        exists: kept.is_some(),
        labels: labels.map(|(key, value)| (key.to_owned(), value)).into(),
        owner,
        values,
    })))
}

/// What is said about the cluster: while it installs as soon as there is a kubeconfig, at its end everything.
fn metadata(snapshot: &Snapshot, row: &Row) -> Option<ClusterMetadata> {
    let id = snapshot.id?;
    let kubeconfig = LocalRef {
        name: snapshot.kubeconfig_key().name,
    };
    let password = LocalRef {
        name: snapshot.password_key().name,
    };
    let whole = |cluster_id: String, password: Option<LocalRef>| ClusterMetadata {
        cluster_id,
        infra_id: id.to_string(),
        admin_kubeconfig_secret_ref: kubeconfig.clone(),
        admin_password_secret_ref: password,
        ..ClusterMetadata::default()
    };
    let own_id = row.view.openshift_cluster_id;
    match (row.kind(), row.stage()) {
        (Kind::New, Stage::Installing | Stage::Finalizing) if snapshot.metadata().is_none() => {
            row.credentials.kubeconfig.as_ref()?;
            Some(whole(own_id?.to_string(), None))
        }
        (Kind::New, Stage::Installed) => {
            let login = row.credentials.login.as_ref();
            Some(whole(own_id.unwrap_or(id).to_string(), login.map(|_| password)))
        }
        (Kind::New | Kind::AddsHosts | Kind::Other, _) => None,
    }
}

/// Fields of others inside are left alone.
fn named(spec: &AgentClusterInstallSpec, wanted: &ClusterMetadata) -> Option<Step> {
    let same = spec.cluster_metadata.as_ref().is_some_and(|now| {
        let password = wanted.admin_password_secret_ref.is_none()
            || now.admin_password_secret_ref == wanted.admin_password_secret_ref;
        let ids = (&now.cluster_id, &now.infra_id) == (&wanted.cluster_id, &wanted.infra_id);
        ids && password && now.admin_kubeconfig_secret_ref == wanted.admin_kubeconfig_secret_ref
    });
    (!same).then(|| Step::PatchInstall(json!({ "spec": { "clusterMetadata": wanted } })))
}

/// Without Hive nobody else says that the cluster is installed.
fn stand_in(snapshot: &Snapshot, deployment: &ClusterDeployment, row: &Row) -> Option<Step> {
    let hive = deployment.labels().contains_key(HIVE_PLATFORM)
        || deployment
            .finalizers()
            .iter()
            .any(|finalizer| finalizer == HIVE_FINALIZER);
    if hive || deployment.spec.installed || !row.stage().is_completed() {
        return None;
    }
    let metadata = snapshot.metadata()?;
    Some(Step::PatchDeployment(
        json!({ "spec": { "installed": true, "clusterMetadata": metadata } }),
    ))
}
