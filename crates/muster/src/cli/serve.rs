//! `muster serve`: the hub.

use super::tls::{TlsArgs, greeting};
use crate::age::parse_span;
use crate::exit::{Failure, Outcome};
use crate::size::parse_size;
use crate::{input, output};
use muster_contract::Trust;
use muster_hub::Config;
use muster_hub::config::MostHosts;
use muster_hub::serve::Ready;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tracing_subscriber::EnvFilter;

/// Run the hub
///
/// Keeps everything in one directory and needs no other process. The first line on stdout is its address, as soon as it
/// answers; the log goes to stderr. SIGTERM and SIGINT let running requests finish and end with exit code 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  muster serve
  muster serve --listen 0.0.0.0:8090 --data-dir /var/lib/muster --base-url http://hub.example.com:8090
  muster serve --database postgres://muster@db.example.com/muster
  muster serve --os-images os-images.json --image-cache /srv/images --image-cache-size 20GiB
  muster serve --openshift-install '/opt/openshift/{version}/openshift-install'
  muster serve --listen 10.0.0.5:8443 --tls-self-signed --plain-listen 10.0.0.5:8080
  muster serve --base-url https://hub.example.com:8443 --tls-cert hub.crt --tls-key hub.key --service-ca ca.crt

`--kube` runs the Kubernetes operator, too; the flags below it are those of
`muster operator run`.

When a variable with MUSTER_ before the flag's name is not set, the hub reads the
one that the reference service has for the setting: OS_IMAGES, RELEASE_IMAGES,
HW_VALIDATOR_REQUIREMENTS, AGENT_DOCKER_IMAGE, ENABLE_UPGRADE_AGENT, INSTALLER_IMAGE,
CONTROLLER_IMAGE, MUST_GATHER_IMAGES, DISABLED_HOST_VALIDATIONS,
DISABLED_CLUSTER_VALIDATIONS, DISABLED_STEPS, NTP_DEFAULT_SERVER,
ENABLE_SINGLE_NODE_DNSMASQ, SERVICE_CA_CERT_PATH, SKIP_CERT_VERIFICATION,
IRONIC_AGENT_IMAGE, IRONIC_AGENT_IMAGE_ARM, PAUSE_PROVISIONED_BMHS.")]
pub struct ServeArgs {
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// Where the hub keeps its data
    #[arg(long, value_name = "DIR", default_value = "./muster-data")]
    data_dir: PathBuf,
    /// A PostgreSQL database (postgres://…) instead of SQLite in the data directory
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// How hosts and people reach this hub, when not at the address it listens on
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Where discovery images come from, when not from this hub
    #[arg(long, value_name = "URL")]
    image_service_url: Option<String>,
    /// Operating system images, as JSON or a file with it
    #[arg(long, value_name = "FILE|JSON")]
    os_images: Option<String>,
    /// Releases that can be installed, as JSON or a file with it
    #[arg(long, value_name = "FILE|JSON")]
    release_images: Option<String>,
    /// Hardware requirements per version, as JSON or a file with it
    #[arg(long, value_name = "FILE|JSON")]
    hw_requirements: Option<String>,
    /// Where base images are stored; `base-images` in the data directory when absent
    #[arg(long, value_name = "DIR")]
    image_cache: Option<PathBuf>,
    /// How much base images may take on disk; the least recently used go first
    #[arg(long, value_name = "SIZE", default_value = "50GiB", value_parser = parse_size)]
    image_cache_size: u64,
    /// The openshift-install program that makes clusters' files; {version} in the path becomes the release
    #[arg(long, value_name = "PATH")]
    openshift_install: Option<String>,
    /// How long a host may be silent before it counts as disconnected; three minutes when absent
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    disconnect_after: Option<Duration>,
    /// How long agents wait at most before they ask for work again; a minute or two when absent
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    agent_poll: Option<Duration>,
    /// Hosts that one InfraEnv may have; the hub asks agents of further ones to come back later
    #[arg(long, value_name = "N", default_value_t = MostHosts::default().in_infra_env)]
    max_hosts_per_infra_env: usize,
    /// Hosts that the hub may have, in all InfraEnvs together
    #[arg(long, value_name = "N", default_value_t = MostHosts::default().in_hub)]
    max_hosts: usize,
    #[command(flatten)]
    door: super::door::DoorArgs,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    site: super::site::SiteArgs,
    /// Format of the log
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// What to log, such as `info` or `muster_hub=debug`
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log: String,
    /// Run the Kubernetes operator, too, in this process
    #[arg(long)]
    kube: bool,
    #[command(flatten)]
    operator: super::operator::KubeArgs,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

pub async fn run(args: ServeArgs) -> Outcome {
    start_log(&args.log, args.log_format)?;
    let chosen = args.tls.chosen()?;
    let config = Config {
        listen: args.listen,
        tls: chosen.tls,
        plain_listen: chosen.plain_listen,
        plain_url: chosen.plain_url,
        data_dir: args.data_dir,
        database: args.database,
        base_url: args.base_url,
        image_service_url: args.image_service_url,
        os_images: input::json_opt("--os-images", args.os_images)?,
        release_images: input::json_opt("--release-images", args.release_images)?,
        hw_requirements: input::json_opt("--hw-requirements", args.hw_requirements)?,
        openshift_install: args.openshift_install,
        image_cache: args.image_cache,
        image_cache_bytes: args.image_cache_size,
        disconnect_after: args.disconnect_after,
        agent_poll: args.agent_poll,
        most_hosts: MostHosts {
            in_infra_env: args.max_hosts_per_infra_env,
            in_hub: args.max_hosts,
        },
        allowed_hosts: args.door.allowed_host,
        peer_connections: args.door.peer_connections,
        site: args.site.site(),
    };
    let stop = stop_signal()?;
    if args.kube {
        return with_operator(config, args.operator, stop).await;
    }
    Ok(muster_hub::serve::run(config, stop, |ready| tell(&ready)).await?)
}

/// Hub and operator in one process. The operator ends first: what it has begun needs the hub. A cluster that cannot be
/// reached is no reason to keep hosts waiting; when nobody has said how to reach it, the program says so before the hub starts.
async fn with_operator(
    config: Config,
    operator: super::operator::KubeArgs,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Outcome {
    let connection = operator.connect().await?;
    let (tell_operator, told) = oneshot::channel();
    let (end_hub, hub_ends) = oneshot::channel::<()>();
    let (hub_lives, hub_died) = oneshot::channel::<()>();
    let hub = async move {
        let _lives = hub_lives;
        let stop = async { drop(hub_ends.await) };
        muster_hub::serve::run(config, stop, |ready| {
            tell(&ready);
            // Nobody listens only when everything has ended.
            let _ = tell_operator.send(ready);
        })
        .await
    };
    let operator = async move {
        let Ok(ready) = told.await else { return Ok(()) };
        // A hub that ends by itself takes the operator along.
        let stop = async move {
            tokio::select! {
                () = stop => {}
                _ = hub_died => {}
            }
        };
        let (url, trust) = reachable(&ready);
        let done = operator.run(connection, &url, trust, stop).await;
        drop(end_hub);
        done
    };
    let (hub, operator) = tokio::join!(hub, operator);
    hub?;
    operator
}

/// A hub that listens everywhere is reached here. Its certificate is for the names that others use, so this process
/// believes it by what it is.
fn reachable(ready: &Ready) -> (String, Trust) {
    let ip = match ready.address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let address = SocketAddr::new(ip, ready.address.port());
    match ready.tls.clone() {
        Some(tls) => (
            format!("https://{address}"),
            Trust::own(move || tls.certificate()),
        ),
        None => (format!("http://{address}"), Trust::default()),
    }
}

fn tell(ready: &Ready) {
    // A supervisor that does not read stdout is no reason to stop.
    let _ = output::print(&greeting(ready));
}

/// Installed before the hub starts, so that an early signal is not lost.
pub fn stop_signal() -> Outcome<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: finishing running requests first");
    })
}

pub fn start_log(filter: &str, format: LogFormat) -> Outcome {
    let filter = EnvFilter::try_new(filter).map_err(|error| Failure::usage(format!("--log: {error}")))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
