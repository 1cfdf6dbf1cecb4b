//! `muster infra-env`: where hosts arrive, and the images they boot from.

use super::host;
use crate::age::{since, span};
use crate::exit::{Failure, Outcome};
use crate::input::{self, word_parser};
use crate::names::Names;
use crate::output::{self, Column, Format, OutputArgs, Shown, col, short, wide};
use crate::plan::{self, DryRunArgs};
use crate::resolve;
use crate::size::size;
use clap::{Args, Subcommand};
use muster_contract::client::{ClientError, HubClient};
use muster_contract::v1::download::{BaseImageView, DownloadView};
use muster_contract::v1::plan::{PlanRequest, Verb};
use muster_contract::v2::cluster_request::ClustersQuery;
use muster_contract::v2::infra_env::*;
use muster_vocabulary::BaseImageState;
use std::path::PathBuf;

/// InfraEnvs: where hosts arrive, and the images they boot from
#[derive(Debug, Args)]
#[command(visible_alias = "ie")]
pub struct InfraEnvArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(subcommand)]
    verb: InfraEnvVerb,
}

#[derive(Debug, Subcommand)]
enum InfraEnvVerb {
    /// List InfraEnvs
    #[command(after_help = "Examples:\n  muster infra-env list\n  muster infra-env list -o wide")]
    List,
    /// Show one InfraEnv
    #[command(after_help = "Examples:\n  muster infra-env get lab\n  muster infra-env get lab -o json")]
    Get {
        /// Id, beginning of the id, or name
        #[arg(value_name = "INFRA-ENV")]
        infra_env: String,
    },
    /// Show the state of an InfraEnv's hosts, and what to do next
    #[command(after_help = "Examples:\n  muster infra-env explain lab")]
    Explain {
        /// Id, beginning of the id, or name
        #[arg(value_name = "INFRA-ENV")]
        infra_env: String,
    },
    Create(CreateArgs),
    Update(UpdateArgs),
    /// Delete an InfraEnv
    #[command(
        after_help = "Examples:\n  muster infra-env delete lab --dry-run\n  muster infra-env delete lab\n  muster infra-env delete lab --with-hosts --dry-run\n  muster infra-env delete lab --with-hosts"
    )]
    Delete {
        /// Id, beginning of the id, or name
        #[arg(value_name = "INFRA-ENV")]
        infra_env: String,
        /// Its hosts, too, if none of them was ever lent
        #[arg(long)]
        with_hosts: bool,
        #[command(flatten)]
        dry_run: DryRunArgs,
    },
    Download(DownloadArgs),
    /// Show how far machines have read the images of an InfraEnv
    #[command(after_help = "\
Examples:
  muster infra-env downloads lab
  muster infra-env downloads lab -o wide
  muster infra-env downloads lab -o json")]
    Downloads {
        /// Id, beginning of the id, or name
        #[arg(value_name = "INFRA-ENV")]
        infra_env: String,
    },
}

/// Settings that can be given at creation and changed later.
#[derive(Debug, Args)]
struct Settings {
    /// File with the pull secret (- for stdin)
    #[arg(long, value_name = "FILE")]
    pull_secret: Option<PathBuf>,
    /// File with the SSH keys that may log in to discovered hosts
    #[arg(long, value_name = "FILE")]
    ssh_key: Option<PathBuf>,
    /// Version of the discovery image, when not the hub's default
    #[arg(long, value_name = "VERSION")]
    openshift_version: Option<String>,
    /// Kind of discovery image
    #[arg(long, value_name = "TYPE", value_parser = word_parser!(ImageType))]
    image_type: Option<ImageType>,
    /// Time servers, separated by commas
    #[arg(long, value_name = "LIST")]
    ntp_sources: Option<String>,
    /// Proxy for http
    #[arg(long, value_name = "URL")]
    http_proxy: Option<String>,
    /// Proxy for https
    #[arg(long, value_name = "URL")]
    https_proxy: Option<String>,
    /// Where no proxy is used
    #[arg(long, value_name = "LIST")]
    no_proxy: Option<String>,
    /// File with an ignition that is merged into the one of the image
    #[arg(long, value_name = "FILE")]
    ignition_override: Option<PathBuf>,
    /// File with certificates the hosts shall trust
    #[arg(long, value_name = "FILE")]
    trust_bundle: Option<PathBuf>,
    /// File with static network settings, a list in JSON or YAML
    #[arg(long, value_name = "FILE")]
    static_network: Option<PathBuf>,
    /// Kernel argument to append; may be repeated
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    kernel_arg: Vec<String>,
}

/// Create an InfraEnv
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster infra-env create lab
  muster infra-env create lab --pull-secret pull-secret.json --ssh-key ~/.ssh/id_ed25519.pub
  muster infra-env create lab -o name")]
struct CreateArgs {
    /// Name of the InfraEnv
    name: String,
    /// Processor architecture of the hosts
    #[arg(long, value_name = "ARCH", value_parser = word_parser!(CpuArchitecture))]
    arch: Option<CpuArchitecture>,
    /// Bind hosts to this cluster as soon as they arrive
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<String>,
    #[command(flatten)]
    settings: Settings,
}

/// Change an InfraEnv
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster infra-env update lab --image-type minimal-iso
  muster infra-env update lab --ntp-sources ntp1.example.com,ntp2.example.com")]
struct UpdateArgs {
    /// Id, beginning of the id, or name
    #[arg(value_name = "INFRA-ENV")]
    infra_env: String,
    #[command(flatten)]
    settings: Settings,
}

/// Download what hosts boot with
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster infra-env download lab discovery-ignition > discovery.ign
  muster infra-env download lab ipxe-script --file boot.ipxe
  muster infra-env download lab image-url")]
struct DownloadArgs {
    /// Id, beginning of the id, or name
    #[arg(value_name = "INFRA-ENV")]
    infra_env: String,
    #[arg(value_enum)]
    what: Download,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Download {
    /// The ignition of the discovery image
    DiscoveryIgnition,
    /// A script that boots the discovery image over the network
    IpxeScript,
    /// The address of the discovery image
    ImageUrl,
}

impl Shown for InfraEnvView {
    const COLUMNS: &'static [Column] = &[
        col("NAME"),
        col("ID"),
        col("VERSION"),
        col("ARCH"),
        col("IMAGE"),
        col("CLUSTER"),
        col("AGE"),
        wide("FULL ID"),
        wide("IMAGE URL"),
    ];

    fn cells(&self, names: &Names) -> Vec<String> {
        vec![
            self.name.clone(),
            short(self.id),
            self.openshift_version.clone(),
            self.cpu_architecture.to_string(),
            self.r#type.to_string(),
            names.of_some(self.cluster_id),
            since(self.created_at.0, names.now),
            self.id.to_string(),
            self.download_url.clone(),
        ]
    }

    fn handle(&self) -> String {
        self.id.to_string()
    }
}

impl Shown for DownloadView {
    const COLUMNS: &'static [Column] = &[
        col("HOST"),
        col("CLIENT"),
        col("FILE"),
        col("READ"),
        col("SIZE"),
        col("LAST"),
        wide("STREAMS"),
        wide("READ BYTES"),
        wide("SENT"),
    ];

    fn cells(&self, _: &Names) -> Vec<String> {
        vec![
            self.host_name.clone().unwrap_or_else(|| "-".into()),
            self.client.clone(),
            self.file.to_string(),
            format!("{} %", self.percent),
            size(self.total_bytes),
            span(i64::try_from(self.idle_seconds).unwrap_or(i64::MAX)),
            self.streams.to_string(),
            self.read_bytes.to_string(),
            size(self.sent_bytes),
        ]
    }

    fn handle(&self) -> String {
        format!("{}/{}", self.client, self.file)
    }
}

pub async fn run(hub: &HubClient, args: InfraEnvArgs) -> Outcome {
    let format = args.output.output;
    match args.verb {
        InfraEnvVerb::List => {
            let infra_envs = hub.infra_envs(&InfraEnvsQuery::default()).await?;
            output::list(format, &infra_envs, &cluster_names(hub).await?)
        }
        InfraEnvVerb::Get { infra_env } => {
            let infra_env = resolve::infra_env(hub, &infra_env).await?;
            output::one(format, &infra_env, &cluster_names(hub).await?)
        }
        InfraEnvVerb::Explain { infra_env } => {
            let infra_env = resolve::infra_env(hub, &infra_env).await?;
            host::explain::show(&hub.explain_infra_env(infra_env.id).await?, &[], format)
        }
        InfraEnvVerb::Create(args) => create(hub, args, format).await,
        InfraEnvVerb::Update(args) => update(hub, args, format).await,
        InfraEnvVerb::Delete {
            infra_env,
            with_hosts,
            dry_run,
        } => delete(hub, &infra_env, with_hosts, dry_run.dry_run, format).await,
        InfraEnvVerb::Download(args) => download(hub, args).await,
        InfraEnvVerb::Downloads { infra_env } => downloads(hub, &infra_env, format).await,
    }
}

async fn cluster_names(hub: &HubClient) -> Outcome<Names> {
    let mut names = Names::none();
    for cluster in hub.clusters(&ClustersQuery::default()).await? {
        names.add_cluster(&cluster);
    }
    Ok(names)
}

async fn create(hub: &HubClient, args: CreateArgs, format: Format) -> Outcome {
    let CreateArgs {
        name,
        arch,
        cluster,
        settings,
    } = args;
    let cluster_id = match cluster {
        Some(cluster) => Some(resolve::cluster(hub, &cluster).await?.id),
        None => None,
    };
    let pull_secret = input::pull_secret(settings.pull_secret.as_deref())?;
    let UpdateInfraEnv {
        pull_secret: _,
        openshift_version,
        os_stream,
        image_type,
        ssh_authorized_key,
        proxy,
        additional_ntp_sources,
        ntp_sources,
        static_network_config,
        kernel_arguments,
        ignition_config_override,
        additional_trust_bundle,
        network_discovery_delay_seconds,
        rendezvous_ip,
    } = settings.wire()?;
    let made = hub
        .create_infra_env(&CreateInfraEnv {
            name,
            pull_secret,
            cluster_id,
            openshift_version,
            cpu_architecture: arch,
            os_stream,
            image_type,
            ssh_authorized_key,
            proxy,
            additional_ntp_sources,
            ntp_sources,
            static_network_config,
            kernel_arguments,
            ignition_config_override,
            additional_trust_bundle,
            network_discovery_delay_seconds,
            rendezvous_ip,
        })
        .await?;
    output::done(
        format,
        &made.handle(),
        &made,
        &format!("infra-env/{} created, id {}", made.name, made.id),
    )
}

async fn update(hub: &HubClient, args: UpdateArgs, format: Format) -> Outcome {
    let wire = args.settings.wire()?;
    let id = resolve::infra_env(hub, &args.infra_env).await?.id;
    let now = hub.update_infra_env(id, &wire).await?;
    output::done(
        format,
        &now.handle(),
        &now,
        &format!("infra-env/{} updated", now.name),
    )
}

async fn delete(hub: &HubClient, wanted: &str, with_hosts: bool, dry_run: bool, format: Format) -> Outcome {
    let infra_env = resolve::infra_env(hub, wanted).await?;
    let request = PlanRequest {
        verb: if with_hosts {
            Verb::DeleteInfraEnvWithHosts
        } else {
            Verb::DeleteInfraEnv
        },
        infra_env_id: Some(infra_env.id),
        host_id: None,
        cluster_id: None,
    };
    if dry_run {
        return plan::show(hub, &request, format).await;
    }
    let deleted = match with_hosts {
        true => delete_hosts(hub, &infra_env).await,
        false => hub.delete_infra_env(infra_env.id).await,
    };
    if let Err(error) = deleted {
        return Err(plan::with_next_action(hub, &request, error).await);
    }
    output::done(
        format,
        &infra_env.handle(),
        &infra_env,
        &format!("infra-env/{} deleted", infra_env.name),
    )
}

/// Part by part, until the InfraEnv itself is gone. Interrupted, the same command goes on.
async fn delete_hosts(hub: &HubClient, infra_env: &InfraEnvView) -> Result<(), ClientError> {
    let mut deleted = 0;
    loop {
        let far = match hub.delete_infra_env_with_hosts(infra_env.id).await {
            Ok(far) => far,
            // Somebody else runs the same command.
            Err(ClientError::NotFound(_)) if deleted > 0 => return Ok(()),
            Err(error) => return Err(error),
        };
        deleted += far.deleted;
        if far.done {
            return Ok(());
        }
        eprintln!(
            "infra-env/{}: {deleted} hosts deleted, {} left",
            infra_env.name, far.left
        );
    }
}

async fn download(hub: &HubClient, args: DownloadArgs) -> Outcome {
    let id = resolve::infra_env(hub, &args.infra_env).await?.id;
    let file = |file_name| InfraEnvFilesQuery {
        file_name,
        mac: None,
        ipxe_script_type: None,
        discovery_iso_type: None,
    };
    let bytes = match args.what {
        Download::DiscoveryIgnition => hub.infra_env_file(id, &file(InfraEnvFile::DiscoveryIgn)).await?,
        Download::IpxeScript => hub.infra_env_file(id, &file(InfraEnvFile::IpxeScript)).await?,
        Download::ImageUrl => (hub.image_url(id).await?.url + "\n").into_bytes(),
    };
    output::save(args.file.as_deref(), &bytes)
}

async fn downloads(hub: &HubClient, wanted: &str, format: Format) -> Outcome {
    let id = resolve::infra_env(hub, wanted).await?.id;
    let view = hub.downloads(id).await?;
    match format {
        Format::Json | Format::Yaml => output::data(format, &view),
        Format::Name => output::list(format, &view.downloads, &Names::none()),
        Format::Table | Format::Wide => {
            output::list(format, &view.downloads, &Names::none())?;
            let base = view.base_image.as_ref().map(base_image);
            output::print(&base.unwrap_or_default())
        }
    }
}

fn base_image(base: &BaseImageView) -> String {
    let plain = || match base.total_bytes {
        Some(total) => format!("{}, {}", base.state, size(total)),
        None => base.state.to_string(),
    };
    let state = match base.state.known() {
        Some(BaseImageState::Fetching) => match base.total_bytes {
            Some(total) => format!("fetching, {} of {}", size(base.done_bytes), size(total)),
            None => format!("fetching, {} so far", size(base.done_bytes)),
        },
        Some(BaseImageState::Absent) => "not fetched yet; it comes when the first machine asks".to_owned(),
        Some(BaseImageState::Failed) => match &base.why {
            Some(why) => format!("failed, {why}"),
            None => plain(),
        },
        Some(BaseImageState::Importing | BaseImageState::Ready) | None => plain(),
    };
    format!(
        "\nbase image {} ({}): {state}\n",
        base.version, base.cpu_architecture
    )
}

impl Settings {
    fn wire(&self) -> Outcome<UpdateInfraEnv> {
        let proxy = Proxy {
            http_proxy: self.http_proxy.clone(),
            https_proxy: self.https_proxy.clone(),
            no_proxy: self.no_proxy.clone(),
        };
        let kernel: Vec<KernelArgument> = self
            .kernel_arg
            .iter()
            .map(|value| KernelArgument {
                operation: Some(KernelArgumentOperation::Append),
                value: Some(value.clone()),
            })
            .collect();
        let static_network = input::text_opt(self.static_network.as_deref())?
            .map(|text| serde_norway::from_str(&text))
            .transpose()
            .map_err(|error| Failure::usage(format!("--static-network: {error}")))?;
        Ok(UpdateInfraEnv {
            pull_secret: input::pull_secret_opt(self.pull_secret.as_deref())?,
            openshift_version: self.openshift_version.clone(),
            image_type: self.image_type,
            ssh_authorized_key: input::text_opt(self.ssh_key.as_deref())?,
            proxy: Some(proxy).filter(|proxy| *proxy != Proxy::default()),
            ntp_sources: self.ntp_sources.clone(),
            static_network_config: static_network,
            kernel_arguments: Some(kernel).filter(|list| !list.is_empty()),
            ignition_config_override: input::text_opt(self.ignition_override.as_deref())?,
            additional_trust_bundle: input::text_opt(self.trust_bundle.as_deref())?,
            ..UpdateInfraEnv::default()
        })
    }
}
