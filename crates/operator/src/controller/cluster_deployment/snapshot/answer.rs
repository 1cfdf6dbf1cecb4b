//! The hub's answers, as the snapshot of a cluster understands them.

use super::{Login, Manifest};
use crate::error::Refusal;
use crate::runtime::Context;
use muster_contract::v2::cluster::CredentialsView;
use muster_contract::v2::manifest::{ManifestFolder, ManifestQuery, ManifestsQuery};
use muster_contract::{ClientError, Secret};
use std::collections::BTreeMap;
use uuid::Uuid;

pub async fn manifests(ctx: &Context, id: Uuid) -> Result<BTreeMap<String, Manifest>, ClientError> {
    let mut all = BTreeMap::new();
    for view in ctx.hub.manifests(id, &ManifestsQuery::default()).await? {
        let folder: ManifestFolder = view.folder.parse().unwrap_or_default();
        let query = ManifestQuery {
            folder: Some(folder),
            file_name: view.file_name.clone(),
        };
        if let Some(content) = found(ctx.hub.manifest_file(id, &query).await)? {
            all.insert(view.file_name, Manifest { folder, content });
        }
    }
    Ok(all)
}

pub fn login(view: CredentialsView) -> Login {
    Login {
        username: view.username,
        password: view.password.into(),
    }
}

pub fn text(bytes: Option<Vec<u8>>) -> Result<Option<Secret>, ClientError> {
    let text =
        |bytes| String::from_utf8(bytes).map_err(|_| ClientError::Decode("a kubeconfig is not text".into()));
    Ok(bytes.map(text).transpose()?.map(Secret))
}

pub fn found<T>(answer: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(ClientError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What cannot be had in the state the cluster is in is not there.
pub fn made<T>(answer: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match answer {
        Err(ClientError::Refused { status: 409, .. }) => Ok(None),
        answer => found(answer),
    }
}

/// A refusal is an answer, too.
pub fn or_refusal<T>(answer: Result<T, ClientError>) -> Result<Result<T, Refusal>, ClientError> {
    match answer {
        Ok(found) => Ok(Ok(found)),
        Err(error) => match Refusal::from(error.clone()) {
            Refusal::Internal(_) => Err(error),
            failure @ (Refusal::Conflict(_) | Refusal::Input(_)) => Ok(Err(failure)),
        },
    }
}
