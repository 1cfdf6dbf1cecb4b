//! What a program asks that keeps clusters as something else describes them.

use super::{HubClient, Result, v1, v2};
use crate::v1::link::ClusterLinks;
use crate::v1::release::{ReleaseQuery, ReleaseView};
use crate::v1::trust::TrustView;
use crate::v2::cluster::{ClusterDefaultsView, ClusterView};
use crate::v2::cluster_request::ClusterQuery;
use crate::v2::validation::SetIgnoredValidations;
use reqwest::Method;
use uuid::Uuid;

impl HubClient {
    /// Which release an image is; refused when neither the hub's list nor the image's name tells.
    pub async fn release_of_image(&self, image: &str) -> Result<ReleaseView> {
        let image = image.to_owned();
        self.find(v1("/releases"), &ReleaseQuery { image }).await
    }

    /// How agents that are started by others know the hub.
    pub async fn trust(&self) -> Result<TrustView> {
        self.get(v1("/trust")).await
    }

    pub async fn cluster_links(&self, id: Uuid) -> Result<ClusterLinks> {
        self.get(v1(format!("/clusters/{id}/links"))).await
    }

    /// Small however many hosts it has.
    pub async fn cluster_without_hosts(&self, id: Uuid) -> Result<ClusterView> {
        let query = ClusterQuery {
            exclude_hosts: Some(true),
        };
        self.find(v2(format!("/clusters/{id}")), &query).await
    }

    /// What the hub chooses where nothing else is asked for.
    pub async fn cluster_defaults(&self) -> Result<ClusterDefaultsView> {
        self.get(v2("/clusters/default-config")).await
    }

    pub async fn ignore_validations(&self, id: Uuid, body: &SetIgnoredValidations) -> Result<()> {
        let path = v2(format!("/clusters/{id}/ignored-validations"));
        self.tell(Method::PUT, path, Some(body)).await
    }
}
