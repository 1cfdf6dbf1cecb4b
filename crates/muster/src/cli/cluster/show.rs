//! How clusters are shown: in lists, alone, and host by host while they install.

use super::progress::host_name;
use crate::age::since;
use crate::exit::Outcome;
use crate::names::Names;
use crate::output::{self, Column, Format, Shown, col, short, wide};
use jiff::Timestamp;
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::host::HostView;
use muster_vocabulary::{InstallRole, PreparationStatus};

impl Shown for ClusterView {
    const COLUMNS: &'static [Column] = &[
        col("NAME"),
        col("ID"),
        col("STATUS"),
        col("PROGRESS"),
        col("VERSION"),
        col("HOSTS"),
        col("READY"),
        col("AGE"),
        wide("FULL ID"),
        wide("BASE DOMAIN"),
        wide("STAGE"),
        wide("PREPARATION"),
        wide("INFO"),
    ];

    fn cells(&self, names: &Names) -> Vec<String> {
        vec![
            self.name.clone(),
            short(self.id),
            self.status.to_string(),
            percentage(self),
            self.openshift_version.clone(),
            self.total_host_count.to_string(),
            self.ready_host_count.to_string(),
            since(self.created_at.0, names.now),
            self.id.to_string(),
            self.base_dns_domain.clone(),
            finalizing(self),
            preparation(self),
            self.status_info.to_string(),
        ]
    }

    fn handle(&self) -> String {
        self.id.to_string()
    }
}

/// Nothing for a cluster whose installation never began.
fn percentage(cluster: &ClusterView) -> String {
    match &cluster.progress {
        Some(progress) if progress.total_percentage > 0 => format!("{}%", progress.total_percentage),
        Some(_) | None => String::new(),
    }
}

fn finalizing(cluster: &ClusterView) -> String {
    match &cluster.progress {
        Some(progress) if progress.finalizing_stage_timed_out => {
            format!("{} (takes too long)", progress.finalizing_stage)
        }
        Some(progress) => progress.finalizing_stage.to_string(),
        None => String::new(),
    }
}

/// How the last preparation ended; one that never began is no news.
fn preparation(cluster: &ClusterView) -> String {
    let last = &cluster.last_installation_preparation;
    let status = &last.status;
    if status.is_empty() || *status == PreparationStatus::NotStarted {
        return String::new();
    }
    if last.reason.is_empty() {
        return status.to_string();
    }
    format!("{status}: {}", last.reason)
}

const HOSTS: [Column; 6] = [
    col("HOST"),
    col("ROLE"),
    col("STATUS"),
    col("STAGE"),
    col("PROGRESS"),
    col("SINCE"),
];

/// One cluster; as a table, with the stages of its hosts once they have any.
pub fn one(cluster: &ClusterView, format: Format) -> Outcome {
    output::one(format, cluster, &Names::none())?;
    let hosts = cluster.hosts.as_deref().unwrap_or_default();
    match format {
        Format::Table | Format::Wide if hosts.iter().any(has_stage) => {
            let now = Timestamp::now();
            let rows = hosts.iter().map(|host| row(host, now)).collect();
            output::print(&format!("\n{}", output::table(&HOSTS, rows, true)))
        }
        Format::Table | Format::Wide | Format::Json | Format::Yaml | Format::Name => Ok(()),
    }
}

fn has_stage(host: &HostView) -> bool {
    let progress = host.progress.as_ref();
    progress.is_some_and(|progress| !progress.current_stage.is_empty())
}

fn row(host: &HostView, now: Timestamp) -> Vec<String> {
    let progress = host.progress.clone().unwrap_or_default();
    let stage = match progress.progress_info.as_str() {
        "" => progress.current_stage.to_string(),
        info => format!("{} ({info})", progress.current_stage),
    };
    let role = match host.bootstrap {
        true => InstallRole::Bootstrap.word(),
        false => host.role.as_str(),
    };
    vec![
        host_name(host),
        role.to_owned(),
        host.status.to_string(),
        stage,
        format!("{}%", progress.installation_percentage),
        since(progress.stage_started_at.0, now),
    ]
}
