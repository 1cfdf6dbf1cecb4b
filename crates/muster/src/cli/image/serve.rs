//! `muster image serve`: the image service alone, near the machines and away from the hub.

use super::cache;
use crate::cli::Global;
use crate::cli::door::DoorArgs;
use crate::cli::serve::{LogFormat, start_log, stop_signal};
use crate::exit::{Failure, Outcome};
use crate::size::parse_size;
use crate::{input, output};
use clap::Args;
use muster_hub::http::crowd::Limits;
use muster_hub::http::guard::Names;
use muster_hub::http::server::{Serving, serve_with};
use muster_image::serve::router;
use muster_image::{Catalog, Depot, Images, OsImage, RemoteHub, Settings};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// A BMC reads thousands of small pieces: the hub is not asked for each of them.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// Serve discovery images apart from the hub
///
/// The same images at the same paths as the hub's own, for a network or a disk the hub is not on. It asks the hub what
/// InfraEnvs want, and fetches base images when the first machine needs them. Tell the hub where this service is with
/// `muster serve --image-service-url`. It prints its address to stdout as soon as it answers; the log goes to stderr.
/// SIGTERM and SIGINT let running requests finish and end with exit code 0.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster image serve --hub http://hub.example.com:8090 --os-images os-images.json
  muster image serve --listen 0.0.0.0:8091 --base-url http://images.example.com:8091 --cache-dir /srv/images --cache-size 20GiB

Paths for monitoring: /live, /health, /metrics, /progress, /base-images.")]
pub struct ServeArgs {
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8091")]
    listen: SocketAddr,
    /// Where base images are stored; $XDG_CACHE_HOME/muster/base-images when absent
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// How much base images may take on disk; the least recently used go first
    #[arg(long, value_name = "BYTES", default_value = "50GiB", value_parser = parse_size)]
    cache_size: u64,
    /// How machines reach this service, when not at the address it listens on
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Operating system images, as JSON or a file with it; the same list as the hub's
    #[arg(long, value_name = "FILE|JSON")]
    os_images: Option<String>,
    #[command(flatten)]
    door: DoorArgs,
    /// Format of the log
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// What to log, such as `info` or `muster_image=debug`
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log: String,
}

pub async fn run(global: &Global, args: ServeArgs) -> Outcome {
    start_log(&args.log, args.log_format)?;
    let trust = global.trust()?;
    let catalog = catalog(input::json_opt("--os-images", args.os_images)?)?;
    let directory = cache(args.cache_dir, "base-images");
    let depot = Depot::open(&directory, args.cache_size)
        .map_err(|error| Failure::other(format!("cannot keep images in {}: {error}", directory.display())))?;
    let stop = stop_signal()?;
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|error| Failure::other(format!("cannot listen on {}: {error}", args.listen)))?;
    let address = listener.local_addr()?;
    let settings = Settings {
        base_url: args.base_url.unwrap_or_else(|| format!("http://{address}")),
        fresh_for: FRESH_FOR,
        ..Settings::default()
    };
    let names = Names::new([settings.base_url.as_str()], &args.door.allowed_host)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let authorities = trust.authorities().iter().map(AsRef::as_ref);
    let hub = RemoteHub::trusting(&global.hub, authorities);
    let images = Images::new(depot, catalog, Arc::new(hub), settings);
    // A supervisor that does not read stdout is no reason to stop.
    let _ = output::print(&format!("muster image service is ready at http://{address}\n"));
    let serving = Serving {
        images: Some(images.clone()),
        names,
        limits: Limits::of_process(args.door.peer_connections),
        ..Serving::new(router::alone(&images))
    };
    Ok(serve_with(listener, serving, stop).await?)
}

/// Read and checked as the hub does it.
fn catalog(os_images: Option<String>) -> Outcome<Catalog> {
    let catalog = muster_domain::catalog::Catalog::from_json(os_images.as_deref(), None)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let images = catalog.os_images.into_iter().map(|image| OsImage {
        openshift_version: image.openshift_version,
        cpu_architecture: image.cpu_architecture,
        url: image.url,
        version: image.version,
        sha256: image.sha256,
    });
    Ok(Catalog {
        images: images.collect(),
    })
}
