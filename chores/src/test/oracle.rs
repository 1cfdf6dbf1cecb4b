//! What CoreOS's own tool reads in the images we serve is what we meant to write, for every era of the format.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::house::House;
use crate::hub::{self, Hub};
use crate::{http, process, project, tools};

const API: &str = "/api/assisted-install/v2/infra-envs";
const ARGUMENTS: [&str; 2] = ["console=ttyS7,115200n8", "muster.test=1"];

/// Eras without a place for kernel arguments that the tool knows.
const WITHOUT_ARGUMENTS: [&str; 2] = ["2020-09", "2023-03.s390x"];
/// The era whose places are told by a header of absolute offsets alone: the tool does not find them in a minimal image,
/// for which everything was moved.
const MOVED_ARGUMENTS: &str = "2021-01";

/// A genuine image, unpacked.
struct Era {
    name: String,
    architecture: &'static str,
    /// The release under which the hub offers it.
    version: String,
    file: PathBuf,
}

pub fn run(house: &mut House) -> Result<()> {
    let tool = Tool(tools::ensure_coreos_installer()?);
    let binary = house.binary()?;
    let home = tempfile::tempdir()?;
    let eras = unpack(home.path())?;
    ensure!(eras.len() >= 10, "there are only {} fixtures", eras.len());
    let images: Vec<Value> = eras
        .iter()
        .map(|era| {
            json!({ "openshift_version": era.version, "cpu_architecture": era.architecture,
                "url": era.file, "version": era.name })
        })
        .collect();
    let data_dir = home.path().join("data");
    let options = hub::Options {
        binary: &binary,
        listen: "127.0.0.1:0",
        data_dir: &data_dir,
        database: None,
        ends_with_us: true,
    };
    let images = Value::from(images).to_string();
    let hub = Hub::start_with(&options, &["--os-images".into(), images.into()])?;
    for era in &eras {
        let seen = Served::new(&hub, era, &tool)?.check(home.path());
        let seen = seen.with_context(|| format!("the image of {}", era.name))?;
        println!("{:<16} {}", era.name, seen.join(", "));
    }
    hub.stop()
}

fn unpack(home: &Path) -> Result<Vec<Era>> {
    let folder = project::root().join("crates/image/tests/fixtures");
    let mut names: Vec<String> = fs::read_dir(&folder)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".iso.xz"))
        .collect();
    names.sort();
    names
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let mut bytes = Vec::new();
            lzma_rust2::XzReader::new(fs::File::open(folder.join(name))?, true).read_to_end(&mut bytes)?;
            let file = home.join(name.trim_end_matches(".xz"));
            fs::write(&file, bytes)?;
            let short = name
                .trim_start_matches("embed-areas-")
                .trim_end_matches(".iso.xz");
            Ok(Era {
                architecture: if short.ends_with("s390x") {
                    "s390x"
                } else {
                    "x86_64"
                },
                name: short.to_owned(),
                version: format!("4.{}", 10 + number),
                file,
            })
        })
        .collect()
}

struct Tool(PathBuf);

impl Tool {
    fn say<I: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = I>) -> Result<Vec<u8>> {
        process::output(Command::new(&self.0).args(words))
    }

    fn about(&self, words: &str, file: &Path) -> Result<Vec<u8>> {
        let words = words.split(' ').map(OsStr::new);
        self.say(words.chain([file.as_os_str()]))
    }

    fn line(&self, words: &str, file: &Path) -> Result<String> {
        Ok(String::from_utf8(self.about(words, file)?)?.trim().to_owned())
    }

    /// The image as its builder made it.
    fn reset(&self, file: &Path) -> Result<Vec<u8>> {
        let out = file.with_extension("reset");
        // The tool does not write over what is there.
        fs::remove_file(&out).ok();
        self.say([
            OsStr::new("iso"),
            OsStr::new("reset"),
            OsStr::new("-o"),
            out.as_os_str(),
            file.as_os_str(),
        ])?;
        Ok(fs::read(out)?)
    }
}

/// One InfraEnv on one base image.
struct Served<'a> {
    hub: &'a Hub,
    era: &'a Era,
    tool: &'a Tool,
    id: String,
    link: String,
    /// The arguments the base image has, if it has room for any.
    arguments: Option<String>,
}

impl<'a> Served<'a> {
    fn new(hub: &'a Hub, era: &'a Era, tool: &'a Tool) -> Result<Self> {
        let arguments = match WITHOUT_ARGUMENTS.contains(&era.name.as_str()) {
            true => {
                ensure!(
                    tool.line("iso kargs show", &era.file).is_err(),
                    "{} has kernel arguments after all",
                    era.name
                );
                None
            }
            false => Some(tool.line("iso kargs show", &era.file)?),
        };
        let secret = r#"{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;
        let mut wish = json!({ "name": format!("era-{}", era.version), "pull_secret": secret,
            "openshift_version": era.version, "cpu_architecture": era.architecture });
        if arguments.is_some() {
            let list = ARGUMENTS.map(|value| json!({ "operation": "append", "value": value }));
            wish["kernel_arguments"] = json!(list);
        }
        if era.architecture == "x86_64" {
            wish["static_network_config"] = network();
        }
        let made = http::post(&format!("{}{API}", hub.url), &wish)?;
        let text = |key: &str| {
            let value = made[key].as_str().map(str::to_owned);
            value.with_context(|| format!("the InfraEnv has no {key}: {made}"))
        };
        Ok(Self {
            hub,
            era,
            tool,
            id: text("id")?,
            link: text("download_url")?,
            arguments,
        })
    }

    fn check(&self, home: &Path) -> Result<Vec<&'static str>> {
        let mut seen = self.full(home)?;
        if self.era.architecture == "x86_64" {
            seen.extend(self.minimal(home)?);
        }
        Ok(seen)
    }

    fn full(&self, home: &Path) -> Result<Vec<&'static str>> {
        let file = home.join("full.iso");
        fs::write(&file, bytes(&self.link)?)?;
        self.same_ignition(&file, "full-iso")?;
        let mut seen = vec!["full: ignition"];
        if let Some(before) = &self.arguments {
            let expected = format!("{before} {}", ARGUMENTS.join(" "));
            let found = self.tool.line("iso kargs show", &file)?;
            ensure!(
                found == expected,
                "kernel arguments are {found:?}, not {expected:?}"
            );
            seen.push("arguments");
        }
        ensure!(
            self.tool.reset(&file)? == fs::read(&self.era.file)?,
            "reset, our image is not the one it was made of"
        );
        seen.push("nothing else touched");
        self.further(&file)?;
        seen.push("can be edited further");
        Ok(seen)
    }

    fn minimal(&self, home: &Path) -> Result<Vec<&'static str>> {
        let file = home.join("minimal.iso");
        fs::write(&file, bytes(&self.link.replace("full.iso", "minimal.iso"))?)?;
        self.same_ignition(&file, "minimal-iso")?;
        let mut seen = vec!["minimal: ignition"];
        let found = self.tool.line("iso kargs show", &file);
        if self.arguments.is_none() || self.era.name == MOVED_ARGUMENTS {
            ensure!(
                found.is_err(),
                "the tool finds kernel arguments after all: {found:?}"
            );
        } else {
            let found = found?;
            let url = format!("coreos.live.rootfs_url=\"{}/boot-artifacts/rootfs?", self.hub.url);
            ensure!(
                found.contains(&url)
                    && found.ends_with(&ARGUMENTS.join(" "))
                    && !found.contains("coreos.liveiso"),
                "kernel arguments are {found:?}"
            );
            seen.push("arguments");
        }
        Ok(seen)
    }

    fn same_ignition(&self, file: &Path, kind: &str) -> Result<()> {
        let url = format!(
            "{}{API}/{}/downloads/files?file_name=discovery.ign&discovery_iso_type={kind}",
            self.hub.url, self.id
        );
        let meant = bytes(&url)?;
        let found = self.tool.about("iso ignition show", file)?;
        if found != meant {
            bail!(
                "the tool reads {} bytes of another configuration than the {} the hub renders",
                found.len(),
                meant.len()
            );
        }
        Ok(())
    }

    /// Somebody may want to change our image with the usual tool.
    fn further(&self, file: &Path) -> Result<()> {
        if self.arguments.is_some() {
            self.tool.about("iso kargs modify --append more=1", file)?;
            let found = self.tool.line("iso kargs show", file)?;
            ensure!(
                found.ends_with("muster.test=1 more=1"),
                "kernel arguments are {found:?}"
            );
        }
        self.same_ignition(file, "full-iso")?;
        self.tool.about("iso ignition remove", file)?;
        let left = self.tool.about("iso ignition show", file);
        ensure!(left.is_err(), "the configuration is still there");
        Ok(())
    }
}

fn network() -> Value {
    let yaml = "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4:\n    enabled: true\n    dhcp: false\n    \
        address:\n    - ip: 192.0.2.10\n      prefix-length: 24\n";
    json!([{ "network_yaml": yaml,
        "mac_interface_map": [{ "mac_address": "52:54:00:aa:00:01", "logical_nic_name": "eth0" }] }])
}

fn bytes(url: &str) -> Result<Vec<u8>> {
    let agent: ureq::Agent = ureq::Agent::config_builder().proxy(None).build().into();
    let mut reply = agent.get(url).call().with_context(|| format!("GET {url}"))?;
    let body = reply.body_mut().with_config().limit(1 << 30);
    body.read_to_vec().with_context(|| format!("reading {url}"))
}
