//! Ignition that people bring, for any cluster whose nodes are configured by it: Fedora CoreOS, k3s, others.

use super::{Made, UPLOADED, role_file, roles};
use crate::Hub;
use crate::error::Error;
use muster_domain::ClusterId;
use muster_domain::cluster::Cluster;
use muster_store::FileStat;
use muster_vocabulary::InstallRole;

pub fn path(role: InstallRole) -> String {
    format!("{UPLOADED}{role}.ign")
}

/// The roles for which there is a config, as [`muster_domain::cluster::install::source`] wants them.
pub async fn roles_uploaded(hub: &Hub, cluster: ClusterId) -> Result<Vec<InstallRole>, Error> {
    let files = hub.store.file_list(cluster, UPLOADED).await?;
    Ok(roles_of(&files))
}

/// The same for files that were listed already.
pub fn roles_of(files: &[FileStat]) -> Vec<InstallRole> {
    let names = files
        .iter()
        .filter_map(|file| file.path.strip_prefix(UPLOADED)?.strip_suffix(".ign"));
    names.filter_map(InstallRole::from_word).collect()
}

/// Copies, so that what is uploaded later does not change an installation under way.
pub async fn make(hub: &Hub, cluster: &Cluster) -> Result<Made, String> {
    let uploaded = roles_uploaded(hub, cluster.id)
        .await
        .map_err(|error| format!("The hub cannot read the uploaded ignition files: {error}."))?;
    for role in roles(hub, cluster) {
        if !uploaded.contains(&role.installed_as()) {
            let file = role_file(role);
            return Err(format!(
                "Hosts of cluster {} have the role {}, but nobody uploaded ignition for it. Upload {file}.",
                cluster.name,
                role.word()
            ));
        }
    }
    let mut made = Made::new();
    for role in uploaded {
        let content = hub.store.file_read(cluster.id, &path(role)).await;
        let content = content.map_err(|error| format!("The hub cannot read {role}.ign: {error}."))?;
        if let Some(content) = content {
            made.push((format!("{role}.ign"), content));
        }
    }
    Ok(made)
}
