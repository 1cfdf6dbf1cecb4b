//! What an installation leaves behind: credentials, files, logs; and the install config it begins with.

use super::Named;
use crate::exit::{Failure, Outcome};
use crate::input::{self, word_parser};
use crate::names::Names;
use crate::output::{self, Column, Format, Shown, col};
use crate::resolve;
use clap::Args;
use muster_contract::client::HubClient;
use muster_contract::v2::cluster::CredentialsView;
use muster_contract::v2::cluster_request::{ClusterFile, CredentialFile};
use muster_contract::v2::install::{InstallConfigOverrides, LogsQuery, LogsType};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// Show how to log in to an installed cluster
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster credentials demo
  muster cluster credentials demo --kubeconfig demo.kubeconfig")]
pub struct CredentialsArgs {
    #[command(flatten)]
    cluster: Named,
    /// Also write the kubeconfig to this file
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Print the kubeconfig of a cluster
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster kubeconfig demo --file demo.kubeconfig
  muster cluster kubeconfig demo > demo.kubeconfig")]
pub struct KubeconfigArgs {
    #[command(flatten)]
    cluster: Named,
    /// The one from before the cluster had an ingress
    #[arg(long)]
    no_ingress: bool,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Print a file that the hub made for the installation
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster file demo worker.ign
  muster cluster file demo metadata.json --file metadata.json")]
pub struct FileArgs {
    #[command(flatten)]
    cluster: Named,
    /// Which file
    #[arg(value_name = "NAME", value_parser = word_parser!(ClusterFile))]
    name: ClusterFile,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Download the logs of an installation
///
/// An archive of everything that hosts and controller sent, with the cluster's
/// events and settings.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster logs demo --file demo-logs.tar
  muster cluster logs demo --host master-0 --file master-0.tar.gz
  muster cluster logs demo | tar -x")]
pub struct LogsArgs {
    #[command(flatten)]
    cluster: Named,
    /// Only what this host sent
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only what the controller in the cluster sent
    #[arg(long, conflicts_with = "host")]
    controller: bool,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Print the install config of a cluster, or change parts of it
///
/// It holds the cluster's pull secret.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster install-config demo
  muster cluster install-config demo --override '{\"fips\": true}'
  muster cluster install-config demo --override overrides.json")]
pub struct InstallConfigArgs {
    #[command(flatten)]
    cluster: Named,
    /// What to change, as a JSON object or a file with it; replaces earlier changes
    #[arg(long = "override", value_name = "JSON|FILE")]
    overrides: Option<String>,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE", conflicts_with = "overrides")]
    file: Option<PathBuf>,
}

impl Shown for CredentialsView {
    const COLUMNS: &'static [Column] = &[col("USER"), col("PASSWORD"), col("CONSOLE")];

    fn cells(&self, _: &Names) -> Vec<String> {
        vec![
            self.username.clone(),
            self.password.clone(),
            self.console_url.clone(),
        ]
    }

    fn handle(&self) -> String {
        self.username.clone()
    }
}

pub async fn credentials(hub: &HubClient, args: CredentialsArgs, format: Format) -> Outcome {
    let cluster = resolve::cluster(hub, &args.cluster.cluster).await?;
    let found = hub.credentials(cluster.id).await?;
    if let Some(path) = &args.kubeconfig {
        let kubeconfig = hub
            .credential_file(cluster.id, CredentialFile::Kubeconfig)
            .await?;
        output::save(Some(path), &kubeconfig)?;
    }
    output::one(format, &found, &Names::none())
}

pub async fn kubeconfig(hub: &HubClient, args: KubeconfigArgs) -> Outcome {
    let cluster = resolve::cluster(hub, &args.cluster.cluster).await?;
    let which = match args.no_ingress {
        true => CredentialFile::KubeconfigNoingress,
        false => CredentialFile::Kubeconfig,
    };
    let content = hub.credential_file(cluster.id, which).await?;
    output::save(args.file.as_deref(), &content)
}

pub async fn file(hub: &HubClient, args: FileArgs) -> Outcome {
    let cluster = resolve::cluster(hub, &args.cluster.cluster).await?;
    let content = hub.cluster_file(cluster.id, args.name).await?;
    output::save(args.file.as_deref(), &content)
}

pub async fn logs(hub: &HubClient, args: LogsArgs) -> Outcome {
    if args.file.is_none() && std::io::stdout().is_terminal() {
        return Err(
            Failure::usage("logs are an archive, which a terminal cannot show")
                .next("give a --file, or pipe it to tar"),
        );
    }
    let cluster = resolve::cluster(hub, &args.cluster.cluster).await?;
    let mut query = LogsQuery::default();
    if args.controller {
        query.logs_type = Some(LogsType::Controller);
    }
    if let Some(host) = &args.host {
        let host = resolve::host(hub, host).await?;
        query.logs_type = Some(LogsType::Host);
        query.host_id = Some(host.id);
        query.infra_env_id = Some(host.infra_env_id);
    }
    let mut pieces = hub.logs_in_pieces(cluster.id, &query).await?;
    // Made only now, so that a refusal leaves no empty file behind.
    let mut target = args
        .file
        .map(|path| output::create(&path).map(|file| (file, path)))
        .transpose()?;
    while let Some(piece) = pieces.next().await? {
        match &mut target {
            Some((file, path)) => file
                .write_all(&piece)
                .map_err(|error| output::unwritable(path, &error))?,
            None => output::print_bytes(&piece)?,
        }
    }
    Ok(())
}

pub async fn install_config(hub: &HubClient, args: InstallConfigArgs, format: Format) -> Outcome {
    let overrides = input::json_opt("--override", args.overrides)?;
    let cluster = resolve::cluster(hub, &args.cluster.cluster).await?;
    let Some(overrides) = overrides else {
        let config = hub.install_config(cluster.id).await?;
        return output::save(args.file.as_deref(), config.as_bytes());
    };
    hub.override_install_config(cluster.id, &InstallConfigOverrides(overrides))
        .await?;
    let now = hub.cluster(cluster.id).await?;
    let sentence = format!("cluster/{}: install config changed", now.name);
    output::done(format, &now.handle(), &now, &sentence)
}
