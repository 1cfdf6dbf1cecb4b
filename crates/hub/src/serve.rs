//! Runs a hub until it is told to stop: open, listen, work, drain.

use crate::config::{Config, Settings};
use crate::{Clock, Hub, http, worker};
use anyhow::Context;
use muster_store::{Database, Store};
use std::future::Future;
use std::net::SocketAddr;
use tokio::net::TcpListener;

pub async fn run(
    config: Config,
    shutdown: impl Future<Output = ()> + Send + 'static,
    ready: impl FnOnce(SocketAddr),
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("cannot listen on {}", config.listen))?;
    let address = listener.local_addr()?;
    let base_url = config
        .base_url
        .clone()
        .unwrap_or_else(|| format!("http://{address}"));
    let mut settings = Settings::new(&config, base_url)?;
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
    let images = http::images::open(&hub, &config).context("cannot keep base images")?;
    let router = http::router(hub.clone()).merge(http::images::routes(&images));
    let workers = worker::start(&hub);
    ready(address);
    http::server::serve_with(listener, router, Some(images), shutdown).await?;
    drop(workers);
    worker::flush::once(&hub)
        .await
        .context("cannot write the last signs of life")?;
    hub.store.close().await;
    Ok(())
}

fn database(config: &Config) -> anyhow::Result<Database> {
    match &config.database {
        Some(url) => url.parse().map_err(anyhow::Error::msg),
        None => {
            std::fs::create_dir_all(&config.data_dir)
                .with_context(|| format!("cannot create {}", config.data_dir.display()))?;
            Ok(Database::directory(&config.data_dir))
        }
    }
}
