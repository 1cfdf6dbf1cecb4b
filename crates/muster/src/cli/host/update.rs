//! `muster host update`: what people decide about a host.

use super::Named;
use crate::exit::{Failure, Outcome};
use crate::input::{self, key_value, word_parser};
use crate::output::{self, Format, Shown};
use crate::resolve;
use clap::Args;
use muster_contract::client::HubClient;
use muster_contract::v2::host::{
    DiskFormatting, DiskRole, DiskSelection, HostRoleChoice, KeyValue, SetHostIgnition, UpdateHost,
};
use std::path::PathBuf;

/// Change a host
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster host update worker-0 --name rack1-node3
  muster host update worker-0 --role master
  muster host update worker-0 --disk /dev/disk/by-id/wwn-0x5000c500
  muster host update worker-0 --ignition extra.ign
  muster host update worker-0 --label zone=a --label gpu=yes   replaces all labels")]
pub struct UpdateArgs {
    #[command(flatten)]
    host: Named,
    /// A new host name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The role in its cluster
    #[arg(long, value_name = "ROLE", value_parser = word_parser!(HostRoleChoice))]
    role: Option<HostRoleChoice>,
    /// Id of the disk to install on
    #[arg(long, value_name = "DISK")]
    disk: Option<String>,
    /// Id of a disk that is not formatted at installation; may be repeated
    #[arg(long, value_name = "DISK")]
    keep_disk: Vec<String>,
    /// Label of the node, replaces all labels; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    label: Vec<KeyValue>,
    /// Remove all labels
    #[arg(long, conflicts_with = "label")]
    no_labels: bool,
    /// The machine config pool the node joins
    #[arg(long, value_name = "NAME")]
    machine_config_pool: Option<String>,
    /// File with Ignition to merge over what the host is installed with (- for stdin); an empty one removes it
    #[arg(long, value_name = "FILE")]
    ignition: Option<PathBuf>,
}

pub async fn run(hub: &HubClient, args: UpdateArgs, format: Format) -> Outcome {
    let UpdateArgs {
        host,
        name,
        role,
        disk,
        keep_disk,
        label,
        no_labels,
        machine_config_pool,
        ignition,
    } = args;
    let ignition = input::text_opt(ignition.as_deref())?;
    let keep: Vec<DiskFormatting> = keep_disk
        .into_iter()
        .map(|disk_id| DiskFormatting {
            disk_id,
            skip_formatting: true,
        })
        .collect();
    let body = UpdateHost {
        host_name: name,
        host_role: role,
        disks_selected_config: disk.map(|id| {
            vec![DiskSelection {
                id,
                role: Some(DiskRole::Install),
            }]
        }),
        disks_skip_formatting: Some(keep).filter(|list| !list.is_empty()),
        node_labels: Some(label).filter(|list| !list.is_empty() || no_labels),
        machine_config_pool_name: machine_config_pool,
        ..UpdateHost::default()
    };
    if body == UpdateHost::default() && ignition.is_none() {
        return Err(Failure::usage("nothing to change")
            .next("see `muster host update --help` for what can be changed"));
    }
    let host = resolve::host(hub, &host.host).await?;
    if ignition.is_some() {
        let wish = SetHostIgnition { config: ignition };
        hub.set_host_ignition(host.infra_env_id, host.id, &wish).await?;
    }
    let now = match body == UpdateHost::default() {
        true => hub.host(host.infra_env_id, host.id).await?,
        false => hub.update_host(host.infra_env_id, host.id, &body).await?,
    };
    let name = if now.requested_hostname.is_empty() {
        &host.name
    } else {
        &now.requested_hostname
    };
    output::done(
        format,
        &host.handle(),
        &now,
        &format!("host/{name} updated, {}", now.status),
    )
}
