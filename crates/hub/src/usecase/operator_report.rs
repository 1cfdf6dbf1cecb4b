//! The cluster's own controller tells how operators do and how far finalizing is.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use muster_domain::ClusterId;
use muster_domain::cluster::{Cluster, Event, FinalizingStage, OperatorStatus, lifecycle};
use muster_domain::host::LogsInfo;
use muster_domain::refusal::Class;
use muster_domain::{Refused, Severity};
use std::sync::Arc;

pub struct Report<'a> {
    pub name: &'a str,
    /// `None`: as it was.
    pub status: Option<OperatorStatus>,
    pub version: Option<&'a str>,
    pub info: Option<&'a str>,
}

pub async fn operator_report(
    hub: &Hub,
    id: ClusterId,
    report: &Report<'_>,
    opctx: &OpContext,
) -> Result<Arc<Cluster>, Error> {
    hub.change_cluster(id, opctx, |cluster| {
        let known = cluster
            .operators
            .iter()
            .find(|operator| operator.name == report.name)
            .ok_or_else(|| Error::missing("operator", report.name))?;
        let event = Event::OperatorReported {
            name: report.name.into(),
            status: report.status.unwrap_or(known.status),
            version: report.version.unwrap_or(&known.version).into(),
            info: report.info.unwrap_or(&known.status_info).into(),
        };
        Ok((
            lifecycle::next(cluster, &event, hub.cluster_around())?,
            Vec::new(),
        ))
    })
    .await
}

pub async fn finalizing_stage(
    hub: &Hub,
    id: ClusterId,
    stage: FinalizingStage,
    opctx: &OpContext,
) -> Result<Arc<Cluster>, Error> {
    let event = Event::FinalizingStage { stage };
    let done = hub.change_cluster(id, opctx, |cluster| {
        Ok((
            lifecycle::next(cluster, &event, hub.cluster_around())?,
            Vec::new(),
        ))
    });
    // Controllers take it for their mistake, not for a state to wait for.
    done.await.map_err(as_mistake)
}

pub async fn logs_progress(
    hub: &Hub,
    id: ClusterId,
    state: LogsInfo,
    opctx: &OpContext,
) -> Result<Arc<Cluster>, Error> {
    let event = Event::LogsProgress { state };
    hub.change_cluster(id, opctx, |cluster| {
        Ok((
            lifecycle::next(cluster, &event, hub.cluster_around())?,
            Vec::new(),
        ))
    })
    .await
}

/// The cluster itself tells when it is done, so nothing follows from the word alone; a failure's report is kept.
pub async fn installation_ended(
    hub: &Hub,
    id: ClusterId,
    success: bool,
    report: Option<&str>,
    opctx: &OpContext,
) -> Result<Arc<Cluster>, Error> {
    let cluster = super::cluster_files::find(hub, id)?;
    let Some(report) = report.filter(|_| !success) else {
        return Ok(cluster);
    };
    let text = format!("Cluster {}: its operators report: {report}", cluster.name);
    let entry = cluster.entry("cluster_operator_report", Severity::Info, text);
    hub.tell(entry, opctx).await?;
    Ok(cluster)
}

pub fn as_mistake(error: Error) -> Error {
    match error {
        Error::Refused(refused) => Error::Refused(Refused {
            class: Class::Invalid,
            ..refused
        }),
        Error::Invalid(_)
        | Error::Missing { .. }
        | Error::BadReport(_)
        | Error::NotOffered(_)
        | Error::Store(_) => error,
    }
}
