//! Runs a hub until somebody stops it: open, listen, work, drain.

use crate::config::{Config, Settings};
use crate::doors::Doors;
use crate::http::crowd::Limits;
use crate::http::guard::Names;
use crate::http::server::Serving;
use crate::tls::Tls;
use crate::{Clock, Hub, http, worker};
use anyhow::Context;
use futures_util::FutureExt;
use muster_store::{Database, Store};
use std::fs::{DirBuilder, Permissions};
use std::future::Future;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// What others want to know of a hub that answers now.
#[derive(Debug, Clone)]
pub struct Ready {
    pub address: SocketAddr,
    /// With the scheme that is spoken there.
    pub url: String,
    /// What firmware reaches without TLS.
    pub plain: Option<SocketAddr>,
    pub tls: Option<Tls>,
}

pub async fn run(
    config: Config,
    shutdown: impl Future<Output = ()> + Send + 'static,
    ready: impl FnOnce(Ready),
) -> anyhow::Result<()> {
    let doors = Doors::open(&config).await?;
    let mut settings = Settings::new(&config, doors.base_url(&config), doors.plain_url(&config)?)?;
    let mut urls = vec![settings.base_url.as_str(), settings.image_service_url.as_str()];
    urls.extend(settings.plain_url.as_deref());
    let names = Names::new(urls.iter().copied(), &config.allowed_hosts)?;
    let tls = doors.tls(&config, &urls)?;
    if let Some(own) = tls.as_ref().and_then(Tls::self_signed) {
        settings.trust.add(&own.authority())?;
    }
    for note in &settings.catalog.notes {
        tracing::warn!("{note}");
    }
    let store = Store::open(&database(&config)?)
        .await
        .context("cannot open the database")?;
    settings.was_here_before = store.changes_last().await? > 0;
    let hub = Hub::open(store, settings, Clock::System)
        .await
        .context("cannot read the database")?;
    if let Some(tls) = &tls {
        hub.set_tls(tls.clone());
    }
    let images = http::images::open(&hub, &config).context("cannot keep base images")?;
    let router = http::router(hub.clone()).merge(http::images::routes(&images));
    let workers = worker::start(&hub);
    let serving = Serving {
        images: Some(images),
        names,
        limits: Limits::of_process(config.peer_connections),
        ..Serving::new(router)
    };
    let stop = stop_requested(shutdown, hub.store.clone());
    ready(doors.ready(tls.clone()));
    doors.serve(serving, tls, &hub.settings.base_url, stop).await?;
    drop(workers);
    if let Some(error) = hub.store.lost().now_or_never() {
        hub.store.close().await;
        return Err(error).context("the hub cannot go on without its database");
    }
    worker::flush::once(&hub)
        .await
        .context("cannot write the last signs of life")?;
    hub.store.close().await;
    Ok(())
}

/// By whoever runs it, or because its database is gone.
async fn stop_requested(shutdown: impl Future<Output = ()>, store: Store) {
    tokio::select! {
        () = shutdown => {}
        _ = store.lost() => {}
    }
}

fn database(config: &Config) -> anyhow::Result<Database> {
    match &config.database {
        Some(url) => url.parse().map_err(anyhow::Error::msg),
        None => {
            private_directory(&config.data_dir)
                .with_context(|| format!("cannot create {}", config.data_dir.display()))?;
            Ok(Database::directory(&config.data_dir))
        }
    }
}

/// What is in it holds secrets. A directory that others are meant to use, by its set-group-ID or sticky bit, stays as it
/// is; so does one of another owner.
pub(crate) fn private_directory(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & 0o3000 == 0
        && mode & 0o077 != 0
        && let Err(error) = std::fs::set_permissions(path, Permissions::from_mode(mode & 0o700))
    {
        tracing::warn!(directory = %path.display(), %error, "other users can read the data directory");
    }
    Ok(())
}
