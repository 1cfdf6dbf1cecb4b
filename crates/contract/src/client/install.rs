//! What surrounds an installation: manifests, files, operators, logs, ignition of one's own.

use super::{ClientError, HubClient, NOTHING, Result, host_path, v1, v2};
use crate::v1::ignition::UploadedIgnitionView;
use crate::v2::cluster::ClusterView;
use crate::v2::install::*;
use crate::v2::manifest::*;
use crate::v2::operator::{MonitoredOperatorView, OperatorsQuery, ReportOperator};
use muster_vocabulary::InstallRole;
use reqwest::{Method, Response, header};
use uuid::Uuid;

/// Separates the parts of a form; long enough to occur in no file by chance.
const BOUNDARY: &str = "muster-8d0f6e4b2a7c4f1e9b3d5a6c7e8f9012";

fn cluster(id: Uuid, rest: &str) -> String {
    v2(format!("/clusters/{id}/{rest}"))
}

impl HubClient {
    pub async fn manifests(&self, id: Uuid, query: &ManifestsQuery) -> Result<Vec<ManifestView>> {
        self.find(cluster(id, "manifests"), query).await
    }

    pub async fn create_manifest(&self, id: Uuid, body: &CreateManifest) -> Result<ManifestView> {
        self.post(cluster(id, "manifests"), body).await
    }

    pub async fn update_manifest(&self, id: Uuid, body: &UpdateManifest) -> Result<ManifestView> {
        self.patch(cluster(id, "manifests"), body).await
    }

    pub async fn delete_manifest(&self, id: Uuid, query: &ManifestQuery) -> Result<()> {
        self.send(Method::DELETE, cluster(id, "manifests"), Some(query), NOTHING)
            .await
            .map(drop)
    }

    pub async fn manifest_file(&self, id: Uuid, query: &ManifestQuery) -> Result<Vec<u8>> {
        self.download(cluster(id, "manifests/files"), query).await
    }

    /// YAML.
    pub async fn install_config(&self, id: Uuid) -> Result<String> {
        self.get(cluster(id, "install-config")).await
    }

    pub async fn override_install_config(&self, id: Uuid, body: &InstallConfigOverrides) -> Result<()> {
        self.tell(Method::PATCH, cluster(id, "install-config"), Some(body))
            .await
    }

    pub async fn monitored_operators(
        &self,
        id: Uuid,
        query: &OperatorsQuery,
    ) -> Result<Vec<MonitoredOperatorView>> {
        self.find(cluster(id, "monitored-operators"), query).await
    }

    pub async fn report_operator(&self, id: Uuid, body: &ReportOperator) -> Result<()> {
        self.tell(Method::PUT, cluster(id, "monitored-operators"), Some(body))
            .await
    }

    pub async fn report_cluster_progress(&self, id: Uuid, body: &ReportClusterProgress) -> Result<()> {
        self.tell(Method::PUT, cluster(id, "progress"), Some(body)).await
    }

    pub async fn upload_ingress_cert(&self, id: Uuid, body: &IngressCert) -> Result<()> {
        self.tell(Method::POST, cluster(id, "uploads/ingress-cert"), Some(body))
            .await
    }

    pub async fn complete_installation(&self, id: Uuid, body: &CompleteInstallation) -> Result<ClusterView> {
        self.post(cluster(id, "actions/complete-installation"), body)
            .await
    }

    pub async fn report_cluster_logs(&self, id: Uuid, body: &ReportLogsProgress) -> Result<()> {
        self.tell(Method::PUT, cluster(id, "logs-progress"), Some(body))
            .await
    }

    pub async fn report_host_logs(
        &self,
        infra_env: Uuid,
        host: Uuid,
        body: &ReportLogsProgress,
    ) -> Result<()> {
        self.tell(
            Method::PUT,
            host_path(infra_env, host, "/logs-progress"),
            Some(body),
        )
        .await
    }

    pub async fn upload_logs(&self, id: Uuid, query: &LogsQuery, file: &[u8]) -> Result<()> {
        let mut form = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"upfile\"; filename=\"logs.tar.gz\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        )
        .into_bytes();
        form.extend_from_slice(file);
        form.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let request = self
            .http
            .request(Method::POST, format!("{}{}", self.base, cluster(id, "logs")))
            .query(query)
            .header(
                header::CONTENT_TYPE,
                format!("multipart/form-data; boundary={BOUNDARY}"),
            )
            .body(form);
        self.answered(request).await.map(drop)
    }

    /// An archive.
    pub async fn logs(&self, id: Uuid, query: &LogsQuery) -> Result<Vec<u8>> {
        self.download(cluster(id, "logs"), query).await
    }

    /// The same archive, piece by piece: of many hosts it can be larger than memory.
    pub async fn logs_in_pieces(&self, id: Uuid, query: &LogsQuery) -> Result<Pieces> {
        let response = self
            .send(Method::GET, cluster(id, "logs"), Some(query), NOTHING)
            .await?;
        Ok(Pieces(response))
    }

    /// What the installer writes to a host's disk.
    pub async fn download_host_ignition(&self, infra_env: Uuid, host: Uuid) -> Result<Vec<u8>> {
        // Singular, as installers spell it.
        let path = v2(format!("/infra-env/{infra_env}/hosts/{host}/downloads/ignition"));
        self.download(path, &()).await
    }

    /// Brings ignition for a role.
    pub async fn upload_ignition(
        &self,
        id: Uuid,
        role: InstallRole,
        config: Vec<u8>,
    ) -> Result<UploadedIgnitionView> {
        let request = self
            .http
            .request(Method::PUT, format!("{}{}", self.base, ignition(id, role)))
            .header(header::CONTENT_TYPE, "application/json")
            .body(config);
        super::read(self.answered(request).await?).await
    }

    pub async fn uploaded_ignition(&self, id: Uuid, role: InstallRole) -> Result<Vec<u8>> {
        self.download(ignition(id, role), &()).await
    }

    pub async fn remove_ignition(&self, id: Uuid, role: InstallRole) -> Result<()> {
        self.delete(ignition(id, role)).await
    }
}

/// A download that is not kept as a whole.
#[derive(Debug)]
pub struct Pieces(Response);

impl Pieces {
    /// The next piece; none at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let piece = self.0.chunk().await.map_err(ClientError::lost)?;
        Ok(piece.map(|piece| piece.to_vec()))
    }
}

fn ignition(id: Uuid, role: InstallRole) -> String {
    v1(format!("/clusters/{id}/ignition/{role}"))
}
