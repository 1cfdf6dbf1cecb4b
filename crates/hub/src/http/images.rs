//! Discovery images from the hub itself: what InfraEnvs want comes from the index, and is laid over base images.

use crate::config::Config;
use crate::http::v2::downloads::boot_script;
use crate::usecase::infra_env_create::{ignition_of, initrd_of};
use crate::{Error, Hub, WeakHub};
use axum::Router;
use futures_util::future::BoxFuture;
use muster_domain::InfraEnvId;
use muster_domain::infra_env::{ImageType, InfraEnv};
use muster_domain::render::kargs;
use muster_image::serve::router;
use muster_image::source::{Ask, Form, PayloadSource, Proof, SourceError, Target};
use muster_image::{Catalog, Depot, Images, OsImage, Payload, Settings};
use std::sync::Arc;
use std::time::SystemTime;

/// Nothing is fetched yet: base images come when the first machine asks.
pub fn open(hub: &Hub, config: &Config) -> std::io::Result<Images> {
    let depot = Depot::open(&config.image_cache(), config.image_cache_bytes)?;
    let settings = Settings {
        base_url: hub.settings.image_service_url.clone(),
        ..Settings::default()
    };
    let images = Images::new(depot, catalog(hub), Arc::new(FromHub(hub.weak())), settings);
    hub.set_images(images.clone());
    Ok(images)
}

pub fn routes(images: &Images) -> Router {
    router::routes(images)
}

fn catalog(hub: &Hub) -> Catalog {
    let images = hub.settings.catalog.os_images.iter().map(|image| OsImage {
        openshift_version: image.openshift_version.clone(),
        cpu_architecture: image.cpu_architecture.clone(),
        url: image.url.clone(),
        version: image.version.clone(),
        sha256: image.sha256.clone(),
    });
    Catalog {
        images: images.collect(),
    }
}

/// The hub owns the images, so the images must not own the hub.
struct FromHub(WeakHub);

impl FromHub {
    fn hub(&self) -> Result<Hub, SourceError> {
        self.0.get().ok_or_else(|| SourceError {
            status: 503,
            text: "the hub is stopping".to_owned(),
        })
    }

    fn infra_env(&self, id: &str) -> Result<Arc<InfraEnv>, SourceError> {
        let id: Option<InfraEnvId> = id.parse().ok().map(InfraEnvId);
        let hub = self.hub()?;
        let found = id.and_then(|id| hub.index.infra_env(id));
        found.ok_or_else(|| SourceError::missing("there is no such InfraEnv"))
    }

    async fn made(&self, ask: &Ask) -> Result<(Payload, SystemTime), SourceError> {
        let (hub, infra_env, form) = (self.hub()?, self.infra_env(&ask.id)?, ask.form);
        let changed = infra_env.updated_at.into();
        let there = hub.clone();
        let made = hub.image_threads.run(move || payload(&there, &infra_env, form));
        Ok((made.await.map_err(|error| unmade(&error))?, changed))
    }
}

fn payload(hub: &Hub, infra_env: &InfraEnv, form: Form) -> Result<Payload, Error> {
    let image_type = match form {
        Form::Full => ImageType::FullIso,
        Form::Minimal => ImageType::MinimalIso,
    };
    Ok(Payload {
        ignition: ignition_of(hub, infra_env, image_type)?.into(),
        ramdisk: match form {
            Form::Full => None,
            Form::Minimal => initrd_of(infra_env).map(Into::into),
        },
        kernel_arguments: kargs::appended(infra_env.kernel_arguments.as_deref()),
    })
}

fn unmade(error: &Error) -> SourceError {
    tracing::error!(%error, "cannot make the configuration of an image");
    SourceError {
        status: 500,
        text: "the hub cannot make the configuration of this image; its log says why".to_owned(),
    }
}

impl PayloadSource for FromHub {
    fn changed<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<SystemTime, SourceError>> {
        Box::pin(async {
            self.infra_env(&ask.id)
                .map(|infra_env| infra_env.updated_at.into())
        })
    }

    fn payload<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<(Payload, SystemTime), SourceError>> {
        Box::pin(self.made(ask))
    }

    /// The name is the InfraEnv's id: short enough for every BMC, and the rest follows from the InfraEnv.
    fn short<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Target, SourceError>> {
        Box::pin(async {
            let infra_env = self.infra_env(name)?;
            Ok(Target {
                id: name.to_owned(),
                version: infra_env.openshift_version.clone(),
                architecture: infra_env.cpu_architecture.clone(),
                form: match infra_env.image_type {
                    ImageType::MinimalIso => Form::Minimal,
                    ImageType::FullIso | ImageType::DisconnectedIso => Form::Full,
                },
                proof: Proof::None,
            })
        })
    }

    fn script<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, SourceError>> {
        Box::pin(async { Ok(boot_script(&self.hub()?, &*self.infra_env(name)?)) })
    }
}
