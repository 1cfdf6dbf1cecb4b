//! Somebody changes a manifest: its content, its name, its folder, or all at once.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::ignition::MANIFESTS;
use crate::usecase::manifest_create::{judge_content, judge_form, judge_name, only_once};
use crate::usecase::manifest_list::{self, Manifest, Source, missing};
use muster_domain::ClusterId;
use muster_domain::cluster::{Event, lifecycle};
use muster_domain::refusal::Refused;
use muster_store::FileWrite;

#[derive(Debug, Default)]
pub struct Change<'a> {
    pub folder: Option<&'a str>,
    pub file_name: Option<&'a str>,
    /// Base64.
    pub content: Option<&'a str>,
}

pub async fn manifest_update(
    hub: &Hub,
    id: ClusterId,
    folder: &str,
    file_name: &str,
    change: &Change<'_>,
    opctx: &OpContext,
) -> Result<Manifest, Error> {
    judge_name("file_name", file_name)?;
    let to_folder = change.folder.unwrap_or(folder);
    let to_name = change.file_name.unwrap_or(file_name);
    judge_name("updated_file_name", to_name)?;
    hub.index
        .cluster(id)
        .ok_or_else(|| Error::missing("cluster", id))?;
    let content = change
        .content
        .map(|content| judge_content(to_name, content))
        .transpose()?;
    if content.is_none() && to_name != file_name {
        // A new ending may promise another form than the content has.
        let kept = hub
            .store
            .file_read(id, &manifest_list::path(folder, file_name))
            .await?;
        judge_form(to_name, &kept.ok_or_else(|| missing(folder, file_name))?)?;
    }
    hub.change_cluster_by_files(id, MANIFESTS, opctx, |cluster, files| {
        let decision = lifecycle::next(cluster, &Event::Update, hub.cluster_around())?;
        let mut others = manifest_list::users(files);
        let before = others.len();
        others.retain(|other| (other.folder.as_str(), other.file_name.as_str()) != (folder, file_name));
        if others.len() == before {
            return Err(missing(folder, file_name));
        }
        if others
            .iter()
            .any(|other| (other.folder.as_str(), other.file_name.as_str()) == (to_folder, to_name))
        {
            return Err(taken(to_folder, to_name).into());
        }
        only_once(&others, to_folder, to_name)?;
        let (from, to) = (
            manifest_list::path(folder, file_name),
            manifest_list::path(to_folder, to_name),
        );
        let mut writes = vec![FileWrite::rename(id, from, to.clone())];
        writes.extend(content.clone().map(|content| FileWrite::put(id, to, content)));
        Ok((decision, writes))
    })
    .await?;
    Ok(Manifest {
        folder: to_folder.into(),
        file_name: to_name.into(),
        source: Source::User,
    })
}

fn taken(folder: &str, file_name: &str) -> Refused {
    Refused::conflict(
        "manifest-exists",
        format!("There is a manifest {file_name} in the folder {folder} already."),
        "Choose another name, or delete that one first.",
    )
}
