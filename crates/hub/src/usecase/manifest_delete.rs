//! Removes a manifest.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::ignition::MANIFESTS;
use crate::usecase::manifest_list::{self, missing};
use muster_domain::ClusterId;
use muster_domain::cluster::{Event, lifecycle};
use muster_store::FileWrite;

pub async fn manifest_delete(
    hub: &Hub,
    id: ClusterId,
    folder: &str,
    file_name: &str,
    opctx: &OpContext,
) -> Result<(), Error> {
    let path = manifest_list::path(folder, file_name);
    hub.change_cluster_by_files(id, MANIFESTS, opctx, |cluster, files| {
        let decision = lifecycle::next(cluster, &Event::Update, hub.cluster_around())?;
        if !files.iter().any(|file| file.path == path) {
            return Err(missing(folder, file_name));
        }
        Ok((decision, vec![FileWrite::delete(id, path.clone())]))
    })
    .await?;
    Ok(())
}
