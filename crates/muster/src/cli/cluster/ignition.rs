//! `muster cluster ignition`: configs of one's own, for clusters that no OpenShift installer makes.

use super::Named;
use crate::exit::{Failure, Outcome};
use crate::input::{self, word_parser};
use crate::names::Names;
use crate::output::{self, Column, Format, Shown, col};
use crate::resolve;
use clap::{Args, Subcommand};
use muster_contract::client::{ClientError, HubClient};
use muster_vocabulary::InstallRole;
use serde::Serialize;
use std::path::PathBuf;

/// Ignition configs of your own, one for each role of the hosts
///
/// Hosts of a cluster that has them are installed with them instead of OpenShift: Fedora CoreOS, k3s, anything that
/// Ignition configures.
#[derive(Debug, Args)]
pub struct IgnitionArgs {
    #[command(subcommand)]
    verb: IgnitionVerb,
}

#[derive(Debug, Subcommand)]
enum IgnitionVerb {
    /// Upload the config of a role
    #[command(after_help = "\
Examples:
  muster cluster ignition set demo --role master server.ign
  butane < agent.bu | muster cluster ignition set demo --role worker -")]
    Set {
        #[command(flatten)]
        cluster: Named,
        /// Whose config it is
        #[arg(long, value_name = "ROLE", value_parser = word_parser!(InstallRole))]
        role: InstallRole,
        /// An Ignition config, JSON of version 3 (- for stdin)
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// List the roles that have a config
    #[command(after_help = "Examples:\n  muster cluster ignition list demo")]
    List(Named),
    /// Print the config of a role
    #[command(
        visible_alias = "show",
        after_help = "Examples:\n  muster cluster ignition get demo --role master\n  \
                      muster cluster ignition get demo --role master --file server.ign"
    )]
    Get {
        #[command(flatten)]
        cluster: Named,
        /// Whose config it is
        #[arg(long, value_name = "ROLE", value_parser = word_parser!(InstallRole))]
        role: InstallRole,
        /// Write to this file instead of stdout
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Remove the config of a role
    #[command(after_help = "Examples:\n  muster cluster ignition delete demo --role worker")]
    Delete {
        #[command(flatten)]
        cluster: Named,
        /// Whose config it is
        #[arg(long, value_name = "ROLE", value_parser = word_parser!(InstallRole))]
        role: InstallRole,
    },
}

/// A role that has a config.
#[derive(Debug, Serialize)]
struct Uploaded {
    role: &'static str,
    ignition_version: String,
    size_bytes: usize,
}

impl Shown for Uploaded {
    const COLUMNS: &'static [Column] = &[col("ROLE"), col("IGNITION"), col("BYTES")];

    fn cells(&self, _: &Names) -> Vec<String> {
        vec![
            self.role.into(),
            self.ignition_version.clone(),
            self.size_bytes.to_string(),
        ]
    }

    fn handle(&self) -> String {
        self.role.into()
    }
}

pub async fn run(hub: &HubClient, args: IgnitionArgs, format: Format) -> Outcome {
    match args.verb {
        IgnitionVerb::Set { cluster, role, file } => {
            let config = input::bytes(&file)?;
            if let Err(error) = serde_json::from_slice::<serde_json::Value>(&config) {
                let cause = format!("{} is not JSON: {error}", file.display());
                return Err(Failure::usage(cause).next("YAML for butane has to go through butane first"));
            }
            let cluster = resolve::cluster(hub, &cluster.cluster).await?;
            let kept = hub.upload_ignition(cluster.id, role, config).await?;
            let sentence = format!(
                "cluster/{}: ignition for {} set, {} bytes",
                cluster.name, kept.role, kept.size_bytes
            );
            output::done(format, kept.role.as_str(), &kept, &sentence)
        }
        IgnitionVerb::List(named) => list(hub, &named, format).await,
        IgnitionVerb::Get { cluster, role, file } => {
            let cluster = resolve::cluster(hub, &cluster.cluster).await?;
            let config = hub.uploaded_ignition(cluster.id, role).await?;
            output::save(file.as_deref(), &config)
        }
        IgnitionVerb::Delete { cluster, role } => {
            let cluster = resolve::cluster(hub, &cluster.cluster).await?;
            hub.remove_ignition(cluster.id, role).await?;
            let sentence = format!("cluster/{}: ignition for {role} deleted", cluster.name);
            output::done(format, role.word(), &cluster, &sentence)
        }
    }
}

async fn list(hub: &HubClient, named: &Named, format: Format) -> Outcome {
    let cluster = resolve::cluster(hub, &named.cluster).await?;
    let mut found = Vec::new();
    for role in InstallRole::ALL {
        match hub.uploaded_ignition(cluster.id, *role).await {
            Ok(config) => found.push(Uploaded {
                role: role.word(),
                ignition_version: version(&config),
                size_bytes: config.len(),
            }),
            Err(ClientError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    output::list(format, &found, &Names::none())
}

fn version(config: &[u8]) -> String {
    let config: serde_json::Value = serde_json::from_slice(config).unwrap_or_default();
    config["ignition"]["version"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
