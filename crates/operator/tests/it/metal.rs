//! A machine with a power controller: its BareMetalHost, and somebody who plays the bare metal operator on it as far as
//! others see it. It moves the machine from state to state, boots it, leaves it alone while it is paused, lets go of it
//! while it is detached, and restores its status from the annotation.

use crate::world::{Running, World, run_over};
use futures_util::StreamExt;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher::watch_object;
use muster_operator::crd::keys::{annotation, label};
use muster_operator::crd::metal3::BareMetalHost;
use muster_operator::runtime::clock::Clock;
use muster_operator::{Key, MetalBoot, Options};
use muster_simfleet::{Power, Remote};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub const HOST: &str = "rack-1";
/// Much longer than anything takes; only a failure waits for it.
const DEADLINE: Duration = Duration::from_secs(60);

/// A world whose operator manages machines.
pub struct Room {
    pub world: World,
    pub clock: Clock,
    boot: MetalBoot,
    /// Which controllers run, as people choose them.
    controllers: &'static str,
    /// What the site decides for all its machines.
    site: fn(&mut Options),
    running: Option<Running>,
}

impl Room {
    /// Where every image has cooled down.
    pub async fn start(boot: MetalBoot) -> Self {
        let room = Self::at_once(boot).await;
        room.clock.advance(Duration::from_secs(3600));
        room
    }

    pub async fn at_once(boot: MetalBoot) -> Self {
        Self::with(boot, "").await
    }

    /// Where somebody else publishes preprovisioning images.
    pub async fn without_images(boot: MetalBoot) -> Self {
        let room = Self::with(boot, "-preprovisioning-image").await;
        room.clock.advance(Duration::from_secs(3600));
        room
    }

    /// Where the site decides more.
    pub async fn of_site(boot: MetalBoot, site: fn(&mut Options)) -> Self {
        let mut room = Self::start(boot).await;
        room.stop_operator().await;
        room.site = site;
        room.start_operator().await;
        room
    }

    async fn with(boot: MetalBoot, controllers: &'static str) -> Self {
        let mut room = Self {
            world: World::without_operator().await,
            clock: Clock::default(),
            boot,
            controllers,
            site: |_| (),
            running: None,
        };
        room.start_operator().await;
        room
    }

    /// The Secret that says where Ironic is, in this world.
    pub fn ironic(&self) -> Key {
        Key::new(&self.world.pool, "ironic")
    }

    pub async fn start_operator(&mut self) {
        let mut options = Options {
            metal_boot: self.boot,
            clock: self.clock.clone(),
            controllers: self.controllers.parse().unwrap(),
            ironic: self.ironic(),
            ..self.world.options()
        };
        (self.site)(&mut options);
        self.running = Some(run_over(options, self.world.server.connection().await));
    }

    pub async fn stop_operator(&mut self) {
        self.running.take().unwrap().stop().await;
    }

    /// A fresh operator reconciles everything: if all is as it should be, it writes nothing.
    pub async fn assert_converged(&mut self) {
        self.idle().await;
        self.stop_operator().await;
        self.start_operator().await;
        self.idle().await;
        let requests = &self.running.as_ref().unwrap().requests;
        assert_eq!(requests.writes(), 0, "{:?}", requests.snapshot());
    }

    pub async fn idle(&self) {
        self.operator().idle().await;
    }

    pub fn operator(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    /// How often the operator has reconciled machines.
    pub async fn reconciles(&self) -> u64 {
        self.operator().counted("reconciles", "bare-metal-host").await
    }

    /// As people write it.
    pub async fn machine(&self, mac: &str, spec: Value) -> BareMetalHost {
        let mut whole = json!({ "bootMACAddress": mac, "online": false, "bootMode": "UEFI",
            "bmc": { "address": "redfish://10.0.0.9/1", "credentialsName": "rack-1-bmc" } });
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let mut host = BareMetalHost::new(HOST, serde_json::from_value(whole).unwrap());
        host.labels_mut().insert(label::INFRA_ENV.into(), "lab".into());
        self.world.create(&self.world.pool, &host).await
    }

    pub async fn annotate(&self, annotations: Value) -> BareMetalHost {
        self.change(json!({ "metadata": { "annotations": annotations } }))
            .await
    }

    pub async fn change(&self, patch: Value) -> BareMetalHost {
        self.world.patch(&self.world.pool, HOST, patch).await.unwrap()
    }

    pub async fn now(&self) -> BareMetalHost {
        self.world.get(&self.world.pool, HOST).await
    }

    pub async fn when(&self, what: &str, holds: impl Fn(&BareMetalHost) -> bool) -> BareMetalHost {
        self.world.when(&self.world.pool, HOST, what, holds).await
    }

    /// Waits until the operator has reconciled the machine as it is now: what is removed here comes back with a
    /// reconcile.
    pub async fn reconciled(&self) -> BareMetalHost {
        self.change(json!({ "metadata": { "labels": { label::BACKUP: null } } }))
            .await;
        self.when("reconciled", |host| host.labels().contains_key(label::BACKUP))
            .await
    }

    /// What the bare metal operator says of it.
    pub async fn status(&self, status: Value) {
        let api = self.world.api::<BareMetalHost>(&self.world.pool);
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(HOST, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}

pub fn noted<'a>(host: &'a BareMetalHost, annotation: &str) -> Option<&'a str> {
    host.annotations().get(annotation).map(String::as_str)
}

pub fn image(host: &BareMetalHost) -> Option<&str> {
    host.spec.image.as_ref().map(|image| image.url.as_str())
}

pub fn method(host: &BareMetalHost) -> Option<&str> {
    host.spec
        .custom_deploy
        .as_ref()
        .map(|deploy| deploy.method.as_str())
}

/// The bare metal operator.
pub struct MetalOperator {
    /// The machine, as soon as there is one.
    pub remote: Arc<OnceLock<Remote>>,
    diary: watch::Sender<Vec<String>>,
    task: JoinHandle<()>,
}

impl MetalOperator {
    pub fn start(room: &Room) -> Self {
        let remote = Arc::<OnceLock<Remote>>::default();
        let diary = watch::Sender::new(Vec::new());
        let task = tokio::spawn(work(
            room.world.api(&room.world.pool),
            remote.clone(),
            diary.clone(),
        ));
        Self { remote, diary, task }
    }

    /// What happened to the machine, in order; it is not returned again.
    pub fn diary(&self) -> Vec<String> {
        self.diary.send_replace(Vec::new())
    }

    /// Waits until so much has happened to the machine, and nothing else.
    pub async fn has_done(&self, expected: &[&str]) {
        let mut diary = self.diary.subscribe();
        let enough = diary.wait_for(|lines| lines.len() >= expected.len());
        let waited = tokio::time::timeout(DEADLINE, enough).await.is_ok();
        assert_eq!(self.diary(), expected, "waited long enough: {waited}");
    }
}

impl Drop for MetalOperator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn work(api: Api<BareMetalHost>, remote: Arc<OnceLock<Remote>>, diary: watch::Sender<Vec<String>>) {
    let note = |line: &str| diary.send_modify(|lines| lines.push(line.to_owned()));
    let mut changes = std::pin::pin!(watch_object(api.clone(), HOST));
    while let Some(change) = changes.next().await {
        let Ok(Some(host)) = change else { continue };
        let Some(next) = next(&host) else { continue };
        // Somebody else was faster: the newer object is on its way.
        if !write(&api, &host, &next).await {
            continue;
        }
        match next {
            Next::State(state) => {
                note(state);
                if boots(&host, state) {
                    note("boot");
                    remote.get().map(|remote| remote.boot_discovery(0));
                } else if state == "deprovisioning" {
                    remote.get().map(|remote| remote.power(0, Power::Off));
                }
            }
            Next::Operational(word) => note(word),
            Next::Restore(_) => note("restored"),
            Next::ForgetSaved => {}
        }
    }
}

async fn write(api: &Api<BareMetalHost>, host: &BareMetalHost, next: &Next) -> bool {
    let version = host.resource_version();
    let params = PatchParams::default();
    let status = match next {
        Next::State(state) => {
            let image = image(host).map(|url| json!({ "url": url }));
            json!({ "operationalStatus": "OK", "provisioning": { "state": state, "image": image },
                "inNewerVersions": { "kept": [1, 2] } })
        }
        Next::Operational(word) => json!({ "operationalStatus": word }),
        Next::Restore(status) => status.clone(),
        Next::ForgetSaved => {
            let patch = json!({ "metadata": { "resourceVersion": version,
                "annotations": { annotation::METAL3_STATUS: null } } });
            return api.patch(HOST, &params, &Patch::Merge(patch)).await.is_ok();
        }
    };
    let patch = json!({ "metadata": { "resourceVersion": version }, "status": status });
    api.patch_status(HOST, &params, &Patch::Merge(patch))
        .await
        .is_ok()
}

enum Next {
    State(&'static str),
    Operational(&'static str),
    Restore(Value),
    ForgetSaved,
}

fn next(host: &BareMetalHost) -> Option<Next> {
    if noted(host, annotation::METAL3_PAUSED).is_some() {
        return None;
    }
    let saved = noted(host, annotation::METAL3_STATUS);
    let state = host.state();
    match (state.is_empty(), saved) {
        (true, Some(saved)) => return Some(Next::Restore(serde_json::from_str(saved).unwrap())),
        (true, None) => return Some(Next::State("registering")),
        (false, Some(_)) => return Some(Next::ForgetSaved),
        (false, None) => {}
    }
    let detached = noted(host, annotation::METAL3_DETACHED).is_some();
    match (detached, host.operational_status()) {
        (true, "detached") => return None,
        (true, _) if matches!(state, "provisioned" | "available") => {
            return Some(Next::Operational("detached"));
        }
        (false, "detached") => return Some(Next::Operational("OK")),
        _ => {}
    }
    if host.metadata.deletion_timestamp.is_some() {
        return (state != "deleting").then_some(Next::State("deleting"));
    }
    let given = image(host).filter(|_| host.spec.online);
    let wants = given.is_some() || method(host).is_some();
    let has = host.status.as_ref()?.0["provisioning"]["image"]["url"].as_str();
    match state {
        "registering" | "deprovisioning" => Some(Next::State("available")),
        "available" if wants => Some(Next::State("provisioning")),
        "provisioning" | "provisioned" if !wants => Some(Next::State("deprovisioning")),
        // A live image runs at once; a deploy step ends when the test says so.
        "provisioning" if given.is_some() => Some(Next::State("provisioned")),
        "provisioned" if given != has => Some(Next::State("deprovisioning")),
        _ => None,
    }
}

fn boots(host: &BareMetalHost, state: &str) -> bool {
    match image(host) {
        Some(_) => state == "provisioned",
        None => state == "provisioning",
    }
}

/// What the bare metal operator reads of a machine that it did not inspect. It refuses a text with anything else in it.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct HardwareDetails {
    hostname: String,
    system_vendor: SystemVendor,
    ram_mebibytes: i64,
    cpu: Cpu,
    nics: Vec<Nic>,
    storage: Vec<Storage>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct SystemVendor {
    manufacturer: String,
    product_name: String,
    serial_number: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Cpu {
    arch: String,
    model: String,
    clock_megahertz: f64,
    flags: Vec<String>,
    count: i64,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Nic {
    name: String,
    model: String,
    mac: String,
    ip: String,
    speed_gbps: i64,
    vlan_id: i32,
    pxe: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Storage {
    name: String,
    rotational: bool,
    size_bytes: i64,
    vendor: String,
    model: String,
    serial_number: String,
    wwn: String,
    wwn_vendor_extension: String,
    wwn_with_extension: String,
    hctl: String,
}

impl HardwareDetails {
    pub fn read(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}
