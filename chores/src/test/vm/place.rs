//! One scenario's own hub, the machines that arrive there, and what people do with them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::machine::{Firmware, Machine, Media, Spec, tail};
use super::net;
use super::stage::{Stage, muster};
use crate::hub::{self, Hub};
use crate::{http, port, process, wait};

/// A boot takes ten seconds alone, and much longer beside five others on two cores.
pub const BOOT: Duration = Duration::from_secs(150);
/// From the first question of the agent to a verdict: a few polls.
pub const TALK: Duration = Duration::from_secs(90);
/// Download, writing, reboot, first report.
pub const INSTALL: Duration = Duration::from_secs(240);

/// Each look is a request, and the hub has other things to do.
const LOOK: Duration = Duration::from_millis(300);

/// What the machines of these tests have, and no more.
const REQUIREMENTS: &str = r#"[{"version": "default",
  "master": {"cpu_cores": 1, "ram_mib": 128, "disk_size_gb": 1, "installation_disk_speed_threshold_ms": 5000},
  "worker": {"cpu_cores": 1, "ram_mib": 128, "disk_size_gb": 1, "installation_disk_speed_threshold_ms": 5000},
  "arbiter": {"cpu_cores": 1, "ram_mib": 128, "disk_size_gb": 1, "installation_disk_speed_threshold_ms": 5000},
  "sno": {"cpu_cores": 1, "ram_mib": 128, "disk_size_gb": 1, "installation_disk_speed_threshold_ms": 5000}}]"#;

const IGNITION: &str = r#"{"ignition": {"version": "3.4.0"},
  "storage": {"files": [{"path": "/etc/motd", "contents": {"source": "data:,installed%20by%20muster%0A"}}]}}"#;

/// A release the hub offers, so that a discovery image of it is on offer, too.
const RELEASE: &str = "4.21";

pub struct Place<'a> {
    pub stage: &'a Stage,
    pub name: &'static str,
    /// The base image its hub offers.
    base: &'static str,
    dir: tempfile::TempDir,
    port: u16,
    hub: Option<Hub>,
    pub infra_env: String,
    started: Instant,
    /// What was last told of each host.
    told: RefCell<HashMap<String, String>>,
    consoles: RefCell<Vec<PathBuf>>,
}

impl<'a> Place<'a> {
    /// A hub with an InfraEnv; more arguments of its creation may be given.
    pub fn open(
        stage: &'a Stage,
        name: &'static str,
        base: &'static str,
        infra_env: &[&str],
    ) -> Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix(&format!("muster-{name}-"))
            .tempdir()?;
        let mut place = Self {
            stage,
            name,
            base,
            dir,
            // Hosts are told the address of a hub that may start again, so it is chosen before.
            port: port::free()?,
            hub: None,
            infra_env: String::new(),
            started: Instant::now(),
            told: RefCell::default(),
            consoles: RefCell::default(),
        };
        place.start_hub()?;
        let words = ["infra-env", "create", "lab", "--openshift-version", RELEASE];
        place.muster(&[&words, infra_env].concat())?;
        let made = http::get(&place.api("/infra-envs"))?;
        let id = made[0]["id"].as_str().context("the InfraEnv has no id")?;
        place.infra_env = id.to_owned();
        Ok(place)
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// As this machine reaches the hub.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// As guests reach it.
    pub fn guest_url(&self) -> String {
        format!("http://{}:{}", net::HOST, self.port)
    }

    fn api(&self, path: &str) -> String {
        format!("{}/api/assisted-install/v2{path}", self.url())
    }

    /// Starts the hub, or starts it again on what it left behind.
    pub fn start_hub(&mut self) -> Result<()> {
        let data_dir = self.dir().join("data");
        let images = json!([{"openshift_version": RELEASE, "cpu_architecture": "x86_64",
            "url": self.stage.files.url(self.base), "version": "muster"}]);
        let more = [
            "--base-url".into(),
            self.guest_url(),
            "--os-images".into(),
            images.to_string(),
            "--hw-requirements".into(),
            REQUIREMENTS.into(),
            "--agent-poll".into(),
            "2s".into(),
        ];
        let log = data_dir.join("hub.log");
        if log.exists() {
            fs::rename(&log, data_dir.join("hub.log.before"))?;
        }
        let listen = format!("127.0.0.1:{}", self.port);
        let options = hub::Options {
            binary: &self.stage.muster,
            listen: &listen,
            data_dir: &data_dir,
            database: None,
            ends_with_us: true,
        };
        self.hub = Some(Hub::start_with(&options, &more.map(OsString::from))?);
        Ok(())
    }

    pub fn kill_hub(&mut self) -> Result<()> {
        self.say("hub", "killed");
        self.hub.take().context("the hub runs")?.kill()
    }

    /// Ends everything; a hub that does not end well is an error.
    pub fn close(mut self) -> Result<()> {
        self.hub.take().map_or(Ok(()), Hub::stop)
    }

    pub fn say(&self, who: &str, what: &str) {
        let now = self.stage.started.elapsed().as_secs_f64();
        let own = self.started.elapsed().as_secs_f64();
        println!("  {now:6.1} s  {:<8} {own:6.1} s  {who}: {what}", self.name);
    }

    /// What helps to see why a scenario failed.
    pub fn evidence(&self) -> String {
        let mut parts: Vec<String> = self.consoles.borrow().iter().map(|path| tail(path)).collect();
        parts.push(hub::tail(&self.dir().join("data/hub.log")));
        parts.join("\n\n")
    }

    pub fn muster(&self, words: &[&str]) -> Result<String> {
        let mut command = muster(&self.stage.muster, &self.url(), self.dir());
        let out = process::output(command.args(words))?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    pub fn machine(&self, name: &str, firmware: Firmware, media: Media, net: String) -> Result<Machine> {
        let spec = Spec {
            name: name.to_owned(),
            number: self.stage.number(),
            firmware,
            media,
            net,
            disk_bytes_per_second: None,
        };
        let machine = Machine::new(spec, self.dir())?;
        self.consoles.borrow_mut().push(machine.console.clone());
        Ok(machine)
    }

    /// The link to the InfraEnv's discovery image, as this machine reaches it.
    pub fn image_url(&self) -> Result<String> {
        let url = self.muster(&["infra-env", "download", "lab", "image-url"])?;
        Ok(url.trim().replacen(&self.guest_url(), &self.url(), 1))
    }

    /// Where [`Self::iso`] puts it.
    pub fn iso_path(&self) -> PathBuf {
        self.dir().join("lab.iso")
    }

    /// The discovery image as a file.
    pub fn iso(&self) -> Result<PathBuf> {
        let path = self.iso_path();
        let reply = ureq::get(self.image_url()?)
            .call()
            .context("the discovery image")?;
        std::io::copy(&mut reply.into_body().into_reader(), &mut File::create(&path)?)?;
        Ok(path)
    }

    fn host(&self, machine: &Machine) -> Result<Option<Value>> {
        let hosts = http::get(&self.api(&format!("/infra-envs/{}/hosts", self.infra_env)))?;
        let all = hosts.as_array().context("the hosts are no list")?;
        Ok(all
            .iter()
            .find(|host| host["id"] == machine.uuid.as_str())
            .cloned())
    }

    /// Waits until the hub sees the machine in a status; says each change on the way.
    pub fn until(&self, machine: &mut Machine, wanted: &str, limit: Duration) -> Result<Value> {
        let mut last = Value::Null;
        let what = format!("{} to be {wanted}", machine.spec.name);
        let seen = wait::until_every(LOOK, &what, limit, || {
            machine.check()?;
            let Some(host) = self.host(machine)? else {
                return Ok(None);
            };
            self.tell(machine, &host);
            last = host;
            match last["status"].as_str().unwrap_or_default() {
                status if status == wanted => Ok(Some(())),
                "error" => bail!("{} failed: {}", machine.spec.name, last["status_info"]),
                _ => Ok(None),
            }
        });
        seen.with_context(|| format!("its last status: {} {}", last["status"], last["status_info"]))?;
        Ok(last)
    }

    /// The hub sees the machine in the same status up to that moment.
    pub fn stays(&self, machine: &mut Machine, status: &str, end: Instant) -> Result<()> {
        let what = format!("{} to stay {status}", machine.spec.name);
        let length = end.saturating_duration_since(Instant::now());
        wait::until_every(LOOK, &what, length + TALK, || {
            machine.check()?;
            let host = self.host(machine)?.unwrap_or_default();
            self.tell(machine, &host);
            ensure!(
                host["status"] == status,
                "it is {} meanwhile: {}",
                host["status"],
                host["status_info"]
            );
            Ok((Instant::now() >= end).then_some(()))
        })
    }

    /// Waits until the machine has told what it is, whatever the hub thinks of it.
    pub fn until_registered(&self, machine: &mut Machine, limit: Duration) -> Result<Value> {
        let what = format!("{} to register", machine.spec.name);
        wait::until_every(LOOK, &what, limit, || {
            machine.check()?;
            let host = self.host(machine)?.unwrap_or_default();
            self.tell(machine, &host);
            let told = host["inventory"].as_str().is_some_and(|text| !text.is_empty());
            Ok(told.then_some(host))
        })
    }

    /// Waits until the host has failed; gives the reason.
    pub fn until_error(&self, machine: &mut Machine, limit: Duration) -> Result<String> {
        let what = format!("{} to fail", machine.spec.name);
        wait::until_every(LOOK, &what, limit, || {
            machine.check()?;
            let host = self.host(machine)?.unwrap_or_default();
            self.tell(machine, &host);
            let info = host["status_info"].as_str().unwrap_or_default().to_owned();
            Ok((host["status"] == "error").then_some(info))
        })
    }

    /// Waits until so much of the image is written, in percent.
    pub fn until_written(&self, machine: &mut Machine, percent: u64, limit: Duration) -> Result<()> {
        let what = format!("{} to have written {percent} %", machine.spec.name);
        wait::until_every(LOOK, &what, limit, || {
            machine.check()?;
            let host = self.host(machine)?.unwrap_or_default();
            self.tell(machine, &host);
            let progress = &host["progress"];
            ensure!(progress["current_stage"] != "Rebooting", "it was too fast");
            let info = progress["progress_info"].as_str().unwrap_or_default();
            let done = info.trim_end_matches('%').parse::<u64>();
            Ok((done.is_ok_and(|done| done >= percent)).then_some(()))
        })
    }

    /// Waits for a stage of the installation.
    pub fn until_stage(&self, machine: &mut Machine, wanted: &str, limit: Duration) -> Result<()> {
        let what = format!("{} to come to {wanted:?}", machine.spec.name);
        wait::until_every(LOOK, &what, limit, || {
            machine.check()?;
            let host = self.host(machine)?.unwrap_or_default();
            self.tell(machine, &host);
            ensure!(host["status"] != "error", "it failed: {}", host["status_info"]);
            Ok((host["progress"]["current_stage"] == wanted).then_some(()))
        })
    }

    /// Waits until the console shows something.
    pub fn until_said(&self, machine: &mut Machine, text: &str, limit: Duration) -> Result<()> {
        let what = format!("{text:?} on the console of {}", machine.spec.name);
        wait::until_every(LOOK, &what, limit, || {
            machine.check()?;
            Ok(machine.said().contains(text).then_some(()))
        })
    }

    fn tell(&self, machine: &Machine, host: &Value) {
        let mut text = host["status"].as_str().unwrap_or_default().to_owned();
        let progress = &host["progress"];
        for part in [&progress["current_stage"], &progress["progress_info"]] {
            if let Some(part) = part.as_str().filter(|part| !part.is_empty()) {
                text.push_str(", ");
                text.push_str(part);
            }
        }
        let name = &machine.spec.name;
        let before = self.told.borrow_mut().insert(name.clone(), text.clone());
        if before.as_deref() != Some(&text) {
            self.say(name, &text);
        }
    }

    /// A cluster that brings its own ignition; the arguments are those of `muster cluster create`.
    pub fn cluster(&self, name: &str, roles: &[&str], more: &[&str]) -> Result<()> {
        self.muster(&[&["cluster", "create", name], more].concat())?;
        let file = self.dir().join("role.ign");
        fs::write(&file, IGNITION)?;
        let file = file.display().to_string();
        for role in roles {
            self.muster(&["cluster", "ignition", "set", name, "--role", role, &file])?;
        }
        Ok(())
    }

    pub fn bind(&self, machine: &mut Machine, cluster: &str) -> Result<()> {
        self.say(&machine.spec.name, &format!("is bound to cluster {cluster}"));
        self.muster(&["host", "bind", &machine.uuid, "--cluster", cluster])?;
        Ok(())
    }

    /// Which system the machine is written with.
    pub fn choose_system(&self, machine: &Machine, args: &[String]) -> Result<()> {
        let path = format!(
            "/infra-envs/{}/hosts/{}/installer-args",
            self.infra_env, machine.uuid
        );
        http::patch(&self.api(&path), &json!({ "args": args })).map(drop)
    }

    /// Waits for the whole cluster to be ready, and starts its installation.
    pub fn install(&self, cluster: &str) -> Result<()> {
        let limit = format!("{}s", TALK.as_secs());
        self.muster(&["cluster", "wait", cluster, "--for", "ready", "--timeout", &limit])?;
        self.say("cluster", &format!("{cluster} is installed"));
        self.muster(&["cluster", "install", cluster])?;
        Ok(())
    }

    pub fn until_cluster(&self, name: &str, wanted: &str, limit: Duration) -> Result<()> {
        let mut last = Value::Null;
        let what = format!("cluster {name} to be {wanted}");
        let seen = wait::until_every(LOOK, &what, limit, || {
            let clusters = http::get(&self.api("/clusters"))?;
            let found = clusters
                .as_array()
                .into_iter()
                .flatten()
                .find(|one| one["name"] == name);
            last = found.cloned().unwrap_or_default();
            Ok((last["status"] == wanted).then_some(()))
        });
        seen.with_context(|| format!("its last status: {} {}", last["status"], last["status_info"]))
    }

    pub fn delete_cluster(&self, name: &str) -> Result<()> {
        self.say("cluster", &format!("{name} is deleted"));
        self.muster(&["cluster", "delete", name])?;
        Ok(())
    }
}
