//! What a decision about a PreprovisioningImage depends on: a snapshot of everything it may use.

use super::ironic;
use super::plan::published;
use super::whereabouts::{self, Whereabouts};
use crate::controller::bare_metal_host;
use crate::controller::infra_env::Row;
use crate::crd::keys::{self, annotation, label};
use crate::crd::metal3::SecretStatus;
use crate::crd::{Agent, BareMetalHost, InfraEnv, PreprovisioningImage};
use crate::error::Error;
use crate::key::Key;
use crate::options::MetalBoot;
use crate::runtime::Context;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Snapshot {
    pub key: Key,
    pub image: Arc<PreprovisioningImage>,
    /// The machine that boots it.
    pub host: Option<Arc<BareMetalHost>>,
    pub agent: Option<Arc<Agent>>,
    /// The one its label names.
    pub infra_env: Option<Arc<InfraEnv>>,
    /// As the hub has the InfraEnv.
    pub row: Option<Row>,
    /// The hub cannot be asked.
    pub hub_is_silent: bool,
    pub whereabouts: Whereabouts,
    /// The hub's words for the host, one from each InfraEnv that knows it; asked for only before its machine is booted
    /// anew, and absent when the hub cannot be asked.
    pub states_in_hub: Option<Vec<String>>,
    pub network: Option<Network>,
    pub boot: MetalBoot,
    pub retry: Duration,
    pub now: Timestamp,
}

/// The Secret with network settings that the image names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    pub secret: SecretStatus,
    /// It is watched when it has these.
    pub missing_labels: BTreeMap<String, String>,
}

impl Snapshot {
    pub async fn read(ctx: &Context, key: &Key) -> Result<Option<Self>, Error> {
        let Some(image) = ctx.cache::<PreprovisioningImage>().get(key) else {
            return Ok(None);
        };
        let host = ctx.cache::<BareMetalHost>().get(key);
        let named = image.labels().get(label::INFRA_ENV);
        let infra_env = named.and_then(|name| ctx.cache::<InfraEnv>().get(&Key::new(&key.namespace, name)));
        let mut snapshot = Self {
            key: key.clone(),
            agent: host
                .as_deref()
                .and_then(|host| bare_metal_host::agent_of(ctx, host)),
            host,
            infra_env,
            row: None,
            hub_is_silent: false,
            whereabouts: Whereabouts::unknown(&ctx.ironic, String::new()),
            states_in_hub: None,
            network: None,
            boot: ctx.metal_boot,
            retry: ctx.retry,
            now: ctx.clock.now(),
            image,
        };
        if snapshot.image.metadata.deletion_timestamp.is_none() {
            snapshot.read_infra_env(ctx).await?;
            snapshot.read_network(ctx).await?;
        }
        if let Some(agent) = published::question(&snapshot) {
            snapshot.states_in_hub = bare_metal_host::states_of(ctx, agent).await;
        }
        Ok(Some(snapshot))
    }

    async fn read_infra_env(&mut self, ctx: &Context) -> Result<(), Error> {
        let Some(infra_env) = &self.infra_env else {
            return Ok(());
        };
        self.whereabouts = match self.boot {
            MetalBoot::Converged => whereabouts::find(ctx, infra_env).await?,
            MetalBoot::LiveImage => Whereabouts::unknown(&ctx.ironic, ironic::only_converged(infra_env)),
        };
        let Some(id) = keys::hub_id(&**infra_env, annotation::INFRA_ENV_ID) else {
            return Ok(());
        };
        match Row::find(&ctx.hub, id).await {
            Ok(row) => self.row = row,
            Err(error) => {
                tracing::debug!(key = %self.key, %error, "the hub did not answer about an image");
                self.hub_is_silent = true;
            }
        }
        Ok(())
    }

    async fn read_network(&mut self, ctx: &Context) -> Result<(), Error> {
        let name = &self.image.spec.network_data_name;
        if name.is_empty() {
            return Ok(());
        }
        let secret = ctx
            .cache::<Secret>()
            .find(&Key::new(&self.key.namespace, name))
            .await?;
        self.network = secret.map(|secret| Network {
            secret: SecretStatus {
                name: name.clone(),
                version: secret.resource_version().unwrap_or_default(),
            },
            missing_labels: keys::used_labels(secret.labels()),
        });
        Ok(())
    }
}
