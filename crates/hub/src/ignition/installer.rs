//! Files made by an `openshift-install` program: manifests, people's own among them, then the configs of the nodes.

use super::program::{self, Call, RunError};
use super::workplace::Workplace;
use super::{MANIFESTS, Made, redact};
use crate::Hub;
use crate::usecase::cluster_files::install_config;
use muster_domain::cluster::Cluster;
use muster_domain::render::{manifests, single_node_names};
use std::path::{Path, PathBuf};

const INSTALL_CONFIG: &str = "install-config.yaml";

/// What is kept of what the program writes: its name for it, and ours.
const WANTED: [(&str, &str, Need); 7] = [
    ("bootstrap.ign", "bootstrap.ign", Need::Must),
    ("master.ign", "master.ign", Need::Must),
    ("worker.ign", "worker.ign", Need::Must),
    // Only releases that know the role write it.
    ("arbiter.ign", "arbiter.ign", Need::May),
    ("metadata.json", "metadata.json", Need::Must),
    // Complete only with the certificate of the ingress, which the running cluster sends.
    ("auth/kubeconfig", "kubeconfig-noingress", Need::Must),
    ("auth/kubeadmin-password", "kubeadmin-password", Need::Must),
];

/// A single node installs itself from memory; its bootstrap config has another name.
const SINGLE_NODE: &str = "bootstrap-in-place-for-live-iso.ign";

#[derive(PartialEq)]
enum Need {
    Must,
    May,
}

pub async fn make(hub: &Hub, cluster: &Cluster) -> Result<Made, String> {
    let program = program_for(hub, cluster)?;
    let config = install_config(hub, cluster)
        .map_err(|error| format!("The hub cannot make the install config: {error}"))?;
    let own = made_by_us(hub, cluster);
    let mut manifests = own.clone();
    // Theirs come last: a file of the same name is what they want it to be.
    manifests.extend(manifests_of_people(hub, cluster).await?);
    let place = Workplace::new(&hub.settings.installer.work_dir)
        .map_err(|error| format!("The hub has no directory to work in: {error}."))?;
    let run = Run {
        hub,
        cluster,
        program: &program,
        place: &place,
        secrets: redact::secrets(&config),
    };
    let made = run.all(&config, &manifests).await.map(|mut made| {
        made.extend(
            own.into_iter()
                .map(|(name, text)| (format!("{MANIFESTS}{name}"), text)),
        );
        made
    });
    // Removing many files may take a moment others should not wait for.
    let _ = tokio::task::spawn_blocking(move || drop(place)).await;
    made
}

/// The program for the cluster's release.
fn program_for(hub: &Hub, cluster: &Cluster) -> Result<PathBuf, String> {
    let Some(pattern) = &hub.settings.installer.program else {
        return Err(
            "This hub has no openshift-install program. Start it with --openshift-install PATH, upload ignition \
             files for the cluster's hosts, or name an ignition endpoint."
                .into(),
        );
    };
    let version = &cluster.openshift_version;
    let is_plain = !version.is_empty()
        && !version.contains("..")
        && version
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte));
    if pattern.contains("{version}") && !is_plain {
        return Err(format!(
            "--openshift-install puts the cluster's release into a path, but {version:?} cannot be part of \
             one."
        ));
    }
    let path = PathBuf::from(pattern.replace("{version}", version));
    if path.is_file() {
        // Its work directory is another one, so a relative path would lead elsewhere.
        return std::path::absolute(&path)
            .map_err(|error| format!("The hub cannot use {}: {error}.", path.display()));
    }
    Err(format!(
        "There is no openshift-install program for release {version} at {}. Put it there, or start the hub with \
         another --openshift-install.",
        path.display()
    ))
}

/// What the cluster's settings ask for beside the install config, as paths in the work directory.
fn made_by_us(hub: &Hub, cluster: &Cluster) -> Made {
    let hosts = hub.hosts_of(cluster.id);
    let mut all = manifests::of(cluster, &hosts);
    if hub.settings.checks.single_node_dns {
        all.extend(single_node_names::of(cluster, &hosts));
    }
    all.into_iter()
        .map(|manifest| {
            (
                format!("{}/{}", manifest.folder, manifest.name),
                manifest.text.into_bytes(),
            )
        })
        .collect()
}

/// People's manifests as paths in the work directory.
async fn manifests_of_people(hub: &Hub, cluster: &Cluster) -> Result<Made, String> {
    let failed = |error| format!("The hub cannot read the cluster's manifests: {error}.");
    let mut manifests = Made::new();
    for file in hub.store.file_list(cluster.id, MANIFESTS).await.map_err(failed)? {
        let content = hub
            .store
            .file_read(cluster.id, &file.path)
            .await
            .map_err(failed)?;
        let name = file.path.strip_prefix(MANIFESTS).unwrap_or(&file.path).to_owned();
        manifests.extend(content.map(|content| (name, content)));
    }
    Ok(manifests)
}

struct Run<'a> {
    hub: &'a Hub,
    cluster: &'a Cluster,
    program: &'a Path,
    place: &'a Workplace,
    /// What the program knows and must not repeat.
    secrets: Vec<String>,
}

impl Run<'_> {
    async fn all(&self, config: &str, manifests: &Made) -> Result<Made, String> {
        self.write(INSTALL_CONFIG, config.as_bytes())?;
        self.step("manifests").await?;
        self.add(manifests)?;
        self.step(if self.cluster.single_node() {
            "single-node-ignition-config"
        } else {
            "ignition-configs"
        })
        .await?;
        let mut made = self.collect()?;
        made.push((INSTALL_CONFIG.into(), config.into()));
        Ok(made)
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), String> {
        self.place
            .write(name, content)
            .map_err(|error| format!("The hub cannot write {name} for openshift-install: {error}."))
    }

    /// Patches are merged into the manifest they are named after; everything else is a file more.
    fn add(&self, manifests: &Made) -> Result<(), String> {
        let is_patch = |name: &str| name.contains(".yaml.patch") || name.contains(".yml.patch");
        for (name, content) in manifests.iter().filter(|(name, _)| !is_patch(name)) {
            self.write(name, content)?;
        }
        for (name, patch) in manifests.iter().filter(|(name, _)| is_patch(name)) {
            let target = name
                .rsplit_once(".patch")
                .map_or(name.as_str(), |(target, _)| target);
            let base = self.read(target)?.ok_or_else(|| {
                format!("The manifest {name} changes {target}, and openshift-install made no such file.")
            })?;
            let merged = super::patch::merged(&base, patch).map_err(|error| {
                format!("The hub cannot merge the manifest {name} into {target}: {error}.")
            })?;
            self.write(target, &merged)?;
        }
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        self.place
            .read(name)
            .map_err(|error| format!("The hub cannot read {name}, which openshift-install wrote: {error}."))
    }

    async fn step(&self, what: &str) -> Result<(), String> {
        let dir = self.place.path().to_string_lossy();
        let args = ["create", what, "--dir", &dir, "--log-level", "info"];
        let release = self.cluster.ocp_release_image.clone();
        let env: &[(&str, String)] = if release.is_empty() {
            &[]
        } else {
            &[("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE", release)]
        };
        let call = Call {
            program: self.program,
            args: &args,
            dir: self.place.path(),
            env,
            time: self.hub.settings.installer.time,
        };
        match program::run(&call).await {
            Ok(ended) if ended.status.success() => Ok(()),
            Ok(ended) => Err(format!(
                "openshift-install create {what} failed ({}): {}",
                ended.status,
                self.shown(&ended.complaint)
            )),
            Err(RunError::TookTooLong(complaint)) => Err(format!(
                "The hub stopped openshift-install create {what} after {} seconds: {}",
                call.time.as_secs(),
                self.shown(&complaint)
            )),
            Err(RunError::CannotStart(error)) => Err(format!(
                "The hub cannot run openshift-install at {}: {error}.",
                self.program.display()
            )),
        }
    }

    /// Its complaint as it may be shown: no secrets, no path of ours, and only the end.
    fn shown(&self, complaint: &str) -> String {
        let text = redact::redact(complaint, &self.secrets);
        let text = text.replace(&*self.place.path().to_string_lossy(), ".");
        match program::tail(&text) {
            "" => "it did not say why.".into(),
            tail => tail.to_owned(),
        }
    }

    fn collect(&self) -> Result<Made, String> {
        let mut made = Made::new();
        let single = self.cluster.single_node();
        for (theirs, ours, need) in WANTED {
            let theirs = if single && theirs == "bootstrap.ign" && self.place.has(SINGLE_NODE) {
                SINGLE_NODE
            } else {
                theirs
            };
            match self.read(theirs)? {
                Some(content) => made.push((ours.into(), checked(theirs, content)?)),
                // A single node writes its own config out of the bootstrap's.
                None if single && matches!(ours, "master.ign" | "worker.ign") => {
                    made.push((ours.into(), empty_like(&made)));
                }
                None if need == Need::May => {}
                None => {
                    return Err(format!("openshift-install succeeded but did not write {theirs}."));
                }
            }
        }
        Ok(made)
    }
}

/// A config of the same version in which there is nothing.
fn empty_like(made: &Made) -> Vec<u8> {
    let bootstrap = made.iter().find(|(name, _)| name == "bootstrap.ign");
    let version = bootstrap
        .and_then(|(_, content)| serde_json::from_slice::<serde_json::Value>(content).ok())
        .and_then(|config| config["ignition"]["version"].as_str().map(str::to_owned))
        .unwrap_or_else(|| "3.2.0".into());
    serde_json::json!({ "ignition": { "version": version } })
        .to_string()
        .into_bytes()
}

/// What hosts are installed with must be what it claims to be: they would fail on it one by one, hours later.
fn checked(name: &str, content: Vec<u8>) -> Result<Vec<u8>, String> {
    let problem = if name.ends_with(".ign") {
        ignition_problem(&content)
    } else if name.ends_with(".json") {
        serde_json::from_slice::<serde_json::Value>(&content)
            .err()
            .map(|_| "is not JSON".to_owned())
    } else {
        content.is_empty().then(|| "is empty".to_owned())
    };
    match problem {
        None => Ok(content),
        Some(problem) => Err(format!(
            "openshift-install wrote a {name} that the hub cannot use: it {problem}."
        )),
    }
}

fn ignition_problem(content: &[u8]) -> Option<String> {
    let Ok(config) = serde_json::from_slice::<serde_json::Value>(content) else {
        return Some("is not JSON".into());
    };
    match config["ignition"]["version"].as_str() {
        Some(version) if version.starts_with("3.") => None,
        Some(_) | None => Some("is not an Ignition config of version 3".into()),
    }
}
