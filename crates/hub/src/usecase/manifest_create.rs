//! Somebody adds a manifest, which the installation applies.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::ignition::MANIFESTS;
use crate::usecase::manifest_list::{self, Manifest, Source};
use muster_domain::ClusterId;
use muster_domain::cluster::{Event, lifecycle};
use muster_domain::input::{Invalid, manifest as rules};
use muster_domain::refusal::Refused;
use muster_store::FileWrite;
use serde::Deserialize;

/// Longer names are refused by the file systems they end up on.
const LONGEST_NAME: usize = 255;

/// A file of this name in this folder is replaced; in the other folder there must be none.
pub async fn manifest_create(
    hub: &Hub,
    id: ClusterId,
    folder: &str,
    file_name: &str,
    content: &str,
    opctx: &OpContext,
) -> Result<Manifest, Error> {
    judge_name("file_name", file_name)?;
    // A wrong id comes before wrong content.
    hub.index
        .cluster(id)
        .ok_or_else(|| Error::missing("cluster", id))?;
    let content = judge_content(file_name, content)?;
    hub.change_cluster_by_files(id, MANIFESTS, opctx, |cluster, files| {
        let decision = lifecycle::next(cluster, &Event::Update, hub.cluster_around())?;
        only_once(&manifest_list::users(files), folder, file_name)?;
        let write = FileWrite::put(id, manifest_list::path(folder, file_name), content.clone());
        Ok((decision, vec![write]))
    })
    .await?;
    Ok(Manifest {
        folder: folder.into(),
        file_name: file_name.into(),
        source: Source::User,
    })
}

pub fn judge_name(field: &str, file_name: &str) -> Result<(), Invalid> {
    rules::manifest_file_name(file_name).map_err(|invalid| Invalid {
        field: field.into(),
        ..invalid
    })?;
    if file_name.len() > LONGEST_NAME {
        let problem = format!("has {} bytes", file_name.len());
        return Err(Invalid::schema(
            field,
            problem,
            format!("use at most {LONGEST_NAME}"),
        ));
    }
    Ok(())
}

/// Decodes; a manifest that nobody can read would fail the installation much later.
pub fn judge_content(file_name: &str, base64: &str) -> Result<Vec<u8>, Invalid> {
    let content = rules::manifest_content(base64)?;
    judge_form(file_name, &content)?;
    Ok(content)
}

pub fn judge_form(file_name: &str, content: &[u8]) -> Result<(), Invalid> {
    if file_name.ends_with(".json") {
        let read = serde_json::from_slice::<serde::de::IgnoredAny>(content);
        return read.map(drop).map_err(|error| {
            let problem = format!("is not JSON (line {}, column {})", error.line(), error.column());
            Invalid::rule(
                "content",
                problem,
                "give a manifest in JSON, or another file name",
            )
        });
    }
    for document in serde_norway::Deserializer::from_slice(content) {
        serde_norway::Value::deserialize(document).map_err(|error| {
            let place = error.location().map_or(String::new(), |at| {
                format!(" (line {}, column {})", at.line(), at.column())
            });
            Invalid::rule(
                "content",
                format!("is not YAML{place}"),
                "give a manifest in YAML",
            )
        })?;
    }
    Ok(())
}

/// The installer puts both folders together, where one of two namesakes would be lost.
pub fn only_once(manifests: &[Manifest], folder: &str, file_name: &str) -> Result<(), Refused> {
    let namesake = manifests
        .iter()
        .find(|other| other.file_name == file_name && other.folder != folder);
    match namesake {
        None => Ok(()),
        Some(other) => Err(Refused::conflict(
            "manifest-exists",
            format!(
                "There is a manifest {file_name} in the folder {} already.",
                other.folder
            ),
            "Choose another name, or delete that one first.",
        )),
    }
}
