//! A cluster's manifests: where they are kept, which there are, and what is in one.

use crate::Hub;
use crate::error::Error;
use crate::ignition::{GENERATED, MANIFESTS};
use muster_domain::ClusterId;
use muster_store::FileStat;

/// Where a manifest comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    User,
    System,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub folder: String,
    pub file_name: String,
    pub source: Source,
}

pub fn path(folder: &str, file_name: &str) -> String {
    format!("{MANIFESTS}{folder}/{file_name}")
}

/// What a path says, when it is one of a manifest.
pub fn read(file: &FileStat, below: &str, source: Source) -> Option<Manifest> {
    let (folder, file_name) = file.path.strip_prefix(below)?.split_once('/')?;
    Some(Manifest {
        folder: folder.into(),
        file_name: file_name.into(),
        source,
    })
}

pub fn users(files: &[FileStat]) -> Vec<Manifest> {
    files
        .iter()
        .filter_map(|file| read(file, MANIFESTS, Source::User))
        .collect()
}

pub async fn manifest_list(hub: &Hub, id: ClusterId, with_system: bool) -> Result<Vec<Manifest>, Error> {
    let mut list = users(&hub.store.file_list(id, MANIFESTS).await?);
    if with_system {
        let below = format!("{GENERATED}{MANIFESTS}");
        let files = hub.store.file_list(id, &below).await?;
        list.extend(files.iter().filter_map(|file| read(file, &below, Source::System)));
    }
    Ok(list)
}

pub async fn manifest_content(
    hub: &Hub,
    id: ClusterId,
    folder: &str,
    file_name: &str,
) -> Result<Vec<u8>, Error> {
    let own = hub.store.file_read(id, &path(folder, file_name)).await?;
    let content = match own {
        Some(content) => Some(content),
        None => {
            let made = format!("{GENERATED}{}", path(folder, file_name));
            hub.store.file_read(id, &made).await?
        }
    };
    content.ok_or_else(|| missing(folder, file_name))
}

pub fn missing(folder: &str, file_name: &str) -> Error {
    Error::missing("manifest", format!("{folder}/{file_name}"))
}
