//! Answers requests for images. What is answered is decided here, once; [`router`] sends it through axum, [`wire`] by
//! `sendfile`.

mod body;
mod cache;
pub mod gate;
mod meter;
pub mod metrics;
pub mod outlet;
pub mod path;
pub mod progress;
pub mod range;
pub mod reply;
pub mod router;
pub mod wire;

use crate::base::Base;
use crate::catalog::{Catalog, OsImage};
use crate::depot::{Depot, chain};
use crate::error::ImageError;
use crate::layout::Layout;
use crate::overlay;
use crate::source::{Ask, PayloadSource, SourceError};
pub use cache::Counts;
use cache::{Cache, Key, Place};
use gate::Gate;
use http::{HeaderMap, Method, StatusCode, Uri, header};
pub use meter::Meter;
use path::{Artifact, Route};
use progress::{Progress, Reader, Readers, Totals};
use reply::{Reply, Representation, put};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Smaller replies need no pass: a BMC's reads of some kilobytes must not wait behind whole downloads.
const SMALL: u64 = 1024 * 1024;
/// Requests for different images are made side by side; for the same one, once.
const MAKERS: usize = 64;

#[derive(Clone, Debug)]
pub struct Settings {
    /// How clients reach this service; minimal images fetch their root file system there.
    pub base_url: String,
    /// Large replies at a time.
    pub streams: usize,
    /// How long a request waits for a base image that is being fetched before the answer asks it to come back.
    pub patience: Duration,
    /// The same for boot loaders: they do not come back, their machine goes on without an image.
    pub loader_patience: Duration,
    /// How long an answer of the source to "changed, and may this client?" is believed. Zero asks every time.
    pub fresh_for: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            base_url: String::new(),
            streams: 400,
            patience: Duration::from_secs(20),
            loader_patience: Duration::from_secs(30 * 60),
            fresh_for: Duration::ZERO,
        }
    }
}

/// A request, whoever parsed it.
pub struct Asked<'a> {
    pub method: &'a Method,
    pub uri: &'a Uri,
    pub headers: &'a HeaderMap,
    pub client: IpAddr,
}

/// What to send, and what to tell while sending.
pub struct Answer {
    pub reply: Reply,
    pub meter: Option<Meter>,
}

#[derive(Clone)]
pub struct Images {
    inner: Arc<Inner>,
}

struct Inner {
    depot: Depot,
    catalog: RwLock<Catalog>,
    source: Arc<dyn PayloadSource>,
    settings: Settings,
    cache: Cache,
    gate: Gate,
    readers: Arc<Readers>,
    makers: Vec<tokio::sync::Mutex<()>>,
    fresh: Mutex<HashMap<Ask, (Instant, SystemTime)>>,
    evictions_seen: AtomicU64,
}

impl Images {
    pub fn new(depot: Depot, catalog: Catalog, source: Arc<dyn PayloadSource>, settings: Settings) -> Images {
        let inner = Inner {
            depot,
            catalog: RwLock::new(catalog),
            source,
            gate: Gate::new(settings.streams),
            settings,
            cache: Cache::default(),
            readers: Arc::default(),
            makers: (0..MAKERS).map(|_| tokio::sync::Mutex::default()).collect(),
            fresh: Mutex::default(),
            evictions_seen: AtomicU64::new(0),
        };
        Images {
            inner: Arc::new(inner),
        }
    }

    pub fn set_catalog(&self, catalog: Catalog) {
        *self
            .inner
            .catalog
            .write()
            .unwrap_or_else(|broken| broken.into_inner()) = catalog;
    }

    pub fn depot(&self) -> &Depot {
        &self.inner.depot
    }

    /// How far clients have read the image of one InfraEnv, or all images.
    pub fn progress(&self, image: Option<&str>) -> Vec<Progress> {
        self.inner.readers.list(image)
    }

    /// All clients together.
    pub fn totals(&self) -> Totals {
        self.inner.readers.totals()
    }

    /// How often an image was at hand, and what those in memory take.
    pub fn cache(&self) -> Counts {
        self.inner.cache.counts()
    }

    /// Starts fetching a base image that machines are about to ask for; returns at once.
    pub fn expect(&self, version: &str, architecture: &str) {
        if let Ok(os) = self.inner.os(version, architecture, Artifact::Initrd) {
            drop(self.inner.depot.watch(&os));
        }
    }

    /// Requests that wait for a pass.
    pub fn waiting(&self) -> usize {
        self.inner.gate.waiting()
    }

    pub async fn answer(&self, asked: &Asked<'_>) -> Answer {
        if asked.method != Method::GET && asked.method != Method::HEAD {
            let mut reply = Reply::text(StatusCode::METHOD_NOT_ALLOWED, "images can be read, not written");
            put(&mut reply.headers, header::ALLOW, "GET, HEAD");
            return Answer { reply, meter: None };
        }
        match self.inner.answered(asked).await {
            Ok(answer) => answer,
            Err(reply) => Answer {
                reply: reply.for_method(asked.method),
                meter: None,
            },
        }
    }
}

/// An image and the name it goes by in lists.
struct Found {
    key: Key,
    image: Arc<Representation>,
    reader: Reader,
}

impl Inner {
    async fn answered(&self, asked: &Asked<'_>) -> Result<Answer, Reply> {
        let refused = |(status, text)| Reply::text(status, text);
        let mut route = path::route(asked.uri.path(), asked.uri.query(), asked.headers).map_err(refused)?;
        if let Route::ShortIso(name) = &route {
            route = self.long(name).await?;
        }
        let (found, edition) = match route {
            Route::Image {
                id,
                version,
                architecture,
                artifact,
                edition,
                proof,
            } => {
                let os = self.os(&version, &architecture, artifact)?;
                let ask = Ask {
                    id,
                    form: artifact.form(),
                    proof,
                };
                (self.of_infra_env(&ask, &os, artifact, asked).await?, edition)
            }
            Route::Boot {
                version,
                architecture,
                artifact,
            } => {
                let os = self.os(&version, &architecture, artifact)?;
                (self.of_base(&os, artifact, asked).await?, String::new())
            }
            Route::ShortScript(name) => {
                let text = self.source.script(&name).await.map_err(source_reply)?;
                return Ok(Answer {
                    reply: Reply::text(StatusCode::OK, text.trim_end()).for_method(asked.method),
                    meter: None,
                });
            }
            // A short name cannot stand for another short name.
            Route::ShortIso(_) => return Err(Reply::text(StatusCode::NOT_FOUND, "there is no such image")),
        };
        let place = Place {
            client: asked.client,
            key: found.key,
            edition,
        };
        let image = self.cache.pinned(place, &found.image, continues(asked));
        let reply = reply::reply(asked.method, asked.headers, &image, SystemTime::now());
        let pass = match reply.body.len() > SMALL {
            true => Some(self.gate.enter(asked.client).await),
            false => None,
        };
        let meter = (!reply.parts.is_empty()).then(|| {
            Meter::new(
                &self.readers,
                found.reader,
                &image.etag,
                image.layout.len(),
                reply.parts.clone(),
                pass,
            )
        });
        Ok(Answer { reply, meter })
    }

    async fn long(&self, name: &str) -> Result<Route, Reply> {
        let target = self.source.short(name).await.map_err(source_reply)?;
        Ok(Route::Image {
            id: target.id,
            version: target.version,
            architecture: target.architecture,
            artifact: match target.form {
                crate::source::Form::Full => Artifact::FullIso,
                crate::source::Form::Minimal => Artifact::MinimalIso,
            },
            edition: String::new(),
            proof: target.proof,
        })
    }

    /// ISOs that are not offered are missing; for the rest the query is wrong.
    fn os(&self, version: &str, architecture: &str, artifact: Artifact) -> Result<OsImage, Reply> {
        let catalog = self.catalog.read().unwrap_or_else(|broken| broken.into_inner());
        let status = if artifact.is_iso() {
            StatusCode::NOT_FOUND
        } else {
            StatusCode::BAD_REQUEST
        };
        let missing = || {
            Reply::text(
                status,
                format!("there is no base image for {version} on {architecture}"),
            )
        };
        catalog.find(version, architecture).cloned().ok_or_else(missing)
    }

    async fn of_infra_env(
        &self,
        ask: &Ask,
        os: &OsImage,
        artifact: Artifact,
        asked: &Asked<'_>,
    ) -> Result<Found, Reply> {
        // First whether this client may: nothing is fetched for a stranger.
        let changed = self.changed(ask).await?;
        let base = self.base(os, asked.headers).await?;
        let key = Key {
            id: ask.id.clone(),
            base_sha256: base.areas.sha256.clone(),
            artifact,
        };
        let reader = Reader {
            client: asked.client,
            image: ask.id.clone(),
            artifact: artifact.word().to_owned(),
        };
        if let Some(image) = self.cache.find(&key, changed) {
            return Ok(Found { key, image, reader });
        }
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let maker = &self.makers[usize::try_from(hasher.finish() % MAKERS as u64).unwrap_or_default()];
        let _one_at_a_time = maker.lock().await;
        if let Some(image) = self.cache.find(&key, changed) {
            return Ok(Found { key, image, reader });
        }
        let (payload, changed) = self.source.payload(ask).await.map_err(source_reply)?;
        let rootfs_url = format!(
            "{}/boot-artifacts/rootfs?arch={}&version={}",
            self.settings.base_url.trim_end_matches('/'),
            os.cpu_architecture,
            os.version
        );
        let made = tokio::task::spawn_blocking(move || {
            let layout = match artifact {
                Artifact::FullIso => overlay::full(&base, &payload),
                Artifact::MinimalIso => overlay::minimal(&base, &payload, &rootfs_url),
                Artifact::Initrd => overlay::initrd(&base, &payload),
                Artifact::InitrdAddrsize => overlay::initrd_addrsize(&base, &payload),
                Artifact::Kernel | Artifact::Rootfs | Artifact::InsFile => part(&base, artifact),
            }?;
            Ok::<_, ImageError>(represented(&base, layout, changed))
        });
        let (layout, etag, modified) = finished(made.await)?;
        let image = Arc::new(Representation {
            layout,
            etag,
            modified,
            content_type: "application/octet-stream",
            filename: filename(&ask.id, artifact),
        });
        self.cache.keep(key.clone(), changed, &image);
        Ok(Found { key, image, reader })
    }

    /// Never changes as long as the base image is the same.
    async fn of_base(&self, os: &OsImage, artifact: Artifact, asked: &Asked<'_>) -> Result<Found, Reply> {
        let base = self.base(os, asked.headers).await?;
        let key = Key {
            id: String::new(),
            base_sha256: base.areas.sha256.clone(),
            artifact,
        };
        let reader = Reader {
            client: asked.client,
            image: format!("{}/{}", os.version, os.cpu_architecture),
            artifact: artifact.word().to_owned(),
        };
        let changed = base
            .file
            .metadata()
            .and_then(|data| data.modified())
            .unwrap_or(UNIX_EPOCH);
        if let Some(image) = self.cache.find(&key, changed) {
            return Ok(Found { key, image, reader });
        }
        let layout = part(&base, artifact).map_err(|error| image_reply(&error))?;
        let (layout, etag, modified) = represented(&base, layout, changed);
        let image = Arc::new(Representation {
            layout,
            etag,
            modified,
            content_type: "application/octet-stream",
            filename: filename("", artifact),
        });
        self.cache.keep(key.clone(), changed, &image);
        Ok(Found { key, image, reader })
    }

    async fn changed(&self, ask: &Ask) -> Result<SystemTime, Reply> {
        let fresh_for = self.settings.fresh_for;
        if !fresh_for.is_zero() {
            let fresh = self.fresh.lock().unwrap_or_else(|broken| broken.into_inner());
            if let Some((at, changed)) = fresh.get(ask)
                && at.elapsed() < fresh_for
            {
                return Ok(*changed);
            }
        }
        let changed = self.source.changed(ask).await.map_err(source_reply)?;
        if !fresh_for.is_zero() {
            let mut fresh = self.fresh.lock().unwrap_or_else(|broken| broken.into_inner());
            if fresh.len() > 10_000 {
                fresh.retain(|_, (at, _)| at.elapsed() < fresh_for);
            }
            fresh.insert(ask.clone(), (Instant::now(), changed));
        }
        Ok(changed)
    }

    async fn base(&self, os: &OsImage, headers: &HeaderMap) -> Result<Arc<Base>, Reply> {
        let patience = match is_boot_loader(headers) {
            true => self.settings.loader_patience,
            false => self.settings.patience,
        };
        let fetched = tokio::time::timeout(patience, self.depot.get(os)).await;
        let evictions = self.depot.evictions();
        if self.evictions_seen.swap(evictions, Ordering::AcqRel) != evictions {
            self.cache.retain(|sha256| self.depot.holds(sha256));
        }
        let text = match fetched {
            Ok(Ok(base)) => return Ok(base),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the hub is fetching the base image; ask again in a while".to_owned(),
        };
        let mut reply = Reply::text(StatusCode::SERVICE_UNAVAILABLE, text);
        put(&mut reply.headers, header::RETRY_AFTER, "15");
        Err(reply)
    }
}

/// iPXE, and firmware that boots over HTTP: both wait for an answer as long as the connection lives.
fn is_boot_loader(headers: &HeaderMap) -> bool {
    let agent = headers
        .get(header::USER_AGENT)
        .and_then(|value| value.to_str().ok());
    agent.is_some_and(|agent| agent.starts_with("iPXE/") || agent.starts_with("UefiHttpBoot/"))
}

/// A piece from the middle, without a way to notice a change.
fn continues(asked: &Asked<'_>) -> bool {
    let has = |name: header::HeaderName| asked.headers.contains_key(name);
    if asked.method == Method::HEAD || has(header::IF_RANGE) || has(header::IF_MATCH) {
        return false;
    }
    let range = asked
        .headers
        .get(header::RANGE)
        .and_then(|value| value.to_str().ok());
    let start = range
        .and_then(|range| range.split_once('='))
        .map(|(_, list)| list.trim());
    start.is_some_and(|start| !start.starts_with("0-"))
}

fn part(base: &Base, artifact: Artifact) -> Result<Layout, ImageError> {
    let areas = &base.areas;
    match artifact {
        Artifact::Kernel => base.part(areas.kernel, "kernel"),
        Artifact::Rootfs => base.part(areas.rootfs, "root file system of its own"),
        Artifact::InsFile => base.part(areas.ins_file, "list of what to load (ins-file)"),
        Artifact::Initrd => base.part(areas.initrd, "initrd"),
        Artifact::InitrdAddrsize => base.part(areas.initrd_addrsize, "initrd.addrsize"),
        Artifact::FullIso | Artifact::MinimalIso => Ok(base.full()?.layout.clone()),
    }
}

fn represented(base: &Base, layout: Layout, changed: SystemTime) -> (Layout, String, SystemTime) {
    let etag = format!("\"{}\"", overlay::fingerprint(&base.areas.sha256, &layout));
    let seconds = changed
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    (layout, etag, UNIX_EPOCH + Duration::from_secs(seconds))
}

fn finished<T>(made: Result<Result<T, ImageError>, tokio::task::JoinError>) -> Result<T, Reply> {
    match made {
        Ok(made) => made.map_err(|error| image_reply(&error)),
        Err(error) => {
            tracing::error!(%error, "making an image failed");
            Err(Reply::text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "could not make the image",
            ))
        }
    }
}

fn filename(id: &str, artifact: Artifact) -> String {
    match artifact {
        Artifact::FullIso | Artifact::MinimalIso => format!("{id}-discovery.iso"),
        Artifact::Initrd => format!("{id}-initrd.img"),
        Artifact::InitrdAddrsize => format!("{id}-initrd.addrsize"),
        Artifact::Kernel => "vmlinuz".to_owned(),
        Artifact::Rootfs => "rootfs.img".to_owned(),
        Artifact::InsFile => "generic.ins".to_owned(),
    }
}

fn source_reply(error: SourceError) -> Reply {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_GATEWAY);
    Reply::text(status, error.text)
}

fn image_reply(error: &ImageError) -> Reply {
    let status = match error {
        ImageError::Absent(_) => StatusCode::BAD_REQUEST,
        ImageError::TooLarge { .. } | ImageError::BadBase(_) | ImageError::Io(_) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    tracing::warn!(error = chain(error), "cannot make an image");
    Reply::text(status, error.to_string())
}
